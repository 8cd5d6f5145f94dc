// The plan of a batch: its queries, ordered so that similar ones are neighbours, and cut into slices that
// fit into the workspace.
#pragma once

#include <vector>

#include "coarse.h"
#include "device_state.h"
#include "scan.h"
#include "scopes.h"
#include "select.h"

namespace sagitta::cuda {

/** A query of the batch. */
struct planned_query {
  /** Its index in the batch. */
  uint32_t number;
  /** What it searches: an index into batch_scopes, and the number of rows that pass. */
  uint32_t scope;
  uint64_t passing;
  double square;
  bool is_scannable;
  /** Whether all its blocks have their values on the device. */
  bool has_values;
  /** Whether it is left to the CPU: two views search one block, or the rows of the batch need more than 32 bits. */
  bool is_unsupported;
  /** The list capacity it needs; queries of one slice need the same. */
  uint32_t list_rows;
  /** A score that k rows are known to reach; −∞ at first. */
  double threshold;
  /** Whether it was scanned before, with a list that was too short. */
  bool is_repeated;
};

/** How a slice uses coarse codes instead of int8 codes in its last pass. */
struct coarse_plan {
  /** Its group is 0 if the slice does without coarse codes. */
  coarse_shape shape;
  /** The first tiles of the last pass, after which the method for the rest is decided. */
  scan_pass sample;
  scan_pass rest;
  uint32_t list_capacity;
  /** The numbers of rows of all queries, and of one, that the sample may leave: with more, int8 costs less. */
  uint32_t estimate_limit;
  uint32_t rows_max;

  bool is_used() const { return shape.group != 0; }
};

/** Queries that are searched together: they are scanned, or the few rows that pass are gathered. */
struct slice {
  std::vector<planned_query> queries;
  /** The different scopes of its queries. */
  std::vector<uint32_t> scopes;
  /** Whether the rows of each query are gathered. */
  std::vector<uint8_t> is_gathered;
  scan_shape shape;
  std::vector<scan_pass> passes;
  uint32_t k_max;
  /** The number of queries, rounded up to whole groups. */
  uint32_t padded_count;
  uint32_t list_capacity;
  uint32_t found_max;
  /** Whether any query is scanned. */
  bool is_scanned;
  /** Whether there are few queries, so that the cost is in launches rather than in candidates. */
  bool is_few;
  coarse_plan coarse;
};

class batch_plan {
 public:
  batch_plan(const sagitta_device& device, const sagitta_batch& batch,
             sagitta_device_block* const* residents);
  const std::vector<resident_block>& blocks() const { return blocks_; }
  /** The same blocks with coarse codes as panels; null where a block has none. */
  const std::vector<resident_block>& coarse_blocks() const { return coarse_blocks_; }
  const std::vector<slice>& slices() const { return slices_; }
  /**
   * Returns slices that scan again the queries that earlier slices left undecided, with the thresholds
   * [query_count] proven by those, and with lists that are longer by the factor.
   */
  std::vector<slice> repeated_slices(const std::vector<uint32_t>& queries,
                                     const std::vector<double>& thresholds, uint32_t factor) const;
  const std::vector<planned_query>& queries() const { return queries_; }
  uint32_t tile_count() const { return tile_count_; }
  const batch_scopes& scopes() const { return scopes_; }

 private:
  void lay_out_blocks();
  void describe_queries();
  std::vector<slice> cut(std::vector<planned_query> queries) const;
  size_t take(const std::vector<planned_query>& from, size_t at, size_t end,
              std::vector<slice>& slices) const;
  void complete(slice& made) const;
  wgmma_use use_of_wgmma() const;
  coarse_plan plan_coarse(const slice& made) const;
  bool may_use_coarse(const slice& made, bool is_forced) const;
  bool fits(const slice& made) const;
  size_t scope_bytes(const slice& made) const;
  bool is_gathered(const slice& made, const planned_query& query) const;

  const sagitta_device& device_;
  const sagitta_batch& batch_;
  sagitta_device_block* const* residents_;
  batch_scopes scopes_;
  std::vector<resident_block> blocks_;
  std::vector<resident_block> coarse_blocks_;
  std::vector<planned_query> queries_;
  std::vector<slice> slices_;
  uint32_t tile_count_ = 0;
};

/**
 * Returns the passes over all tiles: the first one takes at most `dense_tiles` of them, and each later one sees at
 * most `growth_max`, at least 2, times what those before it have seen. There are as few passes as possible.
 */
std::vector<scan_pass> passes_over(uint32_t tile_count, uint64_t dense_tiles, uint32_t growth_max);

/** Bytes of device memory per query of a slice. */
size_t bytes_per_query(uint32_t dimension, uint32_t list_capacity, uint32_t found_max);

/** The bytes that coarse codes add, per query, and per query including those that fill the groups. */
size_t coarse_bytes_per_query(const coarse_plan& plan);
size_t coarse_bytes_per_padded_query(const coarse_plan& plan);

}  // namespace sagitta::cuda
