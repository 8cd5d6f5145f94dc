// Counts the rows that come before rank keys in the order (score descending, id bytes ascending), for one
// query. Threads take ranges of rows:
//
//   scan    the query is encoded in two steps, with 16 bits per value, so that only the rows' residuals are
//           left in the bounds; rows that certainly come after all rank keys are skipped from then on
//   place   the bounds of a row tell how many rank keys it comes before, unless one of them lies between
//   score   rows that their bounds do not place are scored canonically
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "bounds.h"
#include "phase.h"
#include "query_state.h"
#include "shared_work.h"

namespace sagitta {

class count_before : public shared_work {
 public:
  /** The batch has one query, whose k, floor and rank key are not read. */
  count_before(const sagitta_batch& batch, const sagitta_rank_key* rank_keys,
               uint32_t rank_key_count);

  bool work() override;
  /** The number of rows before each rank key, in the order in which the rank keys were given. */
  const std::vector<uint64_t>& counts() const { return counts_; }

 private:
  struct worker {
    /** For each place, the number of rows whose first later rank key is there; see `place_of`. */
    std::vector<uint64_t> counts;
    /** The sums of both steps of the query's codes, [rows of a range]. */
    std::vector<int32_t> sums[2];
    /** For each panel of a range, the rows that may be before the last rank key. */
    std::vector<uint32_t> survivors;
    /** Rows to score, and their scores. */
    std::vector<uint32_t> rows;
    std::vector<double> scores;
  };
  /** Rows from..to of a view. */
  struct view_range {
    uint32_t view;
    uint32_t from;
    uint32_t to;
  };

  void sort_rank_keys(const sagitta_rank_key* rank_keys, uint32_t count);
  void prepare_query(const sagitta_query& query);
  /** Encodes and packs one step of the query. Its test then lets all rows pass. */
  encoded_vector encode_step(uint32_t step, const float* vector, std::vector<int8_t>& codes);
  void cut_ranges();
  bool is_scanned(const view_range& range, uint32_t passing) const;
  uint32_t count_passing(const view_range& range) const;

  void count_range(worker& self, const view_range& range);
  void scan_range(worker& self, const view_range& range);
  /** Places the survivors of a panel of the range by their bounds, or leaves them to be scored. */
  void place_panel(worker& self, const view_range& range, uint32_t panel,
                   const panel_facts& facts) const;
  void score_unplaced(worker& self, uint32_t view) const;
  /** Returns the number of rank keys with a higher score. */
  uint32_t count_above(double score) const;
  /** Returns the number of rank keys that the row does not come before. */
  uint32_t place_of(const scored_row& row) const;
  void add_counts(const worker& self);
  void finish();

  const target* functions_;
  uint32_t dimension_;
  std::vector<sagitta_block> blocks_;
  std::vector<sagitta_block_view> views_;
  /** Scores of the rank keys, best first, followed by −Infinity up to a power of two. */
  std::vector<double> scores_;
  std::vector<std::string> ids_;
  std::vector<uint32_t> origins_;
  /** The query: widened to float64; its codes in two steps; the bounds of their sum. */
  std::vector<double> values_;
  std::vector<uint8_t> packed_[2];
  scan_query scans_[2] = {};
  bounded_query bounds_{};
  /** The scale of the second step divided by that of the first; 0 without a second step. */
  double second_scale_ = 0;
  bool is_scannable_ = false;

  std::vector<view_range> ranges_;
  std::vector<worker> workers_;
  phase counting_;
  std::mutex mutex_;
  std::vector<uint64_t> counts_;
};

}  // namespace sagitta
