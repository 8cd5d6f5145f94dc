// Queries as codes, in the order in which the scan's instructions want them.
#pragma once

#include "platform.h"
#include "tables.h"

namespace sagitta::cuda {

/**
 * Where the four codes of dimensions 4g .. 4g + 3 of a query are, in words from the start of the batch.
 *
 *   mma     [query / 8][pair of steps][lane][4]: lane 4·(query % 8) + g % 4, word 2·(step % 2) + half
 *   wgmma   [group][chunk][query of the group][128 bytes], the 16-byte units of line r in the order
 *           unit XOR (r % 8), the swizzle of 128 bytes
 */
SAGITTA_HOST_DEVICE inline size_t mma_word(uint32_t query, uint32_t step_group, uint32_t depth) {
  const uint32_t step = step_group / 8;
  const uint32_t lane = query % query_block * 4 + step_group % 4;
  const uint32_t word = 2 * (step % 2) + step_group / 4 % 2;
  return ((size_t{query / query_block} * depth + step / 2) * 32 + lane) * 4 + word;
}

SAGITTA_HOST_DEVICE inline size_t wgmma_word(uint32_t query, uint32_t step_group, uint32_t depth,
                                             uint32_t group) {
  constexpr uint32_t line_words = chunk_dimensions / 4;
  const uint32_t line = query % group;
  const uint32_t unit = step_group % line_words / 4;
  const size_t lines = (size_t{query / group} * depth + step_group / line_words) * group + line;
  return lines * line_words + (unit ^ line % 8) * 4 + step_group % 4;
}

struct encode_parameters {
  /** [real_count, dimension] */
  const float* vectors;
  uint32_t dimension;
  /** Beyond it, up to query_count, are queries without codes that nothing passes. */
  uint32_t real_count;
  uint32_t query_count;
  uint32_t depth;
  /** Of wgmma; 0 for mma. */
  uint32_t wgmma_group;
  /** What the host knows of them is there: metric, k, floor, position, square, length. */
  device_query* queries;
  uint32_t* packed;
  int32_t* offsets;
  scan_weights* weights;
  double* thresholds;
};

cudaError_t encode_queries(const encode_parameters& parameters, cudaStream_t stream);

}  // namespace sagitta::cuda
