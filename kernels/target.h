// A target: the functions of one instruction set. One translation unit makes each table; dispatch.cpp
// chooses one. Nothing here may be an inline function: it would be compiled for several instruction
// sets under one name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta {

/**
 * Which rows of a scan survive, for one query. With I the integer product of the codes,
 * t = I·scale, and rows' norm, residual and square (layout.h), all in float32, a row survives iff
 *
 *   t + upper_residual·residual + upper_norm·norm + upper_square·square >= upper_min  and
 *   t − upper_residual·residual + lower_norm·norm + lower_square·square <= lower_max.
 *
 * search/bounds.h chooses the weights such that nothing is lost. The second line is for positions.
 */
struct scan_weights {
  float upper_residual;
  float upper_norm;
  float upper_square;
  float upper_min;
  float lower_norm;
  float lower_square;
  float lower_max;
};

struct scan_query : scan_weights {
  /** As the target's `pack_query` left it. */
  const uint8_t* packed;
  /** Where the integer sum starts: −128·Σq. */
  int32_t offset;
  /** Whether there is a position: without, the second line of the test is not looked at. */
  bool has_lower;
};

/** Bounds of the facts of some rows. */
struct row_limits {
  float residual_max;
  float norm_max;
  float norm_min;
  float square_min;
};

/** Queries that share a scan at most; see `target::query_group`. */
inline constexpr uint32_t query_group_max = 8;

struct scan_task {
  /** Panels one after the other, panel_bytes(dimension) each. */
  const uint8_t* panels;
  uint32_t panel_count;
  uint32_t step_count;
  /** Of all rows of the panels that are searched: what no such row can pass need not be looked at row by row. */
  row_limits limits;
  /** All queries have the same `has_lower`. */
  scan_query* const* queries;
  uint32_t query_count;
  /**
   * Told of every panel in which rows survive: bit r of `survivors` is row r; `sums` are the integer
   * products of all 16 rows. It may tighten the query's thresholds.
   */
  void (*emit)(void* context, uint32_t query, uint32_t panel, uint32_t survivors,
               const int32_t* sums);
  void* context;
};

/** What the encoding of one query needs to know, and leaves. */
struct encoded_vector {
  float scale;
  /** ‖x − s·c‖ and x·x, in float64. */
  double residual;
  double square;
  /** Σc and Σc². */
  int64_t code_sum;
  int64_t code_square;
};

struct target {
  const char* name;
  /** Queries of one scan that fill the registers: one more would spill. */
  uint32_t query_group;
  /** Bytes of one step of a packed query. */
  uint32_t query_step_bytes;

  /** See sagitta_encode. */
  void (*encode)(const float* values, uint32_t dimension, uint32_t from, uint32_t to,
                 uint8_t* codes);
  /** Codes of one vector of a length within bounds: `codes` has 4·step_count(dimension) bytes, zero after the last dimension. */
  encoded_vector (*encode_query)(const float* values, uint32_t dimension, int8_t* codes);
  /** Codes as `scan` wants them: step_count · query_step_bytes bytes. */
  void (*pack_query)(const int8_t* codes, uint32_t step_count, uint8_t* packed);
  void (*scan)(const scan_task& task);
  /** Limits of the first `row_count` rows of panels that are `stride` bytes apart; at least one row. */
  row_limits (*limit_rows)(const uint8_t* panels, size_t stride, uint32_t row_count);
  /**
   * Canonical q·x and x·x of rows (see canonical.h), bit for bit. `query` [dimension] is float64;
   * `count` is at most canonical_rows.
   */
  void (*products)(const double* query, uint32_t dimension, const float* const* rows,
                   uint32_t count, double* products, double* squares);
  /** Set bits among the first `row_count`. */
  uint32_t (*count_bits)(const uint32_t* words, uint32_t row_count);
};

/** Rows that `products` takes at once: enough to hide the latency of their sums. */
inline constexpr uint32_t canonical_rows = 4;

/** Null where the build does not have it. */
extern const target reference_target;
extern const target* const avx2_target;
extern const target* const avx_vnni_target;
extern const target* const avx512_vnni_target;
extern const target* const neon_target;

/** The target in use. */
const target& selected_target();

}  // namespace sagitta
