// The search of a batch of queries over blocks. Blocks are cut into ranges of rows; any number of
// threads take ranges until none is left.
//
//   plan      per block: which queries scan its codes and which gather their few passing rows
//   scan      range by range: its codes stay in the L2 cache while all queries scan them, so memory is
//             read once per batch; each thread has its own state of each query
//   finish    query by query: states are merged, the remaining candidates are scored exactly
//
// Candidates are scored only after all ranges have been scanned, best upper bound first: by then
// nearly all of them are below the threshold. Where many queries have candidates in the same rows,
// they are scored together, so that values, too, are read once per batch.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "../kernels.h"
#include "basis.h"
#include "costs.h"
#include "phase.h"
#include "query_state.h"
#include "shared_work.h"

namespace sagitta {

/** The maximum number of rows scored together, which stay in the L2 cache. */
inline constexpr uint32_t gathered_rows = 256;

class search : public shared_work {
 public:
  explicit search(const sagitta_batch& batch);

  bool work() override;
  sagitta_hits hits(uint32_t query) const;
  uint32_t query_count() const { return static_cast<uint32_t>(queries_.size()); }

 private:
  enum class method : uint8_t {
    /** Scans the coarse codes. */
    coarse,
    /** Scans the codes together with other queries. */
    tiles,
    /** Scans the codes of the rows that pass, which are copied once for all queries with the same bitmap. */
    packed,
    /** Reads the coarse codes of the rows that pass. */
    coarse_rows,
    /** Scores the rows that pass, because they are few or the block or the query has no codes. */
    gather,
  };
  /** A view of a block and the method that answers its query there. */
  struct planned_view {
    uint32_t query;
    /** Index into the views of the batch. */
    uint32_t view;
    /** The number of rows that pass. */
    uint32_t passing;
    method how;
    /** The estimated time in ns. */
    double cost;
    /** Whether a scan of tiles reads head tiles wherever these leave few rows. */
    bool has_head;
  };
  /** The views of one block, sorted by method and with similar ones next to each other. */
  struct block_plan {
    std::vector<planned_view> views;
    uint32_t row_count;
    row_costs costs;
  };
  /** The progress of a thread with the coarse codes of a query. */
  struct coarse_progress {
    uint64_t row_count = 0;
    /** The number of rows after which estimates are scored again. */
    uint64_t next_review = 0;
    /** Whether the query uses tiles because coarse codes leave too many rows. */
    bool uses_tiles = false;
    bool is_decided = false;
    /** The number of rows after which it is next considered, and the ranges scanned before it is decided. */
    uint64_t next_decision = 0;
    std::vector<row_range> undecided;
  };
  struct alignas(64) cache_line {
    uint8_t bytes[64];
  };
  struct worker {
    std::vector<query_state> states;
    /** For each query, its progress with coarse codes. */
    std::vector<coarse_progress> progress;
    /** The panels of a range that the first half of its head tiles has left, in order. */
    std::vector<uint32_t> left_panels;
    /** Copies of codes: panels of rows that pass a bitmap. */
    std::vector<cache_line> packed;
    /** For each query, how many of its selected candidates are before the next row range. */
    std::vector<uint32_t> cursors;
  };
  struct answer {
    std::vector<uint32_t> views;
    std::vector<uint32_t> rows;
    std::vector<double> scores;
    uint64_t rescored_count = 0;
  };

  void prepare_queries(const sagitta_batch& batch);
  /** Opens the distinct bases of the blocks. */
  void open_bases();
  /** Returns the queries that have a planned view of this kind, in order. */
  template <class IsUsed>
  std::vector<uint32_t> queries_with(const IsUsed& is_used) const;
  /** Encodes the queries that use coarse codes for these. */
  void rotate_queries();
  /** Encodes the queries that use head tiles for these. */
  void project_queries();
  void plan_blocks();
  void choose_methods(block_plan& plan, uint32_t block) const;
  void cut_ranges();
  uint32_t rows_of_range(const block_plan& plan) const;
  void plan_sharing();
  static bool has_method(const block_plan& plan, method how);
  double fraction_of(uint32_t query) const;
  /** The time per row of a scan of head tiles. */
  double head_ns(const block_plan& plan, uint32_t block, uint32_t query) const;

  query_state& state_of(worker& self, uint32_t query);
  coarse_progress& progress_of(worker& self, uint32_t query);
  /** Whether the query continues with the tiles of this block. */
  bool has_left_coarse(worker& self, uint32_t block, uint32_t query);
  void run_range(worker& self, const row_range& range);
  /** Scans the codes for all views for which `is_wanted` returns true, in groups. */
  template <class IsWanted>
  void scan_tiles(worker& self, const row_range& range, const IsWanted& is_wanted);
  void scan_coarse(worker& self, const row_range& range);
  /** The codes of a block that a scan reads. */
  struct scanned_codes {
    /** All dimensions, the first level of coarse codes, a level of head tiles, or one whose panels are only listed. */
    enum { tiles, coarse, head, listed_head } kind;
    /** The level of head tiles. */
    uint32_t level;
    /** The first panel of the block. */
    const uint8_t* panels;
    size_t stride;
    /** The number of codes of a row, and those of the first panel; not read for coarse codes. */
    uint32_t dimension;
    panel_codes codes;
  };
  /** See query_state::choose_level. */
  uint32_t choose_level(worker& self, const row_range& range, const planned_view& one);
  scanned_codes tiles_of(uint32_t block) const;
  scanned_codes coarse_codes_of(uint32_t block) const;
  scanned_codes head_of(uint32_t block, uint32_t level) const;
  row_limits limits_of(const scanned_codes& codes, const row_range& range) const;
  using scan_function = decltype(panel_scan::scan);
  scan_function scan_function_of(const scanned_codes& codes) const;
  scan_query& scan_of(query_state& state, const scanned_codes& codes, uint32_t block) const;
  /** Scans codes for a group of views. */
  void scan_range(worker& self, const row_range& range, const scanned_codes& codes, const row_limits& limits,
                  const planned_view* planned, uint32_t planned_count);
  /** Scans head tiles for a query, of most panels only the first half. */
  void scan_head_in_halves(worker& self, const row_range& range, const planned_view& one);
  /** Raises the query's threshold from time to time, and decides once whether to continue with coarse codes. */
  void review_coarse(worker& self, const row_range& range, const planned_view& one);
  /** Changes to tiles if coarse codes leave too many rows, and scans the earlier ranges again. */
  void decide_method(worker& self, uint32_t query, const block_plan& plan);
  void gather_coarse(worker& self, const row_range& range, const planned_view& one);
  static bool is_gathered(const planned_view& one);
  bool is_gathered_with(const planned_view& left, const planned_view& right) const;
  /** Answers views with the same bitmap from the rows that pass it. */
  void gather_range(worker& self, const row_range& range, const planned_view* same, uint32_t count);
  void score_rows(worker& self, const row_range& range, const uint32_t* rows, uint32_t row_count,
                  const planned_view* same, uint32_t count);
  void scan_rows(worker& self, const row_range& range, const uint32_t* rows, uint32_t row_count,
                 const planned_view* same, uint32_t count);
  /** Copies the codes of rows to consecutive panels. The thread owns them until the next call. */
  uint8_t* pack_rows(worker& self, const uint8_t* panels, const uint32_t* rows, uint32_t row_count) const;
  void refine_all(worker& self);
  void merge_query(uint32_t query);
  /** Scores the candidates of all queries, row range by row range. */
  void score_together(worker& self);
  void score_range(worker& self, const row_range& range);
  void finish_query(uint32_t query);
  /** Records for later searches how many rows coarse codes of single rows have left. */
  void observe_shares() const;
  /** Computes x·x of rows of a block, which are then in the cache. */
  void compute_squares(const float* values, const uint32_t* rows, uint32_t count,
                       double* squares) const;
  void compute_squares(const row_range& range, double* squares) const;

  const target* functions_;
  uint32_t dimension_;
  /** The number of rows scored together: at most `gathered_rows`. */
  uint32_t gathered_rows_;
  std::vector<sagitta_block> blocks_;
  std::vector<sagitta_block_view> views_;
  sagitta_method method_;
  std::vector<prepared_query> queries_;
  std::vector<double> values_;
  std::vector<uint8_t> packed_;
  /** The distinct bases of blocks, and for each block with head tiles the number of its own. */
  std::vector<basis> bases_;
  std::vector<uint32_t> basis_numbers_;
  std::vector<uint8_t> rotated_packed_;
  std::vector<uint8_t> head_packed_;
  search_context context_;
  std::vector<shared_bound> bounds_;
  /** For each query, the number of rows that pass, and of all rows of its views. */
  std::vector<uint64_t> passing_;
  std::vector<uint64_t> searched_;
  std::vector<block_plan> plans_;
  std::vector<row_range> ranges_;
  /** The number of rows in all blocks. */
  uint64_t row_count_ = 0;
  /** Whether there may be enough candidates to score them together. */
  bool may_share_ = false;
  /** The ranges of rows whose candidates are scored together. */
  std::vector<row_range> shared_ranges_;

  std::vector<worker> workers_;
  std::vector<answer> answers_;
  /** For each query, the state that the others have been merged into; null before that, or if there is none. */
  std::vector<query_state*> merged_;
  std::atomic<uint64_t> candidate_count_{0};
  phase scanning_;
  phase merging_;
  struct {
    phase selecting;
    phase scoring;
  } rounds_[2];
  phase taking_;
  phase finishing_;
};

}  // namespace sagitta
