// Matrix multiplication of fragments: eight columns at a time with AVX2, or plain loops.
#include "fragments.h"

#include <immintrin.h>

namespace sagitta::cuda::emulation {

row_tile rows_now;
column_tile columns_now;
sum_tile sums_now;

namespace {

__attribute__((target("avx2"), no_sanitize("address", "undefined"), optimize("O3"))) void
multiply_avx2(uint32_t columns) {
  for (uint32_t row = 0; row < row_count; row++) {
    for (uint32_t column = 0; column < columns; column += 8) {
      auto* const place = reinterpret_cast<__m256i*>(&sums_now.at[row][column]);
      __m256i sum = *place;
      for (uint32_t pair = 0; pair < depth / 2; pair++) {
        const int both = rows_now[row][2 * pair] | rows_now[row][2 * pair + 1] << 16;
        const auto* const two =
            reinterpret_cast<const __m256i*>(&columns_now.pairs[pair][column][0]);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_set1_epi32(both), *two));
      }
      *place = sum;
    }
  }
}

void multiply_plainly(uint32_t columns) {
  for (uint32_t row = 0; row < row_count; row++) {
    for (uint32_t column = 0; column < columns; column++) {
      int32_t sum = sums_now.at[row][column];
      for (uint32_t k = 0; k < depth; k++) {
        sum += rows_now[row][k] * columns_now.pairs[k / 2][column][k % 2];
      }
      sums_now.at[row][column] = sum;
    }
  }
}

}  // namespace

void multiply(uint32_t columns) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) {
    multiply_avx2(columns);
  } else {
    multiply_plainly(columns);
  }
}

}  // namespace sagitta::cuda::emulation
