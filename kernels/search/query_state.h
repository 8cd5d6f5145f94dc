// What one thread knows about one query: the rows that may be in the answer, and how good a row has
// to be. States of different threads are merged when all rows have been looked at.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "prepared_query.h"
#include "top_rows.h"

namespace sagitta {

/** A row whose score is not known exactly yet. */
struct candidate {
  double upper;
  uint32_t part;
  uint32_t row;
};

/** A lower bound of a query's k-th best score, raised by all threads; reading a stale one is fine. */
class shared_bound {
 public:
  explicit shared_bound(double floor) : value_(floor) {}
  shared_bound(shared_bound&& other) noexcept : value_(other.value()) {}
  double value() const { return value_.load(std::memory_order_relaxed); }
  void raise(double value);

 private:
  std::atomic<double> value_;
};

/** What all states of a search look at. */
struct search_context {
  const target* functions;
  const sagitta_block* blocks;
  const sagitta_part* parts;
  uint32_t dimension;
  const std::atomic<bool>* is_cancelled;

  row_order order() const { return {blocks, parts}; }
};

class query_state {
 public:
  /** `rows_max` is how many rows the query has at most: no selection needs room for more. */
  void start(const search_context& context, const prepared_query& query, shared_bound& bound,
             uint64_t rows_max);
  bool is_started() const { return query_ != nullptr; }

  /** The test of the scan, with the threshold as other threads have raised it meanwhile. */
  scan_query& refreshed_scan();

  /** Rows of a panel that passed the test of the scan: bit r of `survivors` is row first_row + r. */
  void consider(uint32_t part, uint32_t first_row, uint32_t survivors, const int32_t* sums,
                const panel_facts& facts);
  /** Scores rows canonically: `count` rows of the part, in `rows`. */
  void score(uint32_t part, const uint32_t* rows, uint32_t count);

  /** Moves what `other`, a state of the same query, has found into this one. */
  void merge(query_state& other);
  /** Scores what still may be in the answer; then `top` is the answer, best first. */
  void finish();

  const std::vector<scored_row>& top() const { return top_.rows(); }
  uint64_t rescored_count() const { return rescored_count_; }

 private:
  void raise(double threshold);
  void offer(const scored_row& row);
  void add_candidate(const candidate& row);
  void drop_overtaken();
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
