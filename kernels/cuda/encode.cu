// Encodes queries as the CPU targets do, one warp per query.

#include "encode.h"
#include "encode_vector.h"

namespace sagitta::cuda {
namespace {

constexpr uint32_t threads = 256;

__global__ void encode(const __grid_constant__ encode_parameters p) {
  await_earlier_kernels();
  const uint32_t number = (blockIdx.x * threads + threadIdx.x) / 32;
  if (number >= p.query_count) return;
  const bool is_real = number < p.real_count && p.queries[number].is_scanned;
  const uint32_t dimension = is_real ? p.dimension : 0;
  const float* const values = p.vectors + size_t{is_real ? number : 0} * p.dimension;
  const scan_shape& shape = p.shape;
  const auto store = [&](uint32_t group, uint32_t word) {
    p.packed[shape.is_wgmma ? wgmma_word(number, group, shape.chunk_count, shape.group)
                            : mma_word(number, group, shape.pair_count)] = word;
  };
  const vector_codes codes = encode_vector(values, dimension, shape.padded_dimension() / 4, store);
  if (threadIdx.x % 32 != 0) return;
  p.counts[number] = 0;
  if (number == 0 && p.estimate != nullptr) *p.estimate = 0;
  if (number < p.real_count) {
    p.outcomes[number] = {};
    p.shared[number] = {};
  }
  p.offsets[number] = -128 * codes.code_sum;
  if (!is_real) {
    p.weights[number] = reject_all_weights();
    p.thresholds[number] = number < p.real_count ? p.queries[number].floor : 0;
    return;
  }
  device_query& query = p.queries[number];
  set_codes(query, codes);
  p.weights[number] = weights_of(query, query.floor);
  p.thresholds[number] = query.floor;
}

}  // namespace

cudaError_t encode_queries(const encode_parameters& parameters, launch_order order) {
  const uint32_t grid = (parameters.query_count * 32 + threads - 1) / threads;
  return launch(encode, dim3(grid), threads, 0, order, parameters);
}

cudaError_t preload_encoding() { return preload(encode); }

}  // namespace sagitta::cuda
