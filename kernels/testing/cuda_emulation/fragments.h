// What one warp multiplies at a time, and which lane holds what of it, by the PTX ISA.
#pragma once

#include <cstdint>
#include <cstring>

namespace sagitta::cuda::emulation {

inline constexpr uint32_t row_count = 16;
inline constexpr uint32_t depth = 32;
inline constexpr uint32_t column_count_max = 256;

/** Of one warp: [row_count, depth] u8. */
using row_tile = uint8_t[row_count][depth];
/** Pairs of depth, so that one multiplication takes two: [depth / 2, columns, 2] s8, widened. */
struct column_tile {
  alignas(32) int16_t pairs[depth / 2][column_count_max][2];
};

/** [row_count, column_count_max]. */
struct sum_tile {
  alignas(32) int32_t at[row_count][column_count_max];
};

// One warp multiplies at a time.
extern row_tile rows_now;
extern column_tile columns_now;
extern sum_tile sums_now;

/** sums_now += rows_now · columns_now, of so many columns. */
void multiply(uint32_t columns);

/** a0: row lane / 4, depth 4 · (lane % 4) on; a1: 8 rows later; a2, a3: the same, 16 deeper. */
inline void place_rows(uint32_t lane, const uint32_t (&rows)[4]) {
  for (uint32_t i = 0; i < 4; i++) {
    memcpy(&rows_now[lane / 4 + i % 2 * 8][lane % 4 * 4 + i / 2 * 16], &rows[i], 4);
  }
}

/** Where sum `i` of a lane stands: 8 columns after another, two rows of two in each. */
inline int32_t& sum_of(uint32_t lane, uint32_t i) {
  return sums_now.at[lane / 4 + i % 4 / 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2];
}

}  // namespace sagitta::cuda::emulation
