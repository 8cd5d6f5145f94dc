// Plans a search before its threads start: encodes queries, counts passing rows, chooses between scan
// and gathering for each view, and cuts blocks into ranges.

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "../layout.h"
#include "passing.h"
#include "search.h"

namespace sagitta {
namespace {

/** Bytes of the codes of a range: they fit the L2 cache together with the queries. */
constexpr size_t range_bytes = 256 * 1024;
/** The rows of a range are a multiple of this, so that scans fill whole tiles. */
constexpr uint32_t range_alignment = 8 * panel_rows;
/** The least number of ranges per thread, given enough rows, so that threads finish close together. */
constexpr uint32_t ranges_per_worker = 8;

/**
 * Nanoseconds per value or per row on one thread, measured with AVX2 at 100 000 × 768 with rows in
 * memory, not in a cache. Only their ratios matter.
 */
constexpr double canonical_ns = 0.7;
constexpr double canonical_row_ns = 50;
constexpr double code_memory_ns = 0.07;
constexpr double code_product_ns = 0.018;
constexpr double scanned_row_ns = 0.3;

}  // namespace

search::search(const sagitta_batch& batch)
    : functions_(&selected_target()),
      dimension_(batch.dimension),
      blocks_(batch.blocks, batch.blocks + batch.block_count),
      views_(batch.views, batch.views + batch.view_count),
      context_{functions_, blocks_.data(), views_.data(), dimension_, &is_cancelled_},
      passing_(batch.query_count),
      plans_(batch.block_count),
      workers_(batch.worker_count),
      answers_(batch.query_count) {
  prepare_queries(batch);
  plan_blocks();
  cut_ranges();
}

void search::prepare_queries(const sagitta_batch& batch) {
  const uint32_t steps = step_count(dimension_);
  const size_t packed_bytes = size_t{steps} * functions_->query_step_bytes;
  values_.resize(size_t{batch.query_count} * dimension_);
  packed_.resize(batch.query_count * packed_bytes);
  queries_.resize(batch.query_count);
  bounds_.reserve(batch.query_count);
  std::vector<int8_t> codes(size_t{steps} * step_dimensions);
  for (uint32_t q = 0; q < batch.query_count; q++) {
    const sagitta_query& from = batch.queries[q];
    prepared_query& query = queries_[q];
    double* const values = values_.data() + size_t{q} * dimension_;
    std::copy(from.vector, from.vector + dimension_, values);
    query.metric = from.metric;
    query.k = from.k;
    query.floor = from.floor;
    query.has_after = from.after_id != nullptr;
    query.after_score = from.after_score;
    if (query.has_after) {
      query.after_id.assign(from.after_id, from.after_id + from.after_id_bytes);
    }
    query.values = values;
    query.first_view = from.first_view;
    query.view_count = from.view_count;
    bounds_.emplace_back(query.floor);

    const float* row = from.vector;
    double product = 0;
    functions_->products(values, dimension_, &row, 1, &product, &query.square);
    query.length = std::sqrt(query.square);
    query.is_scannable = query.length >= length_min && query.length <= length_max;
    if (!query.is_scannable) continue;
    const encoded_vector encoded = functions_->encode_query(from.vector, dimension_, codes.data());
    uint8_t* const packed = packed_.data() + q * packed_bytes;
    functions_->pack_query(codes.data(), steps, packed);
    query.packed = packed;
    query.scale = encoded.scale;
    query.code_length = std::sqrt(static_cast<double>(encoded.code_square)) * (1 + 0x1p-40);
    query.residual = encoded.residual / query.scale * (1 + 0x1p-40);
    query.offset = static_cast<int32_t>(-128 * encoded.code_sum);
  }
}

void search::plan_blocks() {
  passing_counter counter(*functions_);
  for (uint32_t q = 0; q < queries_.size(); q++) {
    const prepared_query& query = queries_[q];
    for (uint32_t view = query.first_view; view < query.first_view + query.view_count; view++) {
      const sagitta_block_view& searched = views_[view];
      const uint32_t passing = counter.count(searched);
      if (passing == 0) continue;
      passing_[q] += passing;
      block_plan& plan = plans_[searched.block];
      plan.views.push_back({q, view, passing, false});
      plan.row_count = std::max(plan.row_count, searched.row_count);
    }
  }
  for (uint32_t b = 0; b < plans_.size(); b++) {
    block_plan& plan = plans_[b];
    choose_gathered(plan, blocks_[b].codes != nullptr);
    std::stable_sort(plan.views.begin(), plan.views.end(),
                     [this](const planned_view& left, const planned_view& right) {
                       const auto key = [this](const planned_view& one) {
                         return std::tuple(one.is_gathered, queries_[one.query].has_after,
                                           reinterpret_cast<uintptr_t>(views_[one.view].rows));
                       };
                       return key(left) < key(right);
                     });
    cost_ += cost_of(plan);
  }
}

/** A scan shares the reading of codes among the queries of the batch; gathering does not. */
void search::choose_gathered(block_plan& plan, bool has_codes) const {
  const auto sharing = static_cast<double>(plan.views.size());
  const double codes_ns =
      dimension_ * (code_memory_ns / sharing + code_product_ns) + scanned_row_ns;
  const double canonical_total_ns = dimension_ * canonical_ns + canonical_row_ns;
  for (planned_view& one : plan.views) {
    const bool is_cheaper =
        one.passing * canonical_total_ns < views_[one.view].row_count * codes_ns;
    one.is_gathered = is_cheaper || !has_codes || !queries_[one.query].is_scannable;
  }
}

double search::cost_of(const block_plan& plan) const {
  double cost = 0;
  uint32_t scanning = 0;
  for (const planned_view& one : plan.views) {
    if (one.is_gathered) {
      cost += one.passing * (dimension_ * canonical_ns + canonical_row_ns);
    } else {
      scanning++;
      cost += views_[one.view].row_count * (dimension_ * code_product_ns + scanned_row_ns);
    }
  }
  if (scanning > 0) cost += double{code_memory_ns} * plan.row_count * dimension_;
  return cost;
}

void search::cut_ranges() {
  uint64_t rows = 0;
  for (const block_plan& plan : plans_) rows += plan.row_count;
  const size_t row_bytes = panel_bytes(dimension_) / panel_rows;
  const uint64_t cached = range_bytes / row_bytes;
  const uint64_t balanced = rows / (uint64_t{ranges_per_worker} * workers_.size());
  const uint64_t wanted = std::min(cached, balanced);
  const auto range_rows = static_cast<uint32_t>(
      std::max<uint64_t>(1, wanted / range_alignment) * range_alignment);
  for (uint32_t b = 0; b < plans_.size(); b++) {
    const uint32_t end = plans_[b].row_count;
    for (uint32_t from = 0; from < end; from += range_rows) {
      ranges_.push_back({b, from, std::min(end, from + range_rows), {}});
    }
  }
}

}  // namespace sagitta
