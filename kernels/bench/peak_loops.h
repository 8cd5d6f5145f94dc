// The loops of peaks.h for registers of any width, with internal linkage as in simd/rows.h.
#pragma once

#include <cstring>

#include "peaks.h"

namespace sagitta {
namespace {

/** Hides a register's contents from the optimiser. */
template <class Register>
void conceal(Register& value) {
#if defined(__x86_64__)
  __asm__ volatile("" : "+v"(value));
#else
  __asm__ volatile("" : "+w"(value));
#endif
}

/** Independent chains that fill the pipelines: latency times throughput. */
constexpr uint32_t chains = 12;

using float_4 = float __attribute__((vector_size(16)));
using float_8 = float __attribute__((vector_size(32)));
using float_16 = float __attribute__((vector_size(64)));
using uint64_2 = uint64_t __attribute__((vector_size(16)));
using uint64_4 = uint64_t __attribute__((vector_size(32)));
using uint64_8 = uint64_t __attribute__((vector_size(64)));

template <class Floats>
double float_loop(uint64_t rounds) {
  Floats sums[chains] = {};
  Floats factor = Floats{} + 0.5f;
  Floats term = Floats{} + 1.0f;
  conceal(factor);
  conceal(term);
  for (uint64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 16
    for (uint32_t i = 0; i < chains; i++) {
      sums[i] = sums[i] * factor + term;
      conceal(sums[i]);
    }
  }
  return 2.0 * (sizeof(Floats) / sizeof(float)) * chains * static_cast<double>(rounds);
}

/**
 * `Step` adds `products` products of bytes to the sums of a register. The sums are never addressed as
 * memory: otherwise GCC would load and store each of them around its instruction, and the loop would
 * measure the latency of the store buffer.
 */
template <class Register, uint32_t products = sizeof(Register), class Step>
double int8_loop(uint64_t rounds, const Step& step) {
  Register sums[chains] = {};
  Register left = Register{} + 3;
  Register right = Register{} + 5;
  conceal(right);
  for (uint64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 16
    for (uint32_t i = 0; i < chains; i++) {
      // Concealed each time, so that products are not computed once for all steps.
      conceal(left);
      sums[i] = step(sums[i], left, right);
      conceal(sums[i]);
    }
  }
  return 2.0 * products * chains * static_cast<double>(rounds);
}

/** Bytes of a stream that are read before those of the next stream. */
constexpr size_t stream_bytes = 256;

/**
 * Reads `streams` equal parts of the bytes side by side, each with a prefetch `ahead` bytes ahead (none if
 * 0). `count` is a multiple of 4096 × streams.
 */
template <class Words, uint32_t streams, size_t ahead>
uint64_t read_loop(const uint8_t* bytes, size_t count) {
  constexpr size_t words = stream_bytes / sizeof(Words);
  Words sums[words] = {};
  const size_t part_bytes = count / streams;
  for (size_t at = 0; at < part_bytes; at += stream_bytes) {
#pragma GCC unroll 4
    for (uint32_t stream = 0; stream < streams; stream++) {
      const uint8_t* const from = bytes + stream * part_bytes + at;
      if constexpr (ahead > 0) {
        for (size_t line = 0; line < stream_bytes; line += 64) {
          __builtin_prefetch(from + ahead + line);
        }
      }
#pragma GCC unroll 16
      for (size_t i = 0; i < words; i++) {
        Words part;
        std::memcpy(&part, from + i * sizeof part, sizeof part);
        sums[i] += part;
      }
    }
  }
  for (size_t i = 1; i < words; i++) sums[0] += sums[i];
  return sums[0][0];
}

template <class Words>
constexpr read_functions reads_of = {
    read_loop<Words, 1, 6144>, read_loop<Words, 2, 2048>, read_loop<Words, 4, 0>};

}  // namespace
}  // namespace sagitta
