// Encodes queries for the scan of head tiles: multiplies them by the directions of a basis, then proceeds like
// encode.cu. One thread block for up to eight queries, which share the reading of the directions.
//
// Sums are in float32, of dimension / 32 products in each lane and five additions of lanes: fewer roundings than the
// proof in bounds.h allows for rows. It allows for both sides of a product.

#include "encode.h"
#include "encode_vector.h"
#include "sieve.h"

namespace sagitta::cuda {
namespace {

constexpr uint32_t threads = 256;
constexpr uint32_t together_max = threads / warp_threads;

/** Queries with less than this share of their length in every direction have no codes. */
constexpr double least_share = 0x1p-20;

/** Projects the vectors in shared memory [together, dimension] on all directions: [together, directions]. */
__device__ void project(const head_encode_parameters& p, const float* vectors, float* projected) {
  const uint32_t lane = threadIdx.x % warp_threads;
  for (uint32_t row = threadIdx.x / warp_threads; row < p.directions; row += threads / warp_threads) {
    const float* const direction = p.matrix + size_t{row} * p.dimension;
    float sums[together_max] = {};
    for (uint32_t i = lane; i < p.dimension; i += warp_threads) {
      const float value = __ldg(direction + i);
#pragma unroll
      for (uint32_t q = 0; q < together_max; q++) {
        if (q < p.together) sums[q] = __fmaf_rn(value, vectors[q * p.dimension + i], sums[q]);
      }
    }
#pragma unroll
    for (uint32_t q = 0; q < together_max; q++) {
      if (q >= p.together) break;
      const float sum = add_lanes(sums[q]);
      if (lane == 0) projected[q * p.directions + row] = sum;
    }
  }
}

/** Encodes a projected query [directions]. All lanes of the warp must call it. */
__device__ void encode_projected(const head_encode_parameters& p, uint32_t number, const float* projected) {
  const uint32_t lane = threadIdx.x % warp_threads;
  const bool is_real = number < p.real_count && p.queries[number].is_scanned;
  const float largest = is_real ? largest_magnitude(projected, p.directions, lane) : 0;
  const bool has_codes = is_real && static_cast<double>(largest) >= p.queries[number].length * least_share;
  const scan_shape& shape = p.shape;
  const auto store = [&](uint32_t group, uint32_t word) {
    p.packed[shape.is_wgmma ? wgmma_word(number, group, shape.chunk_count, shape.group)
                            : mma_word(number, group, shape.pair_count)] = word;
  };
  const vector_codes codes =
      encode_vector(projected, has_codes ? p.directions : 0, shape.padded_dimension() / 4, store);
  double in_head = 0;
  for (uint32_t i = lane; has_codes && i < p.directions; i += warp_threads) {
    in_head += static_cast<double>(projected[i]) * static_cast<double>(projected[i]);
  }
  in_head = add_lanes(in_head);
  if (lane != 0) return;
  p.counts[number] = 0;
  p.offsets[number] = -128 * codes.code_sum;
  if (!has_codes) {
    p.weights[number] = reject_all_weights();
    if (!is_real) return;
    // Head tiles exclude no row for it, so the slice continues with int8 codes.
    atomicMax(p.estimate, p.estimate_limit + 1);
    p.bounds[number] = p.queries[number];
    p.bounds[number].scale = 0;
    return;
  }
  bounded_query query = p.queries[number];
  set_codes(query, codes);
  const double left_out = fmax(0.0, query.square - in_head) + 2 * p.error * query.square;
  const double unit = p.weight * query.scale;
  query.code_length =
      sqrt(static_cast<double>(codes.code_square) + left_out / (unit * unit)) * (1 + 0x1p-40);
  query.residual += 2 * p.error * query.length / query.scale * (1 + 0x1p-38);
  p.bounds[number] = query;
  p.weights[number] = weights_of(query, p.thresholds[number]);
}

__global__ __launch_bounds__(threads) void encode(const __grid_constant__ head_encode_parameters p) {
  await_earlier_kernels();
  float* const vectors = dynamic_shared<float>();
  float* const projected = vectors + p.together * p.dimension;
  const uint32_t first = blockIdx.x * p.together;
  for (uint32_t i = threadIdx.x; i < p.together * p.dimension; i += threads) {
    const uint32_t number = first + i / p.dimension;
    vectors[i] = number < p.real_count ? p.vectors[size_t{first} * p.dimension + i] : 0;
  }
  __syncthreads();
  project(p, vectors, projected);
  __syncthreads();
  const uint32_t warp = threadIdx.x / warp_threads;
  if (warp >= p.together || first + warp >= p.query_count) return;
  encode_projected(p, first + warp, projected + warp * p.directions);
}

size_t shared_bytes_of(uint32_t together, uint32_t dimension, uint32_t directions) {
  return size_t{together} * (dimension + directions) * sizeof(float);
}

}  // namespace

uint32_t head_queries_together(uint32_t dimension, uint32_t directions, size_t shared_bytes_max) {
  uint32_t together = together_max;
  while (together > 0 && shared_bytes_of(together, dimension, directions) > shared_bytes_max) together /= 2;
  return together;
}

cudaError_t encode_head(const head_encode_parameters& parameters, launch_order order) {
  const uint32_t together = parameters.together;
  return launch(encode, dim3((parameters.query_count + together - 1) / together), threads,
                shared_bytes_of(together, parameters.dimension, parameters.directions), order, parameters);
}

cudaError_t prepare_head_encoding(size_t shared_bytes_max) {
  const cudaError_t error = preload(encode);
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(encode, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(shared_bytes_max));
}

}  // namespace sagitta::cuda
