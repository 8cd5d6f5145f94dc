#include "peak_loops.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

namespace sagitta {
namespace {

/** Without VNNI, three instructions are the fastest way to 32-bit sums of products of bytes. */
double int8_operations(uint64_t rounds) {
  const __m256i ones = _mm256_set1_epi16(1);
  return int8_loop<__m256i>(rounds, [ones](__m256i sum, __m256i left, __m256i right) {
    const __m256i pairs = _mm256_maddubs_epi16(left, right);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
  });
}

constexpr peak_functions table = {"avx2", float_loop<float_8>, int8_operations,
                                  reads_of<uint64_4>};

}  // namespace
const peak_functions* const avx2_peaks = &table;
}  // namespace sagitta
#else
const sagitta::peak_functions* const sagitta::avx2_peaks = nullptr;
#endif
