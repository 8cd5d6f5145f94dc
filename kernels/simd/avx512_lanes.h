// The lanes that AVX-512 VNNI and AMX share: the rows of a whole panel per register, and the tests on their sums.
#pragma once

#include <cstring>

#include "../layout.h"
#include "../target.h"
#include "coarse.h"
#include "intrinsics.h"

namespace sagitta {
namespace {

struct avx512_lanes {
  static constexpr uint32_t width = 16;
  static constexpr uint32_t query_group = 6;
  static constexpr uint32_t query_step_bytes = 4;
  using sums = __m512i;
  using rows = __m512i;
  using query = __m512i;

  /** 6 × 4 sums, 4 rows and a query are 29 of 32 registers. Few queries are bound by memory: one panel. */
  static constexpr uint32_t panels_of(uint32_t queries) { return queries <= 2 ? 1 : 4; }

  static sums zero() { return _mm512_setzero_si512(); }
  static sums add(sums left, sums right) { return _mm512_add_epi32(left, right); }
  static sums start(int32_t offset) { return _mm512_set1_epi32(offset); }
  static rows load(const uint8_t* codes) { return _mm512_loadu_si512(codes); }
  static query broadcast(const uint8_t* packed) {
    int32_t quad;
    std::memcpy(&quad, packed, sizeof quad);
    return _mm512_set1_epi32(quad);
  }
  static void accumulate(sums& sum, rows codes, query quad) {
    sum = _mm512_dpbusd_epi32(sum, codes, quad);
  }
  static void store(int32_t* to, sums sum) { _mm512_store_si512(to, sum); }

  static __m512 products_of(const int32_t* sums, const panel_facts& facts) {
    using int_lanes = int32_t __attribute__((vector_size(64)));
    int_lanes whole;
    std::memcpy(&whole, sums, sizeof whole);
    const __m512 exact = __builtin_convertvector(whole, __m512);
    return _mm512_mul_ps(exact, _mm512_loadu_ps(facts.scale));
  }

  /** The mask of rows whose product reaches `least`. */
  static __mmask16 reach(const int32_t* sums, const panel_facts& facts, float least) {
    const __m512 product = products_of(sums, facts);
    return _mm512_cmp_ps_mask(product, _mm512_set1_ps(least), _CMP_GE_OQ);
  }

  static bool may_survive(const int32_t* sums, const panel_facts& facts, float least) {
    return reach(sums, facts, least) != 0;
  }

  template <bool has_lower>
  static uint32_t weigh(const int32_t* sums, const panel_facts& facts, uint32_t,
                        const scan_query& query) {
    const __m512 product = products_of(sums, facts);
    const __m512 residual = _mm512_loadu_ps(facts.residual);
    const __m512 norm = _mm512_loadu_ps(facts.norm);
    const __m512 square = _mm512_loadu_ps(facts.square);
    const __m512 weight = _mm512_set1_ps(query.upper_residual);
    __m512 upper = _mm512_fmadd_ps(weight, residual, product);
    upper = _mm512_fmadd_ps(_mm512_set1_ps(query.upper_norm), norm, upper);
    upper = _mm512_fmadd_ps(_mm512_set1_ps(query.upper_square), square, upper);
    __mmask16 mask = _mm512_cmp_ps_mask(upper, _mm512_set1_ps(query.upper_min), _CMP_GE_OQ);
    if constexpr (has_lower) {
      __m512 lower = _mm512_fnmadd_ps(weight, residual, product);
      lower = _mm512_fmadd_ps(_mm512_set1_ps(query.lower_norm), norm, lower);
      lower = _mm512_fmadd_ps(_mm512_set1_ps(query.lower_square), square, lower);
      const __m512 bound = _mm512_set1_ps(query.lower_max);
      mask = static_cast<__mmask16>(mask & _mm512_cmp_ps_mask(lower, bound, _CMP_LE_OQ));
    }
    return mask;
  }
};

struct avx512_coarse {
  static constexpr uint32_t bytes = 64;
  using codes = __m512i;
  using query = __m512i;
  using sums = __m512i;

  static constexpr uint32_t rows_of(uint32_t queries) { return 16 / queries; }
  static sums zero() { return _mm512_setzero_si512(); }
  static codes load(const uint8_t* from) { return _mm512_loadu_si512(from); }
  static query load_query(const uint8_t* from) { return _mm512_loadu_si512(from); }

  template <uint32_t plane>
  static codes first(codes all) {
    const __m512i shifted = plane == 0 ? all : _mm512_srli_epi16(all, 2 * plane);
    return _mm512_and_si512(shifted, _mm512_set1_epi8(3));
  }
  template <uint32_t plane>
  static codes second(codes upper, codes lower) {
    const __m512i high = plane == 0   ? _mm512_slli_epi16(upper, 2)
                         : plane == 1 ? upper
                                      : _mm512_srli_epi16(upper, plane == 0 ? 0 : 2 * plane - 2);
    const __m512i low = plane == 0 ? lower : _mm512_srli_epi16(lower, 2 * plane);
    // Selects by bit: where 12 has a 1, from `high`, elsewhere from `low`.
    const __m512i code = _mm512_ternarylogic_epi32(_mm512_set1_epi8(12), high, low, 0xca);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(
                                   reinterpret_cast<const __m128i*>(refined_values))),
                               _mm512_and_si512(code, _mm512_set1_epi8(15)));
  }
  static void accumulate(sums& sum, codes code, query values) {
    sum = _mm512_dpbusd_epi32(sum, code, values);
  }
  static void end_step(sums&, uint32_t) {}

  template <uint32_t count>
  static void reduce(const sums* sums, int32_t* to) {
    static_assert(count == 16);
    __m512i pairs[8];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
      pairs[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(sums[2 * i], sums[2 * i + 1]),
                                  _mm512_unpackhi_epi32(sums[2 * i], sums[2 * i + 1]));
    }
    __m512i quads[4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
      quads[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(pairs[2 * i], pairs[2 * i + 1]),
                                  _mm512_unpackhi_epi64(pairs[2 * i], pairs[2 * i + 1]));
    }
    // Each 128-bit lane of quads[i] holds partial sums of the rows 4i..4i+3.
    const __m512i low = _mm512_add_epi32(_mm512_shuffle_i32x4(quads[0], quads[1], 0x88),
                                         _mm512_shuffle_i32x4(quads[0], quads[1], 0xdd));
    const __m512i high = _mm512_add_epi32(_mm512_shuffle_i32x4(quads[2], quads[3], 0x88),
                                          _mm512_shuffle_i32x4(quads[2], quads[3], 0xdd));
    const __m512i all = _mm512_add_epi32(_mm512_shuffle_i32x4(low, high, 0x88),
                                         _mm512_shuffle_i32x4(low, high, 0xdd));
    _mm512_store_si512(to, all);
  }
};

}  // namespace
}  // namespace sagitta
