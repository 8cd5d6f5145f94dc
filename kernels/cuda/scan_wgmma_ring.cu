// The scan of scan_wgmma.cu with codes that pass through shared memory: producer warps keep as many bytes
// in flight as shared memory has room for beside the queries, whatever the multiplying warps are doing, and
// the facts of rows arrive with their codes. Used only on request, until both scans have been measured.

#include "code_ring.h"
#include "scan_kernels.h"

namespace sagitta::cuda {
namespace {

/** Fills a warpgroup's ring with the tiles that it scans. */
__device__ inline void fill_ring(const scan_parameters& p, uint32_t group, uint32_t warpgroup,
                                 ring_end ring) {
  // No panels, because masks of queries are not stored.
  tile_context context{};
  context.parameters = &p;
  context.first_query = blockIdx.y * group;
  for (uint32_t i = first_tile(warpgroup); i < p.pass.tile_count; i += tile_step()) {
    if (!open_tile(context, i, blockIdx.y, group)) continue;
    if (threadIdx.x % 32 == 0) {
      for (uint32_t chunk = 0; chunk < p.chunk_count; chunk++) fill_stage(ring, context, chunk);
    }
    __syncwarp();
  }
}

template <int group>
__global__ __launch_bounds__(ring_threads, 1) void scan_wgmma_ring(
    const __grid_constant__ scan_parameters p) {
  await_earlier_kernels();
  if (is_skipped(p.condition)) return;
  uint8_t* const shared = dynamic_shared<uint8_t>();
  const size_t query_bytes = size_t{p.chunk_count} * chunk_dimensions * group;
  constexpr size_t beside = bytes_beside_codes(group, group, 1);
  const uint32_t warp = threadIdx.x / 32;
  const bool is_producer = warp >= scan_warps;
  const uint32_t warpgroup = is_producer ? warp - scan_warps : warp / group_warps;
  const ring_end ring = ring_of(shared, query_bytes + beside, p.ring_stages, warpgroup);
  tile_context context =
      open_block(p, shared, query_bytes, share_of_warp(group), !is_producer);
  if (is_producer && warpgroup < warpgroups && threadIdx.x % 32 == 0) open_ring(ring);
  fence_async_shared();
  __syncthreads();
  if (is_producer) {
    lower_registers<producer_registers>();
    if (warpgroup < warpgroups) fill_ring(p, group, warpgroup, ring);
    return;
  }
  raise_registers<reader_registers>();
  codes_in_ring codes(ring, context.first_panel);
  scan_tiles<group>(context, wgmma_descriptor(shared), codes);
}

}  // namespace

scan_kernel scan_wgmma_ring_kernel(uint32_t group) {
  switch (group) {
    case 64: return scan_wgmma_ring<64>;
    case 128: return scan_wgmma_ring<128>;
    default: return scan_wgmma_ring<256>;
  }
}

}  // namespace sagitta::cuda
