// One pass of a scan: the tiles it takes, the tables it reads, and the lists for its survivors.
#pragma once

#include "tables.h"

namespace sagitta::cuda {

/**
 * A pass takes every `stride`-th tile except those of earlier passes, which together took every
 * `coarse_stride`-th (0 in the first pass). Samples are spread over all rows, so that sorted rows do
 * not bias a threshold.
 */
struct scan_pass {
  uint32_t stride;
  uint32_t coarse_stride;
  uint32_t tile_count;
  /** Which of these tiles: all, every sample_stride-th, or the others. */
  enum class part_kind : uint32_t { all, sample, rest } part = part_kind::all;
};

/** Large enough a part of a pass to tell how many rows the rest of it will leave. */
inline constexpr uint32_t sample_stride = 8;

SAGITTA_HOST_DEVICE inline uint32_t tile_at(const scan_pass& pass, uint32_t index) {
  if (pass.part == scan_pass::part_kind::sample) index *= sample_stride;
  if (pass.part == scan_pass::part_kind::rest) {
    index += index / (sample_stride - 1) + 1;
  }
  if (pass.coarse_stride == 0) return index * pass.stride;
  const uint32_t fine = pass.coarse_stride / pass.stride - 1;
  return index / fine * pass.coarse_stride + (index % fine + 1) * pass.stride;
}

/**
 * Makes a kernel depend on an estimate that an earlier kernel has made on the device: it runs only if the
 * estimate is above its limit, or only if it is not.
 */
struct run_condition {
  /** Null if the kernel always runs. */
  const uint32_t* estimate;
  uint32_t limit;
  bool runs_above;
};

SAGITTA_HOST_DEVICE inline bool is_skipped(const run_condition& condition) {
  return condition.estimate != nullptr &&
         (*condition.estimate > condition.limit) != condition.runs_above;
}

/**
 * How queries are distributed over thread blocks and warps. Codes of a query are padded to whole pairs
 * of steps (mma), chunks of dimensions (wgmma) or quads (coarse codes).
 */
struct scan_shape {
  bool is_wgmma;
  /** Queries of a thread block: 8 to 256. */
  uint32_t group;
  /** Warps of a thread block that share their rows and take different queries. */
  uint32_t warps_across;
  /** Pairs of steps of pair_dimensions each (mma); otherwise 0. */
  uint32_t pair_count;
  /** Chunks of chunk_dimensions each (wgmma); otherwise 0. */
  uint32_t chunk_count;
  /** Dynamic shared memory of a thread block. */
  size_t shared_bytes;
  /** Stages of a warpgroup's ring of codes (wgmma); 0 if codes go from memory to registers. */
  uint32_t ring_stages = 0;
  /** Quads of chunks of coarse codes; 0 for a scan of int8 codes. */
  uint32_t quad_count = 0;

  SAGITTA_HOST_DEVICE uint32_t padded_dimension() const {
    return pair_count * pair_dimensions + chunk_count * chunk_dimensions + quad_count * quad_dimensions;
  }
};

/** Which batches use wgmma, and how. */
struct wgmma_use {
  /** Batches of fewer queries use mma. */
  uint32_t queries_min;
  /** The largest group; 0 without wgmma. */
  uint32_t group_max;
  /** The maximum number of stages of a ring; 0 without rings. */
  uint32_t ring_stages_max;
};

/** Returns the shape for a batch; its group is 0 if shared memory has no room for a group of these queries. */
scan_shape choose_shape(uint32_t query_count, uint32_t dimension, size_t shared_bytes_max,
                        const wgmma_use& wgmma);

struct scan_parameters {
  const resident_block* blocks;
  uint32_t block_count;
  /** Bytes from panel to panel, and from the facts of a panel to its codes. */
  uint32_t panel_stride;
  uint32_t codes_offset;
  /** Codes of all queries in the layout of the kernel; see encode.h. */
  const uint8_t* packed;
  /** Steps of step_bytes_of_mma dimensions that rows have. */
  uint32_t step_count;
  /** As in scan_shape. */
  uint32_t pair_count;
  uint32_t chunk_count;
  uint32_t warps_across;
  uint32_t ring_stages;
  /** [query_count]: −128·Σq, and the test. */
  const int32_t* offsets;
  const scan_weights* weights;
  /** [group_count, block_count] */
  const group_view* groups;
  /** What each query searches, read only for mixed groups: [scope_count, block_count] and [query_count]. */
  const row_view* scopes;
  const uint32_t* scope_of;
  /** A multiple of the group size. */
  uint32_t query_count;
  scan_pass pass;
  /** [group_count]: the number of tiles taken beyond the first of each warp, initially 0. */
  uint32_t* tile_counters;
  /** Whether this is the first pass: every row has a fixed index in the lists, with `no_row` if it is not searched. */
  bool is_dense;
  candidate_lists lists;
  /** Bytes of the coarse codes of a row, for scans of them. */
  uint32_t coarse_row_bytes;
  run_condition condition;
};

}  // namespace sagitta::cuda
