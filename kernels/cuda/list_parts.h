// Lists that several thread blocks share: each of them reads the facts of the rows in its part, and the
// last one to finish its part continues alone with what the parts have left. The lists of few queries have
// thousands of entries each, so that one block per list would leave most multiprocessors without work.
//
// Shapes: a grid of [parts, queries], in which a part has consecutive entries. With one part per list, the
// only block continues at once.
#pragma once

#include "block_select.h"
#include "select.h"

namespace sagitta::cuda {

/** Where the codes of the rows of a list are. */
struct coded_rows {
  const resident_block* blocks;
  uint32_t block_count;
  uint32_t panel_stride;
};

/** Consecutive entries of a list. */
struct list_entries {
  candidate* rows;
  candidate_score* scores;
  uint32_t count;
};

/** All entries of a list. Each part has `part_rows` of them, until they run out. */
struct parted_list : list_entries {
  uint32_t part_rows;
};

/** Cuts the first `count` entries of a query's list into parts for the thread blocks of the grid. */
__device__ inline parted_list cut_list(const candidate_lists& lists, const list_sharing& sharing,
                                       uint32_t number, uint32_t count) {
  const size_t first = size_t{number} * lists.capacity;
  const uint32_t part_rows = max(sharing.part_rows_min, (count + gridDim.x - 1) / gridDim.x);
  return {{lists.rows + first, lists.scores + first, count}, part_rows};
}

/** Returns the part of the running block, which may be empty. */
__device__ inline list_entries own_part(const parted_list& list) {
  const uint32_t first = min(blockIdx.x * list.part_rows, list.count);
  return {list.rows + first, list.scores + first, min(list.part_rows, list.count - first)};
}

/** Whether an entry may be in the answer. The upper bound of excluded entries is NaN, which fails every comparison. */
__device__ inline bool may_match(const candidate_score& score) {
  return score.bounds.upper == score.bounds.upper;
}

/** Returns `score_of` the bounds of an entry, unless they exclude it. */
template <class ScoreOf>
__device__ candidate_score score_entry(const coded_rows& codes, const bounded_query& query,
                                       double threshold, candidate row, ScoreOf score_of) {
  candidate_score excluded;
  excluded.bounds = {-__builtin_huge_valf(), __int_as_float(0x7fffffff)};
  if (row.batch_row == no_row) return excluded;
  const uint32_t tile = row.batch_row / tile_rows;
  const resident_block& block = codes.blocks[block_of(codes.blocks, codes.block_count, tile)];
  const uint32_t its_row = row.batch_row - block.first_tile * tile_rows;
  const auto& facts = *reinterpret_cast<const panel_facts*>(
      block.panels + size_t{its_row / panel_rows} * codes.panel_stride);
  const score_bounds bounds = bounds_of(query, row.sum, facts, its_row % panel_rows);
  if (bounds.upper < threshold) return excluded;
  if (query.has_after && bounds.lower > query.after_score) return excluded;
  return score_of(bounds);
}

/**
 * Writes the scores of all entries of a part. Returns how many may be in the answer. There is no barrier
 * between entries, so that the loads of many rows' facts are in flight at once.
 */
template <class ScoreOf>
__device__ uint32_t score_part(const coded_rows& codes, const bounded_query& query,
                               double threshold, const list_entries& part, ScoreOf score_of) {
  constexpr uint32_t entries = 4;
  uint32_t left = 0;
  for (uint32_t first = threadIdx.x; first < part.count; first += entries * blockDim.x) {
    candidate_score score[entries];
#pragma unroll
    for (uint32_t j = 0; j < entries; j++) {
      const uint32_t i = first + j * blockDim.x;
      const candidate row = i < part.count ? part.rows[i] : candidate{no_row, 0};
      score[j] = score_entry(codes, query, threshold, row, score_of);
    }
#pragma unroll
    for (uint32_t j = 0; j < entries; j++) {
      const uint32_t i = first + j * blockDim.x;
      if (i >= part.count) break;
      part.scores[i] = score[j];
      left += may_match(score[j]) ? 1 : 0;
    }
  }
  return sum_before(left).total;
}

/** Raises the best value of all parts to this part's. Returns the best so far to all threads. */
__device__ inline float raise_best(shared_list& shared, float own) {
  if (gridDim.x == 1) return own;
  __shared__ float best;
  if (threadIdx.x == 0) {
    best = value_of(max(atomicMax(&shared.best, ordered(own)), ordered(own)));
  }
  __syncthreads();
  return best;
}

/**
 * Reports that the block has shortened its part to `kept` entries. Returns true in the last block of the
 * list to do so, which sees what the others have written. All threads of the block must call it.
 */
__device__ inline bool is_last_to_finish(shared_list& shared, uint32_t kept) {
  if (gridDim.x == 1) return true;
  __shared__ bool is_last;
  if (threadIdx.x == 0) shared.kept[blockIdx.x] = kept;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    // Returns to 0 at the last one.
    is_last = atomicInc(&shared.finished, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  return is_last;
}

/**
 * Moves the entries that the parts have left to the front of the list, except those for which `is_kept(score)` is
 * false. Returns how many entries there are. All threads of the last block must call it.
 */
template <class IsKept>
__device__ uint32_t join_parts(const parted_list& list, const shared_list& shared, IsKept is_kept) {
  __shared__ uint32_t ends[list_parts_max];
  const uint32_t kept = threadIdx.x < gridDim.x ? shared.kept[threadIdx.x] : 0;
  const block_sum sum = sum_before(kept);
  if (threadIdx.x < list_parts_max) ends[threadIdx.x] = sum.before + kept;
  __syncthreads();
  const auto place_of = [&](uint32_t i) {
    // Finds the number of parts that end before entry i, by bisection.
    uint32_t part = 0;
    for (uint32_t half = list_parts_max / 2; half > 0; half /= 2) {
      if (ends[part + half - 1] <= i) part += half;
    }
    return part * list.part_rows + i - (part == 0 ? 0 : ends[part - 1]);
  };
  return shorten(list.rows, list.scores, sum.total, place_of, is_kept);
}

}  // namespace sagitta::cuda
