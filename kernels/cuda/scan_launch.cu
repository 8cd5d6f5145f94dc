// Launches a pass of the scan with as many thread blocks as the device runs at once, split evenly
// among the groups of queries: all groups are then at about the same rows and share the L2 cache.

#include <algorithm>

#include "device_state.h"
#include "scan_kernels.h"
#include "tile.h"

namespace sagitta::cuda {
namespace {

scan_kernel kernel_of(const scan_shape& shape) {
  return shape.is_wgmma ? scan_wgmma_kernel(shape.group)
                        : scan_mma_kernel(shape.group / shape.warps_across);
}

}  // namespace

cudaError_t scan(const sagitta_device& device, const scan_shape& shape,
                 const scan_parameters& parameters) {
  const scan_kernel kernel = kernel_of(shape);
  int per_multiprocessor = 0;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_multiprocessor, kernel, scan_threads, shape.shared_bytes);
  if (error != cudaSuccess) return error;
  const uint32_t groups = parameters.query_count / shape.group;
  const auto resident =
      static_cast<uint32_t>(std::max(1, per_multiprocessor * device.properties.multiProcessorCount));
  const uint32_t tiles_at_once = shape.is_wgmma ? 2 : scan_warps / shape.warps_across;
  const uint32_t useful = (parameters.pass.tile_count + tiles_at_once - 1) / tiles_at_once;
  const uint32_t across = std::clamp(resident / groups, 1u, std::max(1u, useful));
  return launch(kernel, dim3(across, groups), scan_threads, shape.shared_bytes, device.searching,
                parameters);
}

cudaError_t prepare_scans(size_t byte_count, bool may_wgmma) {
  const auto allow = [&](scan_kernel kernel) {
    const cudaError_t error = preload(kernel);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(byte_count));
  };
  for (const uint32_t queries : {8u, 16u, 32u, 64u}) {
    const cudaError_t error = allow(scan_mma_kernel(queries));
    if (error != cudaSuccess) return error;
  }
  if (!may_wgmma) return cudaSuccess;
  for (const uint32_t group : {64u, 128u, 256u}) {
    const cudaError_t error = allow(scan_wgmma_kernel(group));
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace sagitta::cuda
