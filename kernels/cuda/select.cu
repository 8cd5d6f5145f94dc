// Selects the rows of the answer from the candidate lists, as far as scores decide. The host holds the ids:
// where they decide, it gets every row concerned.

#include "block_select.h"
#include "select.h"

namespace sagitta::cuda {
namespace {

__device__ bool is_worse(const found_row& left, const found_row& right) {
  return left.score < right.score || (left.score == right.score && left.batch_row > right.batch_row);
}

/** Whether a score is certainly in the result range, so that its row counts towards the k best. */
__device__ bool is_eligible(const device_query& query, double score) {
  return score >= query.floor && (!query.has_after || score < query.after_score);
}

/** Whether a score excludes its row, whatever its id. NaN, a score that the host computes, does not. */
__device__ bool is_out(const device_query& query, double least, double score) {
  return score < query.floor || score < least || (query.has_after && score > query.after_score);
}

/** Returns the k-th best eligible score, or −∞ if no more than k are eligible. */
__device__ double kth_score(const device_query& query, const candidate_score* scores, uint32_t count,
                            uint32_t eligible) {
  if (eligible <= query.k) return -__builtin_huge_val();
  const auto key_at = [&](uint32_t i, uint64_t& key) {
    key = ordered(scores[i].score);
    return is_eligible(query, scores[i].score);
  };
  return value_of(kth_largest<uint64_t>(count, query.k, key_at));
}

/** Bitonic sort of the next power of two; the entries past the count are worse than any row. */
__device__ void sort_found(found_row* rows, uint32_t count) {
  uint32_t length = 1;
  while (length < count) length *= 2;
  for (uint32_t i = count + threadIdx.x; i < length; i += blockDim.x) {
    rows[i] = {-__builtin_huge_val(), no_row, 0};
  }
  __syncthreads();
  for (uint32_t run = 2; run <= length; run *= 2) {
    for (uint32_t distance = run / 2; distance > 0; distance /= 2) {
      for (uint32_t i = threadIdx.x; i < length; i += blockDim.x) {
        const uint32_t other = i ^ distance;
        if (other < i) continue;
        const bool is_descending = (i & run) == 0;
        if (is_worse(rows[i], rows[other]) == is_descending) {
          const found_row moved = rows[i];
          rows[i] = rows[other];
          rows[other] = moved;
        }
      }
      __syncthreads();
    }
  }
}

__global__ __launch_bounds__(select_threads_max) void select_rows(
    const __grid_constant__ select_parameters p) {
  await_earlier_kernels();
  __shared__ found_row sorted[sorted_max];
  __shared__ uint32_t found_count;
  const uint32_t number = blockIdx.x;
  const device_query& query = p.state.queries[number];
  const candidate_lists& lists = p.state.lists;
  query_outcome& outcome = p.state.outcomes[number];
  if (lists.counts[number] > lists.capacity && threadIdx.x == 0) outcome.is_undecided = 1;
  if (query.is_scanned && threadIdx.x == 0) outcome.threshold = p.state.thresholds[number];
  if (threadIdx.x == 0) found_count = 0;
  __syncthreads();
  if (outcome.is_undecided != 0) return;
  const uint32_t count = lists.counts[number];
  const candidate* const rows = lists.rows + size_t{number} * lists.capacity;
  const candidate_score* const scores = lists.scores + size_t{number} * lists.capacity;

  // Counts eligible rows and looks for rows without a score.
  uint32_t eligible = 0;
  bool is_unscored = false;
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const double score = scores[i].score;
    if (score != score) is_unscored = true;
    else if (is_eligible(query, score)) eligible++;
  }
  eligible = sum_before(eligible).total;
  is_unscored = __syncthreads_or(is_unscored) != 0;
  const double least =
      is_unscored ? -__builtin_huge_val() : kth_score(query, scores, count, eligible);
  const size_t stride = p.state.query_count;
  found_row* const found = p.found + number;
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const double score = scores[i].score;
    if (is_out(query, least, score)) continue;
    const uint32_t at = atomicAdd(&found_count, 1u);
    if (at < sorted_max) sorted[at] = {score, rows[i].batch_row, 0};
    if (at < p.found_max) found[at * stride] = {score, rows[i].batch_row, 0};
  }
  __syncthreads();
  const uint32_t total = found_count;
  if (total <= min(sorted_max, p.found_max) && !is_unscored) {
    sort_found(sorted, total);
    for (uint32_t i = threadIdx.x; i < total; i += blockDim.x) found[i * stride] = sorted[i];
  }
  if (threadIdx.x != 0) return;
  outcome.found_count = min(total, p.found_max);
  outcome.rescored_count += count;
  if (total > p.found_max) outcome.is_undecided = 1;
}

}  // namespace

cudaError_t select_found(const select_parameters& parameters, launch_order order) {
  const uint32_t list_count = parameters.state.query_count;
  return launch(select_rows, dim3(list_count), select_threads(list_count), 0, order, parameters);
}

cudaError_t preload_selection() { return preload(select_rows); }

}  // namespace sagitta::cuda
