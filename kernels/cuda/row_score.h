// The canonical score of a row, bit for bit that of search/canonical.h: eight lanes per row, each with the
// float64 sum of its dimensions, folded by halves.
#pragma once

#include "../search/canonical.h"
#include "platform.h"
#include "tables.h"

namespace sagitta::cuda {

inline constexpr uint32_t lanes_per_row = 8;
/** Values that a lane loads before it uses them, to hide the latency of uncached memory. */
inline constexpr uint32_t loads_at_once = 16;

/** Returns the sum of a row's eight lanes in the order of the canonical score; valid in the first lane. */
__device__ inline double fold(double lane_sum) {
  for (uint32_t distance = lanes_per_row / 2; distance > 0; distance /= 2) {
    lane_sum += __shfl_down_sync(0xffffffffu, lane_sum, distance, lanes_per_row);
  }
  return lane_sum;
}

/**
 * Returns the score of a row for a query, valid in the first of the row's eight lanes; NaN if `values`
 * [dimension] is null because only the host has them. All lanes of the warp must call it.
 */
__device__ inline double score_row(const device_query& query, const float* vector,
                                   const float* values, uint32_t dimension) {
  const uint32_t lane = threadIdx.x % lanes_per_row;
  double product = 0;
  double square = 0;
  if (values != nullptr) {
    for (uint32_t first = lane; first < dimension; first += loads_at_once * lanes_per_row) {
      // Zeros past the end do not change any bit of a sum, since a sum is never −0.
      float loaded[loads_at_once];
#pragma unroll
      for (uint32_t n = 0; n < loads_at_once; n++) {
        const uint32_t d = first + n * lanes_per_row;
        loaded[n] = d < dimension ? __ldg(values + d) : 0.0f;
      }
#pragma unroll
      for (uint32_t n = 0; n < loads_at_once; n++) {
        const uint32_t d = first + n * lanes_per_row;
        const auto value = static_cast<double>(loaded[n]);
        const double factor = d < dimension ? static_cast<double>(vector[d]) : 0.0;
        product = __fma_rn(factor, value, product);
        square = __fma_rn(value, value, square);
      }
    }
  }
  product = fold(product);
  square = fold(square);
  return values == nullptr ? __longlong_as_double(0x7ff8000000000000ll)
                           : canonical_score(query.metric, product, query.square, square);
}

/** Returns the values of a row; null if only the host has them. */
__device__ inline const float* values_of(const resident_block* blocks, uint32_t block_count,
                                         uint32_t batch_row, uint32_t dimension) {
  const resident_block& block = blocks[block_of(blocks, block_count, batch_row / tile_rows)];
  if (block.values == nullptr) return nullptr;
  return block.values + size_t{batch_row - block.first_tile * tile_rows} * dimension;
}

}  // namespace sagitta::cuda
