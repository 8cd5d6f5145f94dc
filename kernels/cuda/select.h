// Operations on the candidate lists between the passes of a scan and after the last one.
#pragma once

#include "platform.h"
#include "scan.h"
#include "tables.h"

namespace sagitta::cuda {

/** The state of a batch on the device. Arrays are [query_count] unless said otherwise. */
struct batch_state {
  const resident_block* blocks;
  uint32_t block_count;
  uint32_t panel_stride;
  uint32_t dimension;
  /** Does not count the queries that only fill a group. */
  uint32_t query_count;
  const device_query* queries;
  scan_weights* weights;
  double* thresholds;
  candidate_lists lists;
  list_sharing sharing;
  query_outcome* outcomes;
};

struct prune_parameters {
  batch_state state;
  /** After the dense pass, the number of list entries it wrote; 0 after other passes. */
  uint32_t dense_count;
  run_condition condition;
};

/**
 * After a pass: drops candidates below the threshold, raises the threshold to the k-th best lower bound,
 * and drops candidates again. A list that has overflowed makes its query undecided, but its rows raise the
 * threshold with which the query can be searched again.
 */
cudaError_t prune_lists(const prune_parameters& parameters, launch_order order);

struct gather_parameters {
  batch_state state;
  /** [scope_count, block_count] and [query_count] */
  const row_view* scopes;
  const uint32_t* scope_of;
  /** The tiles of all blocks. */
  uint32_t tile_count;
};

/** Adds the rows of gathered queries to their lists. */
cudaError_t gather_rows(const gather_parameters& parameters, launch_order order);

struct rescore_parameters {
  batch_state state;
  /** [query_count, dimension] */
  const float* vectors;
};

/**
 * Scores the candidates of scanned queries that have the best estimates, a few more than k, and drops those whose
 * upper bound is below the k-th of these scores. The device needs the values.
 */
cudaError_t score_estimates(const rescore_parameters& parameters, launch_order order);

/**
 * Gives every candidate that has no score yet its canonical score (search/canonical.h), or NaN where only the
 * host has the values. The grid is sized for `rows_expected` rows per query.
 */
cudaError_t rescore(const rescore_parameters& parameters, uint32_t rows_expected,
                    launch_order order);

/** Loads the kernels and allows rescoring the shared memory for a query of any dimension; called once per device. */
cudaError_t prepare_rescoring();
/** Loads the other kernels; called once per device. */
cudaError_t preload_pruning();
cudaError_t preload_selection();

struct select_parameters {
  batch_state state;
  /** [found_max, query_count]: the first rows of all queries come first and can be read back alone. */
  found_row* found;
  uint32_t found_max;
};

/**
 * Takes the k best of each list, and the rows that tie with the last of them or with the query's rank key,
 * which ids have to decide. They are sorted, best first, if there are at most `sorted_max`.
 */
cudaError_t select_found(const select_parameters& parameters, launch_order order);
inline constexpr uint32_t sorted_max = 1024;

}  // namespace sagitta::cuda
