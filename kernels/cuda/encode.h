// Starts a search on the device: encodes queries in the layouts that the scan kernels read and empties
// their lists and outcomes.
#pragma once

#include "platform.h"
#include "scan.h"

namespace sagitta::cuda {

/**
 * Index of the 32-bit word with the codes of dimensions 4g .. 4g + 3 of a query, g = `step_group`,
 * from the start of the batch. `pair_count` and `chunk_count` are those of scan_shape.
 *
 *   mma     [query / 8][pair of steps][lane][4]: lane 4·(query % 8) + g % 4, word 2·(step % 2) + half
 *   wgmma   [group][chunk][query of the group][128 bytes], with the 16-byte units of line r in the
 *           order unit XOR (r % 8), the 128-byte swizzle
 */
SAGITTA_HOST_DEVICE inline size_t mma_word(uint32_t query, uint32_t step_group,
                                           uint32_t pair_count) {
  const uint32_t step = step_group / 8;
  const uint32_t lane = query % query_block * 4 + step_group % 4;
  const uint32_t word = 2 * (step % 2) + step_group / 4 % 2;
  return ((size_t{query / query_block} * pair_count + step / 2) * 32 + lane) * 4 + word;
}

SAGITTA_HOST_DEVICE inline size_t wgmma_word(uint32_t query, uint32_t step_group,
                                             uint32_t chunk_count, uint32_t group) {
  constexpr uint32_t line_words = chunk_dimensions / 4;
  const uint32_t line = query % group;
  const uint32_t unit = step_group % line_words / 4;
  const size_t lines =
      (size_t{query / group} * chunk_count + step_group / line_words) * group + line;
  return lines * line_words + (unit ^ line % 8) * 4 + step_group % 4;
}

struct encode_parameters {
  /** [real_count, dimension] */
  const float* vectors;
  uint32_t dimension;
  /** Queries of the slice. Up to query_count, more queries follow that fill the group and match no row. */
  uint32_t real_count;
  uint32_t query_count;
  /** The layout of the codes. */
  scan_shape shape;
  /** The host has set metric, k, floor, rank key, square and length; encoding sets the rest. */
  device_query* queries;
  /** Codes in the layout above, as uint32 words, followed by −128·Σq, the test and the floor of each query. */
  uint32_t* packed;
  int32_t* offsets;
  scan_weights* weights;
  double* thresholds;
  /** [query_count], twice [real_count], and that of raise_parameters or null; all are set to 0. */
  uint32_t* counts;
  query_outcome* outcomes;
  shared_list* shared;
  uint32_t* estimate;
};

cudaError_t encode_queries(const encode_parameters& parameters, launch_order order);

/** Loads the kernel; called once per device. */
cudaError_t preload_encoding();

}  // namespace sagitta::cuda
