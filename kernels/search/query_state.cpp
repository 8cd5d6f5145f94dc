#include "query_state.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "../layout.h"
#include "canonical.h"
#include "costs.h"
#include "prefetch.h"

namespace sagitta {
namespace {

/** Room for candidates, apart from the spare room that `search_context` gives. */
constexpr size_t candidates_per_k = 8;

/** The time of a scan of head tiles, relative to one of all dimensions, above which it is no gain. */
constexpr double head_gain = 0.95;
/** The share of panels whose first half may leave rows: their second half is read on its own, which takes longer. */
constexpr double halved_share_max = 0.5;
/** Head tiles without a gain are tried again when this many times as many rows have been scanned. */
constexpr uint64_t retried_after = 4;
/** The same of the first half of head tiles, which costs little more where it leaves too many panels. */
constexpr double halved_after = 1.5;
/**
 * The lower bounds of head tiles hardly raise the threshold, so the rows with the best estimates are scored when this
 * many rows have been scanned, at least so many for each of the k best, and again after eight times as many.
 */
constexpr uint64_t head_scored_first = 4096;
constexpr uint64_t head_scored_per_k = 128;
constexpr uint64_t head_scored_after = 8;

/** The ratio of the residuals of the second and first level of coarse codes, on data of any kind. */
constexpr float refinement_ratio = 0.3f;

/** Finer codes are read if at most this share of the rows will still have to be scored. */
constexpr double scored_share_max = 0.55;

/** The number of rows scored between two checks for cancellation. */
constexpr uint32_t scored_together = 64;

/** The number of rows prefetched before they are scored; twelve were slower than four. */
constexpr uint32_t rows_ahead = canonical_rows;

/**
 * Returns the expected score of the k-th best of all rows, given that `rank` of the k best are among these
 * scores of a sample. A sample that is too small is extrapolated by the slope between its best scores, more
 * than linearly in the logarithm of the rank, since the scores of real data have longer tails.
 */
double expected_score(std::vector<double>& scores, double rank) {
  constexpr size_t near = 2;
  constexpr size_t far = 47;
  constexpr double tail = 1.5;
  if (scores.empty()) return std::numeric_limits<double>::infinity();
  const size_t last = std::min(std::max(far, static_cast<size_t>(rank)), scores.size() - 1);
  std::partial_sort(scores.begin(), scores.begin() + static_cast<ptrdiff_t>(last) + 1, scores.end(),
                    std::greater<>());
  if (rank >= near + 1 || last <= near) return scores[std::min(static_cast<size_t>(rank), last)];
  const double slope = (scores[near] - scores[last]) /
                       std::log(static_cast<double>(last + 1) / (near + 1));
  return scores[near] + tail * slope * std::log((near + 1) / rank);
}

/** Returns the upper bound that finer codes will probably give. */
double refined_upper(const candidate& row) {
  return static_cast<double>(row.center + refinement_ratio * (row.upper - row.center));
}

void sort_by_estimate(std::vector<candidate>& rows) {
  std::sort(rows.begin(), rows.end(), [](const candidate& left, const candidate& right) {
    return left.center > right.center;
  });
}

float center_of(const score_bounds& bounds) {
  const double center = bounds.upper == unbounded ? unbounded : (bounds.lower + bounds.upper) / 2;
  return static_cast<float>(center);
}

}  // namespace

void shared_bound::raise(double value) {
  double current = value_.load(std::memory_order_relaxed);
  while (value > current &&
         !value_.compare_exchange_weak(current, value, std::memory_order_relaxed)) {
  }
}

void shared_bound::start(double floor, uint32_t k) {
  value_ = floor;
  lower_bounds_.reset(k);
  scores_.reset(k);
}

void shared_bound::add(const std::vector<double>& lower_bounds, const std::vector<double>& scores) {
  const std::lock_guard lock(mutex_);
  raise(lower_bounds_.add(lower_bounds));
  raise(scores_.add(scores));
}

void query_state::start(const search_context& context, const prepared_query& query,
                        shared_bound& bound, uint64_t rows_max) {
  context_ = &context;
  query_ = &query;
  bound_ = &bound;
  threshold_ = query.floor;
  const auto kept = static_cast<uint32_t>(std::min<uint64_t>(query.k, rows_max));
  candidates_max_ = candidates_per_k * kept + context.candidates_spare;
  proven_max_ = kept / 4;
  top_.reset(kept);
  if (query.is_scannable) {
    scan_ = {create_weights(query), query.packed, query.offset, query.has_after};
    tighten(query, threshold_, scan_);
  }
  head_scans_.clear();
  for (const head_query& head : query.heads) {
    for (uint32_t level = 0; level < head_levels; level++) {
      head_scans_.push_back({create_weights(head.bounds[level]), head.packed, head.offsets[level], query.has_after});
    }
  }
  // A score limit is known from the first row on, and is often so high that few directions exclude most rows.
  level_ = query.floor == -unbounded ? 0 : 1;
  level_rows_ = 0;
  level_retry_ = 0;
  halving_retry_ = 0;
  next_scored_ = std::max(head_scored_first, head_scored_per_k * query.k);
  if (query.rotated.packed != nullptr) {
    coarse_scan_ = {create_weights(query.rotated.bounds), query.rotated.packed, query.rotated.first_offset,
                    query.has_after};
  }
}

scan_query& query_state::current_head_scan(uint32_t basis, uint32_t level) {
  raise(bound_->value());
  head_scan_ = basis * head_levels + level;
  scan_query& scan = head_scans_[head_scan_];
  tighten(query_->heads[basis].bounds[level], threshold_, scan);
  return scan;
}

uint32_t query_state::choose_level(uint32_t basis, uint64_t row_count) {
  level_rows_ += row_count;
  raise(bound_->value());
  // Without a threshold nothing can be excluded.
  const bool is_used = query_->heads[basis].packed != nullptr;
  if (!is_used || threshold_ == -unbounded || level_rows_ < level_retry_) return all_dimensions;
  return level_;
}

void query_state::review_halves(double left) {
  if (left > halved_share_max) halving_retry_ = static_cast<uint64_t>(halved_after * static_cast<double>(level_rows_));
}

void query_state::review_level(uint32_t level, uint64_t row_count, const row_costs& costs) {
  if (level_rows_ >= next_scored_) {
    next_scored_ = head_scored_after * level_rows_;
    score_best_candidates(context_->worker_count);
  }
  const double share = static_cast<double>(std::exchange(head_survivors_, 0)) / static_cast<double>(row_count);
  // A score limit does not rise, so all rows that reach it are scored.
  const bool is_final = threshold_ == query_->floor;
  const double left_ns = share * (is_final ? costs.canonical : head_survivor_ns);
  if (level > 0) {
    // All directions cost twice as much, and leave a fraction.
    if (left_ns > costs.head / 2) level_ = 0;
  } else if (costs.head + left_ns > head_gain * costs.tiles) {
    level_retry_ = retried_after * level_rows_;
  }
}

scan_query& query_state::current_scan() {
  raise(bound_->value());
  return scan_;
}

scan_query& query_state::current_coarse_scan() {
  raise(bound_->value());
  tighten(query_->rotated.bounds, threshold_, coarse_scan_);
  return coarse_scan_;
}

template <class Add>
void query_state::for_each_survivor(uint32_t view, uint32_t first_row, uint32_t survivors,
                                    const Add& add) const {
  const sagitta_block_view& searched = context_->views[view];
  for (; survivors != 0; survivors &= survivors - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(survivors));
    const uint32_t row = first_row + lane;
    if (row >= searched.row_count) return;
    if (searched.rows != nullptr && (searched.rows[row / 32] >> (row % 32) & 1) == 0) continue;
    add(row, lane);
  }
}

bool query_state::is_excluded(const score_bounds& bounds) const {
  if (bounds.upper < threshold_) return true;
  return query_->has_after && bounds.lower > query_->after_score;
}

void query_state::add_survivors(uint32_t view, uint32_t first_row, uint32_t survivors,
                                const int32_t* sums, const panel_facts& facts) {
  for_each_survivor(view, first_row, survivors, [&](uint32_t row, uint32_t lane) {
    add_survivor(view, row, bounds_of(*query_, sums[lane], facts, lane));
  });
}

void query_state::add_head_survivors(uint32_t view, uint32_t first_row, uint32_t survivors,
                                     const int32_t* sums, const panel_facts& facts) {
  const bounded_query& query = query_->heads[head_scan_ / head_levels].bounds[head_scan_ % head_levels];
  for_each_survivor(view, first_row, survivors, [&](uint32_t row, uint32_t lane) {
    head_survivors_++;
    add_survivor(view, row, bounds_of(query, sums[lane], facts, lane));
  });
}

void query_state::add_packed_survivors(uint32_t view, const uint32_t* rows, uint32_t survivors,
                                       const int32_t* sums, const panel_facts& facts) {
  for (; survivors != 0; survivors &= survivors - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(survivors));
    add_survivor(view, rows[lane], bounds_of(*query_, sums[lane], facts, lane));
  }
}

void query_state::add_survivor(uint32_t view, uint32_t row, const score_bounds& bounds) {
  if (is_excluded(bounds)) return;
  add_candidate({center_of(bounds), round_up(bounds.upper), view, row});
  // Only rows that certainly come after the rank key prove anything about the k-th best. Rows below
  // the floor prove nothing either, but they cannot raise a threshold that starts at the floor.
  if (!query_->has_after || bounds.upper < query_->after_score) prove(bounds.lower);
}

void query_state::add_coarse_survivors(uint32_t view, uint32_t first_row, uint32_t survivors,
                                       const int32_t* sums, const panel_facts& facts) {
  for_each_survivor(view, first_row, survivors, [&](uint32_t row, uint32_t lane) {
    add_coarse_row(view, row, sums[lane], facts_of(facts, lane));
  });
}

void query_state::add_coarse_row(uint32_t view, uint32_t row, int32_t sum, const row_facts& facts) {
  const score_bounds bounds = bounds_of(query_->rotated.bounds, sum, facts);
  if (is_excluded(bounds)) return;
  coarse_rows_.push_back({center_of(bounds), round_up(bounds.upper), view, row});
}

void query_state::score_best_estimates(bool is_provisional) {
  drop_below_threshold(coarse_rows_);
  score_in_order(take_best_estimates(coarse_rows_, scored_for_threshold(1)), is_provisional ? proof::none : proof::all);
}

/** The remaining rows keep their order. Rows before the rank key would not raise the threshold. */
std::vector<candidate> query_state::take_best_estimates(std::vector<candidate>& rows, size_t count) const {
  const auto may_raise = [this](const candidate& row) {
    const auto center = static_cast<double>(row.center);
    return center >= threshold_ && !(query_->has_after && center > query_->after_score);
  };
  std::vector<float> centers;
  centers.reserve(rows.size());
  for (const candidate& row : rows) {
    if (may_raise(row)) centers.push_back(row.center);
  }
  float least = -std::numeric_limits<float>::infinity();
  if (centers.size() > count) {
    const auto last = centers.begin() + static_cast<ptrdiff_t>(count);
    std::nth_element(centers.begin(), last, centers.end(), std::greater<>());
    least = *last;
  }
  std::vector<candidate> best;
  best.reserve(std::min(count, centers.size()));
  std::erase_if(rows, [&](const candidate& row) {
    if (best.size() == count || row.center < least || !may_raise(row)) return false;
    best.push_back(row);
    return true;
  });
  sort_by_estimate(best);
  return best;
}

void query_state::score_in_order(const std::vector<candidate>& rows, proof proves) {
  size_t fetched = 0;
  for (size_t next = 0; next < rows.size();) {
    if (context_->is_cancelled->load(std::memory_order_relaxed)) return;
    const size_t ahead = std::min(rows.size(), next + canonical_rows + rows_ahead);
    for (; fetched < ahead; fetched++) {
      const candidate& row = rows[fetched];
      if (is_below_threshold(row)) continue;
      const sagitta_block& block = context_->blocks[context_->views[row.view].block];
      prefetch_row(block.values + size_t{row.row} * context_->dimension, context_->dimension);
    }
    uint32_t together[canonical_rows];
    uint32_t count = 0;
    const uint32_t view = rows[next].view;
    for (; count < canonical_rows && next < rows.size() && rows[next].view == view; next++) {
      if (!is_below_threshold(rows[next])) together[count++] = rows[next].row;
    }
    score(view, together, count, nullptr, proves);
  }
}

void query_state::forget(const std::vector<row_range>& ranges) {
  const auto is_inside = [&](const auto& row) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const row_range& range) {
      return context_->views[row.view].block == range.block && row.row >= range.from &&
             row.row < range.to;
    });
  };
  std::erase_if(coarse_rows_, is_inside);
  top_.erase_if(is_inside, context_->order());
}

expected_shares query_state::expect(uint64_t row_count, uint64_t total) const {
  std::vector<double> scores;
  for (const scored_row& row : top_.rows()) scores.push_back(row.score);
  for (const candidate& row : coarse_rows_) scores.push_back(static_cast<double>(row.center));
  const double rank = static_cast<double>(query_->k) * static_cast<double>(row_count) /
                      static_cast<double>(total);
  const double expected = expected_score(scores, rank);
  uint64_t refined = 0;
  uint64_t scored = 0;
  for (const candidate& row : coarse_rows_) {
    refined += static_cast<double>(row.upper) >= expected;
    scored += !(refined_upper(row) < expected);
  }
  const auto count = static_cast<double>(row_count);
  return {static_cast<double>(refined) / count, static_cast<double>(scored) / count};
}

bool query_state::is_below_threshold(const candidate& row) const {
  return static_cast<double>(row.upper) < threshold_;
}

void query_state::drop_below_threshold(std::vector<candidate>& rows) const {
  std::erase_if(rows, [threshold = threshold_](const candidate& row) {
    return static_cast<double>(row.upper) < threshold;
  });
}

void query_state::refine() {
  flush_proven();
  if (coarse_rows_.empty()) return;
  score_best_estimates();
  drop_below_threshold(coarse_rows_);
  if (is_refinement_slower()) score_coarse_rows();
  else refine_coarse_rows();
  coarse_rows_.clear();
}

bool query_state::is_refinement_slower() const {
  const auto scored = std::count_if(
      coarse_rows_.begin(), coarse_rows_.end(),
      [this](const candidate& row) { return !(refined_upper(row) < threshold_); });
  return static_cast<double>(scored) > scored_share_max * static_cast<double>(coarse_rows_.size());
}

void query_state::score_coarse_rows() {
  for (auto next = coarse_rows_.begin(); next != coarse_rows_.end();) {
    if (context_->is_cancelled->load(std::memory_order_relaxed)) return;
    uint32_t rows[scored_together];
    uint32_t count = 0;
    const uint32_t view = next->view;
    for (; count < scored_together && next != coarse_rows_.end() && next->view == view; ++next) {
      rows[count++] = next->row;
    }
    score(view, rows, count);
  }
}

void query_state::refine_coarse_rows() {
  const uint32_t dimension = context_->dimension;
  const size_t coarse_stride = coarse_panel_bytes(dimension);
  const size_t refinement_stride = refinement_panel_bytes(dimension);
  const uint32_t row_bytes = coarse_row_bytes(dimension);
  const projected_query& rotated = query_->rotated;
  const coarse_query query = {rotated.packed, rotated.second_offset, dimension};
  const auto coarse_panel_of = [&](const candidate& row) {
    const sagitta_block& block = context_->blocks[context_->views[row.view].block];
    return block.coarse + row.row / panel_rows * coarse_stride;
  };
  const auto refinement_panel_of = [&](const candidate& row) {
    const sagitta_block& block = context_->blocks[context_->views[row.view].block];
    return block.refinement + row.row / panel_rows * refinement_stride;
  };
  const auto prefetch_codes = [&](const candidate& row) {
    const uint32_t lane = row.row % panel_rows;
    const uint8_t* const refinement = refinement_panel_of(row);
    prefetch_bytes(refinement + lane * sizeof(float) * 2, 1);
    prefetch_bytes(refinement + sizeof(refined_facts) + lane * row_bytes, row_bytes);
    const uint8_t* const coarse = coarse_panel_of(row);
    prefetch_bytes(coarse + offsetof(panel_facts, norm), 1);
    prefetch_bytes(coarse + offsetof(panel_facts, square), 1);
    prefetch_bytes(coarse + fact_bytes + lane * row_bytes, row_bytes);
  };
  size_t fetched = 0;
  for (size_t at = 0; at < coarse_rows_.size();) {
    if (context_->is_cancelled->load(std::memory_order_relaxed)) break;
    for (; fetched < std::min(coarse_rows_.size(), at + 2 * panel_rows); fetched++) {
      prefetch_codes(coarse_rows_[fetched]);
    }
    const candidate* rows[panel_rows];
    const uint8_t* coarse[panel_rows];
    const uint8_t* refinement[panel_rows];
    uint32_t count = 0;
    for (; at < coarse_rows_.size() && count < panel_rows; at++) {
      const candidate& row = coarse_rows_[at];
      if (is_below_threshold(row)) continue;
      const uint32_t lane = row.row % panel_rows;
      rows[count] = &row;
      coarse[count] = coarse_panel_of(row) + fact_bytes + lane * row_bytes;
      refinement[count] = refinement_panel_of(row) + sizeof(refined_facts) + lane * row_bytes;
      count++;
    }
    int32_t sums[panel_rows];
    context_->functions->refined_sums(query, coarse, refinement, count, sums);
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t lane = rows[i]->row % panel_rows;
      row_facts facts =
          facts_of(*reinterpret_cast<const panel_facts*>(coarse_panel_of(*rows[i])), lane);
      const auto& refined =
          reinterpret_cast<const refined_facts*>(refinement_panel_of(*rows[i]))->row[lane];
      facts.scale = refined.scale;
      facts.residual = refined.residual;
      const score_bounds bounds = bounds_of(rotated.bounds, sums[i], facts);
      const bool is_likely = bounds.lower + bounds.upper >= 2 * threshold_ &&
                             !(query_->has_after && bounds.lower + bounds.upper >
                                                        2 * query_->after_score);
      if (is_likely && !is_excluded(bounds)) score(rows[i]->view, &rows[i]->row, 1);
      else add_survivor(rows[i]->view, rows[i]->row, bounds);
    }
  }
}

void query_state::scores_of(uint32_t view, const uint32_t* rows, uint32_t count,
                            const double* squares, double* scores) const {
  const sagitta_block& block = context_->blocks[context_->views[view].block];
  const size_t dimension = context_->dimension;
  const float* values[canonical_rows];
  double products[canonical_rows];
  double computed[canonical_rows];
  for (uint32_t i = 0; i < count; i++) values[i] = block.values + rows[i] * dimension;
  context_->functions->products(query_->values, context_->dimension, values, count, products,
                                squares == nullptr ? computed : nullptr);
  if (squares == nullptr) squares = computed;
  for (uint32_t i = 0; i < count; i++) {
    scores[i] = canonical_score(query_->metric, products[i], query_->square, squares[i]);
  }
}

void query_state::score(uint32_t view, const uint32_t* rows, uint32_t count,
                        const double* squares, proof proves) {
  const sagitta_block& block = context_->blocks[context_->views[view].block];
  const size_t dimension = context_->dimension;
  uint32_t fetched = canonical_rows;
  for (uint32_t first = 0; first < count; first += canonical_rows) {
    const uint32_t together = std::min(count - first, canonical_rows);
    // Rows whose squares are known have just been read.
    const uint32_t ahead = squares != nullptr ? 0 : std::min(count, first + together + rows_ahead);
    for (; fetched < ahead; fetched++) {
      prefetch_row(block.values + rows[fetched] * dimension, dimension);
    }
    double scores[canonical_rows];
    scores_of(view, rows + first, together, squares == nullptr ? nullptr : squares + first, scores);
    for (uint32_t i = 0; i < together; i++) {
      if (offer({scores[i], view, rows[first + i]})) prove_score(scores[i], proves);
    }
  }
  rescored_count_ += count;
}

bool query_state::offer(const scored_row& row) {
  if (row.score < threshold_) return false;
  const row_order order = context_->order();
  if (query_->has_after &&
      !order.is_after(row, query_->after_score, query_->after_id.data(),
                      static_cast<uint32_t>(query_->after_id.size()))) {
    return false;
  }
  top_.offer(row, order);
  if (top_.is_full() && !top_.rows().empty()) raise(top_.worst().score);
  return true;
}

void query_state::prove(double lower) {
  if (!(lower > threshold_)) return;
  proven_.push_back(lower);
  flush_many();
}

void query_state::prove_score(double score, proof proves) {
  if (proves == proof::none || !(score > threshold_)) return;
  proven_scores_.push_back(score);
  if (proves == proof::all) proven_.push_back(score);
  flush_many();
}

/** Takes the lock and selects the best only once for several values. */
void query_state::flush_many() {
  if (proven_.size() + proven_scores_.size() > proven_max_) flush_proven();
}

void query_state::flush_proven() {
  if (!proven_.empty() || !proven_scores_.empty()) bound_->add(proven_, proven_scores_);
  proven_.clear();
  proven_scores_.clear();
  raise(bound_->value());
}

void query_state::raise(double threshold) {
  if (!(threshold > threshold_)) return;
  threshold_ = threshold;
  bound_->raise(threshold);
  if (query_->is_scannable) tighten(*query_, threshold, scan_);
  if (!head_scans_.empty()) {
    const head_query& head = query_->heads[head_scan_ / head_levels];
    tighten(head.bounds[head_scan_ % head_levels], threshold, head_scans_[head_scan_]);
  }
  if (query_->rotated.packed != nullptr) tighten(query_->rotated.bounds, threshold, coarse_scan_);
}

void query_state::add_candidate(const candidate& row) {
  if (candidates_.size() == candidates_max_) make_room();
  candidates_.push_back(row);
}

void query_state::score_best_candidates(uint32_t thread_count) {
  raise(bound_->value());
  drop_below_threshold(candidates_);
  score_in_order(take_best_estimates(candidates_, scored_for_threshold(thread_count)), proof::score);
  flush_proven();
  drop_below_threshold(candidates_);
}

/** Rows with low estimates are kept as long as possible: a later threshold will probably exclude them. */
void query_state::make_room() {
  const size_t kept = candidates_max_ / 2;
  raise(bound_->value());
  drop_below_threshold(candidates_);
  if (candidates_.size() <= kept) return;
  score_best_candidates(1);
  if (candidates_.size() <= kept) return;
  sort_by_estimate(candidates_);
  const auto first_kept = candidates_.end() - static_cast<ptrdiff_t>(kept);
  score_in_order({candidates_.begin(), first_kept}, proof::score);
  candidates_.erase(candidates_.begin(), first_kept);
}

/** The scores of the best estimates raise the threshold, so that it excludes most of the other candidates. */
void query_state::rescore() {
  raise(bound_->value());
  drop_below_threshold(candidates_);
  score_in_order(take_best_estimates(candidates_, scored_for_threshold(1)), proof::score);
  flush_proven();
  drop_below_threshold(candidates_);
  sort_by_estimate(candidates_);
  score_in_order(candidates_, proof::score);
  flush_proven();
  candidates_.clear();
}

void query_state::merge(query_state& other) {
  for (const scored_row& row : other.top_.rows()) offer(row);
  candidates_.insert(candidates_.end(), other.candidates_.begin(), other.candidates_.end());
  rescored_count_ += other.rescored_count_;
  other.candidates_ = {};
  other.top_.release();
}

size_t query_state::count_candidates() {
  raise(bound_->value());
  drop_below_threshold(candidates_);
  return candidates_.size();
}

void query_state::select_candidates(bool is_last) {
  drop_below_threshold(candidates_);
  if (is_last) selected_.swap(candidates_);
  else selected_ = take_best_estimates(candidates_, scored_for_threshold(1));
  const auto is_earlier = [this](const candidate& left, const candidate& right) {
    const uint32_t left_block = context_->views[left.view].block;
    const uint32_t right_block = context_->views[right.view].block;
    return left_block != right_block ? left_block < right_block : left.row < right.row;
  };
  // A thread meets rows in this order, so the lists of two threads form two sorted runs.
  const auto second = std::is_sorted_until(selected_.begin(), selected_.end(), is_earlier);
  if (std::is_sorted(second, selected_.end(), is_earlier)) {
    std::inplace_merge(selected_.begin(), second, selected_.end(), is_earlier);
  } else {
    std::sort(selected_.begin(), selected_.end(), is_earlier);
  }
  scores_.resize(selected_.size());
}

void query_state::take_scores() {
  for (size_t i = 0; i < selected_.size(); i++) {
    offer({scores_[i], selected_[i].view, selected_[i].row});
  }
  rescored_count_ += selected_.size();
  selected_.clear();
}

void query_state::finish() {
  rescore();
  top_.sort(context_->order());
  candidates_ = {};
  selected_ = {};
  scores_ = {};
}

}  // namespace sagitta
