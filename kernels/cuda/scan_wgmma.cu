// The scan of large batches on compute capability 9.0: warpgroup matrix products that read queries
// directly from shared memory.
//
// Shapes: panels as in layout.h; queries of a group in chunks of 128 dimensions, [chunk][query][128],
// swizzled as the instruction requires (encode.h).
// Idea: a warpgroup takes a tile of 64 rows, one panel per warp, and multiplies it by 64, 128 or 256
// queries at once. Codes go from memory to registers, which may hold the first operand; while one
// chunk is multiplied, the next one is loaded.

#include "scan_kernels.h"
#include "tile.h"

namespace sagitta::cuda {
namespace {

constexpr uint32_t chunk_steps = chunk_dimensions / step_bytes_of_mma;
constexpr uint32_t group_warps = 4;
constexpr uint32_t warpgroups = scan_warps / group_warps;

/** A thread's code words of one chunk, two rows each. */
struct chunk_words {
  uint2 at[2 * chunk_steps];
};

__device__ inline void load_words(chunk_words& words, const uint8_t* panel, uint32_t chunk) {
  const auto* const from =
      reinterpret_cast<const uint2*>(panel + size_t{chunk} * chunk_dimensions * panel_rows);
#pragma unroll
  for (uint32_t i = 0; i < 2 * chunk_steps; i++) {
    words.at[i] = load_cached(from + i * (4 * step_bytes / sizeof(uint2)));
  }
}

template <int group>
__device__ inline void multiply(int32_t (&sums)[group / 2], const chunk_words& words,
                                uint64_t queries) {
  wgmma_fence();
#pragma unroll
  for (uint32_t step = 0; step < chunk_steps; step++) {
    const uint2 low = words.at[2 * step];
    const uint2 high = words.at[2 * step + 1];
    const uint32_t rows[4] = {low.x, low.y, high.x, high.y};
    // A step is 32 bytes of the line of 128; a descriptor counts units of 16 bytes.
    wgmma_u8s8<group>(sums, rows, queries + 2 * step, true);
  }
  wgmma_commit();
}

template <int group>
__device__ void scan_tile_wgmma(const tile_context& context, uint64_t queries) {
  constexpr int blocks = group / static_cast<int>(query_block);
  constexpr uint64_t chunk_units = uint64_t{chunk_dimensions} * group / 16;
  const scan_parameters& p = *context.parameters;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t panel = threadIdx.x / 32 % group_warps;
  const uint8_t* const from = context.panels +
                              size_t{min(panel, context.last_panel)} * p.panel_stride +
                              fact_bytes + lane % 4 * step_bytes + lane / 4 * sizeof(uint2);
  chunk_words even;
  chunk_words odd;
  load_words(even, from, 0);
  int32_t sums[group / 2];
  auto& by_query = reinterpret_cast<int32_t(&)[1][blocks][4]>(sums);
  start_sums(context, by_query);
  // Even and odd chunks have their own registers, which can be loaded again once the products of the
  // chunk are complete: after waiting for all but the last committed group.
  for (uint32_t chunk = 0; chunk < p.chunk_count; chunk += 2) {
    multiply<group>(sums, even, queries + chunk * chunk_units);
    wgmma_wait<1>();
    if (chunk + 1 == p.chunk_count) break;
    load_words(odd, from, chunk + 1);
    multiply<group>(sums, odd, queries + (chunk + 1) * chunk_units);
    wgmma_wait<1>();
    if (chunk + 2 < p.chunk_count) load_words(even, from, chunk + 2);
  }
  wgmma_wait<0>();
  wgmma_fence_sums(sums);
  if (p.is_dense) add_all(context, panel, by_query);
  else add_survivors(context, panel, by_query);
}

template <int group>
__global__ __launch_bounds__(scan_threads, 1) void scan_wgmma(
    const __grid_constant__ scan_parameters p) {
  const uint32_t group_number = blockIdx.y;
  const uint32_t warp = threadIdx.x / 32;
  uint8_t* const shared = dynamic_shared<uint8_t>();
  const size_t query_bytes = size_t{p.chunk_count} * chunk_dimensions * group;
  tile_context context = open_block(p, shared, query_bytes, {group, group, 0});
  fence_async_shared();
  __syncthreads();

  const uint64_t queries = wgmma_descriptor(shared);
  const uint32_t step = gridDim.x * warpgroups;
  for (uint32_t i = blockIdx.x * warpgroups + warp / group_warps; i < p.pass.tile_count;
       i += step) {
    // All four warps agree, since views are tested by tile, not by panel.
    if (!open_tile(context, i, group_number, group)) continue;
    scan_tile_wgmma<group>(context, queries);
    __syncwarp();
  }
}

}  // namespace

scan_kernel scan_wgmma_kernel(uint32_t group) {
  switch (group) {
    case 64: return scan_wgmma<64>;
    case 128: return scan_wgmma<128>;
    default: return scan_wgmma<256>;
  }
}

}  // namespace sagitta::cuda
