// Coarse codes on the device: a scan of two bits per dimension, for batches that are bound by the bytes
// they read (layout.h, ../search/bounds.h).
//
// Coarse bounds prove little, but their middles are good estimates. So the rows with the best estimates are
// scored, which raises the threshold to about the k-th best score; then few of the other rows are left. A
// sample of the rows tells how many. If there would be too many, as in data without structure, the slice
// continues with int8 codes. The device decides this without waiting for the host: kernels of both ways are
// launched, and those of the other way return at once (run_condition).
//
//   encode_coarse     rotates and encodes queries; their test starts at the threshold of the pilot
//   scan_coarse       lists the rows whose upper bound reaches the threshold
//   raise_thresholds  scores the best estimates, raises thresholds, shortens the lists; at the end moves
//                     them to the lists of candidates
#pragma once

#include "scan.h"
#include "select.h"

namespace sagitta::cuda {

/** Four chunks of coarse codes: the dimensions that the lanes of a row load at a time. */
inline constexpr uint32_t quad_chunks = 4;
inline constexpr uint32_t quad_dimensions = quad_chunks * coarse_chunk_dimensions;

/** The maximum number of queries of a group. */
inline constexpr uint32_t coarse_group_max = 64;

/** How the queries of a slice are distributed over thread blocks. */
struct coarse_shape {
  /** Queries of a thread block, and of each of its warps: 8 to 64; 0 if there is no room for them. */
  uint32_t group;
  uint32_t quad_count;
  /** Dynamic shared memory of a thread block. */
  size_t shared_bytes;

  SAGITTA_HOST_DEVICE uint32_t padded_dimension() const { return quad_count * quad_dimensions; }
};

coarse_shape choose_coarse_shape(uint32_t query_count, uint32_t dimension, size_t shared_bytes_max);

/**
 * Index of the 32-bit word with the codes of dimensions 4g .. 4g + 3 of a rotated query, g = `word`:
 * [query / 8][quad][word of a chunk][lane 4 · (query % 8) + chunk % 4][plane], the order in which
 * scan_coarse unpacks the codes of rows.
 */
SAGITTA_HOST_DEVICE inline size_t coarse_word(uint32_t query, uint32_t word, uint32_t quad_count) {
  const uint32_t chunk = word / 16;
  const uint32_t plane = word % 16 / 4;
  const uint32_t lane = query % query_block * 4 + chunk % quad_chunks;
  const size_t quad = size_t{query / query_block} * quad_count + chunk / quad_chunks;
  return ((quad * 4 + word % 4) * 32 + lane) * 4 + plane;
}

struct coarse_encode_parameters {
  /** [real_count, dimension] */
  const float* vectors;
  uint32_t dimension;
  /** Up to query_count, more queries follow that fill the group and match no row. */
  uint32_t real_count;
  uint32_t query_count;
  uint32_t quad_count;
  /** [dimension]: bits 0 and 1 are set where the first and the second round change the sign. */
  const uint8_t* signs;
  /** As in rotation.h. */
  uint32_t block;
  uint32_t stride;
  float unit;
  /** [real_count] */
  const device_query* queries;
  const double* thresholds;
  /** [real_count]: the bounds of the rotated queries. */
  bounded_query* rotated;
  /** Codes in the order of coarse_word, followed by −3·Σq and the test of each query. */
  uint32_t* packed;
  int32_t* offsets;
  scan_weights* weights;
  /** The counts of the lists [query_count] and the estimate of raise_parameters, all of which are set to 0. */
  uint32_t* counts;
  uint32_t* estimate;
};

cudaError_t encode_coarse(const coarse_encode_parameters& parameters, launch_order order);

struct raise_parameters {
  /** Its lists receive the candidates, with bounds as their scores. */
  batch_state state;
  /** Like state.blocks, with the coarse codes as panels. */
  const resident_block* blocks;
  uint32_t panel_stride;
  /** [query_count, dimension] */
  const float* vectors;
  const bounded_query* rotated;
  scan_weights* weights;
  /** Rows with the sums of their coarse codes. The kernel replaces their scores by estimates. */
  candidate_lists lists;
  /**
   * Used after the sample: the rows that are left of all queries are added to it, and more than
   * `estimate_limit` for a query that left more than `rows_max`. Null after the rest.
   */
  uint32_t* estimate;
  uint32_t estimate_limit;
  uint32_t rows_max;
  run_condition condition;
};

/**
 * Scores the rows with the best estimates, raises the thresholds and shortens the lists. After the rest, it
 * appends the lists to the lists of candidates.
 */
cudaError_t raise_thresholds(const raise_parameters& parameters, launch_order order);

/** Loads the kernels and allows them the shared memory that they need; called once per device. */
cudaError_t prepare_coarse_encoding(size_t shared_bytes_max);
cudaError_t preload_raising();

}  // namespace sagitta::cuda
