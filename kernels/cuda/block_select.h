// Operations of a whole thread block: prefix sums, compaction of a list, the k-th largest value.
#pragma once

#include "platform.h"
#include "tables.h"

namespace sagitta::cuda {

/** Threads of a block that works on one list: few lists have a multiprocessor each. */
inline constexpr uint32_t select_threads_max = 1024;
#if defined(SAGITTA_EMULATE_CUDA)
/** Set by tests of a number of threads; 0 for the usual one. */
inline uint32_t select_threads_of_test = 0;
#endif
inline uint32_t select_threads(uint32_t list_count) {
#if defined(SAGITTA_EMULATE_CUDA)
  if (select_threads_of_test != 0) return select_threads_of_test;
  // 1,024 fibers for every list would dominate the time of the tests.
  return list_count == 2 ? select_threads_max : 256;
#else
  return list_count <= 128 ? select_threads_max : 256;
#endif
}

/** Maps a floating-point number to an integer key of the same order. */
__device__ inline uint32_t ordered(float value) {
  const uint32_t bits = __float_as_uint(value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float value_of(uint32_t key) {
  return __uint_as_float((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key);
}
__device__ inline uint64_t ordered(double value) {
  // −0 and 0 are the same score and get the same key.
  const auto bits = static_cast<uint64_t>(__double_as_longlong(value + 0.0));
  return bits >> 63 != 0 ? ~bits : bits | uint64_t{1} << 63;
}
__device__ inline double value_of(uint64_t key) {
  return __longlong_as_double(
      static_cast<long long>(key >> 63 != 0 ? key ^ uint64_t{1} << 63 : ~key));
}

/** An exclusive prefix sum over the threads of a block, and the total. */
struct block_sum {
  uint32_t before;
  uint32_t total;
};

/** Sums one number per thread. All threads of the block must call it. */
__device__ inline block_sum sum_before(uint32_t value) {
  __shared__ uint32_t sums[select_threads_max / 32];
  const uint32_t lane = threadIdx.x % 32;
  uint32_t running = value;
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(0xffffffffu, running, distance);
    if (lane >= distance) running += other;
  }
  __syncthreads();
  if (lane == 31) sums[threadIdx.x / 32] = running;
  __syncthreads();
  const uint32_t of_warp = lane < blockDim.x / 32 ? sums[lane] : 0;
  const uint32_t before = __reduce_add_sync(0xffffffffu, lane < threadIdx.x / 32 ? of_warp : 0);
  return {before + running - value, __reduce_add_sync(0xffffffffu, of_warp)};
}

/**
 * The k-th largest of the keys for which `key_at(i, key)` returns true, with i below `count`; there
 * must be at least k of them. Radix select: from the highest byte on, only keys in the bin of the
 * answer are counted again. All threads of the block must call it; they are at least 256, one per
 * value of a digit.
 */
template <class Key, class KeyAt>
__device__ Key kth_largest(uint32_t count, uint32_t k, KeyAt key_at) {
  __shared__ uint32_t bins[256];
  __shared__ uint32_t chosen[2];
  Key prefix = 0;
  for (int shift = 8 * static_cast<int>(sizeof(Key)) - 8; shift >= 0; shift -= 8) {
    if (threadIdx.x < 256) bins[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      Key key;
      if (!key_at(i, key)) continue;
      // Skips keys of other prefixes. A shift by the full width is undefined, hence the first test.
      if (shift < 8 * static_cast<int>(sizeof(Key)) - 8 && (key ^ prefix) >> (shift + 8) != 0) continue;
      atomicAdd(bins + static_cast<uint32_t>(key >> shift & 0xff), 1u);
    }
    __syncthreads();
    // Thread 0 takes the largest digit.
    const uint32_t digit = 255 - threadIdx.x % 256;
    const uint32_t here = threadIdx.x < 256 ? bins[digit] : 0;
    const uint32_t larger = sum_before(here).before;
    if (larger < k && k <= larger + here) {
      chosen[0] = digit;
      chosen[1] = larger;
    }
    __syncthreads();
    prefix |= static_cast<Key>(chosen[0]) << shift;
    k -= chosen[1];
    __syncthreads();
  }
  return prefix;
}

/**
 * Removes the entries of a list for which `is_kept(i, score)` is false; the others keep their order.
 * `is_kept` gets the score or bounds of the entry and may change them. Returns how many entries are
 * left. All threads of the block must call it.
 */
template <class IsKept>
__device__ uint32_t shorten(candidate* rows, candidate_score* scores, uint32_t count,
                            IsKept is_kept) {
  // Neighbours, four for each thread: a quarter of the barriers, and four loads in flight.
  constexpr uint32_t entries = 4;
  uint32_t kept = 0;
  for (uint32_t first = 0; first < count; first += entries * blockDim.x) {
    candidate row[entries];
    candidate_score score[entries];
    const uint32_t own = first + entries * threadIdx.x;
#pragma unroll
    for (uint32_t j = 0; j < entries; j++) {
      row[j] = rows[min(own + j, count - 1)];
      score[j] = scores[min(own + j, count - 1)];
    }
    uint32_t is_here = 0;
#pragma unroll
    for (uint32_t j = 0; j < entries; j++) {
      if (own + j < count && is_kept(own + j, score[j])) is_here |= 1u << j;
    }
    // sum_before has a barrier: no thread writes before all have read.
    const block_sum positions = sum_before(static_cast<uint32_t>(__popc(is_here)));
    uint32_t at = kept + positions.before;
#pragma unroll
    for (uint32_t j = 0; j < entries; j++) {
      if ((is_here >> j & 1) == 0) continue;
      rows[at] = row[j];
      scores[at++] = score[j];
    }
    kept += positions.total;
    __syncthreads();
  }
  return kept;
}

}  // namespace sagitta::cuda
