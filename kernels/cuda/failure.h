// The exception that calls of a device throw. It needs no CUDA header, so that the addon can catch it.
#pragma once

#include <string>

#include "../kernels.h"

namespace sagitta::cuda {

/**
 * A failed call: OUT_OF_MEMORY (of the device), OUT_OF_HOST_MEMORY, or DEVICE_LOST for errors after which
 * the device is unusable.
 */
struct failure {
  sagitta_status status;
  std::string what;
};

}  // namespace sagitta::cuda
