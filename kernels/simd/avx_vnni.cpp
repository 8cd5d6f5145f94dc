// AVX-VNNI: VPDPBUSD on eight rows per register, for processors without AVX-512.
#if (defined(__AVXVNNI__) && defined(__AVX2__) && defined(__FMA__)) || defined(SAGITTA_EMULATE)

#include "avx2_lanes.h"
#include "rows.h"
#include "scan.h"

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

void pack_query(const int8_t* codes, uint32_t steps, uint8_t* packed) {
  std::memcpy(packed, codes, size_t{steps} * step_dimensions);
}

constexpr target table = {
    "avx_vnni", lanes::query_group, lanes::query_step_bytes, encode,   encode_query,
    pack_query, scan<lanes>, limit_rows, products, count_bits,
};

}  // namespace

const target* const avx_vnni_target = &table;

}  // namespace sagitta

#else

#include "../target.h"
namespace sagitta {
const target* const avx_vnni_target = nullptr;
}

#endif
