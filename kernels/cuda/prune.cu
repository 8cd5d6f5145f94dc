// Prunes the candidate lists between passes. With few queries, several thread blocks share a list (list_parts.h).
//
// Idea: first the bounds of all entries of a part are computed; then the part is shortened by the best
// threshold known. The k-th best lower bound of each part is such a threshold, since it is at most that of
// the list. The last block joins the parts, which have few entries left, and shortens the list by its k-th
// best lower bound.
//
// Shapes: lists [query_count, capacity] of (batch row, sum); bounds in float32, rounded outwards, in the
// memory of the later scores.

#include "list_parts.h"

namespace sagitta::cuda {
namespace {

/** Returns the bounds that an entry keeps. */
__device__ candidate_score rounded_bounds(const device_query& query, const score_bounds& exact) {
  // Only rows that certainly come after the rank key are a proof; see query_state::add_survivor.
  const bool is_proof = !query.has_after || exact.upper < query.after_score;
  candidate_score score;
  score.bounds = {is_proof ? round_down(exact.lower) : -__builtin_huge_valf(),
                  exact.upper > double{FLT_MAX} ? __builtin_huge_valf() : round_up(exact.upper)};
  return score;
}

/** The k-th best lower bound of the `left` entries that may be in the answer; −∞ if there are fewer than k. */
__device__ float kth_lower_bound(const candidate_score* scores, uint32_t count, uint32_t left,
                                 uint32_t k) {
  if (left < k) return -__builtin_huge_valf();
  const auto key_at = [&](uint32_t i, uint32_t& key) {
    key = ordered(scores[i].bounds.lower);
    return may_match(scores[i]);
  };
  return value_of(kth_largest<uint32_t>(count, k, key_at));
}

__global__ __launch_bounds__(select_threads_max) void prune(
    const __grid_constant__ prune_parameters p) {
  await_earlier_kernels();
  if (is_skipped(p.condition)) return;
  const batch_state& state = p.state;
  const uint32_t number = blockIdx.y;
  const device_query& query = state.queries[number];
  if (!query.is_scanned) return;
  const uint32_t added = p.dense_count > 0 ? p.dense_count : state.lists.counts[number];
  const double threshold = state.thresholds[number];
  const parted_list list =
      cut_list(state.lists, state.sharing, number, min(added, state.lists.capacity));
  const list_entries part = own_part(list);
  shared_list& shared = state.sharing.lists[number];

  const uint32_t left =
      score_part({state.blocks, state.block_count, state.panel_stride}, query, threshold, part,
                 [&](const score_bounds& exact) { return rounded_bounds(query, exact); });
  double raised = threshold;
  const auto reaches = [&](const candidate_score& score) {
    return static_cast<double>(score.bounds.upper) >= raised;
  };
  const float best = raise_best(shared, kth_lower_bound(part.scores, part.count, left, query.k));
  raised = max(threshold, static_cast<double>(best));
  uint32_t kept = shorten(part.rows, part.scores, part.count, reaches);
  if (!is_last_to_finish(shared, kept)) return;
  if (gridDim.x > 1) {
    raised = max(threshold, static_cast<double>(value_of(shared.best)));
    kept = join_parts(list, shared, reaches);
    const float lower = kth_lower_bound(list.scores, kept, kept, query.k);
    raised = max(raised, static_cast<double>(lower));
    kept = shorten(list.rows, list.scores, kept, reaches);
  }
  if (threadIdx.x != 0) return;
  if (added > state.lists.capacity) state.outcomes[number].is_undecided = 1;
  state.lists.counts[number] = kept;
  state.thresholds[number] = raised;
  if (raised > threshold) tighten(query, raised, state.weights[number]);
}

}  // namespace

cudaError_t prune_lists(const prune_parameters& parameters, launch_order order) {
  const batch_state& state = parameters.state;
  return launch(prune, dim3(state.sharing.parts, state.query_count),
                select_threads(state.query_count), 0, order, parameters);
}

cudaError_t preload_pruning() { return preload(prune); }

}  // namespace sagitta::cuda
