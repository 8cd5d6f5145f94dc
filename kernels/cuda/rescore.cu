// Canonical scores on the device, bit for bit those of search/canonical.h: eight lanes per row, each
// with the float64 sum of its dimensions, folded by halves. Also gathers the rows of queries that are
// not scanned, all of which are rescored.
//
// Shapes: vectors [query_count, dimension] and values [row_count, dimension] float32; lists
// [query_count, capacity].

#include "../search/canonical.h"
#include "select.h"

namespace sagitta::cuda {
namespace {

constexpr uint32_t all_lanes = 0xffffffffu;
constexpr uint32_t threads = 256;
constexpr uint32_t lanes_per_row = 8;
constexpr uint32_t rows_at_once = threads / lanes_per_row;
/** Values that a lane loads before it uses them, to hide the latency of uncached memory. */
constexpr uint32_t loads_at_once = 16;

/** A warp takes 32 bitmap words of 32 rows at a time, one per lane, with one atomic addition for all. */
__global__ __launch_bounds__(threads) void gather(const __grid_constant__ gather_parameters p) {
  const uint32_t number = blockIdx.x;
  if (!p.state.queries[number].is_gathered) return;
  constexpr uint32_t words_per_tile = tile_rows / 32;
  const candidate_lists& lists = p.state.lists;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t end = p.end_tile * words_per_tile;
  const uint32_t step = gridDim.y * threads;
  for (uint32_t first = p.first_tile * words_per_tile + blockIdx.y * threads + threadIdx.x - lane;
       first < end; first += step) {
    const uint32_t word = first + lane;
    uint32_t rows = 0;
    uint32_t first_batch_row = 0;
    if (word < end) {
      const uint32_t tile = word / words_per_tile;
      const uint32_t block = block_of(p.state.blocks, p.state.block_count, tile);
      const row_view& view = p.views[size_t{block} * p.view_count + number];
      const uint32_t row = word * 32 - p.state.blocks[block].first_tile * tile_rows;
      first_batch_row = word * 32;
      if (row < view.row_count) {
        rows = view.rows == nullptr ? ~0u : view.rows[row / 32];
        if (view.row_count - row < 32) rows &= (1u << (view.row_count - row)) - 1;
      }
    }
    uint32_t before = static_cast<uint32_t>(__popc(rows));
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(all_lanes, before, distance);
      if (lane >= distance) before += other;
    }
    const uint32_t total = __shfl_sync(all_lanes, before, 31);
    if (total == 0) continue;
    uint32_t at = 0;
    if (lane == 0) at = atomicAdd(lists.counts + number, total);
    at = __shfl_sync(all_lanes, at, 0) + before - static_cast<uint32_t>(__popc(rows));
    for (; rows != 0; rows &= rows - 1, at++) {
      const auto bit = static_cast<uint32_t>(__ffs(static_cast<int>(rows)) - 1);
      if (at < lists.capacity) {
        lists.rows[size_t{number} * lists.capacity + at] = {first_batch_row + bit, 0};
      }
    }
  }
}

/** The sum of a row's eight lanes in the order of the canonical score; valid in the first lane. */
__device__ double fold(double lane_sum) {
  for (uint32_t distance = lanes_per_row / 2; distance > 0; distance /= 2) {
    lane_sum += __shfl_down_sync(all_lanes, lane_sum, distance, lanes_per_row);
  }
  return lane_sum;
}

// Four thread blocks per multiprocessor: without the hint the compiler saves registers by serialising
// the loads.
__global__ __launch_bounds__(threads, 4) void rescore_lists(
    const __grid_constant__ rescore_parameters p) {
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
  const uint32_t lane = threadIdx.x % lanes_per_row;
  const uint32_t step = gridDim.y * rows_at_once;
  // Rounded up to whole warps, whose lanes all take part in the fold.
  const uint32_t whole = (count + 3) / 4 * 4;
  for (uint32_t i = blockIdx.y * rows_at_once + threadIdx.x / lanes_per_row; i < whole; i += step) {
    const uint32_t batch_row = rows[min(i, count - 1)].batch_row;
    const resident_block& block =
        state.blocks[block_of(state.blocks, state.block_count, batch_row / tile_rows)];
    double product = 0;
    double square = 0;
    if (block.values != nullptr) {
      const float* const values =
          block.values + size_t{batch_row - block.first_tile * tile_rows} * state.dimension;
      for (uint32_t first = lane; first < state.dimension;
           first += loads_at_once * lanes_per_row) {
        // Zeros past the end do not change a bit of a sum, since a sum is never −0.
        float loaded[loads_at_once];
#pragma unroll
        for (uint32_t n = 0; n < loads_at_once; n++) {
          const uint32_t d = first + n * lanes_per_row;
          loaded[n] = d < state.dimension ? __ldg(values + d) : 0.0f;
        }
#pragma unroll
        for (uint32_t n = 0; n < loads_at_once; n++) {
          const uint32_t d = first + n * lanes_per_row;
          const auto value = static_cast<double>(loaded[n]);
          const double factor = d < state.dimension ? static_cast<double>(vector[d]) : 0.0;
          product = __fma_rn(factor, value, product);
          square = __fma_rn(value, value, square);
        }
      }
    }
    product = fold(product);
    square = fold(square);
    if (lane != 0 || i >= count) continue;
    scores[i].score = block.values == nullptr
                          ? __longlong_as_double(0x7ff8000000000000ll)
                          : canonical_score(query.metric, product, query.square, square);
  }
}

}  // namespace

cudaError_t gather_rows(const gather_parameters& parameters, cudaStream_t stream) {
  constexpr uint32_t tiles_at_once = threads / (tile_rows / 32);
  const uint32_t tiles = parameters.end_tile - parameters.first_tile;
  const uint32_t strips = min((tiles + tiles_at_once - 1) / tiles_at_once, 64u);
  return launch(gather, dim3(parameters.state.query_count, max(strips, 1u)), threads, 0, stream,
                parameters);
}

cudaError_t rescore(const rescore_parameters& parameters, uint32_t rows_expected,
                    cudaStream_t stream) {
  // Few queries get more thread blocks each, to fill the device.
  const uint32_t strips_max = max(64u, 2048u / parameters.state.query_count);
  const uint32_t strips = min((rows_expected + rows_at_once - 1) / rows_at_once, strips_max);
  return launch(rescore_lists, dim3(parameters.state.query_count, max(strips, 1u)), threads,
                size_t{parameters.state.dimension} * sizeof(float), stream, parameters);
}

cudaError_t prepare_rescoring() {
  for (const cudaError_t error : {preload(gather), preload(rescore_lists)}) {
    if (error != cudaSuccess) return error;
  }
  return cudaFuncSetAttribute(rescore_lists, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(SAGITTA_DIMENSION_MAX * sizeof(float)));
}

}  // namespace sagitta::cuda
