// One thread's state of one query: the candidates, and the threshold that a row has to reach. The
// states of all threads are merged after all rows have been scanned.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "prepared_query.h"
#include "top_rows.h"

namespace sagitta {

/** A row that may be in the answer and whose exact score is not known yet. */
struct candidate {
  double upper;
  uint32_t view;
  uint32_t row;
};

/** A lower bound of a query's k-th best score, raised by all threads. A stale value is still valid. */
class shared_bound {
 public:
  explicit shared_bound(double floor) : value_(floor) {}
  shared_bound(shared_bound&& other) noexcept : value_(other.value()) {}
  double value() const { return value_.load(std::memory_order_relaxed); }
  void raise(double value);

 private:
  std::atomic<double> value_;
};

/** What all states of a search share. */
struct search_context {
  const target* functions;
  const sagitta_block* blocks;
  const sagitta_block_view* views;
  uint32_t dimension;
  const std::atomic<bool>* is_cancelled;

  row_order order() const { return {blocks, views}; }
};

class query_state {
 public:
  /** `rows_max` is the number of rows the query searches: selections need no more room. */
  void start(const search_context& context, const prepared_query& query, shared_bound& bound,
             uint64_t rows_max);
  bool is_started() const { return query_ != nullptr; }

  /** The scan's test with the latest threshold of all threads. */
  scan_query& current_scan();

  /** Takes the rows of a panel that passed the scan's test: bit r of `survivors` is first_row + r. */
  void add_survivors(uint32_t view, uint32_t first_row, uint32_t survivors, const int32_t* sums,
                const panel_facts& facts);
  /** Scores `count` rows of a view canonically. */
  void score(uint32_t view, const uint32_t* rows, uint32_t count);

  /** Moves the rows and bounds of another state of the same query into this one. */
  void merge(query_state& other);
  /** Scores the remaining candidates; `top` is then the answer, best first. */
  void finish();

  const std::vector<scored_row>& top() const { return top_.rows(); }
  uint64_t rescored_count() const { return rescored_count_; }

 private:
  void raise(double threshold);
  void offer(const scored_row& row);
  void add_candidate(const candidate& row);
  void drop_below_threshold();
  void rescore();

  const search_context* context_ = nullptr;
  const prepared_query* query_ = nullptr;
  shared_bound* bound_ = nullptr;
  scan_query scan_{};
  double threshold_ = 0;
  size_t candidates_max_ = 0;
  std::vector<candidate> candidates_;
  largest_values lower_bounds_;
  top_rows top_;
  uint64_t rescored_count_ = 0;
};

}  // namespace sagitta
