// Scores the rows of a list with the best estimates: their k-th best score is a threshold that bounds alone
// would not prove. One thread block does it for one query.
#pragma once

#include "block_select.h"
#include "row_score.h"

namespace sagitta::cuda {

/** The largest k for which estimates are scored. */
inline constexpr uint32_t estimated_k_max = 256;

/** The number of rows of a query that are scored to raise its threshold. */
SAGITTA_HOST_DEVICE inline uint32_t scored_estimates(uint32_t k) { return k + k / 4 + 4; }
inline constexpr uint32_t scored_estimates_max = 512;
static_assert(estimated_k_max + estimated_k_max / 4 + 4 <= scored_estimates_max);

/** Rows to score, in shared memory. */
struct scored_rows {
  uint32_t count;
  uint32_t batch_rows[scored_estimates_max];
  double scores[scored_estimates_max];
};

/**
 * Takes the rows with the best estimates among the entries for which `estimate_at(i, estimate)` returns true, and
 * calls `taken(i, place)` for each of them. All threads of the block must call it.
 */
template <class EstimateAt, class Taken>
__device__ void take_best_estimates(const device_query& query, const candidate* rows, uint32_t count,
                                    scored_rows& best, EstimateAt estimate_at, Taken taken) {
  const auto key_at = [&](uint32_t i, uint32_t& key) {
    float estimate;
    const bool is_usable = estimate_at(i, estimate);
    if (is_usable) key = ordered(estimate);
    return is_usable;
  };
  uint32_t usable = 0;
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    uint32_t key;
    if (key_at(i, key)) usable++;
  }
  usable = sum_before(usable).total;
  const uint32_t wanted = scored_estimates(query.k);
  const uint32_t least = usable > wanted ? kth_largest<uint32_t>(count, wanted, key_at) : 0;
  if (threadIdx.x == 0) best.count = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    uint32_t key;
    if (!key_at(i, key) || key < least) continue;
    // There may be more equal estimates than there is room for.
    const uint32_t place = atomicAdd(&best.count, 1u);
    if (place >= scored_estimates_max) continue;
    best.batch_rows[place] = rows[i].batch_row;
    taken(i, place);
  }
  __syncthreads();
  if (threadIdx.x == 0) best.count = min(best.count, scored_estimates_max);
  __syncthreads();
}

/**
 * Scores these rows with a query's vector [dimension]. Returns the k-th best score of those that certainly come
 * after the rank key, or −∞. All threads of the block must call it.
 */
__device__ inline double score_best(const resident_block* blocks, uint32_t block_count,
                                    const device_query& query, const float* vector,
                                    uint32_t dimension, scored_rows& best) {
  const uint32_t count = best.count;
  // Rounded up to whole warps, whose lanes all take part in the sums.
  constexpr uint32_t rows_per_warp = warp_threads / lanes_per_row;
  const uint32_t whole = (count + rows_per_warp - 1) / rows_per_warp * rows_per_warp;
  for (uint32_t i = threadIdx.x / lanes_per_row; i < whole; i += blockDim.x / lanes_per_row) {
    const uint32_t batch_row = best.batch_rows[min(i, count - 1)];
    const float* const values = values_of(blocks, block_count, batch_row, dimension);
    const double score = score_row(query, vector, values, dimension);
    if (threadIdx.x % lanes_per_row == 0 && i < count) best.scores[i] = score;
  }
  __syncthreads();
  // Other rows prove nothing about the k-th best.
  const auto key_at = [&](uint32_t i, uint64_t& key) {
    key = ordered(best.scores[i]);
    return !query.has_after || best.scores[i] < query.after_score;
  };
  uint32_t proving = 0;
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    uint64_t key;
    if (key_at(i, key)) proving++;
  }
  proving = sum_before(proving).total;
  if (proving < query.k) return -__builtin_huge_val();
  return value_of(kth_largest<uint64_t>(count, query.k, key_at));
}

}  // namespace sagitta::cuda
