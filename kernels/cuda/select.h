// What happens to lists of candidates between the passes of a scan, and in the end.
#pragma once

#include "platform.h"
#include "tables.h"

namespace sagitta::cuda {

/** What all of these look at. Arrays are [query_count] where nothing else is said. */
struct batch_state {
  const resident_block* blocks;
  uint32_t block_count;
  uint32_t panel_stride;
  uint32_t dimension;
  /** Without those that only fill a group. */
  uint32_t query_count;
  const device_query* queries;
  scan_weights* weights;
  double* thresholds;
  candidate_lists lists;
  query_outcome* outcomes;
};

struct prune_parameters {
  batch_state state;
  /** How many places the first pass has filled, or 0 after another pass. */
  uint32_t dense_count;
};

/**
 * After a pass: drops what the threshold has overtaken, raises it to the k-th best lower bound, and
 * drops again. A list that has run over makes its query undecided.
 */
cudaError_t prune_lists(const prune_parameters& parameters, cudaStream_t stream);

struct gather_parameters {
  batch_state state;
  /** [block_count, view_count] */
  const row_view* views;
  uint32_t view_count;
  /** Of the batch: these tiles. */
  uint32_t first_tile;
  uint32_t end_tile;
};

/** Adds the rows of queries that are gathered to their lists. */
cudaError_t gather_rows(const gather_parameters& parameters, cudaStream_t stream);

struct rescore_parameters {
  batch_state state;
  /** [query_count, dimension] */
  const float* vectors;
};

/**
 * Gives every candidate its canonical score (search/canonical.h); not a number where values are on the
 * host. `rows_expected` a query is what the grid is made for.
 */
cudaError_t rescore(const rescore_parameters& parameters, uint32_t rows_expected,
                    cudaStream_t stream);

/** Lets rescoring keep a query of any width in shared memory; once a device. */
cudaError_t allow_wide_rescoring();

/**
 * Shortens lists whose rows have scores to the k best, and whatever ties with the last of them or with
 * the query's position: so that there is room for more rows.
 */
cudaError_t keep_best(const batch_state& state, cudaStream_t stream);

struct select_parameters {
  batch_state state;
  /** [found_max, query_count]: what most queries need is at the start, and read back alone. */
  found_row* found;
  uint32_t found_max;
};

/**
 * Takes the k best of each list, and whatever has the score of the last of them or of the query's
 * position, since ids decide there: best first if they are at most `sorted_max`, else in any order.
 */
cudaError_t select_found(const select_parameters& parameters, cudaStream_t stream);
inline constexpr uint32_t sorted_max = 1024;

}  // namespace sagitta::cuda
