// One pass of a scan: which tiles it takes, what it reads, where survivors go.
#pragma once

#include "tables.h"

namespace sagitta::cuda {

/**
 * A pass takes every `stride`-th tile but those of the pass before, which took every
 * `coarse_stride`-th (0 in the first). Samples are spread over all rows, so that rows in an order of
 * their own mislead no threshold.
 */
struct scan_pass {
  uint32_t stride;
  uint32_t coarse_stride;
  uint32_t tile_count;
};

SAGITTA_HOST_DEVICE inline uint32_t tile_at(const scan_pass& pass, uint32_t index) {
  if (pass.coarse_stride == 0) return index * pass.stride;
  const uint32_t fine = pass.coarse_stride / pass.stride - 1;
  return index / fine * pass.coarse_stride + (index % fine + 1) * pass.stride;
}

struct scan_parameters {
  const resident_block* blocks;
  uint32_t block_count;
  /** Bytes from panel to panel. */
  uint32_t panel_stride;
  /** Codes of all queries as the kernel wants them; see encode.h. */
  const uint8_t* packed;
  /** Pairs of steps (mma), or chunks of dimensions (wgmma). */
  uint32_t depth;
  /** Warps beside each other that share rows and have other queries. */
  uint32_t warps_across;
  /** [query_count]: −128·Σq, and the test. */
  const int32_t* offsets;
  const scan_weights* weights;
  /** [group_count, block_count] */
  const group_view* groups;
  /** [block_count, query_count]; only looked at for groups that are mixed. */
  const row_view* views;
  /** A multiple of the group. */
  uint32_t query_count;
  scan_pass pass;
  /** The first pass: every row goes to its own place in the lists, which hold `no_place` before. */
  bool is_dense;
  candidate_lists lists;
};

/** How queries are dealt to warps. */
struct scan_shape {
  bool is_wgmma;
  /** Queries of a thread block: 8 to 256. */
  uint32_t group;
  uint32_t warps_across;
  /** See scan_parameters. */
  uint32_t depth;
  size_t shared_bytes;
};

/** The shape for so many queries of this width; a group of 0 where a device's shared memory has no room. */
scan_shape choose_shape(uint32_t query_count, uint32_t dimension, size_t shared_bytes_max,
                        bool may_wgmma);

}  // namespace sagitta::cuda
