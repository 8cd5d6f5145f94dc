// Encodes queries for the scan of coarse codes: multiplies them by the rotation of the rows
// (../search/rotation.h), then proceeds like encode.cu. One thread block per query.

#include "encode_vector.h"
#include "sieve.h"

namespace sagitta::cuda {
namespace {

constexpr uint32_t threads = 256;

/**
 * Multiplies consecutive blocks of values by the normalised Hadamard matrix; `count` is a multiple of
 * `block`. All threads must call it, after a barrier; it ends with one.
 */
__device__ void multiply_hadamard(float* values, uint32_t count, uint32_t block, float unit) {
  for (uint32_t half = 1; half < block; half *= 2) {
    for (uint32_t pair = threadIdx.x; pair < count / 2; pair += threads) {
      const uint32_t i = pair / half * 2 * half + pair % half;
      const float left = values[i];
      const float right = values[i + half];
      values[i] = left + right;
      values[i + half] = left - right;
    }
    __syncthreads();
  }
  for (uint32_t i = threadIdx.x; i < count; i += threads) values[i] *= unit;
  __syncthreads();
}

/** Applies one round's matrix. If blocks do not divide the dimension, one more block covers the last values. */
__device__ void multiply_blocks(const coarse_encode_parameters& p, float* values) {
  const uint32_t whole = p.dimension / p.block * p.block;
  multiply_hadamard(values, whole, p.block, p.unit);
  if (whole < p.dimension) {
    multiply_hadamard(values + p.dimension - p.block, p.block, p.block, p.unit);
  }
}

/** Returns the rotated query in shared memory, which has room for two times `dimension` values. */
__device__ const float* rotate(const coarse_encode_parameters& p, const float* vector, float* shared) {
  float* const first = shared;
  float* const second = shared + p.dimension;
  for (uint32_t i = threadIdx.x; i < p.dimension; i += threads) {
    first[i] = (p.signs[i] & 1) != 0 ? -vector[i] : vector[i];
  }
  __syncthreads();
  multiply_blocks(p, first);
  for (uint32_t i = threadIdx.x; i < p.dimension; i += threads) {
    const float value = first[uint64_t{i} * p.stride % p.dimension];
    second[i] = (p.signs[i] & 2) != 0 ? -value : value;
  }
  __syncthreads();
  multiply_blocks(p, second);
  return second;
}

__global__ __launch_bounds__(threads) void encode(
    const __grid_constant__ coarse_encode_parameters p) {
  await_earlier_kernels();
  const uint32_t number = blockIdx.x;
  const bool is_real = number < p.real_count && p.queries[number].is_scanned;
  const uint32_t dimension = is_real ? p.dimension : 0;
  float* const shared = dynamic_shared<float>();
  const float* const rotated =
      is_real ? rotate(p, p.vectors + size_t{number} * p.dimension, shared) : shared;
  if (threadIdx.x >= warp_threads) return;
  const auto store = [&](uint32_t group, uint32_t word) {
    p.packed[coarse_word(number, group, p.shape.quad_count)] = word;
  };
  const vector_codes codes =
      encode_vector(rotated, dimension, p.shape.padded_dimension() / 4, store);
  if (threadIdx.x != 0) return;
  p.counts[number] = 0;
  // A code c of two bits stands for 2c − 3.
  p.offsets[number] = -3 * codes.code_sum;
  if (!is_real) {
    p.weights[number] = reject_all_weights();
    return;
  }
  bounded_query query = p.queries[number];
  set_codes(query, codes);
  p.bounds[number] = query;
  p.weights[number] = weights_of(query, p.thresholds[number]);
}

}  // namespace

cudaError_t encode_coarse(const coarse_encode_parameters& parameters, launch_order order) {
  const size_t shared_bytes = 2 * size_t{parameters.dimension} * sizeof(float);
  return launch(encode, dim3(parameters.query_count), threads, shared_bytes, order, parameters);
}

cudaError_t prepare_coarse_encoding(size_t shared_bytes_max) {
  const cudaError_t error = preload(encode);
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(encode, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(shared_bytes_max));
}

}  // namespace sagitta::cuda
