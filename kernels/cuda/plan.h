// What a batch is before anything is launched: queries in an order in which neighbours are alike, cut
// into slices that fit the memory to work in.
#pragma once

#include <vector>

#include "device_state.h"
#include "scan.h"
#include "select.h"

namespace sagitta::cuda {

/** A query of the batch, as the host knows it. */
struct planned_query {
  uint32_t number;
  /** Of the batch's parts: those that are searched. */
  uint64_t passing;
  double square;
  bool is_scannable;
  /** All its blocks have their values on the device. */
  bool has_values;
  /** Cannot be asked of the device: two parts search one block, or rows have no places left. */
  bool is_refused;
  /** Longest lists that it wants; queries of one slice want the same. */
  uint32_t list_rows;
};

/** Queries of one slice, and how they are searched. */
struct slice {
  std::vector<planned_query> queries;
  /** Whether the rows of each query are gathered. */
  std::vector<uint8_t> is_gathered;
  scan_shape shape;
  std::vector<scan_pass> passes;
  /** The largest. */
  uint32_t k_max;
  uint32_t padded_count;
  uint32_t list_capacity;
  uint32_t found_max;
  /** Tiles whose rows are gathered and scored before lists are shortened; 0 for all at once. */
  uint32_t gathered_tiles;
  bool is_scanned;
};

class batch_plan {
 public:
  batch_plan(const sagitta_device& device, const sagitta_batch& batch,
             sagitta_device_block* const* residents);
  const std::vector<resident_block>& blocks() const { return blocks_; }
  const std::vector<slice>& slices() const { return slices_; }
  /**
   * Slices for queries that the others have left undecided: every row that passes is scored. None for
   * queries whose values are not on the device.
   */
  std::vector<slice> exhaustive_slices(const std::vector<uint32_t>& queries) const;
  const std::vector<planned_query>& queries() const { return queries_; }
  uint32_t tile_count() const { return tile_count_; }
  /** Rows that pass of one part. */
  uint32_t passing(uint32_t part) const { return passing_[part]; }

 private:
  void lay_out_blocks();
  void count_passing();
  void describe_queries();
  void cut_slices();
  size_t take(const std::vector<planned_query>& from, size_t at, size_t end,
              void (batch_plan::*fill)(slice&) const, std::vector<slice>& slices) const;
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

/** Bytes of device memory for each query of a slice. */
size_t bytes_per_query(uint32_t dimension, uint32_t block_count, uint32_t list_capacity,
                       uint32_t found_max);

}  // namespace sagitta::cuda
