// Encodes queries as the CPU targets do: x ≈ t·b with codes b in −127…127. One warp per query.

#include "encode.h"

namespace sagitta::cuda {
namespace {

constexpr uint32_t threads = 256;
constexpr uint32_t all_lanes = 0xffffffffu;

template <class Value>
__device__ Value add_lanes(Value value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(all_lanes, value, distance);
  }
  return value;
}

__device__ float largest_magnitude(const float* values, uint32_t dimension, uint32_t lane) {
  float largest = 0;
  for (uint32_t i = lane; i < dimension; i += 32) largest = fmaxf(largest, fabsf(values[i]));
  for (int distance = 16; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(all_lanes, largest, distance));
  }
  return largest;
}

/** The test that no row passes. */
__device__ scan_weights reject_all_weights() {
  scan_weights weights{};
  weights.upper_min = __builtin_huge_valf();
  return weights;
}

__global__ void encode(const __grid_constant__ encode_parameters p) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t number = (blockIdx.x * threads + threadIdx.x) / 32;
  if (number >= p.query_count) return;
  const bool is_real = number < p.real_count && p.queries[number].is_scanned;
  const uint32_t dimension = is_real ? p.dimension : 0;
  const float* const values = p.vectors + size_t{is_real ? number : 0} * p.dimension;
  const float largest = largest_magnitude(values, dimension, lane);
  const float scale = largest / 127;
  const float inverse = 127 / largest;

  int code_sum = 0;
  int code_square = 0;
  double residual_square = 0;
  const uint32_t words = p.shape.padded_dimension() / 4;
  for (uint32_t group = lane; group < words; group += 32) {
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4 && 4 * group + i < dimension; i++) {
      const float value = values[4 * group + i];
      const auto code = static_cast<int>(rintf(value * inverse));
      const double left_out = static_cast<double>(value) - static_cast<double>(scale) * code;
      code_sum += code;
      code_square += code * code;
      residual_square += left_out * left_out;
      word |= (static_cast<uint32_t>(code) & 0xff) << (8 * i);
    }
    p.packed[p.shape.is_wgmma ? wgmma_word(number, group, p.shape.chunk_count, p.shape.group)
                              : mma_word(number, group, p.shape.pair_count)] = word;
  }
  code_sum = add_lanes(code_sum);
  code_square = add_lanes(code_square);
  residual_square = add_lanes(residual_square);
  if (lane != 0) return;
  p.offsets[number] = -128 * code_sum;
  if (!is_real) {
    p.weights[number] = reject_all_weights();
    p.thresholds[number] = number < p.real_count ? p.queries[number].floor : 0;
    return;
  }
  device_query& query = p.queries[number];
  query.scale = static_cast<double>(scale);
  query.code_length = sqrt(static_cast<double>(code_square)) * (1 + 0x1p-40);
  query.residual = sqrt(residual_square) / query.scale * (1 + 0x1p-38);
  scan_weights weights = create_weights(query);
  if (!query.has_after) {
    weights.lower_norm = weights.lower_square = 0;
    weights.lower_max = __builtin_huge_valf();
  }
  tighten(query, query.floor, weights);
  p.weights[number] = weights;
  p.thresholds[number] = query.floor;
}

}  // namespace

cudaError_t encode_queries(const encode_parameters& parameters, cudaStream_t stream) {
  const uint32_t grid = (parameters.query_count * 32 + threads - 1) / threads;
  return launch(encode, dim3(grid), threads, 0, stream, parameters);
}

cudaError_t preload_encoding() { return preload(encode); }

}  // namespace sagitta::cuda
