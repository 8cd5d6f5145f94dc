// The scan for every device from compute capability 8.0 on: rows stream from device memory into the registers
// of the matrix instruction, queries stay in shared memory.
//
// Shapes: panels as in layout.h, whose words of four dimensions are the operand of mma.m16n8k32 as they are
// stored; queries [query / 8][pair of steps][lane][4 words] (encode.h).
// Idea: a warp takes a tile of 64 rows and multiplies it by 8, 16, 32 or 64 queries. A word of codes goes from
// memory to the matrix unit without passing through shared memory, so the scan of a small batch, a stream over
// the codes, is bounded only by the number of loads in flight. In large batches up to four neighbouring warps
// have the same rows, which come from the L1 cache.

#include "scan_kernels.h"
#include "tile.h"

namespace sagitta::cuda {
namespace {

/** A thread's code words of one pair of steps, two rows each. */
struct row_words {
  uint2 at[tile_panels][4];
};

/**
 * Loads the words of the panels that are set in `wanted`. The second step of the last pair may not exist: then its words
 * are arbitrary, and those of the queries are zeros.
 */
__device__ inline void load_words(row_words& words, const uint8_t* const (&panels)[tile_panels],
                                  uint32_t wanted, uint32_t pair, uint32_t step_count, bool is_shared) {
  const bool has_second = 2 * pair + 1 < step_count;
#pragma unroll
  for (uint32_t m = 0; m < tile_panels; m++) {
    if ((wanted >> m & 1) == 0) continue;
    const auto* const from =
        reinterpret_cast<const uint2*>(panels[m] + size_t{pair} * pair_dimensions * panel_rows);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
      if (i >= 2 && !has_second) break;
      constexpr uint32_t words_apart = 4 * step_bytes / sizeof(uint2);
      words.at[m][i] = is_shared ? load_cached(from + i * words_apart)
                                 : load_streaming(from + i * words_apart);
    }
  }
}

template <int blocks>
__device__ inline void multiply(int32_t (&sums)[tile_panels][blocks][4], const row_words& words,
                                const uint4* queries, uint32_t pair_count) {
#pragma unroll
  for (int j = 0; j < blocks; j++) {
    const uint4 columns = queries[size_t{static_cast<uint32_t>(j)} * pair_count * 32];
#pragma unroll
    for (uint32_t m = 0; m < tile_panels; m++) {
      const uint2(&row)[4] = words.at[m];
      const uint32_t first[4] = {row[0].x, row[0].y, row[1].x, row[1].y};
      const uint32_t second[4] = {row[2].x, row[2].y, row[3].x, row[3].y};
      mma_u8s8(sums[m][j], first, make_uint2(columns.x, columns.y));
      mma_u8s8(sums[m][j], second, make_uint2(columns.z, columns.w));
    }
  }
}

template <int blocks>
__device__ void scan_tile_mma(const tile_context& context, const uint4* queries, bool is_shared) {
  const scan_parameters& p = *context.parameters;
  const uint32_t lane = threadIdx.x % 32;
  const uint8_t* panels[tile_panels];
  uint32_t wanted = 0;
#pragma unroll
  for (uint32_t m = 0; m < tile_panels; m++) {
    wanted |= (context.wants(m) ? 1u : 0u) << m;
    panels[m] = context.panels + size_t{min(m, context.last_panel)} * p.panel_stride + p.codes_offset +
                lane % 4 * step_bytes + lane / 4 * sizeof(uint2);
  }
  int32_t sums[tile_panels][blocks][4];
  row_words next{};
  // With 64 queries the sums take half of the registers, so nothing else may wait in them meanwhile.
  if (blocks == 8) start_sums(context, sums);
  load_words(next, panels, wanted, 0, p.step_count, is_shared);
  if (blocks < 8) start_sums(context, sums);
#pragma unroll 2
  for (uint32_t pair = 0; pair < p.pair_count; pair++) {
    const row_words words = next;
    if (pair + 1 < p.pair_count) load_words(next, panels, wanted, pair + 1, p.step_count, is_shared);
    multiply(sums, words, queries + size_t{pair} * 32, p.pair_count);
  }
  if (p.is_dense) add_all(context, sums);
  else add_survivors(context, sums);
}

template <int blocks>
__global__ __launch_bounds__(scan_threads, blocks <= 2 ? 2 : 1) void scan_mma(
    const __grid_constant__ scan_parameters p) {
  await_earlier_kernels();
  if (is_skipped(p.condition)) return;
  constexpr uint32_t warp_queries = query_block * blocks;
  const uint32_t group = warp_queries * p.warps_across;
  const uint32_t group_number = blockIdx.y;
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t warps_along = scan_warps / p.warps_across;

  uint8_t* const shared = dynamic_shared<uint8_t>();
  const size_t query_bytes = size_t{p.pair_count} * pair_dimensions * group;
  const uint32_t first_in_group = warp % p.warps_across * warp_queries;
  tile_context context = open_block(
      p, shared, query_bytes, {group, warp_queries, first_in_group, 0, tile_panels});
  __syncthreads();

  const auto* const queries = reinterpret_cast<const uint4*>(shared) +
                              size_t{first_in_group / query_block} * p.pair_count * 32 +
                              threadIdx.x % 32;
  tile_source tiles(p, blockIdx.x * warps_along + warp / p.warps_across, gridDim.x * warps_along,
                    p.warps_across == 1);
  for (; tiles.index() < p.pass.tile_count; tiles.advance()) {
    tiles.take_next();
    if (!open_tile(context, tiles.index(), group_number, warp_queries)) {
      if (p.is_dense) add_none(context, warp_queries);
      continue;
    }
    scan_tile_mma<blocks>(context, queries, p.warps_across > 1 || gridDim.y > 1);
    __syncwarp();
  }
}

}  // namespace

scan_kernel scan_mma_kernel(uint32_t warp_queries) {
  switch (warp_queries) {
    case 8: return scan_mma<1>;
    case 16: return scan_mma<2>;
    case 32: return scan_mma<4>;
    default: return scan_mma<8>;
  }
}

}  // namespace sagitta::cuda
