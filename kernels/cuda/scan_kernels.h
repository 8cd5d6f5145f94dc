// The kernels of the scan, as their launcher knows them.
#pragma once

#include "device_state.h"
#include "scan.h"

namespace sagitta::cuda {

using scan_kernel = void (*)(scan_parameters);

/** For warps of 8, 16, 32 or 64 queries. */
scan_kernel scan_mma_kernel(uint32_t warp_queries);

/** For groups of 64, 128 or 256 queries; of compute capability 9.0 only. */
scan_kernel scan_wgmma_kernel(uint32_t group);

/** Starts a pass, on the device's stream of searches. */
cudaError_t scan(const sagitta_device& device, const scan_shape& shape,
                 const scan_parameters& parameters);

/** Lets all scans use so much shared memory; once a device, before the first of them. */
cudaError_t allow_shared_memory(size_t byte_count, bool may_wgmma);

}  // namespace sagitta::cuda
