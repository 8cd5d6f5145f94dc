// Canonical scores of the rows in the lists (row_score.h), in two steps: the rows with the best estimates first,
// whose k-th best score leaves few of the others. Also gathers the rows of queries that are not scanned; all of
// these are rescored.
//
// Shapes: vectors [query_count, dimension] and values [row_count, dimension] float32; lists [query_count,
// capacity].

#include "best_scores.h"
#include "select.h"

namespace sagitta::cuda {
namespace {

constexpr uint32_t threads = 256;
constexpr uint32_t rows_at_once = threads / lanes_per_row;
constexpr uint32_t words_per_tile = tile_rows / 32;

/** The views of one query, one per block. */
struct query_views {
  const resident_block* blocks;
  uint32_t block_count;
  const row_view* views;

  /** Returns the rows that the query searches among batch rows 32·word to 32·word + 31. */
  __device__ uint32_t rows_of_word(uint32_t word) const {
    const uint32_t number = block_of(blocks, block_count, word / words_per_tile);
    const row_view& view = views[number];
    const uint32_t row = word * 32 - blocks[number].first_tile * tile_rows;
    if (row >= view.row_count) return 0;
    const uint32_t rows = view.rows == nullptr ? ~0u : view.rows[row / 32];
    const uint32_t count = view.row_count - row;
    return count < 32 ? rows & ((1u << count) - 1) : rows;
  }
};

/**
 * Reserves an index for every set bit of the lanes of a warp, with one addition to the counter. Returns the
 * first index of the lane. All lanes must call it.
 */
__device__ uint32_t reserve_places(uint32_t rows, uint32_t* counter) {
  constexpr uint32_t all = 0xffffffffu;
  const auto own = static_cast<uint32_t>(__popc(rows));
  const uint32_t up_to_own = sum_to_lane(own);
  const uint32_t total = __shfl_sync(all, up_to_own, 31);
  uint32_t first = 0;
  if (threadIdx.x % 32 == 0 && total > 0) first = atomicAdd(counter, total);
  return __shfl_sync(all, first, 0) + up_to_own - own;
}

/** A warp takes 32 bitmap words of 32 rows at a time, one per lane, with one atomic addition for all. */
__global__ __launch_bounds__(threads) void gather(const __grid_constant__ gather_parameters p) {
  await_earlier_kernels();
  const uint32_t number = blockIdx.x;
  if (!p.state.queries[number].is_gathered) return;
  const uint32_t block_count = p.state.block_count;
  const query_views views = {p.state.blocks, block_count,
                             p.scopes + size_t{p.scope_of[number]} * block_count};
  const candidate_lists& lists = p.state.lists;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t end = p.tile_count * words_per_tile;
  const uint32_t step = gridDim.y * threads;
  for (uint32_t first = blockIdx.y * threads + threadIdx.x - lane; first < end; first += step) {
    const uint32_t word = first + lane;
    uint32_t rows = word < end ? views.rows_of_word(word) : 0;
    uint32_t at = reserve_places(rows, lists.counts + number);
    for (; rows != 0; rows &= rows - 1, at++) {
      const auto bit = static_cast<uint32_t>(__ffs(static_cast<int>(rows)) - 1);
      if (at < lists.capacity) {
        lists.rows[size_t{number} * lists.capacity + at] = {word * 32 + bit, 0};
      }
    }
  }
}

/** The estimate of an entry with bounds. Returns false for rows that prove nothing because of the rank key. */
__device__ bool estimate_of(const candidate_score& score, float& estimate) {
  const float upper = score.bounds.upper;
  estimate = upper == __builtin_huge_valf() ? upper : (score.bounds.lower + upper) / 2;
  return score.bounds.lower > -__builtin_huge_valf();
}

__global__ __launch_bounds__(select_threads_max) void score_best_estimates(
    const __grid_constant__ rescore_parameters p) {
  await_earlier_kernels();
  __shared__ scored_rows best;
  const batch_state& state = p.state;
  const uint32_t number = blockIdx.x;
  const device_query& query = state.queries[number];
  query_outcome& outcome = state.outcomes[number];
  const uint32_t count = min(state.lists.counts[number], state.lists.capacity);
  // Scanned lists have bounds; those that a sieve has chosen are already short.
  const bool has_bounds = query.is_scanned && outcome.is_sieved == 0 && outcome.is_undecided == 0;
  if (!has_bounds || query.k > estimated_k_max || count <= scored_estimates(query.k)) return;
  candidate* const rows = state.lists.rows + size_t{number} * state.lists.capacity;
  candidate_score* const scores = state.lists.scores + size_t{number} * state.lists.capacity;
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) rows[i].sum = 0;
  __syncthreads();
  take_best_estimates(
      query, rows, count, best,
      [&](uint32_t i, float& estimate) { return estimate_of(scores[i], estimate); },
      [&](uint32_t i, uint32_t place) { rows[i].sum = static_cast<int32_t>(place + 1); });
  const float* const vector = p.vectors + size_t{number} * state.dimension;
  const double proven =
      score_best(state.blocks, state.block_count, query, vector, state.dimension, best);
  const double threshold = max(state.thresholds[number], proven);
  const uint32_t kept = shorten(rows, scores, count, [&](const candidate_score& score) {
    return static_cast<double>(score.bounds.upper) >= threshold;
  });
  uint32_t scored = 0;
  for (uint32_t i = threadIdx.x; i < kept; i += blockDim.x) {
    if (rows[i].sum == 0) continue;
    scores[i].score = best.scores[rows[i].sum - 1];
    scored++;
  }
  scored = sum_before(scored).total;
  if (threadIdx.x != 0) return;
  outcome.is_estimated = 1;
  outcome.rescored_count = best.count - scored;
  state.lists.counts[number] = kept;
  state.thresholds[number] = threshold;
}

// Four thread blocks per multiprocessor: without the hint the compiler saves registers by serialising
// the loads.
__global__ __launch_bounds__(threads, 4) void rescore_lists(
    const __grid_constant__ rescore_parameters p) {
  await_earlier_kernels();
  const uint32_t number = blockIdx.x;
  const batch_state& state = p.state;
  const candidate_lists& lists = state.lists;
  const uint32_t count = min(lists.counts[number], lists.capacity);
  if (state.outcomes[number].is_undecided != 0 || blockIdx.y * rows_at_once >= count) return;
  float* const vector = dynamic_shared<float>();
  for (uint32_t i = threadIdx.x; i < state.dimension; i += threads) {
    vector[i] = p.vectors[size_t{number} * state.dimension + i];
  }
  __syncthreads();
  const device_query& query = state.queries[number];
  const candidate* const rows = lists.rows + size_t{number} * lists.capacity;
  candidate_score* const scores = lists.scores + size_t{number} * lists.capacity;
  const bool is_estimated = state.outcomes[number].is_estimated != 0;
  const uint32_t step = gridDim.y * rows_at_once;
  // Rounded up to whole warps, whose lanes all take part in the fold.
  const uint32_t whole = (count + 3) / 4 * 4;
  for (uint32_t i = blockIdx.y * rows_at_once + threadIdx.x / lanes_per_row; i < whole; i += step) {
    const candidate row = rows[min(i, count - 1)];
    const bool has_score = is_estimated && row.sum != 0;
    const float* const values =
        has_score ? nullptr : values_of(state.blocks, state.block_count, row.batch_row, state.dimension);
    const double score = score_row(query, vector, values, state.dimension);
    if (threadIdx.x % lanes_per_row == 0 && i < count && !has_score) scores[i].score = score;
  }
}

}  // namespace

cudaError_t gather_rows(const gather_parameters& parameters, launch_order order) {
  constexpr uint32_t tiles_at_once = threads / (tile_rows / 32);
  const uint32_t strips = min((parameters.tile_count + tiles_at_once - 1) / tiles_at_once, 64u);
  return launch(gather, dim3(parameters.state.query_count, max(strips, 1u)), threads, 0, order,
                parameters);
}

cudaError_t score_estimates(const rescore_parameters& parameters, launch_order order) {
  const uint32_t list_count = parameters.state.query_count;
  return launch(score_best_estimates, dim3(list_count), select_threads(list_count), 0, order,
                parameters);
}

cudaError_t rescore(const rescore_parameters& parameters, uint32_t rows_expected,
                    launch_order order) {
  // Few queries get more thread blocks each, to fill the device.
  const uint32_t strips_max = max(64u, 2048u / parameters.state.query_count);
  const uint32_t strips = min((rows_expected + rows_at_once - 1) / rows_at_once, strips_max);
  return launch(rescore_lists, dim3(parameters.state.query_count, max(strips, 1u)), threads,
                size_t{parameters.state.dimension} * sizeof(float), order, parameters);
}

cudaError_t prepare_rescoring() {
  for (const cudaError_t error : {preload(gather), preload(score_best_estimates), preload(rescore_lists)}) {
    if (error != cudaSuccess) return error;
  }
  return cudaFuncSetAttribute(rescore_lists, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(SAGITTA_DIMENSION_MAX * sizeof(float)));
}

}  // namespace sagitta::cuda
