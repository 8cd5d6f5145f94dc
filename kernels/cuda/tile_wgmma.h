// The tiles of a warpgroup: their matrix products by wgmma, wherever the codes come from. Both scans of large
// batches use it.
//
// Shapes: panels as in layout.h; queries of a group in chunks of 128 dimensions, [chunk][query][128], swizzled
// as the instruction requires (encode.h).
// Idea: a warpgroup takes a tile of 64 rows, one panel per warp, and multiplies it by 64, 128 or 256 queries
// at once. The first operand is in registers: while one chunk is multiplied, the words of the next one are
// loaded.
//
// The codes are an object with two functions:
//   begin(context, words, sums)   loads the words of chunk 0 of an open tile and starts its sums
//   load(words, chunk)            loads the words of a later chunk of the same tile, in order
// A warp whose panel is not wanted takes part in the products of its warpgroup with arbitrary words.
#pragma once

#include "tile.h"

namespace sagitta::cuda {

inline constexpr uint32_t chunk_steps = chunk_dimensions / step_bytes_of_mma;
inline constexpr uint32_t group_warps = warpgroup_threads / warp_threads;
inline constexpr uint32_t warpgroups = scan_warps / group_warps;

/** A thread's code words of one chunk, two rows each. */
struct chunk_words {
  uint2 at[2 * chunk_steps];
};

/** Bytes between the words that a thread loads, and bytes of a chunk of a panel. */
inline constexpr uint32_t words_apart = 4 * step_bytes;
inline constexpr uint32_t chunk_bytes = chunk_dimensions * panel_rows;

/** The offset of a thread's first word in the codes of a chunk. */
__device__ inline uint32_t first_word() {
  const uint32_t lane = threadIdx.x % 32;
  return lane % 4 * step_bytes + lane / 4 * static_cast<uint32_t>(sizeof(uint2));
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

template <int group, class Codes>
__device__ inline void scan_tile(const tile_context& context, uint64_t queries, Codes& codes) {
  constexpr int blocks = group / static_cast<int>(query_block);
  constexpr uint64_t chunk_units = uint64_t{chunk_dimensions} * group / 16;
  const scan_parameters& p = *context.parameters;
  chunk_words even{};
  chunk_words odd{};
  int32_t sums[group / 2];
  auto& by_query = reinterpret_cast<int32_t(&)[1][blocks][4]>(sums);
  codes.begin(context, even, by_query);
  // Even and odd chunks have their own registers, which can be loaded again once the products of the
  // chunk are complete: after waiting for all but the last committed group.
  for (uint32_t chunk = 0; chunk < p.chunk_count; chunk += 2) {
    multiply<group>(sums, even, queries + chunk * chunk_units);
    wgmma_wait<1>();
    if (chunk + 1 == p.chunk_count) break;
    codes.load(odd, chunk + 1);
    multiply<group>(sums, odd, queries + (chunk + 1) * chunk_units);
    wgmma_wait<1>();
    if (chunk + 2 < p.chunk_count) codes.load(even, chunk + 2);
  }
  wgmma_wait<0>();
  wgmma_fence_sums(sums);
  if (p.is_dense) add_all(context, by_query);
  else add_survivors(context, by_query);
}

/** The tiles of one of the block's warpgroups: by their index in the pass, from the first one in steps. */
__device__ inline uint32_t first_tile(uint32_t warpgroup) {
  return blockIdx.x * warpgroups + warpgroup;
}
__device__ inline uint32_t tile_step() { return gridDim.x * warpgroups; }

/** Scans the tiles of the calling warp's warpgroup. */
template <int group, class Codes>
__device__ inline void scan_tiles(tile_context& context, uint64_t queries, Codes& codes) {
  const scan_parameters& p = *context.parameters;
  const uint32_t warp = threadIdx.x / 32;
  for (uint32_t i = first_tile(warp / group_warps); i < p.pass.tile_count; i += tile_step()) {
    // All four warps agree, since views are tested per tile, not per panel.
    if (!open_tile(context, i, blockIdx.y, group)) {
      if (p.is_dense && warp % group_warps == 0) add_none(context, group);
      continue;
    }
    scan_tile<group>(context, queries, codes);
    __syncwarp();
  }
}

/** The distribution of a group's queries over the warps: each warp has all queries and one panel. */
__device__ inline warp_share share_of_warp(uint32_t group) {
  return {group, group, 0, threadIdx.x / 32 % group_warps, 1};
}

}  // namespace sagitta::cuda
