// The tile registers of AMX, by number: instructions of the processor, or the emulation of them for tests on
// processors without tiles. The compiler's own intrinsics take the number as text, so templates cannot use them.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(SAGITTA_EMULATE)
#include "../testing/emulated_tiles.h"
#endif

namespace sagitta {
namespace {

/** The operand of LDTILECFG: the rows of each tile and the bytes of a row. Unused tiles have neither. */
struct tile_shapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[8] = {};
  uint8_t reserved_columns[16] = {};
  uint8_t rows[8] = {};
  uint8_t reserved_rows[8] = {};
};
static_assert(sizeof(tile_shapes) == 64);

#if defined(SAGITTA_EMULATE)

inline void shape_tiles(const tile_shapes& shapes) { emulated_tiles::load_config(&shapes); }
inline void release_tiles() { emulated_tiles::release(); }
template <uint32_t tile>
void load_tile(const void* rows, size_t stride) {
  emulated_tiles::load(tile, rows, stride);
}
template <uint32_t tile>
void store_tile(void* rows, size_t stride) {
  emulated_tiles::store(tile, rows, stride);
}
template <uint32_t sums, uint32_t left, uint32_t right>
void add_tile_products() {
  emulated_tiles::add_products(sums, left, right);
}

#else

/** Also sets all tiles to zero. The tiles belong to the thread. */
inline __attribute__((always_inline)) void shape_tiles(const tile_shapes& shapes) {
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
}

/** Without it, the system saves and restores 8 KiB of tiles whenever it suspends the thread. */
inline __attribute__((always_inline)) void release_tiles() { __asm__ volatile("tilerelease"); }

/** Loads rows that are `stride` bytes apart. */
template <uint32_t tile>
inline __attribute__((always_inline)) void load_tile(const void* rows, size_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride), "i"(tile) : "memory");
}

template <uint32_t tile>
inline __attribute__((always_inline)) void store_tile(void* rows, size_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(rows), "r"(stride), "i"(tile) : "memory");
}

/**
 * sums[m][n] += Σ left[m][4k + j] · right[k][4n + j] over k and j = 0…3, exact in 32 bits: the bytes of `left`
 * are signed, those of `right` unsigned.
 */
template <uint32_t sums, uint32_t left, uint32_t right>
inline __attribute__((always_inline)) void add_tile_products() {
  __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(left), "i"(right));
}

#endif

}  // namespace
}  // namespace sagitta
