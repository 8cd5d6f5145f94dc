// NEON with the dot-product extension: SDOT adds four products of signed bytes in each of four lanes.
#if defined(__ARM_FEATURE_DOTPROD)

#include <arm_neon.h>

#include "table.h"

namespace sagitta {
namespace {

struct lanes {
  static constexpr uint32_t width = 4;
  static constexpr uint32_t query_group = 4;
  static constexpr uint32_t query_step_bytes = 4;
  using sums = int32x4_t;
  using rows = int8x16_t;
  using query = int8x16_t;

  /** 4 × 4 sums, 4 rows and a query are 21 of 32 registers. */
  static constexpr uint32_t panels_of(uint32_t) { return 1; }

  static sums zero() { return vdupq_n_s32(0); }
  static sums add(sums left, sums right) { return vaddq_s32(left, right); }

  /** The +128 of codes is removed when they are loaded, so sums start at 0. */
  static sums start(int32_t) { return vdupq_n_s32(0); }
  static rows load(const uint8_t* codes) {
    return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(codes), vdupq_n_u8(0x80)));
  }
  static query broadcast(const uint8_t* packed) {
    int32_t quad;
    std::memcpy(&quad, packed, sizeof quad);
    return vreinterpretq_s8_s32(vdupq_n_s32(quad));
  }
  static void accumulate(sums& sum, rows codes, query quad) { sum = vdotq_s32(sum, codes, quad); }
  static void store(int32_t* to, sums sum) { vst1q_s32(to, sum); }

  static uint32_t mask_of(uint32x4_t lanes) {
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(lanes, bits));
  }

  static float32x4_t products_of(const int32_t* sums, const panel_facts& facts, uint32_t row) {
    return vmulq_f32(vcvtq_f32_s32(vld1q_s32(sums + row)), vld1q_f32(facts.scale + row));
  }

  /** The maxima ignore NaN, which lanes without a row may hold. */
  static bool may_survive(const int32_t* sums, const panel_facts& facts, float least) {
    float32x4_t most = products_of(sums, facts, 0);
    for (uint32_t row = width; row < panel_rows; row += width) {
      most = vmaxnmq_f32(most, products_of(sums, facts, row));
    }
    return vmaxnmvq_f32(most) >= least;
  }

  template <bool has_lower>
  static uint32_t weigh(const int32_t* sums, const panel_facts& facts, uint32_t row,
                        const scan_query& query) {
    const float32x4_t product = products_of(sums, facts, row);
    const float32x4_t residual = vld1q_f32(facts.residual + row);
    const float32x4_t norm = vld1q_f32(facts.norm + row);
    const float32x4_t square = vld1q_f32(facts.square + row);
    float32x4_t upper = vfmaq_n_f32(product, residual, query.upper_residual);
    upper = vfmaq_n_f32(upper, norm, query.upper_norm);
    upper = vfmaq_n_f32(upper, square, query.upper_square);
    uint32x4_t mask = vcgeq_f32(upper, vdupq_n_f32(query.upper_min));
    if constexpr (has_lower) {
      float32x4_t lower = vfmaq_n_f32(product, residual, -query.upper_residual);
      lower = vfmaq_n_f32(lower, norm, query.lower_norm);
      lower = vfmaq_n_f32(lower, square, query.lower_square);
      mask = vandq_u32(mask, vcleq_f32(lower, vdupq_n_f32(query.lower_max)));
    }
    return mask_of(mask);
  }
};

/** Codes are at most 127, so they are multiplied as signed bytes. */
struct coarse {
  static constexpr uint32_t bytes = 16;
  using codes = uint8x16_t;
  using query = int8x16_t;
  using sums = int32x4_t;

  static constexpr uint32_t rows_of(uint32_t queries) { return 8 / queries; }
  static sums zero() { return vdupq_n_s32(0); }
  static codes load(const uint8_t* from) { return vld1q_u8(from); }
  static query load_query(const uint8_t* from) { return vreinterpretq_s8_u8(vld1q_u8(from)); }

  template <uint32_t plane>
  static codes first(codes all) {
    if constexpr (plane == 0) return vandq_u8(all, vdupq_n_u8(3));
    else if constexpr (plane == 3) return vshrq_n_u8(all, 6);
    else return vandq_u8(vshrq_n_u8(all, 2 * plane), vdupq_n_u8(3));
  }
  template <uint32_t plane>
  static codes second(codes upper, codes lower) {
    const uint8x16_t code = vorrq_u8(vshlq_n_u8(first<plane>(upper), 2), first<plane>(lower));
    return vqtbl1q_u8(vld1q_u8(refined_values), code);
  }
  static void accumulate(sums& sum, codes code, query values) {
    sum = vdotq_s32(sum, vreinterpretq_s8_u8(code), values);
  }
  static void end_step(sums&, uint32_t) {}
  template <uint32_t count>
  static void reduce(const sums* sums, int32_t* to) {
    for (uint32_t i = 0; i < count; i += 4) {
      vst1q_s32(to + i, vpaddq_s32(vpaddq_s32(sums[i], sums[i + 1]),
                                   vpaddq_s32(sums[i + 2], sums[i + 3])));
    }
  }
};

constexpr target table = create_target<lanes, coarse>("neon_dotprod", {0.012, 0.016});

}  // namespace

const target* const neon_target = &table;

}  // namespace sagitta

#else

#include "../target.h"
namespace sagitta {
const target* const neon_target = nullptr;
}

#endif
