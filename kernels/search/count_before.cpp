#include "count_before.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "../layout.h"
#include "costs.h"
#include "passing.h"
#include "prepared_query.h"
#include "row_scores.h"

namespace sagitta {
namespace {

/** Codes are scanned if more than one row in this many passes: scoring the passing rows would cost as much. */
constexpr uint32_t rows_per_scored = 15;

/** The cost of placing a row by its bounds, in nanoseconds. */
constexpr double placed_row_ns = 10;

constexpr double infinity = __builtin_huge_val();

/** The test that every row passes. */
constexpr scan_weights all_pass = {0, 0, 0, -__builtin_huge_valf(), 0, 0, 0};

}  // namespace

count_before::count_before(const sagitta_batch& batch, const sagitta_rank_key* rank_keys,
                           uint32_t rank_key_count)
    : functions_(&selected_target()),
      dimension_(batch.dimension),
      blocks_(batch.blocks, batch.blocks + batch.block_count),
      views_(batch.views + batch.queries->first_view,
             batch.views + batch.queries->first_view + batch.queries->view_count),
      workers_(batch.worker_count) {
  sort_rank_keys(rank_keys, rank_key_count);
  prepare_query(*batch.queries);
  cut_ranges();
}

void count_before::sort_rank_keys(const sagitta_rank_key* rank_keys, uint32_t count) {
  const auto id_of = [&](uint32_t i) {
    return std::string(reinterpret_cast<const char*>(rank_keys[i].id), rank_keys[i].id_bytes);
  };
  origins_.resize(count);
  std::iota(origins_.begin(), origins_.end(), 0u);
  std::sort(origins_.begin(), origins_.end(), [&](uint32_t left, uint32_t right) {
    const double left_score = rank_keys[left].score;
    const double right_score = rank_keys[right].score;
    return left_score != right_score ? left_score > right_score : id_of(left) < id_of(right);
  });
  for (const uint32_t origin : origins_) {
    scores_.push_back(rank_keys[origin].score);
    ids_.push_back(id_of(origin));
  }
  // One extra element, so that the binary search ends at the last rank key or behind it.
  size_t padded = 1;
  while (padded < size_t{count} + 1) padded *= 2;
  scores_.resize(padded, -infinity);
  counts_.resize(count);
}

encoded_vector count_before::encode_step(uint32_t step, const float* vector,
                                         std::vector<int8_t>& codes) {
  const uint32_t steps = step_count(dimension_);
  const encoded_vector encoded = functions_->encode_query(vector, dimension_, codes.data());
  packed_[step].resize(size_t{steps} * functions_->tiles.query_step_bytes);
  functions_->tiles.pack_query(codes.data(), steps, packed_[step].data());
  scans_[step] = {all_pass, packed_[step].data(), static_cast<int32_t>(-128 * encoded.code_sum),
                  false};
  return encoded;
}

/**
 * q ≈ t·b + t₂·b₂, where b₂ are the codes of q − t·b, rounded to float32. This rounding moves a value by
 * less than 2^-24 of half of t, and with it q by less than 2^-18·t: the slack of bounds.h, at least
 * 2^-16·127·t, covers it.
 */
void count_before::prepare_query(const sagitta_query& query) {
  values_.assign(query.vector, query.vector + dimension_);
  bounds_.metric = query.metric;
  const float* const row = query.vector;
  double product = 0;
  functions_->products(values_.data(), dimension_, &row, 1, &product, &bounds_.square);
  bounds_.length = std::sqrt(bounds_.square);
  is_scannable_ = bounds_.length >= length_min && bounds_.length <= length_max;
  if (!is_scannable_ || origins_.empty()) return;

  std::vector<int8_t> codes(size_t{step_count(dimension_)} * step_dimensions);
  const encoded_vector first = encode_step(0, query.vector, codes);
  set_codes(bounds_, first);
  static_cast<scan_weights&>(scans_[0]) = create_weights(bounds_);
  tighten(bounds_, scores_[origins_.size() - 1], scans_[0]);
  if (first.residual < length_min) return;

  std::vector<float> rest(dimension_);
  for (uint32_t i = 0; i < dimension_; i++) {
    rest[i] = static_cast<float>(values_[i] - static_cast<double>(first.scale) * codes[i]);
  }
  const encoded_vector second = encode_step(1, rest.data(), codes);
  second_scale_ = static_cast<double>(second.scale) / bounds_.scale;
  bounds_.residual = second.residual / bounds_.scale * (1 + 0x1p-40);
  bounds_.code_length = bounds_.length / bounds_.scale * (1 + 0x1p-40) + bounds_.residual;
}

void count_before::cut_ranges() {
  uint64_t row_count = 0;
  for (const sagitta_block_view& view : views_) row_count += view.row_count;
  const uint64_t balanced = row_count / (uint64_t{ranges_per_worker} * workers_.size());
  const uint64_t fitting = range_bytes / (panel_bytes(dimension_) / panel_rows);
  const uint64_t wanted = std::min(balanced, fitting) / range_alignment;
  const auto range_rows = static_cast<uint32_t>(std::max<uint64_t>(1, wanted) * range_alignment);
  for (uint32_t view = 0; view < views_.size(); view++) {
    for (uint32_t from = 0; from < views_[view].row_count; from += range_rows) {
      const view_range range = {view, from, std::min(views_[view].row_count, from + range_rows)};
      const uint32_t passing = count_passing(range);
      if (passing == 0) continue;
      ranges_.push_back(range);
      const double scanned_ns =
          (range.to - range.from) * (dimension_ * code_memory_ns + placed_row_ns);
      const double scored_ns =
          passing * (dimension_ * (value_memory_ns + value_product_ns) + canonical_row_ns);
      cost_ += is_scanned(range, passing) ? scanned_ns : scored_ns;
    }
  }
}

uint32_t count_before::count_passing(const view_range& range) const {
  const uint32_t* const rows = views_[range.view].rows;
  const uint32_t count = range.to - range.from;
  return rows == nullptr ? count : functions_->count_bits(rows + range.from / 32, count);
}

bool count_before::is_scanned(const view_range& range, uint32_t passing) const {
  if (!is_scannable_ || blocks_[views_[range.view].block].codes == nullptr) return false;
  return passing * rows_per_scored > range.to - range.from;
}

bool count_before::work() {
  const uint32_t slot = next_worker_.fetch_add(1);
  if (slot >= workers_.size()) return false;
  worker& self = workers_[slot];
  const auto range_count = static_cast<uint32_t>(origins_.empty() ? 0 : ranges_.size());
  const bool is_last = counting_.take(
      range_count, [&](uint32_t range) { guard([&] { count_range(self, ranges_[range]); }); },
      [&] { add_counts(self); });
  if (!is_last && !(range_count == 0 && slot == 0)) return false;
  guard([&] { finish(); });
  is_done_ = true;
  return true;
}

void count_before::count_range(worker& self, const view_range& range) {
  const sagitta_block_view& view = views_[range.view];
  if (self.counts.empty()) self.counts.resize(origins_.size() + 1);
  if (is_scanned(range, count_passing(range))) {
    scan_range(self, range);
  } else {
    for_each_row(range.from, range.to, view, [&](uint32_t row) { self.rows.push_back(row); });
  }
  score_unplaced(self, range.view);
}

/** The sums of both steps are stored for all panels before rows are placed. */
void count_before::scan_range(worker& self, const view_range& range) {
  const size_t stride = panel_bytes(dimension_);
  const uint32_t panels = panel_count(range.to - range.from);
  self.survivors.assign(panels, 0);
  for (std::vector<int32_t>& sums : self.sums) sums.resize(size_t{panels} * panel_rows);
  scan_query* queries[] = {&scans_[0], &scans_[1]};
  scan_task task{};
  task.panels = blocks_[views_[range.view].block].codes + range.from / panel_rows * stride;
  task.panel_count = panels;
  task.stride = stride;
  task.codes = {task.panels + fact_bytes, nullptr};
  task.dimension = dimension_;
  task.limits = functions_->limit_rows(task.panels, stride, range.to - range.from);
  task.queries = queries;
  task.query_count = second_scale_ == 0 ? 1 : 2;
  task.context = &self;
  task.emit = [](void* opaque, uint32_t step, uint32_t panel, uint32_t survivors,
                 const int32_t* sums) {
    worker& known = *static_cast<worker*>(opaque);
    if (step == 0) known.survivors[panel] = survivors;
    std::memcpy(known.sums[step].data() + size_t{panel} * panel_rows, sums,
                panel_rows * sizeof(int32_t));
  };
  functions_->tiles.scan(task);
  for (uint32_t panel = 0; panel < panels; panel++) {
    if (self.survivors[panel] == 0) continue;
    const auto& facts = *reinterpret_cast<const panel_facts*>(task.panels + panel * stride);
    place_panel(self, range, panel, facts);
  }
}

void count_before::place_panel(worker& self, const view_range& range, uint32_t panel,
                               const panel_facts& facts) const {
  const uint32_t first_row = range.from + panel * panel_rows;
  const int32_t* const first = self.sums[0].data() + size_t{panel} * panel_rows;
  const int32_t* const second = self.sums[1].data() + size_t{panel} * panel_rows;
  uint32_t survivors = self.survivors[panel] & passing_of_panel(views_[range.view], first_row);
  for (; survivors != 0; survivors &= survivors - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(survivors));
    const score_bounds bounds = bounds_of(bounds_, first[lane] + second_scale_ * second[lane],
                                          facts_of(facts, lane));
    const uint32_t above = count_above(bounds.upper);
    // The next rank key's score is not above the upper bound.
    const bool is_placed = above == origins_.size() || scores_[above] < bounds.lower;
    if (is_placed) self.counts[above]++;
    else self.rows.push_back(first_row + lane);
  }
}

/** Branch-free, because where rows fall among the rank keys cannot be predicted. */
uint32_t count_before::count_above(double score) const {
  size_t count = 0;
  for (size_t half = scores_.size() / 2; half > 0; half /= 2) {
    count += half * static_cast<size_t>(scores_[count + half - 1] > score);
  }
  return static_cast<uint32_t>(count);
}

void count_before::score_unplaced(worker& self, uint32_t view) const {
  self.scores.resize(self.rows.size());
  const scored_vector query = {values_.data(), bounds_.square};
  score_rows(*functions_,
             row_scoring{blocks_[views_[view].block].values, dimension_, bounds_.metric, &query, 1,
                         self.rows.data(), static_cast<uint32_t>(self.rows.size()), nullptr},
             self.scores.data());
  for (size_t i = 0; i < self.rows.size(); i++) {
    self.counts[place_of({self.scores[i], view, self.rows[i]})]++;
  }
  self.rows.clear();
}

uint32_t count_before::place_of(const scored_row& row) const {
  const row_order order = {blocks_.data(), views_.data()};
  uint32_t from = 0;
  for (auto to = static_cast<uint32_t>(origins_.size()); from < to;) {
    const uint32_t middle = from + (to - from) / 2;
    const auto* const id = reinterpret_cast<const uint8_t*>(ids_[middle].data());
    const auto id_bytes = static_cast<uint32_t>(ids_[middle].size());
    if (order.is_before(row, scores_[middle], id, id_bytes)) to = middle;
    else from = middle + 1;
  }
  return from;
}

void count_before::add_counts(const worker& self) {
  if (self.counts.empty()) return;
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < counts_.size(); i++) counts_[i] += self.counts[i];
}

/** A row comes before the rank key at its place and before all later ones. */
void count_before::finish() {
  std::vector<uint64_t> counts(counts_.size());
  uint64_t sum = 0;
  for (size_t place = 0; place < counts.size(); place++) {
    sum += counts_[place];
    counts[origins_[place]] = sum;
  }
  counts_ = std::move(counts);
}

}  // namespace sagitta
