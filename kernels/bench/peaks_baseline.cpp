// Peak loops for the baseline of the architecture, and the clock.
#include "peak_loops.h"

namespace sagitta {
namespace {

/** Products of bytes in 16 bits, as compilers make them without an instruction for sums of products. */
double int8_operations(uint64_t rounds) {
  using lanes = int16_t __attribute__((vector_size(16)));
  return int8_loop<lanes, 8>(rounds, [](const lanes& sum, const lanes& left, const lanes& right) {
    return sum + left * right;
  });
}

}  // namespace

double dependent_additions(uint64_t rounds) {
  constexpr uint32_t additions = 16;
  uint64_t sum = 1;
  // Not a constant: processors add small constants for free while they rename registers.
  uint64_t term = rounds;
  for (uint64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 16
    for (uint32_t i = 0; i < additions; i++) {
      sum += term;
      __asm__ volatile("" : "+r"(sum));
    }
  }
  return static_cast<double>(additions) * static_cast<double>(rounds);
}

const peak_functions baseline_peaks = {"baseline", float_loop<float_4>, int8_operations,
                                       reads_of<uint64_2>};

}  // namespace sagitta
