// The measured peak rates of a device, which bound a scan.
#pragma once

#include <cstdint>

namespace sagitta::cuda {

struct device_peaks {
  /** The rate of a copy within the device's memory, counting bytes read and bytes written. */
  double copy_bytes_per_second;
  /** Multiplications and additions of bytes by matrix instructions; 0 without such instructions. */
  double mma_operations_per_second;
  double wgmma_operations_per_second;
};

/** Measures the current device. Throws `failure`. */
device_peaks measure_peaks(bool may_wgmma);

/** A profiler that was started with recording off records what runs between these two calls. */
void start_profile();
void stop_profile();

}  // namespace sagitta::cuda
