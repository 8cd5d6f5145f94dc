#include "peak_loops.h"

#if defined(__AMX_INT8__) || defined(__AMXINT8__)
#include "../simd/tiles.h"

namespace sagitta {
namespace {

/** Four chains, as in a scan. */
double int8_operations(uint64_t rounds) {
  tile_shapes shapes;
  for (uint32_t tile = 0; tile < 8; tile++) {
    shapes.rows[tile] = 16;
    shapes.row_bytes[tile] = 64;
  }
  shape_tiles(shapes);
  for (uint64_t round = 0; round < rounds; round++) {
    add_tile_products<0, 4, 6>();
    add_tile_products<1, 4, 7>();
    add_tile_products<2, 5, 6>();
    add_tile_products<3, 5, 7>();
  }
  release_tiles();
  return 2.0 * 16 * 16 * 64 * 4 * static_cast<double>(rounds);
}

constexpr peak_functions table = {"avx512_amx", float_loop<float_16>, int8_operations,
                                  reads_of<uint64_8>};

}  // namespace
const peak_functions* const avx512_amx_peaks = &table;
}  // namespace sagitta
#else
const sagitta::peak_functions* const sagitta::avx512_amx_peaks = nullptr;
#endif
