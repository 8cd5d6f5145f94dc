// Before the threads start: queries are encoded, rows that pass are counted, each query is given to
// the scan or to gathering block by block, and blocks are cut into pieces.

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "../layout.h"
#include "passing.h"
#include "search.h"

namespace sagitta {
namespace {

/** Codes of one piece: they stay in the L2 cache beside the queries that pass over them. */
constexpr size_t piece_bytes = 256 * 1024;
/** Rows of a piece are a multiple of this, so that scans fill whole tiles. */
constexpr uint32_t piece_alignment = 8 * panel_rows;
/** Pieces for each thread at least, where there are rows enough: the last ones end close together. */
constexpr uint32_t pieces_per_worker = 8;

/**
 * Nanoseconds a value or row of one thread beside another, measured at 100 000 × 768 with AVX2 and rows
 * in memory, not in a cache: only their ratios matter.
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
      parts_(batch.parts, batch.parts + batch.part_count),
      context_{functions_, blocks_.data(), parts_.data(), dimension_, &is_cancelled_},
      passing_(batch.query_count),
      plans_(batch.block_count),
      workers_(batch.worker_count),
      answers_(batch.query_count) {
  prepare_queries(batch);
  plan_blocks();
  cut_pieces();
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
    query.first_part = from.first_part;
    query.part_count = from.part_count;
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
    for (uint32_t part = query.first_part; part < query.first_part + query.part_count; part++) {
      const sagitta_part& searched = parts_[part];
      const uint32_t passing = counter.count(searched);
      if (passing == 0) continue;
      passing_[q] += passing;
      plan& block_plan = plans_[searched.block];
      block_plan.uses.push_back({q, part, passing, false});
      block_plan.row_count = std::max(block_plan.row_count, searched.row_count);
    }
  }
  for (uint32_t b = 0; b < plans_.size(); b++) {
    plan& block_plan = plans_[b];
    choose_gathered(block_plan, blocks_[b].codes != nullptr);
    std::stable_sort(block_plan.uses.begin(), block_plan.uses.end(),
                     [this](const use& left, const use& right) {
                       const auto key = [this](const use& one) {
                         return std::tuple(one.is_gathered, queries_[one.query].has_after,
                                           reinterpret_cast<uintptr_t>(parts_[one.part].rows));
                       };
                       return key(left) < key(right);
                     });
    cost_ += cost_of(block_plan);
  }
}

/** A scan shares the reading of the codes among the queries of the batch; gathering shares nothing. */
void search::choose_gathered(plan& block_plan, bool has_codes) const {
  const auto sharing = static_cast<double>(block_plan.uses.size());
  const double codes_ns =
      dimension_ * (code_memory_ns / sharing + code_product_ns) + scanned_row_ns;
  const double canonical_total_ns = dimension_ * canonical_ns + canonical_row_ns;
  for (use& one : block_plan.uses) {
    const bool is_cheaper =
        one.passing * canonical_total_ns < parts_[one.part].row_count * codes_ns;
    one.is_gathered = is_cheaper || !has_codes || !queries_[one.query].is_scannable;
  }
}

double search::cost_of(const plan& block_plan) const {
  double cost = 0;
  uint32_t scanning = 0;
  for (const use& one : block_plan.uses) {
    if (one.is_gathered) {
      cost += one.passing * (dimension_ * canonical_ns + canonical_row_ns);
    } else {
      scanning++;
      cost += parts_[one.part].row_count * (dimension_ * code_product_ns + scanned_row_ns);
    }
  }
  if (scanning > 0) cost += double{code_memory_ns} * block_plan.row_count * dimension_;
  return cost;
}

void search::cut_pieces() {
  uint64_t rows = 0;
  for (const plan& block_plan : plans_) rows += block_plan.row_count;
  const size_t row_bytes = panel_bytes(dimension_) / panel_rows;
  const uint64_t cached = piece_bytes / row_bytes;
  const uint64_t balanced = rows / (uint64_t{pieces_per_worker} * workers_.size());
  const uint64_t wanted = std::min(cached, balanced);
  const auto piece_rows = static_cast<uint32_t>(
      std::max<uint64_t>(1, wanted / piece_alignment) * piece_alignment);
  for (uint32_t b = 0; b < plans_.size(); b++) {
    const uint32_t end = plans_[b].row_count;
    for (uint32_t from = 0; from < end; from += piece_rows) {
      pieces_.push_back({b, from, std::min(end, from + piece_rows), {}});
    }
  }
}

}  // namespace sagitta
