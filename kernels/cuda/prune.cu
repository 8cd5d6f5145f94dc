// Prunes the candidate lists between passes, one thread block per query.
//
// Idea: bounds of all entries first, without a barrier, so that the loads of many rows' facts are in
// flight at once; then the k-th best lower bound; then the list is shortened once. An entry that cannot
// be in the answer has NaN as its upper bound, which no comparison lets pass.
//
// Shapes: lists [query_count, capacity] of (batch row, sum); bounds in float32, rounded outwards, in
// the memory of the later scores.

#include "block_select.h"
#include "select.h"

namespace sagitta::cuda {
namespace {

/** The bounds of an entry; its upper one is NaN if it cannot be in the answer. */
__device__ candidate_score bounds_of_entry(const batch_state& state, const device_query& query,
                                           double threshold, candidate row) {
  candidate_score out;
  out.bounds = {-__builtin_huge_valf(), __int_as_float(0x7fffffff)};
  if (row.batch_row == no_row) return out;
  const uint32_t tile = row.batch_row / tile_rows;
  const resident_block& block = state.blocks[block_of(state.blocks, state.block_count, tile)];
  const uint32_t its_row = row.batch_row - block.first_tile * tile_rows;
  const auto& facts = *reinterpret_cast<const panel_facts*>(
      block.panels + size_t{its_row / panel_rows} * state.panel_stride);
  const score_bounds exact = bounds_of(query, row.sum, facts, its_row % panel_rows);
  if (exact.upper < threshold) return out;
  if (query.has_after && exact.lower > query.after_score) return out;
  // Only rows that certainly come after the position prove anything about the k-th best. Rows below
  // the floor prove nothing either, but they cannot raise a threshold that starts at the floor.
  const bool is_proof = !query.has_after || exact.upper < query.after_score;
  candidate_score bounds;
  bounds.bounds = {is_proof ? round_down(exact.lower) : -__builtin_huge_valf(),
                   exact.upper > double{FLT_MAX} ? __builtin_huge_valf() : round_up(exact.upper)};
  return bounds;
}

/** Writes the bounds of all entries. Returns how many may be in the answer. */
__device__ uint32_t write_bounds(const batch_state& state, const device_query& query,
                                 double threshold, const candidate* rows, candidate_score* scores,
                                 uint32_t count) {
  constexpr uint32_t entries = 4;
  uint32_t left = 0;
  for (uint32_t first = threadIdx.x; first < count; first += entries * blockDim.x) {
    candidate_score score[entries];
#pragma unroll
    for (uint32_t j = 0; j < entries; j++) {
      const uint32_t i = first + j * blockDim.x;
      const candidate row = i < count ? rows[i] : candidate{no_row, 0};
      score[j] = bounds_of_entry(state, query, threshold, row);
    }
#pragma unroll
    for (uint32_t j = 0; j < entries; j++) {
      const uint32_t i = first + j * blockDim.x;
      if (i >= count) break;
      scores[i] = score[j];
      left += score[j].bounds.upper == score[j].bounds.upper ? 1 : 0;
    }
  }
  return sum_before(left).total;
}

__global__ __launch_bounds__(select_threads_max) void prune(
    const __grid_constant__ prune_parameters p) {
  await_earlier_kernels();
  if (is_skipped(p.condition)) return;
  const uint32_t number = blockIdx.x;
  const device_query& query = p.state.queries[number];
  if (!query.is_scanned) return;
  const candidate_lists& lists = p.state.lists;
  candidate* const rows = lists.rows + size_t{number} * lists.capacity;
  candidate_score* const scores = lists.scores + size_t{number} * lists.capacity;
  const uint32_t added = p.dense_count > 0 ? p.dense_count : lists.counts[number];
  const uint32_t count = min(added, lists.capacity);
  const double threshold = p.state.thresholds[number];
  // All threads have read the count and the threshold before one of them writes.
  __syncthreads();
  if (added > lists.capacity && threadIdx.x == 0) p.state.outcomes[number].is_undecided = 1;

  const uint32_t left = write_bounds(p.state, query, threshold, rows, scores, count);
  double raised = threshold;
  if (left >= query.k) {
    const auto key_at = [&](uint32_t i, uint32_t& key) {
      key = ordered(scores[i].bounds.lower);
      return scores[i].bounds.upper == scores[i].bounds.upper;
    };
    const float lower = value_of(kth_largest<uint32_t>(count, query.k, key_at));
    raised = max(threshold, static_cast<double>(lower));
  }
  const uint32_t kept = shorten(rows, scores, count, [&](uint32_t, const candidate_score& score) {
    return static_cast<double>(score.bounds.upper) >= raised;
  });
  if (threadIdx.x != 0) return;
  lists.counts[number] = kept;
  p.state.thresholds[number] = raised;
  if (raised > threshold) tighten(query, raised, p.state.weights[number]);
}

}  // namespace

cudaError_t prune_lists(const prune_parameters& parameters, launch_order order) {
  const uint32_t list_count = parameters.state.query_count;
  return launch(prune, dim3(list_count), select_threads(list_count), 0, order, parameters);
}

cudaError_t preload_pruning() { return preload(prune); }

}  // namespace sagitta::cuda
