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

/** `Step` adds products of all bytes of a register to 32-bit sums. */
template <class Register, class Step>
double int8_loop(uint64_t rounds, const Step& step) {
  Register sums[chains];
  std::memset(&sums, 0, sizeof sums);
  Register left;
  Register right;
  std::memset(&left, 3, sizeof left);
  std::memset(&right, 5, sizeof right);
  conceal(left);
  conceal(right);
  for (uint64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 16
    for (uint32_t i = 0; i < chains; i++) {
      sums[i] = step(sums[i], left, right);
      conceal(sums[i]);
    }
  }
  return 2.0 * sizeof(Register) * chains * static_cast<double>(rounds);
}

/** The prefetch distance of simd/scan.h: without it, memory seems slower than it is. */
constexpr size_t prefetch_bytes = 6144;

template <class Words>
uint64_t read_loop(const uint8_t* bytes, size_t count) {
  Words sums[8] = {};
  for (size_t at = 0; at < count; at += sizeof sums) {
    for (size_t line = 0; line < sizeof sums; line += 64) {
      __builtin_prefetch(bytes + at + line + prefetch_bytes);
    }
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
      Words part;
      std::memcpy(&part, bytes + at + i * sizeof part, sizeof part);
      sums[i] += part;
    }
  }
  for (uint32_t i = 1; i < 8; i++) sums[0] += sums[i];
  return sums[0][0];
}

}  // namespace
}  // namespace sagitta
