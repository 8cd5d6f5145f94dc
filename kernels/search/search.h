// The search of a batch of queries over blocks. Blocks are cut into ranges of rows; any number of
// threads take ranges until none is left.
//
//   plan      per block: which queries scan its codes, and which gather their few passing rows
//   scan      range by range: its codes stay in the L2 cache while all queries scan them, so memory is
//             read once per batch; each thread has its own state of each query
//   finish    query by query: states are merged, the remaining candidates are scored exactly
//
// Candidates are scored only after all ranges have been scanned, best upper bound first: by then
// nearly all of them are below the threshold.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "../kernels.h"
#include "query_state.h"

namespace sagitta {

class search {
 public:
  explicit search(const sagitta_batch& batch);

  /** True for exactly one caller: the one that completes the search, or sees that it has failed. */
  bool work();
  void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }
  sagitta_status status() const;
  bool is_done() const { return is_done_.load(); }
  sagitta_hits hits(uint32_t query) const;
  uint32_t query_count() const { return static_cast<uint32_t>(queries_.size()); }
  /** The estimated work in nanoseconds on one thread. */
  double cost() const { return cost_; }

 private:
  /** A view of a block, and how its query is answered there. */
  struct planned_view {
    uint32_t query;
    /** Index into the views of the batch. */
    uint32_t view;
    /** Rows that pass. */
    uint32_t passing;
    /** Rows are gathered and scored, not scanned: few pass, or block or query have no codes. */
    bool is_gathered;
  };
  /** The views of one block. Those that are scanned come first, similar ones next to each other. */
  struct block_plan {
    std::vector<planned_view> views;
    uint32_t row_count;
  };
  /** Rows from..to of a block; `from` is the first row of a panel. */
  struct row_range {
    uint32_t block;
    uint32_t from;
    uint32_t to;
    /** The limits of its rows, set before it is scanned. */
    row_limits limits;
  };
  struct worker {
    std::vector<query_state> states;
  };
  struct answer {
    std::vector<uint32_t> views;
    std::vector<uint32_t> rows;
    std::vector<double> scores;
    uint64_t rescored_count = 0;
  };

  void prepare_queries(const sagitta_batch& batch);
  void plan_blocks();
  void choose_gathered(block_plan& plan, bool has_codes) const;
  void cut_ranges();
  double cost_of(const block_plan& plan) const;

  query_state& state_of(worker& self, uint32_t query);
  void run_range(worker& self, row_range range);
  void scan_range(worker& self, const row_range& range, const planned_view* planned,
                  uint32_t planned_count);
  void gather_range(worker& self, const row_range& range, const planned_view& one);
  void finish_query(uint32_t query);
  void wait_for_ranges();

  const target* functions_;
  uint32_t dimension_;
  std::vector<sagitta_block> blocks_;
  std::vector<sagitta_block_view> views_;
  std::vector<prepared_query> queries_;
  std::vector<double> values_;
  std::vector<uint8_t> packed_;
  search_context context_;
  std::vector<shared_bound> bounds_;
  /** Rows that pass, per query. */
  std::vector<uint64_t> passing_;
  std::vector<block_plan> plans_;
  std::vector<row_range> ranges_;
  double cost_ = 0;

  std::vector<worker> workers_;
  std::vector<answer> answers_;
  std::atomic<uint32_t> next_worker_{0};
  std::atomic<uint32_t> next_range_{0};
  std::atomic<uint32_t> ranges_done_{0};
  std::atomic<uint32_t> next_query_{0};
  std::atomic<uint32_t> queries_done_{0};
  std::atomic<bool> is_done_{false};
  std::atomic<bool> is_cancelled_{false};
  std::atomic<bool> has_failed_{false};
};

}  // namespace sagitta
