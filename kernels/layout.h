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
// so that one 512-bit register holds four dimensions of all 16 rows, the shape that VPDPBUSD
// multiplies with four broadcast dimensions of a query. Codes are unsigned because that instruction
// takes one unsigned operand; Σ(c + 128)·q = Σc·q + 128·Σq, where the last term depends on the query
// only.
//
// A row whose length is not within 2^±30 is not scanned, since float32 bounds could overflow:
// its residual is FLT_MAX and the rest is 0, so that its upper bound is infinite and it is rescored.
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace sagitta
