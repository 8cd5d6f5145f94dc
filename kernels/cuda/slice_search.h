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
  slice_search(sagitta_device& device, search_slot& slot, const sagitta_batch& batch, const batch_plan& plan,
               const slice& what);
  /** Allocates memory and writes the input to pinned memory. */
  void prepare();
  /** Launches the search, behind those launched before it. */
  void launch();
  /** Waits for the search, and adds its times to `times`. */
  void wait(sagitta_device_times& times);
  const query_outcome& outcome(uint32_t index) const { return outcomes_[index]; }
  /** Returns the rows found for one query, `found_stride` entries apart. */
  const found_row* found(uint32_t index) const { return found_ + index; }
  uint32_t found_stride() const { return count_; }

 private:
  /** Byte offsets in the workspace; the input comes first. */
  struct layout {
    size_t vectors, queries, blocks, groups, scope_of, scopes, tile_counters, bitmaps, input_end;
    size_t packed, offsets, weights, thresholds, counts, rows, scores;
    /** With a sieve: the input, and the rest. */
    size_t sieve_blocks, sieve_groups, other_blocks, signs;
    size_t sieve_packed, sieve_offsets, sieve_weights, sieve_bounds, sieve_rows, sieve_scores;
    /** The counts of all queries, and the estimate of the rows that are left. */
    size_t sieve_counts, estimate;
    size_t shared, outcomes, found, end;
  };

  void collect_bitmaps();
  void lay_out();
  void write_input();
  void write_scopes(uint8_t* input);
  void write_groups(const uint8_t* input, uint32_t group_size, group_view* groups) const;
  void write_sieve(uint8_t* input);
  uint32_t ranks_at_once() const;
  /** Returns the bytes of the outcomes and of `ranks` rows per query. */
  size_t output_bytes(uint32_t ranks) const;
  /** Encodes the queries and empties their lists. */
  void start();
  /** Phases of a slice; an event marks the end of each. */
  enum class phase { begun, uploaded, scanned, rescored, selected, read_back };
  /**
   * Records the event of a phase. With few queries there are no events between kernels, because an event
   * would keep the next kernel from being launched early.
   */
  void mark(phase at);
  void add_times(sagitta_device_times& times) const;
  void gather();
  scan_parameters scan_of(const scan_pass& pass, bool is_dense);
  /** Scans the int8 codes of these blocks, an offset in the workspace, and prunes the lists. */
  void launch_pass(size_t blocks, const scan_pass& pass, bool is_dense, const run_condition& condition);
  void launch_sieve();
  void encode_for_sieve();
  void fill(sieve_queries& encoding) const;
  void scan_sieve(const scan_pass& pass, const run_condition& condition);
  void raise(bool is_first, bool is_last, const run_condition& condition);
  uint32_t sieve_panel_stride() const;
  batch_state state() const;
  candidate_lists lists() const;
  candidate_lists sieve_lists() const;

  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(slot_.workspace.data() + offset);
  }
  /** Returns the address of a bitmap on the device, or null. */
  const uint32_t* resident_bitmap(const uint32_t* rows) const;

  sagitta_device& device_;
  search_slot& slot_;
  const sagitta_batch& batch_;
  const batch_plan& plan_;
  const slice& slice_;
  uint32_t count_;
  uint32_t block_count_;
  uint32_t group_count_;
  layout layout_{};
  struct bitmap {
    size_t offset;
    uint32_t words;
  };
  std::unordered_map<const uint32_t*, bitmap> bitmaps_;
  size_t bitmap_bytes_ = 0;
  bool has_gathered_ = false;
  /** The blocks that the sieve lacks; empty if there are none. */
  std::vector<resident_block> other_blocks_;
  /** The number of scans launched so far: each has tile counters of its own. */
  size_t scan_count_ = 0;
  const query_outcome* outcomes_ = nullptr;
  const found_row* found_ = nullptr;
};

}  // namespace sagitta::cuda
