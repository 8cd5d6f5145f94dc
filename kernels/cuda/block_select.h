// Operations of a whole thread block: prefix sums, compaction of a list, and the k-th largest value.
#pragma once

#include "platform.h"
#include "tables.h"

namespace sagitta::cuda {

/** Threads of a block that works on one list. The maximum is for few lists, each with a multiprocessor of its own. */
inline constexpr uint32_t select_threads_max = 1024;
#if defined(SAGITTA_EMULATE_CUDA)
/** Set by tests to a number of threads; 0 for the usual one. */
inline uint32_t select_threads_of_test = 0;
#endif
inline uint32_t select_threads(uint32_t list_count) {
#if defined(SAGITTA_EMULATE_CUDA)
  if (select_threads_of_test != 0) return select_threads_of_test;
  // 1,024 fibers for every list would dominate the running time of the tests.
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

/** Sums one number per lane over the lanes before this one and itself. All lanes must call it. */
__device__ inline uint32_t sum_to_lane(uint32_t value) {
  const uint32_t lane = threadIdx.x % 32;
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += other;
  }
  return value;
}

/** An exclusive prefix sum over the threads of a block, and their total. */
struct block_sum {
  uint32_t before;
  uint32_t total;
};

/** Sums one number per thread. All threads of the block must call it. */
__device__ inline block_sum sum_before(uint32_t value) {
  __shared__ uint32_t sums[select_threads_max / 32];
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t running = sum_to_lane(value);
  __syncthreads();
  if (lane == 31) sums[threadIdx.x / 32] = running;
  __syncthreads();
  const uint32_t of_warp = lane < blockDim.x / 32 ? sums[lane] : 0;
  const uint32_t before = __reduce_add_sync(0xffffffffu, lane < threadIdx.x / 32 ? of_warp : 0);
  return {before + running - value, __reduce_add_sync(0xffffffffu, of_warp)};
}

/** How many keys have each value of a digit: eight values per lane, which reads them from its own bank. */
using digit_bins = uint32_t[8][32];
__device__ inline uint32_t& bin_of(digit_bins& bins, uint32_t digit) {
  return bins[digit % 8][digit / 8];
}

/** The digit of the k-th largest key, how many keys have that digit, and how many have a larger one. */
struct chosen_digit {
  uint32_t digit;
  uint32_t here;
  uint32_t larger;
};

/** Chooses the digit and empties the bins. All lanes of one warp must call it. */
__device__ inline void choose_digit(digit_bins& bins, uint32_t k, chosen_digit& chosen) {
  // Lane 0 holds the largest digits.
  const uint32_t largest = 255 - threadIdx.x % 32 * 8;
  uint32_t here[8];
  uint32_t sum = 0;
#pragma unroll
  for (uint32_t j = 0; j < 8; j++) {
    here[j] = bin_of(bins, largest - j);
    bin_of(bins, largest - j) = 0;
    sum += here[j];
  }
  uint32_t larger = sum_to_lane(sum) - sum;
#pragma unroll
  for (uint32_t j = 0; j < 8; j++) {
    if (larger < k && k <= larger + here[j]) chosen = {largest - j, here[j], larger};
    larger += here[j];
  }
}

/**
 * Returns the k-th largest of the keys for which `key_at(i, key)` returns true, with i below `count`; there
 * must be at least k of them. Radix select: from the highest byte on, only keys in the bin of the answer
 * are counted again, until the bin holds nothing else. All threads of the block must call it.
 */
template <class Key, class KeyAt>
__device__ Key kth_largest(uint32_t count, uint32_t k, KeyAt key_at) {
  __shared__ digit_bins bins;
  __shared__ chosen_digit chosen;
  __shared__ Key only;
  Key prefix = 0;
  for (uint32_t digit = threadIdx.x; digit < 256; digit += blockDim.x) bin_of(bins, digit) = 0;
  __syncthreads();
  for (int shift = 8 * static_cast<int>(sizeof(Key)) - 8; shift >= 0; shift -= 8) {
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      Key key;
      if (!key_at(i, key)) continue;
      // Skips keys with other prefixes. The first test is needed because a shift by the full width is undefined.
      if (shift < 8 * static_cast<int>(sizeof(Key)) - 8 && (key ^ prefix) >> (shift + 8) != 0) continue;
      atomicAdd(&bin_of(bins, static_cast<uint32_t>(key >> shift & 0xff)), 1u);
    }
    __syncthreads();
    if (threadIdx.x < warp_threads) choose_digit(bins, k, chosen);
    __syncthreads();
    prefix |= static_cast<Key>(chosen.digit) << shift;
    k -= chosen.larger;
    if (chosen.here > 1 || shift == 0) continue;
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      Key key;
      if (key_at(i, key) && (key ^ prefix) >> shift == 0) only = key;
    }
    __syncthreads();
    return only;
  }
  return prefix;
}

/**
 * Moves the entries of a list for which `is_kept(score)` is true to its front, keeping their order. There
 * are `count` entries at the indexes `place_of(i)`, which grow with i. Returns how many entries are left.
 * All threads of the block must call it.
 */
template <class PlaceOf, class IsKept>
__device__ uint32_t shorten(candidate* rows, candidate_score* scores, uint32_t count,
                            PlaceOf place_of, IsKept is_kept) {
  // Each thread takes four neighbours: a quarter of the barriers, and four loads in flight.
  constexpr uint32_t entries = 4;
  uint32_t kept = 0;
  for (uint32_t first = 0; first < count; first += entries * blockDim.x) {
    candidate row[entries];
    candidate_score score[entries];
    const uint32_t own = first + entries * threadIdx.x;
#pragma unroll
    for (uint32_t j = 0; j < entries; j++) {
      const uint32_t place = place_of(min(own + j, count - 1));
      row[j] = rows[place];
      score[j] = scores[place];
    }
    uint32_t is_here = 0;
#pragma unroll
    for (uint32_t j = 0; j < entries; j++) {
      if (own + j < count && is_kept(score[j])) is_here |= 1u << j;
    }
    // sum_before contains a barrier: no thread writes before all have read.
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

template <class IsKept>
__device__ uint32_t shorten(candidate* rows, candidate_score* scores, uint32_t count,
                            IsKept is_kept) {
  return shorten(rows, scores, count, [](uint32_t i) { return i; }, is_kept);
}

}  // namespace sagitta::cuda
