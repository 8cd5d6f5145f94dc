// The scan kernels and their launcher.
#pragma once

#include "device_state.h"
#include "scan.h"

namespace sagitta::cuda {

using scan_kernel = void (*)(scan_parameters);

/** Returns the kernel for warps of 8, 16, 32 or 64 queries. */
scan_kernel scan_mma_kernel(uint32_t warp_queries);

/** Returns the kernel for groups of 64, 128 or 256 queries; compute capability 9.0 only. */
scan_kernel scan_wgmma_kernel(uint32_t group);

/** Returns the same kernel with codes that pass through a ring in shared memory. */
scan_kernel scan_wgmma_ring_kernel(uint32_t group);

/** Returns the kernel for groups of 8, 16, 32 or 64 queries and coarse codes. */
scan_kernel scan_coarse_kernel(uint32_t group);

/** Launches a pass with as many thread blocks as the device runs at once. */
cudaError_t scan(sagitta_device& device, const scan_shape& shape,
                 const scan_parameters& parameters);

/** Loads the scan kernels and allows them this much shared memory; called once per device, before a scan. */
cudaError_t prepare_scans(size_t byte_count, bool may_wgmma);

}  // namespace sagitta::cuda
