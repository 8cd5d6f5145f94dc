#include "peak_loops.h"

#if defined(__AVXVNNI__)
#include <immintrin.h>

namespace sagitta {
namespace {

double int8_operations(uint64_t rounds) {
  return int8_loop<__m256i>(rounds, [](__m256i sum, __m256i left, __m256i right) {
    return _mm256_dpbusd_avx_epi32(sum, left, right);
  });
}

constexpr peak_functions table = {"avx_vnni", float_loop<float_8>, int8_operations,
                                  reads_of<uint64_4>};

}  // namespace
const peak_functions* const avx_vnni_peaks = &table;
}  // namespace sagitta
#else
const sagitta::peak_functions* const sagitta::avx_vnni_peaks = nullptr;
#endif
