#include "peak_loops.h"

#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

namespace sagitta {
namespace {

double int8_operations(uint64_t rounds) {
  return int8_loop<int32x4_t, 16>(rounds, [](int32x4_t sum, int32x4_t left, int32x4_t right) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(left), vreinterpretq_s8_s32(right));
  });
}

constexpr peak_functions table = {"neon_dotprod", float_loop<float_4>, int8_operations,
                                  reads_of<uint64_2>};

}  // namespace
const peak_functions* const neon_dotprod_peaks = &table;
}  // namespace sagitta
#else
const sagitta::peak_functions* const sagitta::neon_dotprod_peaks = nullptr;
#endif
