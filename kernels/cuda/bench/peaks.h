// What a device can do at best, measured: the roofs under which a scan is.
#pragma once

#include <cstdint>

namespace sagitta::cuda {

struct device_peaks {
  /** Of a copy within the device's memory, bytes read and bytes written counted. */
  double copy_bytes_per_second;
  /** Multiplications and additions of bytes in matrix instructions; 0 where there are none. */
  double mma_operations_per_second;
  double wgmma_operations_per_second;
};

/** Of the current device. Throws `failure`. */
device_peaks measure_peaks(bool may_wgmma);

}  // namespace sagitta::cuda
