// The measured peak rates of a device, which bound a scan.
#pragma once

#include <cstdint>

namespace sagitta::cuda {

struct device_peaks {
  /** Of a copy within the device's memory, bytes read and bytes written counted. */
  double copy_bytes_per_second;
  /** Multiplications and additions of bytes by matrix instructions; 0 without such instructions. */
  double mma_operations_per_second;
  double wgmma_operations_per_second;
};

/** Measures the current device. Throws `failure`. */
device_peaks measure_peaks(bool may_wgmma);

/** What is between them is recorded by a profiler that was started with recording off. */
void start_profile();
void stop_profile();

}  // namespace sagitta::cuda
