// AVX2: eight rows per register. VPMADDUBSW would saturate on 8-bit codes, so codes are widened to
// pairs of 16 bits, once for all queries of a tile, and multiplied by VPMADDWD, which is exact.
#if defined(__AVX2__) && defined(__FMA__)

#include "avx2_lanes.h"
#include "table.h"

namespace sagitta {
namespace {

struct lanes : avx2_lanes {
  static constexpr uint32_t query_group = 4;
  static constexpr uint32_t query_step_bytes = 8;

  /** Dimensions 0 and 2 of a step, and 1 and 3: a pair of 16-bit values per lane. */
  struct pairs {
    __m256i even;
    __m256i odd;
  };
  using rows = pairs;
  using query = pairs;

  /** 4 × 2 sums, two registers of rows in pairs and a query in pairs fill the sixteen registers. */
  static constexpr uint32_t panels_of(uint32_t) { return 1; }
  static rows load(const uint8_t* codes) {
    const __m256i bytes = load_codes(codes);
    return {_mm256_and_si256(bytes, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(bytes, 8)};
  }
  static query broadcast(const uint8_t* packed) {
    return {broadcast_quad(packed), broadcast_quad(packed + 4)};
  }
  static void accumulate(sums& sum, const rows& codes, const query& quad) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(codes.even, quad.even));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(codes.odd, quad.odd));
  }
};

/**
 * Head tiles have codes of seven bits, so that the sums of two products of bytes fit into 16 bits: VPMADDUBSW multiplies
 * twice as many bytes as VPMADDWD.
 */
struct head_lanes : avx2_lanes {
  static constexpr uint32_t query_group = lanes::query_group;
  static constexpr uint32_t query_step_bytes = 4;
  using rows = __m256i;
  using query = __m256i;

  static constexpr uint32_t panels_of(uint32_t) { return 1; }
  /** Codes are read as 0…126 in place of 65…191, so the sum of the query's codes is subtracted less often. */
  static sums start(int32_t offset) { return avx2_lanes::start(offset / 128 * head_code_max); }
  static rows load(const uint8_t* codes) {
    return _mm256_sub_epi8(load_codes(codes), _mm256_set1_epi8(128 - head_code_max));
  }
  static query broadcast(const uint8_t* packed) { return broadcast_quad(packed); }
  static void accumulate(sums& sum, const rows& codes, const query& quad) {
    const __m256i pairs = _mm256_maddubs_epi16(codes, quad);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

/**
 * VPMADDUBSW adds two products of bytes in 16 bits. The sums of the first level are within ±762, so forty
 * of them fit into 16 bits; those of the second level are within ±2 · 127 · 127, so only one fits.
 */
struct coarse : avx2_coarse {
  struct sums {
    __m256i narrow;
    __m256i wide;
  };
  /** Steps, of four products each, whose sums fit into 16 bits. */
  static constexpr uint32_t narrow_steps = 8;

  static sums zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static __m256i widen_pairs(__m256i pairs) {
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
  static void accumulate_narrow(sums& sum, codes code, query values) {
    sum.narrow = _mm256_add_epi16(sum.narrow, _mm256_maddubs_epi16(code, values));
  }
  static void accumulate(sums& sum, codes code, query values) {
    sum.wide = _mm256_add_epi32(sum.wide, widen_pairs(_mm256_maddubs_epi16(code, values)));
  }
  static void end_step(sums& sum, uint32_t step) {
    if (step % narrow_steps != narrow_steps - 1) return;
    sum.wide = _mm256_add_epi32(sum.wide, widen_pairs(sum.narrow));
    sum.narrow = _mm256_setzero_si256();
  }
  template <uint32_t count>
  static void reduce(const sums* sums, int32_t* to) {
    static_assert(count == 8);
    __m256i wide[8];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < 8; i++) {
      wide[i] = _mm256_add_epi32(sums[i].wide, widen_pairs(sums[i].narrow));
    }
    reduce_lanes(wide, to);
  }
};

/** Packs dimensions 0, 2, 1, 3 of each step as 16-bit values. */
void pack_query(const int8_t* codes, uint32_t steps, uint8_t* packed) {
  for (uint32_t step = 0; step < steps; step++) {
    const int8_t* const from = codes + step * step_dimensions;
    const int16_t to[4] = {from[0], from[2], from[1], from[3]};
    std::memcpy(packed + size_t{step} * sizeof to, to, sizeof to);
  }
}

constexpr target table = create_target<lanes, coarse>(
    "avx2", {.tile_ns = 0.016, .coarse_ns = 0.015, .head_ns = 0.011},
    {lanes::query_step_bytes, pack_query, scan<lanes>}, scan_quads<head_lanes>);

}  // namespace

const target* const avx2_target = &table;

}  // namespace sagitta

#else

#include "../target.h"
namespace sagitta {
const target* const avx2_target = nullptr;
}

#endif
