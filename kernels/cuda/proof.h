// A device is not trusted for being there: its kernels have to answer a few searches as the CPU does.
#pragma once

#include "device_state.h"

namespace sagitta::cuda {

/**
 * Allows kernels the shared memory that they want, and finds out which of them can be trusted:
 * `has_wgmma` is set if they are there, wanted and right. Throws `failure` where no kernels are.
 */
void prepare_kernels(sagitta_device& device, bool may_wgmma);

}  // namespace sagitta::cuda
