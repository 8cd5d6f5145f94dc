// The fragments of a warp's matrix multiplication and their distribution over lanes, as in the PTX ISA.
#pragma once

#include <cstdint>
#include <cstring>

namespace sagitta::cuda::emulation {

inline constexpr uint32_t row_count = 16;
inline constexpr uint32_t depth = 32;
inline constexpr uint32_t column_count_max = 256;

/** The rows of one warp: [row_count, depth] u8. */
using row_tile = uint8_t[row_count][depth];
/** Columns [depth / 2, columns, 2]: s8 widened to 16 bits, in pairs for pairwise multiply-add. */
struct column_tile {
  alignas(32) int16_t pairs[depth / 2][column_count_max][2];
};

/** Sums: [row_count, column_count_max] int32. */
struct sum_tile {
  alignas(32) int32_t at[row_count][column_count_max];
};

// One warp multiplies at a time.
extern row_tile rows_now;
extern column_tile columns_now;
extern sum_tile sums_now;

/** sums_now += rows_now · columns_now, for the first `columns` columns. */
void multiply(uint32_t columns);

/**
 * rows[0] is row lane / 4, depth from 4 · (lane % 4); rows[1] is row + 8; rows[2] and rows[3] are depth +
 * 16.
 */
inline void place_rows(uint32_t lane, const uint32_t (&rows)[4]) {
  for (uint32_t i = 0; i < 4; i++) {
    memcpy(&rows_now[lane / 4 + i % 2 * 8][lane % 4 * 4 + i / 2 * 16], &rows[i], 4);
  }
}

/** Returns sum `i` of a lane: groups of 8 columns, with two columns of two rows each. */
inline int32_t& sum_of(uint32_t lane, uint32_t i) {
  return sums_now.at[lane / 4 + i % 4 / 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2];
}

}  // namespace sagitta::cuda::emulation
