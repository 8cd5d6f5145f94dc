// The lanes that AVX2 and AVX-VNNI share: eight rows per register, and the tests on their sums.
#pragma once

#include <cstring>

#include "../layout.h"
#include "../target.h"
#include "intrinsics.h"

namespace sagitta {
namespace {

struct avx2_lanes {
  static constexpr uint32_t width = 8;
  using sums = __m256i;

  static sums zero() { return _mm256_setzero_si256(); }
  static sums add(sums left, sums right) { return _mm256_add_epi32(left, right); }
  static sums start(int32_t offset) { return _mm256_set1_epi32(offset); }
  static __m256i load_codes(const uint8_t* codes) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
  }
  static __m256i broadcast_quad(const uint8_t* packed) {
    int32_t quad;
    std::memcpy(&quad, packed, sizeof quad);
    return _mm256_set1_epi32(quad);
  }
  static void store(int32_t* to, sums sum) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), sum);
  }

  static __m256 products_of(const int32_t* sums, const panel_facts& facts, uint32_t row) {
    const __m256i sum = _mm256_load_si256(reinterpret_cast<const __m256i*>(sums + row));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(facts.scale + row));
  }

  static bool may_survive(const int32_t* sums, const panel_facts& facts, float least) {
    const __m256 bound = _mm256_set1_ps(least);
    const __m256 low = _mm256_cmp_ps(products_of(sums, facts, 0), bound, _CMP_GE_OQ);
    const __m256 high = _mm256_cmp_ps(products_of(sums, facts, width), bound, _CMP_GE_OQ);
    return _mm256_movemask_ps(_mm256_or_ps(low, high)) != 0;
  }

  template <bool has_lower>
  static uint32_t weigh(const int32_t* sums, const panel_facts& facts, uint32_t row,
                        const scan_query& query) {
    const __m256 product = products_of(sums, facts, row);
    const __m256 residual = _mm256_loadu_ps(facts.residual + row);
    const __m256 norm = _mm256_loadu_ps(facts.norm + row);
    const __m256 square = _mm256_loadu_ps(facts.square + row);
    const __m256 weight = _mm256_set1_ps(query.upper_residual);
    __m256 upper = _mm256_fmadd_ps(weight, residual, product);
    upper = _mm256_fmadd_ps(_mm256_set1_ps(query.upper_norm), norm, upper);
    upper = _mm256_fmadd_ps(_mm256_set1_ps(query.upper_square), square, upper);
    __m256 mask = _mm256_cmp_ps(upper, _mm256_set1_ps(query.upper_min), _CMP_GE_OQ);
    if constexpr (has_lower) {
      __m256 lower = _mm256_fnmadd_ps(weight, residual, product);
      lower = _mm256_fmadd_ps(_mm256_set1_ps(query.lower_norm), norm, lower);
      lower = _mm256_fmadd_ps(_mm256_set1_ps(query.lower_square), square, lower);
      const __m256 low = _mm256_cmp_ps(lower, _mm256_set1_ps(query.lower_max), _CMP_LE_OQ);
      mask = _mm256_and_ps(mask, low);
    }
    return static_cast<uint32_t>(_mm256_movemask_ps(mask));
  }
};

}  // namespace
}  // namespace sagitta
