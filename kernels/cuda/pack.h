// Copies the rows that a filter lets pass, for batches whose queries all have the same filter.
#pragma once

#include "platform.h"
#include "row_words.h"

namespace sagitta::cuda {

struct pack_parameters {
  /** The views that all queries share. */
  query_views views;
  uint32_t tile_count;
  uint32_t panel_stride;
  /** How many rows pass; known to the host. */
  uint32_t row_count;
  /** 0 before. */
  uint32_t* counter;
  /** [row_count]: the batch row of each packed row, in any order. */
  uint32_t* batch_rows;
  /** [⌈row_count / 16⌉] panels as in layout.h; the last one is undefined past the last row. */
  uint8_t* panels;
};

cudaError_t pack_rows(const pack_parameters& parameters, launch_order order);

/** Loads the kernels; once per device. */
cudaError_t preload_packing();

}  // namespace sagitta::cuda
