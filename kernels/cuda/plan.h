// The plan of a batch: its queries, ordered so that neighbours are similar, cut into slices that fit
// the workspace.
#pragma once

#include <vector>

#include "device_state.h"
#include "scan.h"
#include "select.h"

namespace sagitta::cuda {

/** A query of the batch. */
struct planned_query {
  /** Its index in the batch. */
  uint32_t number;
  /** Rows that its views let pass. */
  uint64_t passing;
  double square;
  bool is_scannable;
  /** All its blocks have their values on the device. */
  bool has_values;
  /** Left to the CPU: two views search one block, or the batch has more rows than 32 bits number. */
  bool is_unsupported;
  /** The list capacity it needs; queries of one slice need the same. */
  uint32_t list_rows;
  /** k rows are known to reach this score; −∞ at first. */
  double threshold;
};

/**
 * Queries that are searched together. A normal slice scans, or gathers the few rows that pass; an
 * exhaustive one scores every row that passes.
 */
struct slice {
  std::vector<planned_query> queries;
  /** Whether the rows of each query are gathered. */
  std::vector<uint8_t> is_gathered;
  scan_shape shape;
  std::vector<scan_pass> passes;
  uint32_t k_max;
  /** Queries, rounded up to whole groups. */
  uint32_t padded_count;
  uint32_t list_capacity;
  uint32_t found_max;
  bool is_exhaustive;
  /** Exhaustive slices: tiles gathered and scored before lists are shortened. */
  uint32_t tiles_at_once;
  /** Whether any query is scanned. */
  bool is_scanned;
};

class batch_plan {
 public:
  batch_plan(const sagitta_device& device, const sagitta_batch& batch,
             sagitta_device_block* const* residents);
  const std::vector<resident_block>& blocks() const { return blocks_; }
  const std::vector<slice>& slices() const { return slices_; }
  /**
   * Slices that scan queries again which earlier slices left undecided: with the thresholds
   * [query_count] that those have proven, and lists that are longer by the factor.
   */
  std::vector<slice> repeated_slices(const std::vector<uint32_t>& queries,
                                     const std::vector<double>& thresholds, uint32_t factor) const;
  /**
   * Exhaustive slices for queries that normal slices left undecided, except those whose values are not
   * on the device.
   */
  std::vector<slice> exhaustive_slices(const std::vector<uint32_t>& queries) const;
  const std::vector<planned_query>& queries() const { return queries_; }
  uint32_t tile_count() const { return tile_count_; }
  /** Rows that one view lets pass. */
  uint32_t passing(uint32_t view) const { return passing_[view]; }

 private:
  void lay_out_blocks();
  void count_passing();
  void describe_queries();
  std::vector<slice> cut(std::vector<planned_query> queries) const;
  size_t take(const std::vector<planned_query>& from, size_t at, size_t end, bool is_exhaustive,
              std::vector<slice>& slices) const;
  void complete(slice& made) const;
  void complete_exhaustive(slice& made) const;
  bool fits(const slice& made) const;
  size_t bitmap_bytes(const slice& made) const;
  bool is_gathered(const slice& made, const planned_query& query) const;

  const sagitta_device& device_;
  const sagitta_batch& batch_;
  sagitta_device_block* const* residents_;
  std::vector<resident_block> blocks_;
  std::vector<uint32_t> passing_;
  std::vector<planned_query> queries_;
  std::vector<slice> slices_;
  uint32_t tile_count_ = 0;
};

/** Bytes of device memory per query of a slice. */
size_t bytes_per_query(uint32_t dimension, uint32_t block_count, uint32_t list_capacity,
                       uint32_t found_max);

}  // namespace sagitta::cuda
