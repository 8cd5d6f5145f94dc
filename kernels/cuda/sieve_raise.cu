// Turns the survivors of a scan of a sieve into thresholds and candidates. With few queries, several
// thread blocks share a list (list_parts.h) and estimate the scores of its rows.
//
// Shapes: lists [query_count, capacity] of (batch row, sum of the sieve's codes), with estimates as their
// scores; each row is in a list once, and none of them is in the lists of candidates before the end.

#include "best_scores.h"
#include "list_parts.h"
#include "sieve.h"

namespace sagitta::cuda {
namespace {

/** Returns the middle of the bounds and the upper one. */
__device__ candidate_score estimate_of(const score_bounds& bounds) {
  const bool is_unbounded = bounds.upper > double{FLT_MAX};
  const double middle = (bounds.lower + bounds.upper) / 2;
  candidate_score score;
  score.estimate = {is_unbounded ? __builtin_huge_valf() : static_cast<float>(middle),
                    is_unbounded ? __builtin_huge_valf() : round_up(bounds.upper)};
  return score;
}

/** Appends the remaining rows to the query's candidates, of which it first drops some. */
__device__ void append_candidates(const raise_parameters& p, uint32_t number, uint32_t count,
                                  double threshold) {
  const candidate_lists& to = p.state.lists;
  candidate* const rows = to.rows + size_t{number} * to.capacity;
  candidate_score* const scores = to.scores + size_t{number} * to.capacity;
  const uint32_t before = min(to.counts[number], to.capacity);
  // All threads have read the count before one of them writes.
  __syncthreads();
  const uint32_t kept = shorten(rows, scores, before, [&](const candidate_score& score) {
    return static_cast<double>(score.bounds.upper) >= threshold;
  });
  const candidate* const from = p.lists.rows + size_t{number} * p.lists.capacity;
  const uint32_t taken = min(count, to.capacity - kept);
  for (uint32_t i = threadIdx.x; i < taken; i += blockDim.x) rows[kept + i] = from[i];
  if (threadIdx.x != 0) return;
  to.counts[number] = kept + taken;
  query_outcome& outcome = p.state.outcomes[number];
  outcome.is_sieved = 1;
  if (taken < count) outcome.is_undecided = 1;
}

__global__ __launch_bounds__(select_threads_max) void raise(
    const __grid_constant__ raise_parameters p) {
  await_earlier_kernels();
  __shared__ scored_rows best;
  if (is_skipped(p.condition)) return;
  const uint32_t number = blockIdx.y;
  const device_query& query = p.state.queries[number];
  if (!query.is_scanned || p.bounds[number].scale == 0) return;
  const uint32_t added = p.lists.counts[number];
  const bool is_full = added > p.lists.capacity;
  double threshold = p.state.thresholds[number];
  const parted_list list =
      cut_list(p.lists, p.state.sharing, number, min(added, p.lists.capacity));
  const list_entries part = own_part(list);
  shared_list& shared = p.state.sharing.lists[number];
  score_part({p.blocks, p.state.block_count, p.panel_stride}, p.bounds[number], threshold, part,
             [](const score_bounds& bounds) { return estimate_of(bounds); });
  const auto is_left = [](const candidate_score& score) { return may_match(score); };
  uint32_t kept = shorten(part.rows, part.scores, part.count, is_left);
  if (!is_last_to_finish(shared, kept)) return;
  if (gridDim.x > 1) kept = join_parts(list, shared, is_left);
  const auto estimate_at = [&](uint32_t i, float& estimate) {
    estimate = list.scores[i].estimate.middle;
    // Rows that are probably before the rank key would not raise the threshold.
    return !(query.has_after && static_cast<double>(estimate) > query.after_score);
  };
  take_best_estimates(query, list.rows, kept, best, estimate_at, [](uint32_t, uint32_t) {});
  const double proven =
      score_best(p.blocks, p.state.block_count, query,
                 p.vectors + size_t{number} * p.state.dimension, p.state.dimension, best);
  if (proven > threshold) {
    threshold = proven;
    kept = shorten(list.rows, list.scores, kept, [&](const candidate_score& score) {
      return static_cast<double>(score.estimate.upper) >= threshold;
    });
  }
  if (p.is_last) append_candidates(p, number, kept, threshold);
  if (threadIdx.x != 0) return;
  if (p.estimate != nullptr) {
    // A list that was too short has lost rows, so the slice continues with int8 codes.
    if (is_full || kept > p.rows_max) atomicMax(p.estimate, p.estimate_limit + 1);
    else atomicAdd(p.estimate, kept);
  } else if (is_full) {
    p.state.outcomes[number].is_undecided = 1;
  }
  p.lists.counts[number] = kept;
  p.state.thresholds[number] = threshold;
  tighten(query, threshold, p.state.weights[number]);
  tighten(p.bounds[number], threshold, p.weights[number]);
}

}  // namespace

cudaError_t raise_thresholds(const raise_parameters& parameters, launch_order order) {
  const batch_state& state = parameters.state;
  return launch(raise, dim3(state.sharing.parts, state.query_count),
                select_threads(state.query_count), 0, order, parameters);
}

cudaError_t preload_raising() { return preload(raise); }

}  // namespace sagitta::cuda
