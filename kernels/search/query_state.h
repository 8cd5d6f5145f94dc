// One thread's state of one query: the candidates, and the threshold that a row has to reach. The
// states of all threads are merged after all rows have been scanned.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "costs.h"
#include "prepared_query.h"
#include "top_rows.h"

namespace sagitta {

/** A row that codes have not excluded and whose exact score is not yet known. */
struct candidate {
  /** The middle of the bounds: an estimate of the score that is much better than the bounds. */
  float center;
  /** The upper bound, rounded up. */
  float upper;
  uint32_t view;
  uint32_t row;
};

/** A lower bound of a query's k-th best score, raised by all threads. A stale value is still valid. */
class shared_bound {
 public:
  void start(double floor, uint32_t k);
  double value() const { return value_.load(std::memory_order_relaxed); }
  void raise(double value);
  /** Adds lower bounds of the scores of rows, each row once, and exact scores, each row once. */
  void add(const std::vector<double>& lower_bounds, const std::vector<double>& scores);

 private:
  std::atomic<double> value_{0};
  std::mutex mutex_;
  largest_values lower_bounds_;
  largest_values scores_;
};

/** What the exact score of a row may prove about the k-th best one. */
enum class proof : uint8_t {
  /** Nothing, because the row may be scanned again. */
  none,
  /** It is one of the scores, but a lower bound of it is already among the lower bounds. */
  score,
  /** It is one of the scores and the best lower bound. */
  all,
};

/** Rows from..to of a block; `from` is the first row of a panel. */
struct row_range {
  uint32_t block;
  uint32_t from;
  uint32_t to;
};

/** What is scanned in place of a level of head tiles: tiles of all dimensions. */
inline constexpr uint32_t all_dimensions = head_levels;

/** The data that all states of a search share. */
struct search_context {
  const target* functions;
  const sagitta_block* blocks;
  const sagitta_block_view* views;
  uint32_t dimension;
  const std::atomic<bool>* is_cancelled;
  /** Room for candidates of one state. With more, fewer rows are scored before the threshold is known. */
  size_t candidates_spare;
  /** Threads, which share what they score. */
  uint32_t worker_count;

  row_order order() const { return {blocks, views}; }
};

/** Expected shares of the scanned rows. */
struct expected_shares {
  /** Rows that coarse codes leave to their refinement. */
  double refined;
  /** Rows that the refinement leaves to be scored. */
  double scored;
};

class query_state {
 public:
  /** `rows_max` is the number of rows that the query searches: selections need no more room. */
  void start(const search_context& context, const prepared_query& query, shared_bound& bound,
             uint64_t rows_max);
  bool is_started() const { return query_ != nullptr; }

  /** The tests of the scans, with the latest threshold of all threads. */
  scan_query& current_scan();
  scan_query& current_coarse_scan();
  scan_query& current_head_scan(uint32_t basis, uint32_t level);
  /** Chooses what to scan of this many rows: a level of head tiles of this basis, or `all_dimensions`. */
  uint32_t choose_level(uint32_t basis, uint64_t row_count);
  /** Whether to read the second half of head tiles only where the first half leaves rows. */
  bool may_halve() const { return level_rows_ >= halving_retry_; }
  /** Considers whether to do so with the next rows, given the share of panels that the first half has left. */
  void review_halves(double left);
  /** Considers, after a level of head tiles of this many rows has been scanned, which level to scan next. */
  void review_level(uint32_t level, uint64_t row_count, const row_costs& costs);

  /** Adds the rows of a panel that passed the scan's test: bit r of `survivors` is row first_row + r. */
  void add_survivors(uint32_t view, uint32_t first_row, uint32_t survivors, const int32_t* sums,
                     const panel_facts& facts);
  /** Like `add_survivors`, for the head tiles that were scanned last. */
  void add_head_survivors(uint32_t view, uint32_t first_row, uint32_t survivors, const int32_t* sums,
                          const panel_facts& facts);
  /** Like `add_survivors`, for the codes of rows that are not consecutive. */
  void add_packed_survivors(uint32_t view, const uint32_t* rows, uint32_t survivors,
                            const int32_t* sums, const panel_facts& facts);
  /** Like `add_survivors`, for a panel of coarse codes. */
  void add_coarse_survivors(uint32_t view, uint32_t first_row, uint32_t survivors,
                            const int32_t* sums, const panel_facts& facts);
  /** Adds one row with the sum of its coarse codes. */
  void add_coarse_row(uint32_t view, uint32_t row, int32_t sum, const row_facts& facts);
  /**
   * Scores the rows with the best estimates, which raises the threshold. If `is_provisional`, the rows may
   * be scanned again, so they prove nothing to other threads.
   */
  void score_best_estimates(bool is_provisional = false);
  /** Forgets the rows of these ranges because they will be scanned again. */
  void forget(const std::vector<row_range>& ranges);
  /** Returns the share of `row_count` scanned rows that will be left once `total` rows are known. */
  expected_shares expect(uint64_t row_count, uint64_t total) const;
  /** Scores the candidates whose upper bound reaches the threshold, those with the best estimates first. */
  void rescore();
  /** Excludes remaining rows by their finer codes and makes the others candidates. */
  void refine();
  /**
   * Scores `count` rows of a view canonically. `squares` holds their x·x, or is null to compute them.
   */
  void score(uint32_t view, const uint32_t* rows, uint32_t count, const double* squares = nullptr,
             proof proves = proof::all);
  /** Computes the canonical scores of at most canonical_rows rows. */
  void scores_of(uint32_t view, const uint32_t* rows, uint32_t count, const double* squares,
                 double* scores) const;

  /** Moves the rows and bounds of another state of the same query into this one. */
  void merge(query_state& other);
  /** Drops the candidates that the thresholds of all threads exclude. */
  size_t count_candidates();
  /**
   * Selects the candidates to score next, in the order of blocks and rows: those with the best estimates,
   * or all. They stay with the state until `take_scores`.
   */
  void select_candidates(bool is_last);
  const std::vector<candidate>& selected() const { return selected_; }
  double* selected_scores() { return scores_.data(); }
  void take_scores();
  /** Scores the remaining candidates; `top` is then the answer, best first. */
  void finish();

  const std::vector<scored_row>& top() const { return top_.rows(); }
  uint64_t rescored_count() const { return rescored_count_; }

 private:
  /** Calls `add(row, lane)` for the survivors of a panel that belong to the view. */
  template <class Add>
  void for_each_survivor(uint32_t view, uint32_t first_row, uint32_t survivors,
                         const Add& add) const;
  void add_survivor(uint32_t view, uint32_t row, const score_bounds& bounds);
  /** Removes so many rows with the best estimates, best first. */
  std::vector<candidate> take_best_estimates(std::vector<candidate>& rows, size_t count) const;
  /** The number of rows to score for a threshold: a few more than k, of one thread or of each of them. */
  size_t scored_for_threshold(uint32_t thread_count) const { return (query_->k + query_->k / 4 + 4) / thread_count + 1; }
  /** Scores the rows whose upper bound reaches the threshold at their turn. */
  void score_in_order(const std::vector<candidate>& rows, proof proves);
  /** Whether scoring the rows left by coarse codes is cheaper than reading their finer codes first. */
  bool is_refinement_slower() const;
  void score_coarse_rows();
  void refine_coarse_rows();
  /** Whether a row with these bounds is below the threshold or before the rank key. */
  bool is_excluded(const score_bounds& bounds) const;
  void raise(double threshold);
  /** Adds a lower bound of a row's score, once per row that comes after the rank key. */
  void prove(double lower);
  void prove_score(double score, proof proves);
  /** Shares what is proven if it is many values. */
  void flush_many();
  void flush_proven();
  /**
   * Offers a row; returns whether it comes after the rank key and reaches the threshold, and so may be in the answer.
   */
  bool offer(const scored_row& row);
  void add_candidate(const candidate& row);
  /** Scores the candidates with the best estimates and drops those that the threshold then excludes. */
  void score_best_candidates(uint32_t thread_count);
  void make_room();
  bool is_below_threshold(const candidate& row) const;
  void drop_below_threshold(std::vector<candidate>& rows) const;

  const search_context* context_ = nullptr;
  const prepared_query* query_ = nullptr;
  shared_bound* bound_ = nullptr;
  scan_query scan_{};
  scan_query coarse_scan_{};
  /** One per basis and level; only the one that was used last has the latest threshold. */
  std::vector<scan_query> head_scans_;
  uint32_t head_scan_ = 0;
  /** The rows that the head tiles scanned last have left. */
  uint64_t head_survivors_ = 0;
  /** The level of head tiles to try next, the rows scanned so far, and those after which they are tried again. */
  uint32_t level_ = 0;
  uint64_t level_rows_ = 0;
  uint64_t level_retry_ = 0;
  uint64_t halving_retry_ = 0;
  /** The number of rows after which the rows with the best estimates are scored. */
  uint64_t next_scored_ = 0;
  std::vector<candidate> coarse_rows_;
  double threshold_ = 0;
  size_t candidates_max_ = 0;
  std::vector<candidate> candidates_;
  /** Candidates being scored together with those of other queries, and their scores. */
  std::vector<candidate> selected_;
  std::vector<double> scores_;
  /** Lower bounds and scores that are not yet part of the shared bound. */
  std::vector<double> proven_;
  std::vector<double> proven_scores_;
  size_t proven_max_ = 0;
  top_rows top_;
  uint64_t rescored_count_ = 0;
};

}  // namespace sagitta
