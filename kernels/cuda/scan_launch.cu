// Launches a pass of the scan with as many thread blocks as the device runs at once, split evenly among the
// groups of queries: all groups are then at about the same rows and share the L2 cache.

#include <algorithm>

#include "code_ring.h"
#include "device_state.h"
#include "scan_kernels.h"

namespace sagitta::cuda {
namespace {

/** A kernel and what its thread blocks take: threads, queries, tiles at once and shared memory. */
struct scan_launch {
  scan_kernel kernel;
  uint32_t threads;
  uint32_t group;
  uint32_t tiles_at_once;
  size_t shared_bytes;
};

scan_launch launch_of(const scan_shape& shape) {
  const uint32_t group = shape.group;
  if (shape.quad_count > 0) {
    return {scan_coarse_kernel(group), scan_threads, group, scan_warps, shape.shared_bytes};
  }
  if (shape.ring_stages > 0) {
    return {scan_wgmma_ring_kernel(group), ring_threads, group, warpgroups, shape.shared_bytes};
  }
  if (shape.is_wgmma) {
    return {scan_wgmma_kernel(group), scan_threads, group, warpgroups, shape.shared_bytes};
  }
  return {scan_mma_kernel(group / shape.warps_across), scan_threads, group,
          scan_warps / shape.warps_across, shape.shared_bytes};
}

/** The number of thread blocks of a kernel that the device runs at once; queried once per kernel and size. */
cudaError_t resident_blocks(sagitta_device& device, const scan_launch& what, uint32_t& count) {
  const std::pair key(reinterpret_cast<uintptr_t>(what.kernel), what.shared_bytes);
  const auto known = device.resident_blocks.find(key);
  if (known != device.resident_blocks.end()) {
    count = known->second;
    return cudaSuccess;
  }
  int per_multiprocessor = 0;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_multiprocessor, what.kernel, static_cast<int>(what.threads), what.shared_bytes);
  if (error != cudaSuccess) return error;
  count = static_cast<uint32_t>(
      std::max(1, per_multiprocessor * device.properties.multiProcessorCount));
  device.resident_blocks.emplace(key, count);
  return cudaSuccess;
}

/** Launches as many thread blocks as the device runs at once, or as the pass has tiles for. */
cudaError_t launch_scan(sagitta_device& device, const scan_launch& what,
                        const scan_parameters& parameters) {
  uint32_t resident = 0;
  const cudaError_t error = resident_blocks(device, what, resident);
  if (error != cudaSuccess) return error;
  resident = std::min(resident, device.tuning.scan_blocks_max);
  const uint32_t groups = parameters.query_count / what.group;
  const uint32_t useful =
      (parameters.pass.tile_count + what.tiles_at_once - 1) / what.tiles_at_once;
  const uint32_t across = std::clamp(resident / groups, 1u, std::max(1u, useful));
  return launch(what.kernel, dim3(across, groups), what.threads, what.shared_bytes,
                device.launches(), parameters);
}

}  // namespace

cudaError_t scan(sagitta_device& device, const scan_shape& shape,
                 const scan_parameters& parameters) {
  return launch_scan(device, launch_of(shape), parameters);
}

cudaError_t prepare_scans(size_t byte_count, bool may_wgmma) {
  const auto allow = [&](scan_kernel kernel) {
    const cudaError_t error = preload(kernel);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(byte_count));
  };
  for (const uint32_t queries : {8u, 16u, 32u, 64u}) {
    for (const scan_kernel kernel : {scan_mma_kernel(queries), scan_coarse_kernel(queries)}) {
      const cudaError_t error = allow(kernel);
      if (error != cudaSuccess) return error;
    }
  }
  if (!may_wgmma) return cudaSuccess;
  for (const uint32_t group : {64u, 128u, 256u}) {
    for (const scan_kernel kernel : {scan_wgmma_kernel(group), scan_wgmma_ring_kernel(group)}) {
      const cudaError_t error = allow(kernel);
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

}  // namespace sagitta::cuda
