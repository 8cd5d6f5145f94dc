// The int8 codes of a query, x ≈ t·b with codes b in −127…127, made by the lanes of one warp.
#pragma once

#include "platform.h"
#include "tables.h"

namespace sagitta::cuda {

template <class Value>
__device__ Value add_lanes(Value value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

__device__ inline float largest_magnitude(const float* values, uint32_t dimension, uint32_t lane) {
  float largest = 0;
  for (uint32_t i = lane; i < dimension; i += 32) largest = fmaxf(largest, fabsf(values[i]));
  for (int distance = 16; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  }
  return largest;
}

/** The properties of the codes that the bounds of a query need; the same in all lanes. */
struct vector_codes {
  float scale;
  int code_sum;
  int code_square;
  double residual_square;
};

/**
 * Encodes `dimension` values and stores the word of dimensions 4g .. 4g + 3 by `store(g, word)`, for g
 * below `word_count`; codes past the last dimension are 0. All lanes of the warp must call it.
 */
template <class Store>
__device__ vector_codes encode_vector(const float* values, uint32_t dimension, uint32_t word_count,
                                      Store store) {
  const uint32_t lane = threadIdx.x % 32;
  const float largest = largest_magnitude(values, dimension, lane);
  const float scale = largest / 127;
  const float inverse = 127 / largest;
  vector_codes codes{scale, 0, 0, 0};
  for (uint32_t group = lane; group < word_count; group += 32) {
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4 && 4 * group + i < dimension; i++) {
      const float value = values[4 * group + i];
      const auto code = static_cast<int>(rintf(value * inverse));
      const double left_out = static_cast<double>(value) - static_cast<double>(scale) * code;
      codes.code_sum += code;
      codes.code_square += code * code;
      codes.residual_square += left_out * left_out;
      word |= (static_cast<uint32_t>(code) & 0xff) << (8 * i);
    }
    store(group, word);
  }
  codes.code_sum = add_lanes(codes.code_sum);
  codes.code_square = add_lanes(codes.code_square);
  codes.residual_square = add_lanes(codes.residual_square);
  return codes;
}

__device__ inline void set_codes(bounded_query& query, const vector_codes& codes) {
  query.scale = static_cast<double>(codes.scale);
  query.code_length = sqrt(static_cast<double>(codes.code_square)) * (1 + 0x1p-40);
  query.residual = sqrt(codes.residual_square) / query.scale * (1 + 0x1p-38);
}

/** Returns the test of a query whose codes are set, for rows that may reach the threshold. */
__device__ inline scan_weights weights_of(const bounded_query& query, double threshold) {
  scan_weights weights = create_weights(query);
  if (!query.has_after) {
    weights.lower_norm = weights.lower_square = 0;
    weights.lower_max = __builtin_huge_valf();
  }
  tighten(query, threshold, weights);
  return weights;
}

/** Returns the test that no row passes. */
__device__ inline scan_weights reject_all_weights() {
  scan_weights weights{};
  weights.upper_min = __builtin_huge_valf();
  return weights;
}

}  // namespace sagitta::cuda
