// AVX-512 with VNNI: one register holds four dimensions of a whole panel, and VPDPBUSD adds sixteen
// products of four at once.
#if (defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
     defined(__AVX512VL__)) ||                                                  \
    defined(SAGITTA_EMULATE)

#include "avx512_lanes.h"
#include "table.h"

namespace sagitta {
namespace {

constexpr target table = create_target<avx512_lanes, avx512_coarse>("avx512_vnni", {0.0048, 0.0065});

}  // namespace

const target* const avx512_vnni_target = &table;

}  // namespace sagitta

#else

#include "../target.h"
namespace sagitta {
const target* const avx512_vnni_target = nullptr;
}

#endif
