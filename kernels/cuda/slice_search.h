// The search of one slice of a batch on the device: its memory layout, launches and readback.
#pragma once

#include "encode.h"
#include "plan.h"
#include "scan_kernels.h"
#include "search.h"
#include "select.h"

namespace sagitta::cuda {

class slice_search {
 public:
  slice_search(sagitta_device& device, const sagitta_batch& batch, const batch_plan& plan,
               const slice& what);
  /** Allocates memory and writes the input to pinned memory. */
  void prepare();
  /** Launches the search, waits for it, and adds its times to `times`. */
  void run(sagitta_device_times& times);
  const query_outcome& outcome(uint32_t index) const { return outcomes_[index]; }
  /** The rows found for one query, `found_stride` entries apart. */
  const found_row* found(uint32_t index) const { return found_ + index; }
  uint32_t found_stride() const { return count_; }

 private:
  /** Byte offsets in the workspace; the input comes first. */
  struct layout {
    size_t vectors, queries, blocks, groups, views, bitmaps, input_end;
    size_t packed, offsets, weights, thresholds, counts, rows, scores;
    size_t outcomes, found, end;
  };

  void collect_bitmaps();
  void lay_out();
  void write_input();
  void write_views(uint8_t* input);
  uint32_t ranks_at_once() const;
  /** Bytes of the outcomes and of `ranks` rows per query. */
  size_t output_bytes(uint32_t ranks) const;
  void launch_all();
  void encode();
  void gather(uint32_t first_tile, uint32_t end_tile);
  void score_all_rows();
  void launch_scan(const scan_pass& pass, bool is_dense);
  batch_state state() const;
  candidate_lists lists() const;
  void prune(uint32_t dense_count);

  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(device_.workspace.data() + offset);
  }
  /** The address of a bitmap on the device, or null. */
  const uint32_t* resident_bitmap(const uint32_t* rows) const;

  sagitta_device& device_;
  const sagitta_batch& batch_;
  const batch_plan& plan_;
  const slice& slice_;
  uint32_t count_;
  uint32_t block_count_;
  uint32_t group_count_;
  bool is_mixed_ = false;
  layout layout_{};
  struct bitmap {
    size_t offset;
    uint32_t words;
  };
  std::unordered_map<const uint32_t*, bitmap> bitmaps_;
  size_t bitmap_bytes_ = 0;
  bool has_gathered_ = false;
  const query_outcome* outcomes_ = nullptr;
  const found_row* found_ = nullptr;
};

}  // namespace sagitta::cuda
