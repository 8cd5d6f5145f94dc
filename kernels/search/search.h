// A search: a batch of queries over blocks, cut into pieces that threads pull until none is left.
//
//   plan      per block, the queries that scan its codes and those whose few rows are gathered
//   scan      piece by piece: a piece's codes stay in the L2 cache while all queries pass over them,
//             so memory is read once a batch; each thread has its own state of each query
//   finish    query by query: states are merged, what may still be in the answer is scored exactly
//
// Scores are only computed when all pieces are scanned, best upper bound first: by then thresholds
// have overtaken nearly every candidate.
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

  /** True for the one caller after whom the hits are complete, or the search has failed. */
  bool work();
  void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }
  sagitta_status status() const;
  bool is_done() const { return is_done_.load(); }
  sagitta_hits hits(uint32_t query) const;
  uint32_t query_count() const { return static_cast<uint32_t>(queries_.size()); }
  /** An estimate, in nanoseconds on one thread. */
  double cost() const { return cost_; }

 private:
  /** One query's view of one block. */
  struct use {
    uint32_t query;
    uint32_t part;
    /** Rows that pass. */
    uint32_t passing;
    /** Too few rows pass for a scan to pay, or there is nothing to scan. */
    bool is_gathered;
  };
  /** The queries of one block: first those that scan, grouped by what they have in common. */
  struct plan {
    std::vector<use> uses;
    uint32_t row_count;
  };
  /** Rows from..to of a block; `from` is the first of a panel. */
  struct piece {
    uint32_t block;
    uint32_t from;
    uint32_t to;
    /** Of its rows; known when it is scanned. */
    row_limits limits;
  };
  struct worker {
    std::vector<query_state> states;
  };
  struct answer {
    std::vector<uint32_t> parts;
    std::vector<uint32_t> rows;
    std::vector<double> scores;
    uint64_t rescored_count = 0;
  };

  void prepare_queries(const sagitta_batch& batch);
  void plan_blocks();
  void choose_gathered(plan& block_plan, bool has_codes) const;
  void cut_pieces();
  double cost_of(const plan& block_plan) const;

  query_state& state_of(worker& self, uint32_t query);
  void run_piece(worker& self, piece range);
  void scan_piece(worker& self, const piece& range, const use* uses, uint32_t use_count);
  void gather_piece(worker& self, const piece& range, const use& one);
  void finish_query(uint32_t query);
  void wait_for_pieces();

  const target* functions_;
  uint32_t dimension_;
  std::vector<sagitta_block> blocks_;
  std::vector<sagitta_part> parts_;
  std::vector<prepared_query> queries_;
  std::vector<double> values_;
  std::vector<uint8_t> packed_;
  search_context context_;
  std::vector<shared_bound> bounds_;
  /** Rows of each query that pass. */
  std::vector<uint64_t> passing_;
  std::vector<plan> plans_;
  std::vector<piece> pieces_;
  double cost_ = 0;

  std::vector<worker> workers_;
  std::vector<answer> answers_;
  std::atomic<uint32_t> next_worker_{0};
  std::atomic<uint32_t> next_piece_{0};
  std::atomic<uint32_t> pieces_done_{0};
  std::atomic<uint32_t> next_query_{0};
  std::atomic<uint32_t> queries_done_{0};
  std::atomic<bool> is_done_{false};
  std::atomic<bool> is_cancelled_{false};
  std::atomic<bool> has_failed_{false};
};

}  // namespace sagitta
