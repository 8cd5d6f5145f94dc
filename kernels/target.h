// A target: the table of functions of one instruction set. One translation unit defines each table;
// dispatch.cpp selects one. This header must not define inline functions: they would be compiled for
// several instruction sets under one name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta {

/**
 * The test of a scan for one query. With I the integer product of the codes,
 * t = I·scale, and rows' norm, residual and square (layout.h), all in float32, a row survives iff
 *
 *   t + upper_residual·residual + upper_norm·norm + upper_square·square >= upper_min  and
 *   t − upper_residual·residual + lower_norm·norm + lower_square·square <= lower_max.
 *
 * search/bounds.h computes the weights such that no row of the answer is lost. The second line is the
 * test of the rank key.
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
  /** Packed by the target's `panel_scan`. */
  const uint8_t* packed;
  /** The start of the integer sum: −128·Σq. */
  int32_t offset;
  /** Whether the query has a rank key; if not, the second line of the test is skipped. */
  bool has_lower;
};

/** Limits on the facts of a set of rows. */
struct row_limits {
  float residual_max;
  float norm_max;
  float norm_min;
  float square_min;
};

/** Limits that no row exceeds, with which every panel is tested row by row. */
inline constexpr row_limits unlimited_rows = {3.4e38f, 3.4e38f, 0, 0};

/** The largest `target::query_group`. */
inline constexpr uint32_t query_group_max = 32;

/** The codes of the first panel of a scan, in one piece or in two with equally many steps. */
struct panel_codes {
  const uint8_t* first;
  /** Null for one piece. */
  const uint8_t* second;
};

struct scan_task {
  /** Consecutive panels, which begin with their facts. The dimension of head tiles is the number of their directions. */
  const uint8_t* panels;
  uint32_t panel_count;
  uint32_t dimension;
  /** Not for coarse codes: the bytes from a panel to the next, and the same from its codes to the next ones. */
  size_t stride;
  panel_codes codes;
  /**
   * Limits on all rows that are searched, which allow a cheaper test of a whole panel. `scan_coarse` does
   * not use them.
   */
  row_limits limits;
  /** All queries have the same value of `has_lower`. */
  scan_query* const* queries;
  uint32_t query_count;
  /**
   * Called for every panel with survivors: bit r of `survivors` is row r; `sums` are the integer products
   * of all 16 rows. The call may tighten the query's test.
   */
  void (*emit)(void* context, uint32_t query, uint32_t panel, uint32_t survivors,
               const int32_t* sums);
  void* context;
};

/** The quantities of an encoded query x ≈ s·c. */
struct encoded_vector {
  float scale;
  /** ‖x − s·c‖ and x·x, in float64. */
  double residual;
  double square;
  /** Σc and Σc². */
  int64_t code_sum;
  int64_t code_square;
};

/** A packed query for sums of single rows; the sum of a level starts at its `offset`. */
struct coarse_query {
  const uint8_t* packed;
  int32_t offset;
  uint32_t dimension;
};

struct rotation;
struct basis;
struct head_arrays;

/** Nanoseconds per query and dimension of a row in the cache; only their ratios matter. */
struct scan_costs {
  double tile_ns;
  double coarse_ns;
  /** `tile_ns` of scans for at least `batch_min` queries, if the target has another way for them. */
  double batch_tile_ns = 0;
  uint32_t batch_min = UINT32_MAX;
  /** Of head tiles, if the target has another way for them. */
  double head_ns = 0;
};

/** Vectors that are this many values apart. */
struct strided_vectors {
  const float* values;
  size_t stride;
};

/** A matrix whose element i of row r is values[r * row_stride + i * stride]. */
struct strided_matrix {
  const float* values;
  size_t row_stride;
  size_t stride;
};

/** The scan of panels of int8 codes. */
struct panel_scan {
  /** Bytes of one step of a packed query. */
  uint32_t query_step_bytes;
  /** Packs codes in the order of `scan`: step_count · query_step_bytes bytes. */
  void (*pack_query)(const int8_t* codes, uint32_t step_count, uint8_t* packed);
  void (*scan)(const scan_task& task);
};

struct target {
  const char* name;
  scan_costs costs;
  /** Queries per scan. One more would spill registers. */
  uint32_t query_group;

  /** See sagitta_encode. */
  void (*encode)(const float* values, uint32_t dimension, uint32_t from, uint32_t to,
                 uint8_t* codes);
  /**
   * Encodes a vector whose length is within the limits of layout.h: `codes` [4·step_count(dimension)],
   * zero past the last dimension.
   */
  encoded_vector (*encode_query)(const float* values, uint32_t dimension, int8_t* codes);
  panel_scan tiles;
  /** Only for codes of rows within ±head_code_max. */
  panel_scan head;
  /** Computes the limits of the first `row_count` rows, at least one, of panels that are `stride` bytes apart. */
  row_limits (*limit_rows)(const uint8_t* panels, size_t stride, uint32_t row_count);
  /**
   * Computes canonical q·x and x·x of rows (see canonical.h), bit for bit. `query` [dimension] is float64;
   * `count` is at most canonical_rows; x·x is not computed where `squares` is null.
   */
  void (*products)(const double* query, uint32_t dimension, const float* const* rows,
                   uint32_t count, double* products, double* squares);

  /** Computes rotated = R · values, both [dimension]; see search/rotation.h. */
  void (*rotate)(const rotation& rotation, const float* values, float* rotated);
  /** Computes the coarse codes of the rows from..to, like `encode`; `rotation` is that of their dimension. */
  void (*encode_coarse)(const rotation& rotation, const float* values, uint32_t from, uint32_t to,
                        uint8_t* coarse, uint8_t* refinement);
  /** Packs the codes [dimension] of a rotated query into coarse_query_bytes(dimension) bytes. */
  void (*pack_coarse_query)(const int8_t* codes, uint32_t dimension, uint8_t* packed);
  /** Like `tiles.scan`, over panels of coarse codes, for up to coarse_group queries. */
  void (*scan_coarse)(const scan_task& task);
  /** Computes the integer products of up to panel_rows rows with their codes of the first level. */
  void (*coarse_sums)(const coarse_query& query, const uint8_t* const* coarse, uint32_t count,
                      int32_t* sums);
  /** Like `coarse_sums`, with codes of the second level. */
  void (*refined_sums)(const coarse_query& query, const uint8_t* const* coarse,
                       const uint8_t* const* refinement, uint32_t count, int32_t* sums);
  /**
   * Computes products of vectors [count, dimension] with the rows of a matrix [rows, dimension] in float32:
   * `projected` [count, rows], with vectors `stride` values apart. Each sum is added up in blocks, so that its error is
   * within projection_error.
   */
  void (*project)(const strided_vectors& vectors, uint32_t count, const strided_matrix& matrix, uint32_t rows,
                  uint32_t dimension, float* projected, size_t stride);
  /** Subtracts from each of `count` rows its part along `unit` [dimension], which has length 1. */
  void (*subtract_parts)(const float* unit, float* rows, uint32_t count, uint32_t dimension);
  /** Computes the head tiles of the rows from..to, like `encode_coarse`. */
  void (*encode_head)(const basis& basis, const float* values, uint32_t from, uint32_t to, const head_arrays& head);
  /** Returns the number of set bits among the first `row_count`. */
  uint32_t (*count_bits)(const uint32_t* words, uint32_t row_count);
};

/** Queries per call of `scan_coarse`: more would not fit into the registers. */
inline constexpr uint32_t coarse_group = 4;

/** Rows per call of `products`: enough to hide the latency of the additions. */
inline constexpr uint32_t canonical_rows = 4;

/** Null if the build does not contain the target. */
extern const target reference_target;
extern const target* const avx2_target;
extern const target* const avx_vnni_target;
extern const target* const avx512_vnni_target;
extern const target* const avx512_amx_target;
extern const target* const neon_target;

/** Returns the selected target. */
const target& selected_target();

}  // namespace sagitta
