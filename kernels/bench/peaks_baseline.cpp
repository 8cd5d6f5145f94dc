// Peak loops for the baseline of the architecture.
#include "peak_loops.h"

namespace sagitta {
namespace {

double int8_operations(uint64_t rounds) {
  using lanes = int16_t __attribute__((vector_size(16)));
  return int8_loop<lanes>(rounds, [](const lanes& sum, const lanes& left, const lanes& right) {
    return sum + left * right;
  });
}

}  // namespace

const peak_functions baseline_peaks = {"baseline", float_loop<float_4>, int8_operations, read_loop<uint64_2>};

}  // namespace sagitta
