#include "peak_loops.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>

namespace sagitta {
namespace {

double int8_operations(uint64_t rounds) {
  return int8_loop<__m512i>(rounds, [](__m512i sum, __m512i left, __m512i right) {
    return _mm512_dpbusd_epi32(sum, left, right);
  });
}

constexpr peak_functions table = {"avx512_vnni", float_loop<float_16>, int8_operations,
                                  reads_of<uint64_8>};

}  // namespace
const peak_functions* const avx512_vnni_peaks = &table;
}  // namespace sagitta
#else
const sagitta::peak_functions* const sagitta::avx512_vnni_peaks = nullptr;
#endif
