// Sieves: cheaper codes that a slice scans instead of int8 codes after its first passes, for small batches because
// they have fewer bytes, for large ones because they have fewer products.
//
//   coarse codes  two bits per dimension (layout.h), for batches that are bound by the bytes they read
//   head tiles    int8 codes of a quarter or an eighth of the dimensions, along directions that were learned from
//                 the rows (../search/basis.h); int8 kernels scan them
//
// Bounds of a sieve prove little, but their middles are good estimates. So after each scan the rows with the best
// estimates are scored, which raises the threshold to about the k-th best score; then few of the other rows are left.
// The first scan of a sieve tells how many. If there would be too many, as in data without structure, the slice
// continues with int8 codes. The device decides this without waiting for the host: kernels of both ways are launched,
// and those of the other way return at once (run_condition).
//
//   encode_coarse, encode_head  encode queries; their test starts at the threshold of the first passes
//   scan                        lists the rows whose upper bound reaches the threshold
//   raise_thresholds            scores the best estimates, raises thresholds, shortens the lists; at the end moves
//                               them to the lists of candidates
#pragma once

#include "../search/rotation.h"
#include "scan.h"
#include "select.h"

namespace sagitta::cuda {

/** The maximum number of queries of a group that scans coarse codes. */
inline constexpr uint32_t coarse_group_max = 64;

/** Returns the shape of a scan of coarse codes; its group is 0 if shared memory has no room for a group. */
scan_shape choose_coarse_shape(uint32_t query_count, uint32_t dimension, size_t shared_bytes_max);

/** Returns the number of queries per thread block of encode_head; 0 if shared memory has no room for them. */
uint32_t head_queries_together(uint32_t dimension, uint32_t directions, size_t shared_bytes_max);

/**
 * Index of the 32-bit word with the codes of dimensions 4g .. 4g + 3 of a rotated query, g = `word`:
 * [query / 8][quad][word of a chunk][lane 4 · (query % 8) + chunk % 4][plane], the order in which
 * scan_coarse.cu unpacks the codes of rows.
 */
SAGITTA_HOST_DEVICE inline size_t coarse_word(uint32_t query, uint32_t word, uint32_t quad_count) {
  const uint32_t chunk = word / 16;
  const uint32_t plane = word % 16 / 4;
  const uint32_t lane = query % query_block * 4 + chunk % quad_chunks;
  const size_t quad = size_t{query / query_block} * quad_count + chunk / quad_chunks;
  return ((quad * 4 + word % 4) * 32 + lane) * 4 + plane;
}

/** The queries of a slice, and what encoding them for a sieve writes. */
struct sieve_queries {
  /** [real_count, dimension] */
  const float* vectors;
  uint32_t dimension;
  /** Up to query_count, more queries follow that fill the group and match no row. */
  uint32_t real_count;
  uint32_t query_count;
  /** The layout of the codes. */
  scan_shape shape;
  /** [real_count] */
  const device_query* queries;
  const double* thresholds;
  /** [real_count]: the bounds of the queries in the coordinates of the sieve; their scale is 0 without codes. */
  bounded_query* bounds;
  /** The codes, followed by the start of the sums and the test of each query. */
  uint32_t* packed;
  int32_t* offsets;
  scan_weights* weights;
  /** The counts of the lists [query_count], which are set to 0. */
  uint32_t* counts;
};

struct coarse_encode_parameters : sieve_queries {
  /** [dimension]: bits 0 and 1 are set where the first and the second round change the sign. */
  const uint8_t* signs;
  /** As in rotation.h. */
  uint32_t block;
  uint32_t stride;
  float unit;
};

cudaError_t encode_coarse(const coarse_encode_parameters& parameters, launch_order order);

struct head_encode_parameters : sieve_queries {
  /** [directions, dimension], those of the level that is scanned. */
  const float* matrix;
  uint32_t directions;
  /** λ of the level, and ε; see bounds.h. */
  double weight;
  double error;
  /** As in raise_parameters: exceeded for a query without a part along these directions. */
  uint32_t* estimate;
  uint32_t estimate_limit;
  /** As head_queries_together returns it. */
  uint32_t together;
};

cudaError_t encode_head(const head_encode_parameters& parameters, launch_order order);

struct raise_parameters {
  /** Its lists receive the candidates, with bounds as their scores. */
  batch_state state;
  /** Like state.blocks, with the codes of the sieve as panels. */
  const resident_block* blocks;
  uint32_t panel_stride;
  /** [query_count, dimension] */
  const float* vectors;
  const bounded_query* bounds;
  scan_weights* weights;
  /** Rows with the sums of their codes. The kernel replaces their scores by estimates. */
  candidate_lists lists;
  /**
   * Used after the first scan: the rows that are left of all queries are added to it, and it becomes more than
   * `estimate_limit` if a query left more than `rows_max`. Null after other scans.
   */
  uint32_t* estimate;
  uint32_t estimate_limit;
  uint32_t rows_max;
  /** Whether this is the end: the lists are appended to the lists of candidates. */
  bool is_last;
  run_condition condition;
};

/** Scores the rows with the best estimates, raises the thresholds and shortens the lists. */
cudaError_t raise_thresholds(const raise_parameters& parameters, launch_order order);

/** Loads the kernels and allows them the shared memory that they need; called once per device. */
cudaError_t prepare_coarse_encoding(size_t shared_bytes_max);
cudaError_t prepare_head_encoding(size_t shared_bytes_max);
cudaError_t preload_raising();

}  // namespace sagitta::cuda
