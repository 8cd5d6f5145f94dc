// Rows of a view, 32 at a time: the bits of a word of its bitmap, and places for them in a list.
#pragma once

#include "platform.h"
#include "tables.h"

namespace sagitta::cuda {

inline constexpr uint32_t words_per_tile = tile_rows / 32;

/** The views of one query: one per block, `stride` apart. */
struct query_views {
  const resident_block* blocks;
  uint32_t block_count;
  const row_view* views;
  uint32_t stride;

  /** The rows that the query searches of the batch rows 32·word to 32·word + 31. */
  __device__ uint32_t rows_of_word(uint32_t word) const {
    const uint32_t number = block_of(blocks, block_count, word / words_per_tile);
    const row_view& view = views[size_t{number} * stride];
    const uint32_t row = word * 32 - blocks[number].first_tile * tile_rows;
    if (row >= view.row_count) return 0;
    const uint32_t rows = view.rows == nullptr ? ~0u : view.rows[row / 32];
    const uint32_t count = view.row_count - row;
    return count < 32 ? rows & ((1u << count) - 1) : rows;
  }
};

/**
 * Reserves a place for every set bit of the lanes of a warp, with one addition to the counter. Returns the
 * first place of the lane. All lanes must call it.
 */
__device__ inline uint32_t reserve_places(uint32_t rows, uint32_t* counter) {
  constexpr uint32_t all = 0xffffffffu;
  const uint32_t lane = threadIdx.x % 32;
  const auto own = static_cast<uint32_t>(__popc(rows));
  uint32_t before = own;
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(all, before, distance);
    if (lane >= distance) before += other;
  }
  const uint32_t total = __shfl_sync(all, before, 31);
  uint32_t first = 0;
  if (lane == 0 && total > 0) first = atomicAdd(counter, total);
  return __shfl_sync(all, first, 0) + before - own;
}

}  // namespace sagitta::cuda
