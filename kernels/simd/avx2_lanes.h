// The lanes that AVX2 and AVX-VNNI share: eight rows per register, and the tests on their sums.
#pragma once

#include <cstring>

#include "../layout.h"
#include "../target.h"
#include "coarse.h"
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

/** Shared by the classes of coarse codes: 128 dimensions per register of codes. */
struct avx2_coarse {
  static constexpr uint32_t bytes = 32;
  using codes = __m256i;
  using query = __m256i;

  static constexpr uint32_t rows_of(uint32_t queries) { return 8 / queries; }
  static codes load(const uint8_t* from) { return avx2_lanes::load_codes(from); }
  static query load_query(const uint8_t* from) { return avx2_lanes::load_codes(from); }

  template <uint32_t plane>
  static codes first(codes all) {
    const __m256i shifted = plane == 0 ? all : _mm256_srli_epi16(all, 2 * plane);
    return _mm256_and_si256(shifted, _mm256_set1_epi8(3));
  }
  template <uint32_t plane>
  static codes second(codes upper, codes lower) {
    const __m256i high = plane == 0   ? _mm256_slli_epi16(upper, 2)
                         : plane == 1 ? upper
                                      : _mm256_srli_epi16(upper, plane == 0 ? 0 : 2 * plane - 2);
    const __m256i code =
        _mm256_or_si256(_mm256_and_si256(high, _mm256_set1_epi8(12)), first<plane>(lower));
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(refined_values));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), code);
  }

  /** Computes the sums of eight registers of 32-bit lanes. */
  static void reduce_lanes(const __m256i* sums, int32_t* to) {
    const __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]),
                                        _mm256_hadd_epi32(sums[2], sums[3]));
    const __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[4], sums[5]),
                                        _mm256_hadd_epi32(sums[6], sums[7]));
    const __m256i low = _mm256_permute2x128_si256(a, b, 0x20);
    const __m256i high = _mm256_permute2x128_si256(a, b, 0x31);
    avx2_lanes::store(to, _mm256_add_epi32(low, high));
  }
};

}  // namespace
}  // namespace sagitta
