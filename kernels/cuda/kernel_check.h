// The check of a device's kernels when it is opened: they must answer a few searches as the CPU does.
#pragma once

#include "device_state.h"

namespace sagitta::cuda {

/**
 * Allows the kernels their shared memory and checks their answers. Sets `has_wgmma` if the device has wgmma,
 * `device.kind` does not exclude it, and its answers are right. Throws `failure` when no kernel answers correctly.
 */
void prepare_kernels(sagitta_device& device, bool may_wgmma);

}  // namespace sagitta::cuda
