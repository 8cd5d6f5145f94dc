#include "query_state.h"

#include <algorithm>

#include "../layout.h"
#include "canonical.h"

namespace sagitta {
namespace {

/** Room for candidates beside four times k. More room prunes more and costs memory. */
constexpr size_t candidates_spare = 1024;

/** Rows that are prefetched before they are scored: twelve were slower than four. */
constexpr uint32_t rows_ahead = canonical_rows;

/** Rows are scattered in memory and longer than what the hardware prefetches. */
void prefetch(const float* row, size_t dimension) {
  constexpr size_t line_floats = 16;
  for (size_t i = 0; i < dimension; i += line_floats) __builtin_prefetch(row + i);
}

}  // namespace

void shared_bound::raise(double value) {
  double current = value_.load(std::memory_order_relaxed);
  while (value > current &&
         !value_.compare_exchange_weak(current, value, std::memory_order_relaxed)) {
  }
}

void query_state::start(const search_context& context, const prepared_query& query,
                        shared_bound& bound, uint64_t rows_max) {
  context_ = &context;
  query_ = &query;
  bound_ = &bound;
  threshold_ = query.floor;
  const auto kept = static_cast<uint32_t>(std::min<uint64_t>(query.k, rows_max));
  candidates_max_ = 4 * size_t{kept} + candidates_spare;
  lower_bounds_.reset(kept);
  top_.reset(kept);
  if (query.is_scannable) {
    scan_ = {create_weights(query), query.packed, query.offset, query.has_after};
    tighten(query, threshold_, scan_);
  }
}

scan_query& query_state::current_scan() {
  raise(bound_->value());
  return scan_;
}

void query_state::add_survivors(uint32_t view, uint32_t first_row, uint32_t survivors,
                           const int32_t* sums, const panel_facts& facts) {
  const sagitta_block_view& searched = context_->views[view];
  for (; survivors != 0; survivors &= survivors - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(survivors));
    const uint32_t row = first_row + lane;
    if (row >= searched.row_count) return;
    if (searched.rows != nullptr && (searched.rows[row / 32] >> (row % 32) & 1) == 0) continue;
    const score_bounds bounds = bounds_of(*query_, sums[lane], facts, lane);
    if (bounds.upper < threshold_) continue;
    if (query_->has_after && bounds.lower > query_->after_score) continue;
    add_candidate({bounds.upper, view, row});
    // Only rows that certainly come after the position prove anything about the k-th best. Rows below
    // the floor prove nothing either, but they cannot raise a threshold that starts at the floor.
    if (!query_->has_after || bounds.upper < query_->after_score) {
      lower_bounds_.add(bounds.lower);
      if (lower_bounds_.is_full()) raise(lower_bounds_.smallest());
    }
  }
}

void query_state::score(uint32_t view, const uint32_t* rows, uint32_t count) {
  const sagitta_block& block = context_->blocks[context_->views[view].block];
  const size_t dimension = context_->dimension;
  uint32_t fetched = canonical_rows;
  for (uint32_t first = 0; first < count; first += canonical_rows) {
    const uint32_t together = std::min(count - first, canonical_rows);
    const float* values[canonical_rows];
    double products[canonical_rows];
    double squares[canonical_rows];
    for (uint32_t i = 0; i < together; i++) values[i] = block.values + rows[first + i] * dimension;
    const uint32_t ahead = std::min(count, first + together + rows_ahead);
    for (; fetched < ahead; fetched++) {
      prefetch(block.values + rows[fetched] * dimension, dimension);
    }
    context_->functions->products(query_->values, context_->dimension, values, together, products,
                                  squares);
    for (uint32_t i = 0; i < together; i++) {
      const double score =
          canonical_score(query_->metric, products[i], query_->square, squares[i]);
      offer({score, view, rows[first + i]});
    }
  }
  rescored_count_ += count;
}

void query_state::offer(const scored_row& row) {
  if (row.score < threshold_) return;
  const row_order order = context_->order();
  if (query_->has_after &&
      !order.is_after(row, query_->after_score, query_->after_id.data(),
                      static_cast<uint32_t>(query_->after_id.size()))) {
    return;
  }
  top_.offer(row, order);
  if (top_.is_full() && !top_.rows().empty()) raise(top_.worst().score);
}

void query_state::raise(double threshold) {
  if (!(threshold > threshold_)) return;
  threshold_ = threshold;
  bound_->raise(threshold);
  if (query_->is_scannable) tighten(*query_, threshold, scan_);
}

void query_state::add_candidate(const candidate& row) {
  if (candidates_.size() == candidates_max_) {
    drop_below_threshold();
    // The bounds are too close together to decide: score the candidates.
    if (candidates_.size() > candidates_max_ / 2) rescore();
  }
  candidates_.push_back(row);
}

void query_state::drop_below_threshold() {
  std::erase_if(candidates_, [this](const candidate& row) { return row.upper < threshold_; });
}

/** Best upper bound first, so that the threshold rises early and excludes most of the rest. */
void query_state::rescore() {
  std::sort(candidates_.begin(), candidates_.end(),
            [](const candidate& left, const candidate& right) { return left.upper > right.upper; });
  size_t fetched = 0;
  for (size_t next = 0; next < candidates_.size() && candidates_[next].upper >= threshold_;) {
    if (context_->is_cancelled->load(std::memory_order_relaxed)) break;
    const size_t ahead = std::min(candidates_.size(), next + canonical_rows + rows_ahead);
    for (; fetched < ahead && candidates_[fetched].upper >= threshold_; fetched++) {
      const candidate& row = candidates_[fetched];
      const sagitta_block& block = context_->blocks[context_->views[row.view].block];
      prefetch(block.values + size_t{row.row} * context_->dimension, context_->dimension);
    }
    const uint32_t view = candidates_[next].view;
    uint32_t rows[canonical_rows];
    uint32_t count = 0;
    for (; count < canonical_rows && next < candidates_.size(); next++, count++) {
      const candidate& row = candidates_[next];
      if (row.view != view || row.upper < threshold_) break;
      rows[count] = row.row;
    }
    score(view, rows, count);
  }
  candidates_.clear();
}

void query_state::merge(query_state& other) {
  for (const double value : other.lower_bounds_.values()) lower_bounds_.add(value);
  if (lower_bounds_.is_full() && !lower_bounds_.values().empty()) raise(lower_bounds_.smallest());
  for (const scored_row& row : other.top_.rows()) offer(row);
  candidates_.insert(candidates_.end(), other.candidates_.begin(), other.candidates_.end());
  rescored_count_ += other.rescored_count_;
  other.candidates_ = {};
  other.lower_bounds_.release();
  other.top_.release();
}

void query_state::finish() {
  raise(bound_->value());
  drop_below_threshold();
  rescore();
  top_.sort(context_->order());
  candidates_ = {};
  lower_bounds_.release();
}

}  // namespace sagitta
