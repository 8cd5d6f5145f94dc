// AVX-VNNI: VPDPBUSD on eight rows per register, for processors without AVX-512.
#if (defined(__AVXVNNI__) && defined(__AVX2__) && defined(__FMA__)) || defined(SAGITTA_EMULATE)

#include "avx2_lanes.h"
#include "table.h"

namespace sagitta {
namespace {

struct lanes : avx2_lanes {
  static constexpr uint32_t query_group = 6;
  static constexpr uint32_t query_step_bytes = 4;
  using rows = __m256i;
  using query = __m256i;

  /** 6 × 2 sums, 2 rows and a query are 15 of 16 registers. */
  static constexpr uint32_t panels_of(uint32_t) { return 1; }
  static rows load(const uint8_t* codes) { return load_codes(codes); }
  static query broadcast(const uint8_t* packed) { return broadcast_quad(packed); }
  static void accumulate(sums& sum, rows codes, query quad) {
    sum = _mm256_dpbusd_avx_epi32(sum, codes, quad);
  }
};

struct coarse : avx2_coarse {
  using sums = __m256i;
  static sums zero() { return _mm256_setzero_si256(); }
  static void accumulate(sums& sum, codes code, query values) {
    sum = _mm256_dpbusd_avx_epi32(sum, code, values);
  }
  static void end_step(sums&, uint32_t) {}
  template <uint32_t count>
  static void reduce(const sums* sums, int32_t* to) {
    static_assert(count == 8);
    reduce_lanes(sums, to);
  }
};

constexpr target table = create_target<lanes, coarse>("avx_vnni", {0.0075, 0.011});

}  // namespace

const target* const avx_vnni_target = &table;

}  // namespace sagitta

#else

#include "../target.h"
namespace sagitta {
const target* const avx_vnni_target = nullptr;
}

#endif
