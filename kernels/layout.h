// The layout of codes, the 8-bit representation of rows that a scan reads.
//
// Rows are stored in panels of 16. A panel of dimension D is
//
//   float scale[16]      s: x ≈ s·c, with c the codes, in −127…127
//   float norm[16]       ‖x‖
//   float residual[16]   ‖x − s·c‖ rounded up (except for denormals: the slack of the bounds covers them)
//   float square[16]     x·x
//   uint8 code[steps][16][4]   c + 128; steps = ⌈D / 4⌉, missing dimensions have the code 128
//
// so that one 512-bit register holds four dimensions of all 16 rows, the shape that VPDPBUSD multiplies with four
// broadcast dimensions of a query. Codes are unsigned because that instruction takes one unsigned operand; Σ(c +
// 128)·q = Σc·q + 128·Σq, where the last term depends only on the query.
//
// Coarse codes represent the same rows with two bits, and with four bits, per dimension, for searches
// that are bound by the bytes they read. They are codes of rotated rows (search/rotation.h) and stored
// row by row, so that single rows can be read. With y the rotated row, σ = ‖y‖ / √D and code 0…15 by the
// thresholds of `coarse_thresholds`, in units of σ, the first level is the upper two bits of the code,
// which stand for −3, −1, 1 and 3, and the second level the whole code, which stands for a level of
// `refined_levels`; s is the scale with the least residual ‖y − s·c‖. A panel of 16 rows is
//
//   coarse:      panel_facts of the first level; uint8 code[16][row_bytes], the upper two bits
//   refinement:  refined_facts; uint8 code[16][row_bytes], the lower two bits
//
// Sixteen bytes of a row have 64 dimensions: byte j has the dimensions j, j + 16, j + 32 and j + 48,
// lowest bits first, so that shifts and masks unpack whole registers. row_bytes = 16 · ⌈D / 64⌉.
//
// Rows may have head tiles: int8 codes of the directions of a basis (search/basis.h). They are two arrays of
// panels, one after the other, so that the first half of the directions can be scanned alone from consecutive memory:
//
//   first:   panel_facts of the first half; its uint8 code[steps / 2][16][4]
//   second:  panel_facts of all directions; uint8 code[steps / 2][16][4] of the second half
//
// A row whose length is not within 2^±30 is not scanned, since float32 bounds could overflow:
// its residual is FLT_MAX and the rest is 0, so that its upper bound is infinite and it is rescored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"

namespace sagitta {

inline constexpr uint32_t panel_rows = 16;
inline constexpr uint32_t step_dimensions = 4;
inline constexpr uint32_t step_bytes = panel_rows * step_dimensions;
inline constexpr uint32_t fact_bytes = 4 * panel_rows * sizeof(float);

/** The range of lengths of rows and queries that can be scanned. */
inline constexpr double length_min = 0x1p-30;
inline constexpr double length_max = 0x1p+30;

/** The residual of a row that cannot be scanned: FLT_MAX. */
inline constexpr float unscannable_residual = 0x1.fffffep127f;

struct panel_facts {
  float scale[panel_rows];
  float norm[panel_rows];
  float residual[panel_rows];
  float square[panel_rows];
};
static_assert(sizeof(panel_facts) == fact_bytes);

constexpr uint32_t step_count(uint32_t dimension) {
  return (dimension + step_dimensions - 1) / step_dimensions;
}

constexpr size_t panel_bytes(uint32_t dimension) {
  return fact_bytes + size_t{step_count(dimension)} * step_bytes;
}

constexpr uint32_t panel_count(uint32_t row_count) {
  return (row_count + panel_rows - 1) / panel_rows;
}

/** The smallest dimension with coarse codes: below it, the facts of rows take up what the codes save. */
inline constexpr uint32_t coarse_dimension_min = SAGITTA_COARSE_DIMENSION_MIN;
inline constexpr uint32_t coarse_chunk_dimensions = 64;
inline constexpr uint32_t coarse_chunk_bytes = 16;

/**
 * Thresholds of |y| / σ: the number of thresholds reached is the magnitude 0…7 of a code. The fourth is the
 * only threshold of the first level.
 */
inline constexpr float coarse_thresholds[7] = {0.25f, 0.5f, 0.75f, 1.0f, 1.36f, 1.8f, 2.4f};
/** The values of the magnitudes of the second level: about 23 times the centers between thresholds. */
inline constexpr int8_t refined_levels[8] = {3, 9, 14, 20, 27, 36, 47, 63};
/** Added to the values of the second level, whose codes are multiplied as unsigned bytes. */
inline constexpr int32_t refined_offset = 64;

/** The facts of head tiles: of all their directions, and of the first half of them. */
inline constexpr uint32_t head_levels = 2;

/**
 * The largest code of head tiles: sums of two products with codes of a query fit into 16 bits. What seven bits miss is
 * little beside the directions that a head leaves out.
 */
inline constexpr int32_t head_code_max = 63;

/** The two arrays of head tiles, of a block or from some panel on. */
struct head_arrays {
  uint8_t* first;
  uint8_t* second;
};

struct refined_facts {
  struct {
    float scale;
    float residual;
  } row[panel_rows];
};

constexpr bool has_coarse_codes(uint32_t dimension) { return dimension >= coarse_dimension_min; }

constexpr uint32_t coarse_row_bytes(uint32_t dimension) {
  return (dimension + coarse_chunk_dimensions - 1) / coarse_chunk_dimensions * coarse_chunk_bytes;
}

/** Loads of whole registers read up to this many bytes past a row. */
inline constexpr size_t coarse_padding = 64;

/** A packed query takes four times the bytes of a row, which is padded to whole registers. */
constexpr size_t coarse_query_bytes(uint32_t dimension) {
  return 4 * ((size_t{coarse_row_bytes(dimension)} + 63) / 64 * 64);
}

constexpr size_t coarse_panel_bytes(uint32_t dimension) {
  return fact_bytes + size_t{panel_rows} * coarse_row_bytes(dimension);
}

constexpr size_t refinement_panel_bytes(uint32_t dimension) {
  return sizeof(refined_facts) + size_t{panel_rows} * coarse_row_bytes(dimension);
}

}  // namespace sagitta
