// Plans a search before its threads start: encodes queries, counts passing rows, chooses between scan
// and gathering for each view, and cuts blocks into ranges.

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "../layout.h"
#include "costs.h"
#include "learned_shares.h"
#include "passing.h"
#include "rotation.h"
#include "search.h"

namespace sagitta {
namespace {

/** Bytes of the values of rows that are scored together. */
constexpr size_t gathered_bytes = 512 * 1024;
/**
 * The number of passing rows in a range whose other rows are not read, counted once per bitmap: queries
 * with different bitmaps then find many of their rows in the cache.
 */
constexpr uint32_t range_passing = 512;
/** The rows of the first range of each thread. */
constexpr uint32_t early_rows = 2 * range_alignment;

/** Nanoseconds per row that survives the test of a tile, including those that did while the threshold was lower. */
constexpr double tile_survivor_ns = 170;
/** Nanoseconds per value of a row whose codes are copied, and per row. Values four apart are in different cache lines. */
constexpr double packed_value_ns = 1.6;
constexpr double packed_row_ns = 20;
/** Head tiles are scanned if they are expected to take at most this share of the time of tiles, which never fail. */
constexpr double head_share_max = 0.8;
/** Rows that are scored to raise the threshold while head tiles are scanned and at the end, for each of the k best. */
constexpr double scored_per_k = 2.5;
/** The share of rows that head tiles are expected to leave where a query has a score limit. */
constexpr double expected_of_floor = 0.002;
/** The number of rows that a scan of copied codes leaves to be scored, for each of the k best. */
constexpr double packed_scored_per_k = 4;
/** Coarse codes leave few rows if there are at least this many rows for each of the k best. */
constexpr uint32_t coarse_rows_per_k = 4000;
/** Coarse codes of single rows may leave few rows from this ratio on, depending on the data. */
constexpr uint32_t single_rows_per_k = 64;

/** The candidates of all states of a search, 32 MiB of them, and the least and most of one state. */
constexpr uint64_t candidates_of_search = 2 * 1024 * 1024;
constexpr uint64_t candidates_spare_min = 1024;
constexpr uint64_t candidates_spare_max = 8192;

uint64_t candidates_spare(const sagitta_batch& batch) {
  const uint64_t states = uint64_t{batch.query_count} * batch.worker_count;
  return std::clamp(candidates_of_search / std::max<uint64_t>(1, states), candidates_spare_min,
                    candidates_spare_max);
}

uint32_t gathered_rows_of(uint32_t dimension) {
  const size_t fitting = gathered_bytes / (size_t{dimension} * sizeof(float));
  return static_cast<uint32_t>(std::clamp<size_t>(fitting, canonical_rows, gathered_rows));
}

}  // namespace

search::search(const sagitta_batch& batch)
    : functions_(&selected_target()),
      dimension_(batch.dimension),
      gathered_rows_(gathered_rows_of(batch.dimension)),
      blocks_(batch.blocks, batch.blocks + batch.block_count),
      views_(batch.views, batch.views + batch.view_count),
      method_(batch.method),
      basis_numbers_(batch.block_count),
      context_{functions_, blocks_.data(), views_.data(), dimension_, &is_cancelled_, candidates_spare(batch),
               batch.worker_count},
      bounds_(batch.query_count),
      passing_(batch.query_count),
      searched_(batch.query_count),
      plans_(batch.block_count),
      workers_(batch.worker_count),
      answers_(batch.query_count),
      merged_(batch.query_count) {
  open_bases();
  prepare_queries(batch);
  plan_blocks();
  rotate_queries();
  project_queries();
  cut_ranges();
  plan_sharing();
}

void search::prepare_queries(const sagitta_batch& batch) {
  const uint32_t steps = step_count(dimension_);
  const size_t packed_bytes = size_t{steps} * functions_->tiles.query_step_bytes;
  values_.resize(size_t{batch.query_count} * dimension_);
  packed_.resize(batch.query_count * packed_bytes);
  queries_.resize(batch.query_count);
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

    const float* row = from.vector;
    double product = 0;
    functions_->products(values, dimension_, &row, 1, &product, &query.square);
    query.length = std::sqrt(query.square);
    query.is_scannable = query.length >= length_min && query.length <= length_max;
    if (!query.is_scannable) continue;
    const encoded_vector encoded = functions_->encode_query(from.vector, dimension_, codes.data());
    uint8_t* const packed = packed_.data() + q * packed_bytes;
    functions_->tiles.pack_query(codes.data(), steps, packed);
    query.packed = packed;
    set_codes(query, encoded);
    query.offset = static_cast<int32_t>(-128 * encoded.code_sum);
  }
}

void search::open_bases() {
  std::vector<const uint8_t*> known;
  for (uint32_t b = 0; b < blocks_.size(); b++) {
    const sagitta_block& block = blocks_[b];
    if (block.head == nullptr) continue;
    const auto is_same = [&](const uint8_t* other) { return has_same_digest(other, block.basis); };
    const auto found = std::find_if(known.begin(), known.end(), is_same);
    basis_numbers_[b] = static_cast<uint32_t>(found - known.begin());
    if (found != known.end()) continue;
    known.push_back(block.basis);
    open_basis(block.basis, block.basis_bytes, dimension_, bases_.emplace_back());
  }
}

template <class IsUsed>
std::vector<uint32_t> search::queries_with(const IsUsed& is_used) const {
  std::vector<uint32_t> found;
  for (const block_plan& plan : plans_) {
    for (const planned_view& one : plan.views) {
      if (is_used(one)) found.push_back(one.query);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void search::rotate_queries() {
  const std::vector<uint32_t> used = queries_with([](const planned_view& one) {
    return one.how == method::coarse || one.how == method::coarse_rows;
  });
  if (used.empty()) return;
  const rotation rotation = create_rotation(dimension_);
  rotated_packed_.resize(used.size() * coarse_query_bytes(dimension_));
  uint8_t* packed = rotated_packed_.data();
  for (const uint32_t q : used) {
    queries_[q].rotated = rotate_query(*functions_, rotation, {queries_[q], queries_[q].values}, packed);
    packed += coarse_query_bytes(dimension_);
  }
}

void search::project_queries() {
  const std::vector<uint32_t> used = queries_with([](const planned_view& one) {
    return one.how == method::tiles && one.has_head;
  });
  const size_t packed_bytes = head_query_bytes(*functions_, dimension_);
  head_packed_.resize(used.size() * bases_.size() * packed_bytes);
  uint8_t* packed = head_packed_.data();
  for (const uint32_t q : used) {
    for (const basis& basis : bases_) {
      queries_[q].heads.push_back(project_query(*functions_, basis, {queries_[q], queries_[q].values}, packed));
      packed += packed_bytes;
    }
  }
}

void search::plan_blocks() {
  passing_counter counter(*functions_);
  for (uint32_t q = 0; q < queries_.size(); q++) {
    const prepared_query& query = queries_[q];
    bounds_[q].start(query.floor, query.k);
    for (uint32_t view = query.first_view; view < query.first_view + query.view_count; view++) {
      const sagitta_block_view& searched = views_[view];
      const uint32_t passing = counter.count(searched);
      if (passing == 0) continue;
      passing_[q] += passing;
      searched_[q] += searched.row_count;
      block_plan& plan = plans_[searched.block];
      plan.views.push_back({q, view, passing, method::gather, 0, false});
      plan.row_count = std::max(plan.row_count, searched.row_count);
    }
  }
  for (uint32_t b = 0; b < plans_.size(); b++) {
    block_plan& plan = plans_[b];
    choose_methods(plan, b);
    std::stable_sort(plan.views.begin(), plan.views.end(),
                     [this](const planned_view& left, const planned_view& right) {
                       const auto key = [this](const planned_view& one) {
                         return std::tuple(one.how, queries_[one.query].has_after,
                                           reinterpret_cast<uintptr_t>(views_[one.view].rows));
                       };
                       return key(left) < key(right);
                     });
    for (const planned_view& one : plan.views) cost_ += one.cost;
  }
}

/** Queries of a batch share the reading of codes, and of the values of rows that several of them search. */
void search::choose_methods(block_plan& plan, uint32_t index) const {
  const sagitta_block& block = blocks_[index];
  const auto sharing = static_cast<double>(plan.views.size());
  plan.costs = row_costs_of(*functions_, dimension_, sharing);
  const bool has_head = block.head != nullptr && method_ != SAGITTA_METHOD_TILES;
  std::map<const uint32_t*, uint32_t> sharing_bitmap;
  double passing = 0;
  for (const planned_view& one : plan.views) {
    sharing_bitmap[views_[one.view].rows]++;
    passing += one.passing;
  }
  // Rows that several bitmaps let pass are in the cache when the second query reads them.
  const double overlap = std::max(1.0, passing / std::max(1u, plan.row_count));
  for (planned_view& one : plan.views) {
    const prepared_query& query = queries_[one.query];
    const sagitta_block_view& view = views_[one.view];
    const double rows = view.row_count;
    one.how = method::gather;
    const double readers = std::max<double>(sharing_bitmap[view.rows], overlap);
    one.cost = one.passing *
               (dimension_ * (value_memory_ns / readers + value_product_ns) + canonical_row_ns);
    if (!query.is_scannable) continue;
    const auto offer = [&](method how, double cost) {
      if (cost >= one.cost) return;
      one.cost = cost;
      one.how = how;
    };
    const bool has_coarse = block.coarse != nullptr && method_ != SAGITTA_METHOD_TILES;
    const bool is_forced = has_coarse && method_ == SAGITTA_METHOD_COARSE;
    if (block.codes != nullptr && !is_forced) {
      // A threshold from the rows that pass a filter excludes fewer of the other rows.
      const double share = std::min(1.0, query.k / static_cast<double>(passing_[one.query]));
      const double tiles_ns = plan.costs.tiles + share * tile_survivor_ns;
      offer(method::tiles, rows * tiles_ns);
      if (has_head) {
        const double head_ns = search::head_ns(plan, index, one.query);
        one.has_head = head_ns < head_share_max * tiles_ns || method_ == SAGITTA_METHOD_HEAD_TILES;
        if (one.has_head) offer(method::tiles, rows * head_ns);
        if (method_ == SAGITTA_METHOD_HEAD_TILES) {
          one.how = method::tiles;
          continue;
        }
      }
    }
    if (view.rows != nullptr && block.codes != nullptr && !is_forced) {
      const double copy_ns = dimension_ * packed_value_ns + packed_row_ns;
      const double row_ns =
          copy_ns / sharing_bitmap[view.rows] + dimension_ * plan.costs.tile_value + tile_row_ns;
      const double scored = std::min<double>(one.passing, packed_scored_per_k * query.k);
      offer(method::packed, one.passing * row_ns + scored * plan.costs.canonical);
    }
    if (!has_coarse) continue;
    const auto has_rows_per_k = [&](uint32_t count) {
      return is_forced || passing_[one.query] >= uint64_t{count} * query.k;
    };
    // Where a basis was worth it, coarse codes leave too many rows.
    if (is_forced || (!has_head && has_rows_per_k(coarse_rows_per_k))) {
      offer(method::coarse, rows * plan.costs.coarse);
    }
    if (has_rows_per_k(single_rows_per_k)) {
      const double share = expect_scored_share(block.coarse, passing_[one.query] / query.k);
      offer(method::coarse_rows, one.passing * (plan.costs.coarse_single + share * plan.costs.canonical));
    }
  }
}

double search::fraction_of(uint32_t query) const {
  return queries_[query].k / static_cast<double>(passing_[query]);
}

double search::head_ns(const block_plan& plan, uint32_t block, uint32_t query) const {
  // What a score limit leaves is not known before the first scan.
  const basis_shares& shares = bases_[basis_numbers_[block]].header->shares[0];
  const bool has_floor = queries_[query].floor != -unbounded;
  if (has_floor) return head_search_ns(plan.costs, expected_of_floor);
  const double fraction = fraction_of(query);
  return head_search_ns(plan.costs, expected_left(shares, fraction)) + scored_per_k * fraction * plan.costs.canonical;
}

bool search::has_method(const block_plan& plan, method how) {
  return std::any_of(plan.views.begin(), plan.views.end(),
                     [how](const planned_view& one) { return one.how == how; });
}

uint32_t search::rows_of_range(const block_plan& plan) const {
  const auto scans_all_dimensions = [](const planned_view& one) { return one.how == method::tiles && !one.has_head; };
  const bool has_tiles = has_method(plan, method::tiles);
  const bool has_only_heads =
      has_tiles && std::none_of(plan.views.begin(), plan.views.end(), scans_all_dimensions);
  const uint64_t balanced = row_count_ / (uint64_t{ranges_per_worker} * workers_.size());
  uint64_t wanted = 0;
  if (has_method(plan, method::tiles) || has_method(plan, method::coarse)) {
    const size_t bytes = has_only_heads ? head_panel_bytes(dimension_)
                         : has_tiles    ? panel_bytes(dimension_)
                                        : coarse_panel_bytes(dimension_);
    wanted = range_bytes / (bytes / panel_rows);
  } else {
    // Views with the same bitmap are next to each other.
    uint64_t passing = 0;
    const uint32_t* previous = nullptr;
    for (const planned_view& one : plan.views) {
      const uint32_t* const rows = views_[one.view].rows;
      if (passing == 0 || rows != previous) passing += one.passing;
      previous = rows;
    }
    wanted = uint64_t{plan.row_count} * range_passing / passing;
  }
  wanted = std::min(wanted, balanced);
  return static_cast<uint32_t>(std::max<uint64_t>(1, wanted / range_alignment) * range_alignment);
}

void search::cut_ranges() {
  for (const block_plan& plan : plans_) row_count_ += plan.row_count;
  for (uint32_t b = 0; b < plans_.size(); b++) {
    if (plans_[b].views.empty()) continue;
    const uint32_t end = plans_[b].row_count;
    const uint32_t range_rows = rows_of_range(plans_[b]);
    for (uint32_t from = 0; from < end;) {
      // A threshold from few rows already excludes most of the others.
      const bool is_early = ranges_.size() < workers_.size() && from + range_rows < end;
      const uint32_t to = std::min(end, from + (is_early ? std::min(range_rows, early_rows) : range_rows));
      ranges_.push_back({b, from, to});
      from = to;
    }
  }
}

/** Cuts blocks into ranges whose candidates can be scored together, if there may be that many. */
void search::plan_sharing() {
  uint64_t candidates = 0;
  for (uint32_t q = 0; q < queries_.size(); q++) {
    candidates += std::min<uint64_t>(uint64_t{2} * queries_[q].k, passing_[q]);
  }
  may_share_ = candidates >= row_count_;
  if (!may_share_) return;
  for (uint32_t b = 0; b < plans_.size(); b++) {
    const uint32_t end = plans_[b].row_count;
    for (uint32_t from = 0; from < end; from += gathered_rows_) {
      shared_ranges_.push_back({b, from, std::min(end, from + gathered_rows_)});
    }
  }
}

}  // namespace sagitta
