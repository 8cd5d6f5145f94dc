#include "plan.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_set>

#include "../target.h"
#include "best_scores.h"
#include "code_ring.h"

namespace sagitta::cuda {
namespace {

/** The maximum number of queries per slice. More would not be faster: arithmetic is saturated long before. */
constexpr uint32_t slice_queries_max = 4096;

/** Room in addition to k for rows that tie with the last one: for all queries of a slice together, and for each. */
constexpr uint32_t ties_of_slice = 1u << 18;
constexpr uint32_t ties_min = 64;
constexpr uint32_t ties_max = 4096;
/** The same room for slices whose scores the host computes, because it gets every candidate. */
constexpr uint32_t unscored_of_slice = 1u << 22;

/** The cost of gathering a dimension of a row (a random float32 read) relative to a streamed byte. */
constexpr double gathered_byte_cost = 2 * sizeof(float);
/** The number of queries that can share the reading of codes; beyond it, arithmetic bounds the scan. */
constexpr double sharing_max = 128;

/**
 * Lists of few queries are longer by this factor. There are few of them, and the pass after the first one
 * sees 64 times its rows and leaves correspondingly more candidates.
 */
constexpr uint64_t few_list_factor = 8;

/**
 * Bytes of memory traffic per row that a sieve leaves, relative to the bytes of its values: rows are
 * read one by one, not streamed.
 */
constexpr double scored_byte_cost = 1.5;
/** Head tiles are used if they are expected to cost at most this share of what int8 codes cost. */
constexpr double head_share_max = 0.8;
/** The share of a list that expected rows may take. */
constexpr double expected_list_share = 0.5;
double scored_bytes(uint32_t dimension) {
  return scored_byte_cost * sizeof(float) * static_cast<double>(dimension);
}

/** The estimate of all queries of a slice is counted in 32 bits. */
constexpr double estimate_limit_max = 1u << 25;

uint32_t power_of_two_from(uint64_t value) {
  uint32_t power = 1;
  while (power < value && power < 1u << 31) power *= 2;
  return power;
}

uint32_t ceiling(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit; }

uint64_t power(uint64_t base, uint32_t exponent) {
  uint64_t result = 1;
  for (uint32_t i = 0; i < exponent; i++) result *= base;
  return result;
}

/** Returns how often a batch of so many queries pays for the bytes of codes: arithmetic bounds large ones. */
double sharing_of(size_t query_count) {
  return std::max(1.0, static_cast<double>(query_count) / sharing_max);
}

/** Adds rings of as many stages as fit, if that is enough of them. */
void add_rings(scan_shape& shape, size_t shared_bytes_max, uint32_t stages_max) {
  uint32_t stages = stages_max;
  while (stages > 0 && bytes_with_rings(shape.shared_bytes, stages) > shared_bytes_max) stages--;
  if (stages < ring_stages_min) return;
  shape.shared_bytes = bytes_with_rings(shape.shared_bytes, stages);
  shape.ring_stages = stages;
}

}  // namespace

std::vector<scan_pass> passes_over(uint32_t tile_count, uint64_t dense_tiles, uint32_t growth_max) {
  const auto is_enough = [&](uint64_t growth, uint32_t count) {
    const uint64_t stride = power(growth, count);
    return (tile_count + stride - 1) / stride <= dense_tiles;
  };
  uint32_t more = 0;
  while (!is_enough(growth_max, more)) more++;
  // The largest growth determines the number of passes; less growth leaves fewer candidates.
  uint32_t growth = growth_max;
  while (more > 0 && is_enough(growth - 1, more)) growth--;
  std::vector<scan_pass> passes;
  auto stride = static_cast<uint32_t>(power(growth, more));
  for (uint32_t coarse = 0;; coarse = stride, stride /= growth) {
    const uint32_t before = coarse == 0 ? 0 : ceiling(tile_count, coarse);
    passes.push_back({stride, coarse, ceiling(tile_count, stride) - before});
    if (stride == 1) break;
  }
  return passes;
}

scan_shape choose_shape(uint32_t query_count, uint32_t dimension, size_t shared_bytes_max,
                        const wgmma_use& wgmma) {
  if (query_count >= wgmma.queries_min) {
    const uint32_t chunk_count = ceiling(dimension, chunk_dimensions);
    const uint32_t useful = query_count > 128 ? 256 : query_count > 64 ? 128 : 64;
    for (uint32_t group = std::min(useful, wgmma.group_max); group >= 64; group /= 2) {
      const size_t bytes =
          size_t{chunk_count} * chunk_dimensions * group + bytes_beside_codes(group, group, 1);
      if (bytes > shared_bytes_max) continue;
      scan_shape shape{true, group, 1, 0, chunk_count, bytes};
      add_rings(shape, shared_bytes_max, wgmma.ring_stages_max);
      return shape;
    }
  }
  const uint32_t pair_count = ceiling(dimension, pair_dimensions);
  for (uint32_t group = 256; group >= query_block; group /= 2) {
    // A larger group would leave half of the columns empty.
    if (group > query_block && query_count <= group / 2) continue;
    const uint32_t warp_queries = std::min(group, 64u);
    const size_t bytes = size_t{pair_count} * pair_dimensions * group +
                         bytes_beside_codes(group, warp_queries, tile_panels);
    if (bytes <= shared_bytes_max) return {false, group, group / warp_queries, pair_count, 0, bytes};
  }
  return {};
}

size_t bytes_per_query(uint32_t dimension, uint32_t list_capacity, uint32_t found_max) {
  return size_t{dimension} * (sizeof(float) + 2) +
         size_t{list_capacity} * (sizeof(candidate) + sizeof(candidate_score)) +
         size_t{found_max} * sizeof(found_row) + sizeof(device_query) + sizeof(scan_weights) +
         sizeof(shared_list) + 256;
}

scan_shape choose_coarse_shape(uint32_t query_count, uint32_t dimension, size_t shared_bytes_max) {
  if (2 * size_t{dimension} * sizeof(float) > shared_bytes_max) return {};
  const uint32_t quad_count = ceiling(dimension, quad_dimensions);
  for (uint32_t group = coarse_group_max; group >= query_block; group /= 2) {
    if (group > query_block && query_count <= group / 2) continue;
    const size_t bytes = size_t{quad_count} * quad_dimensions * group +
                         bytes_beside_codes(group, group, tile_panels);
    if (bytes <= shared_bytes_max) return {false, group, 1, 0, 0, bytes, 0, quad_count};
  }
  return {};
}

size_t sieve_bytes_per_query(const sieve_plan& plan) {
  if (!plan.is_used()) return 0;
  return size_t{plan.list_capacity} * (sizeof(candidate) + sizeof(candidate_score)) +
         sizeof(bounded_query) + 256;
}

size_t sieve_bytes_per_padded_query(const sieve_plan& plan) {
  if (!plan.is_used()) return 0;
  return plan.shape.padded_dimension() + sizeof(int32_t) + sizeof(scan_weights) + sizeof(uint32_t);
}

batch_plan::batch_plan(const sagitta_device& device, const sagitta_batch& batch,
                       sagitta_device_block* const* residents)
    : device_(device), batch_(batch), residents_(residents), scopes_(batch) {
  lay_out_blocks();
  find_bases();
  describe_queries();
  std::vector<planned_query> searched;
  for (const planned_query& query : queries_) {
    if (query.passing > 0 && !query.is_unsupported) searched.push_back(query);
  }
  slices_ = cut(std::move(searched));
}

void batch_plan::lay_out_blocks() {
  for (uint32_t b = 0; b < batch_.block_count; b++) {
    const sagitta_device_block& block = *residents_[b];
    blocks_.push_back({block.panels.data(),
                       block.has_values ? reinterpret_cast<const float*>(block.values.data())
                                        : nullptr,
                       tile_count_, std::max(1u, panel_count(block.row_count))});
    // At least one tile, so that a tile number identifies its block.
    tile_count_ += std::max(1u, ceiling(batch_.blocks[b].row_count, tile_rows));
  }
}

void batch_plan::find_bases() {
  const bool is_allowed = batch_.method == SAGITTA_METHOD_AUTO || batch_.method == SAGITTA_METHOD_HEAD_TILES;
  for (uint32_t b = 0; b < batch_.block_count; b++) {
    const device_basis* const own = residents_[b]->basis.get();
    if (own == nullptr || !device_.has_head || !is_allowed) {
      basis_of_block_.push_back(no_basis);
      continue;
    }
    const auto known = std::find(bases_.begin(), bases_.end(), own);
    basis_of_block_.push_back(static_cast<uint32_t>(known - bases_.begin()));
    if (known == bases_.end()) bases_.push_back(own);
  }
}

std::vector<resident_block> batch_plan::blocks_of(const sieve_plan& sieve) const {
  std::vector<resident_block> made = blocks_;
  for (uint32_t b = 0; b < made.size(); b++) {
    if (sieve.basis == no_basis) made[b].panels = residents_[b]->coarse.data();
    else if (basis_of_block_[b] != sieve.basis) made[b].panels = nullptr;
    else made[b].panels = residents_[b]->head.data() + sieve.level * fact_bytes;
  }
  return made;
}

std::vector<resident_block> batch_plan::blocks_beside(const sieve_plan& sieve) const {
  const auto lacks = [&](uint32_t basis) { return basis != sieve.basis; };
  if (sieve.basis == no_basis || std::none_of(basis_of_block_.begin(), basis_of_block_.end(), lacks)) return {};
  std::vector<resident_block> made = blocks_;
  for (uint32_t b = 0; b < made.size(); b++) {
    if (!lacks(basis_of_block_[b])) made[b].panels = nullptr;
  }
  return made;
}

/** Returns the basis of most rows of a scope; none if it has too few rows for head tiles, or most have none. */
uint32_t batch_plan::basis_of(const scope& of) const {
  std::vector<double> rows(bases_.size());
  for (uint32_t v = of.first_view; v < of.first_view + of.view_count; v++) {
    const sagitta_block_view& view = batch_.views[v];
    const uint32_t basis = basis_of_block_[view.block];
    if (basis != no_basis) rows[basis] += view.row_count;
  }
  const auto most = std::max_element(rows.begin(), rows.end());
  if (most == rows.end() || 2 * *most < static_cast<double>(of.row_count)) return no_basis;
  const double bytes = *most * static_cast<double>(panel_bytes(batch_.dimension)) / panel_rows;
  const bool is_forced = batch_.method == SAGITTA_METHOD_HEAD_TILES;
  const bool is_enough =
      bytes * sharing_of(batch_.query_count) >= static_cast<double>(device_.tuning.head_bytes_min);
  return is_forced || is_enough ? static_cast<uint32_t>(most - rows.begin()) : no_basis;
}

void batch_plan::describe_queries() {
  const target& functions = selected_target();
  std::vector<double> widened(batch_.dimension);
  // For each scope, whether all its blocks have their values on the device.
  std::vector<uint8_t> has_values;
  std::vector<uint32_t> bases;
  for (const scope& one : scopes_.all()) {
    const sagitta_block_view* const views = batch_.views + one.first_view;
    has_values.push_back(std::all_of(views, views + one.view_count, [&](const sagitta_block_view& view) {
      return blocks_[view.block].values != nullptr;
    }));
    bases.push_back(has_values.back() != 0 ? basis_of(one) : no_basis);
  }
  for (uint32_t q = 0; q < batch_.query_count; q++) {
    const sagitta_query& from = batch_.queries[q];
    planned_query query{};
    query.number = q;
    std::copy(from.vector, from.vector + batch_.dimension, widened.begin());
    double product = 0;
    functions.products(widened.data(), batch_.dimension, &from.vector, 1, &product, &query.square);
    const double length = std::sqrt(query.square);
    query.is_scannable = length >= length_min && length <= length_max;
    query.scope = scopes_.number_of(q);
    query.passing = scopes_.all()[query.scope].passing;
    query.has_values = has_values[query.scope] != 0;
    query.basis = bases[query.scope];
    query.threshold = -unbounded;
    // Batch rows are 32-bit numbers.
    query.is_unsupported = scopes_.all()[query.scope].is_ambiguous || tile_count_ > no_row / tile_rows;
    const tuning& tuned = device_.tuning;
    const uint64_t wanted = tuned.spare_rows + uint64_t{tuned.rows_per_k} * from.k;
    query.list_rows = power_of_two_from(std::min<uint64_t>(wanted, 1u << 30));
    queries_.push_back(query);
  }
}

/** The queries of a slice need lists of one length, have one basis and must fit into the workspace together. */
std::vector<slice> batch_plan::cut(std::vector<planned_query> sorted) const {
  std::vector<slice> slices;
  const auto key = [&](const planned_query& query) {
    // Groups of queries skip the tiles that none of them searches: those of other collections.
    const sagitta_block_view& first = batch_.views[batch_.queries[query.number].first_view];
    return std::tuple(query.list_rows, query.has_values, query.basis, first.block,
                      reinterpret_cast<uintptr_t>(first.rows), query.scope, query.number);
  };
  std::sort(sorted.begin(), sorted.end(), [&](const planned_query& left, const planned_query& right) {
    return key(left) < key(right);
  });
  for (size_t at = 0; at < sorted.size();) {
    const planned_query& first = sorted[at];
    size_t end = at;
    while (end < sorted.size() && end - at < slice_queries_max &&
           sorted[end].list_rows == first.list_rows && sorted[end].has_values == first.has_values &&
           sorted[end].basis == first.basis) {
      end++;
    }
    at = take(sorted, at, end, slices);
  }
  return slices;
}

/**
 * Makes a slice of the queries at..end, or of as many of the first of them as fit into the workspace. Returns the
 * index of the next query. A query that does not fit alone is skipped and therefore stays undecided.
 */
size_t batch_plan::take(const std::vector<planned_query>& from, size_t at, size_t end,
                        std::vector<slice>& slices) const {
  // List capacities depend on the number of queries, so each attempt plans the slice from scratch.
  for (;; end = at + (end - at + 1) / 2) {
    slice made{};
    made.queries.assign(from.begin() + static_cast<ptrdiff_t>(at),
                        from.begin() + static_cast<ptrdiff_t>(end));
    for (const planned_query& query : made.queries) {
      made.k_max = std::max(made.k_max, batch_.queries[query.number].k);
      // Queries with equal scopes are neighbours.
      if (made.scopes.empty() || made.scopes.back() != query.scope) made.scopes.push_back(query.scope);
    }
    made.basis = made.queries.front().basis;
    complete(made);
    // Without a shape, shared memory has no room for a group, however few queries there are.
    const bool has_shape = made.shape.group != 0;
    const bool has_room = has_shape && fits(made);
    if (has_room) slices.push_back(std::move(made));
    if (has_room || !has_shape || end - at == 1) return end;
  }
}

std::vector<slice> batch_plan::repeated_slices(const std::vector<uint32_t>& queries,
                                               const std::vector<double>& thresholds,
                                               uint32_t factor) const {
  std::vector<planned_query> left;
  for (const uint32_t number : queries) {
    planned_query query = queries_[number];
    if (query.is_unsupported || !query.is_scannable) continue;
    query.threshold = thresholds[number];
    query.list_rows = power_of_two_from(uint64_t{query.list_rows} * factor);
    query.is_repeated = true;
    query.basis = no_basis;
    left.push_back(query);
  }
  return cut(std::move(left));
}

bool batch_plan::fits(const slice& made) const {
  const size_t each = bytes_per_query(batch_.dimension, made.list_capacity, made.found_max);
  const size_t sieve = made.queries.size() * sieve_bytes_per_query(made.sieve) +
                       made.padded_count * sieve_bytes_per_padded_query(made.sieve);
  return scope_bytes(made) + made.padded_count * each + sieve <= device_.workspace_bytes_max;
}

/** Returns the bytes of the views of a slice's scopes and groups, and of their bitmaps. */
size_t batch_plan::scope_bytes(const slice& made) const {
  std::unordered_set<const uint32_t*> seen;
  size_t groups = made.padded_count / made.shape.group;
  if (made.sieve.is_used()) groups += made.padded_count / made.sieve.shape.group;
  size_t bytes = batch_.block_count *
                 ((made.scopes.size() + 1) * sizeof(row_view) + groups * sizeof(group_view));
  for (const uint32_t number : made.scopes) {
    const scope& from = scopes_.all()[number];
    for (uint32_t view = from.first_view; view < from.first_view + from.view_count; view++) {
      const sagitta_block_view& searched = batch_.views[view];
      if (searched.rows == nullptr || !seen.insert(searched.rows).second) continue;
      bytes += size_t{ceiling(batch_.blocks[searched.block].row_count, 32)} * sizeof(uint32_t);
    }
  }
  return bytes;
}

void batch_plan::complete(slice& made) const {
  const tuning& tuned = device_.tuning;
  const auto count = static_cast<uint32_t>(made.queries.size());
  made.is_few = count <= tuned.few;
  const uint64_t all_rows = uint64_t{tile_count_} * tile_rows;
  const uint32_t growth_max =
      std::max(2u, made.is_few ? tuned.growth_of_few : tuned.growth_of_many);
  const uint64_t usual_rows =
      uint64_t{made.queries.front().list_rows} * (made.is_few ? few_list_factor : 1);
  uint64_t dense_rows = std::max<uint64_t>(tuned.dense_rows, 4ull * made.k_max);
  // One more pass suffices if the first one covers its share of all rows and lists have room for it.
  if (made.is_few) {
    dense_rows = std::max(dense_rows, std::min(all_rows / growth_max + tile_rows, usual_rows / 2));
  }
  const uint64_t list_rows =
      std::max<uint64_t>(usual_rows, power_of_two_from(dense_rows + tile_rows));
  made.list_capacity = static_cast<uint32_t>(std::min(list_rows, all_rows));
  const bool is_unscored = !made.queries.front().has_values;
  const uint32_t ties = is_unscored
                            ? unscored_of_slice / count
                            : std::clamp(ties_of_slice / count, ties_min, ties_max);
  made.found_max =
      static_cast<uint32_t>(std::min<uint64_t>(made.list_capacity, uint64_t{made.k_max} + ties));

  made.shape = choose_shape(queries_to_shape(made), batch_.dimension,
                            device_.properties.sharedMemPerBlockOptin, use_of_wgmma());
  if (made.shape.group == 0) return;
  made.padded_count = ceiling(count, made.shape.group) * made.shape.group;

  for (const planned_query& query : made.queries) {
    const bool gathered = is_gathered(made, query);
    made.is_gathered.push_back(gathered ? 1 : 0);
    if (!gathered && query.is_scannable) made.is_scanned = true;
  }

  if (!made.is_scanned) return;
  made.passes = passes_over(tile_count_, std::max<uint64_t>(1, dense_rows / tile_rows), growth_max);
  const uint32_t padded_count = made.padded_count;
  made.sieve = plan_sieve(made);
  if (!made.sieve.is_used()) return;
  const uint32_t group = std::max(made.shape.group, made.sieve.shape.group);
  made.padded_count = ceiling(count, group) * group;
  if (fits(made)) return;
  made.sieve = {};
  made.padded_count = padded_count;
}

/** Returns the number of queries that shapes are chosen for: if wgmma was asked for, it is used for every slice. */
uint32_t batch_plan::queries_to_shape(const slice& made) const {
  const auto count = static_cast<uint32_t>(made.queries.size());
  return device_.kind == scan_kind::wgmma ? std::max(count, 129u) : count;
}

wgmma_use batch_plan::use_of_wgmma() const {
  const scan_kind kind = device_.kind;
  const tuning& tuned = device_.tuning;
  return {kind == scan_kind::wgmma_ring ? 1u : 65u,
          device_.has_wgmma && kind != scan_kind::mma ? tuned.wgmma_group_max : 0,
          kind == scan_kind::wgmma_ring ? tuned.ring_stages_max : 0};
}

sieve_plan batch_plan::plan_sieve(const slice& made) const {
  // The first threshold comes from a pass over int8 codes.
  if (made.passes.size() < 2 || made.k_max > estimated_k_max || batch_.method == SAGITTA_METHOD_TILES) return {};
  const planned_query& first = made.queries.front();
  const auto is_repeated = [](const planned_query& query) { return query.is_repeated; };
  if (!first.has_values || std::any_of(made.queries.begin(), made.queries.end(), is_repeated)) return {};
  const sieve_plan head = plan_head(made);
  return head.is_used() ? head : plan_coarse(made);
}

/** Sets the scans of a sieve, and how many rows the first one may leave, of which the others leave as many again. */
void batch_plan::plan_scans(const slice& made, double affordable_rows, bool is_forced, sieve_plan& plan) const {
  const scan_pass& last = made.passes.back();
  if (made.is_few) {
    plan.first_pass = made.passes.size() - 1;
    plan.scans = {last, last};
    plan.scans[0].part = scan_pass::part_kind::sample;
    plan.scans[0].tile_count = ceiling(last.tile_count, sample_stride);
    plan.scans[1].part = scan_pass::part_kind::rest;
    plan.scans[1].tile_count = last.tile_count - plan.scans[0].tile_count;
    if (plan.scans[1].tile_count == 0) plan.scans.pop_back();
    plan.list_capacity = std::min(device_.tuning.sieve_list_rows, last.tile_count * tile_rows);
  } else {
    plan.first_pass = 1;
    plan.scans.assign(made.passes.begin() + 1, made.passes.end());
    plan.list_capacity = made.list_capacity;
  }
  double tiles = 0;
  for (const scan_pass& scan : plan.scans) tiles += scan.tile_count;
  const double parts = tiles / plan.scans.front().tile_count;
  plan.estimate_limit = static_cast<uint32_t>(
      is_forced ? estimate_limit_max : std::clamp(affordable_rows / parts, 0.0, estimate_limit_max));
  // Leaves some room, because the extrapolation from the first scan is not exact.
  const double room = std::min(plan.list_capacity, made.list_capacity) / 2.0;
  plan.rows_max = static_cast<uint32_t>(is_forced ? plan.list_capacity : room / parts);
}

bool batch_plan::may_use_coarse(const slice& made) const {
  const tuning& tuned = device_.tuning;
  if (!device_.has_coarse || !has_coarse_codes(batch_.dimension)) return false;
  if (batch_.method == SAGITTA_METHOD_HEAD_TILES || made.queries.size() > tuned.coarse_queries_max) return false;
  if (batch_.method == SAGITTA_METHOD_COARSE) return true;
  for (size_t i = 0; i < made.queries.size(); i++) {
    const planned_query& query = made.queries[i];
    const uint64_t wanted = uint64_t{tuned.coarse_rows_per_k} * batch_.queries[query.number].k;
    const bool is_scanned = query.is_scannable && made.is_gathered[i] == 0;
    if (is_scanned && query.passing < wanted) return false;
  }
  return true;
}

sieve_plan batch_plan::plan_coarse(const slice& made) const {
  if (!may_use_coarse(made)) return {};
  const bool is_forced = batch_.method == SAGITTA_METHOD_COARSE;
  const double rows = static_cast<double>(made.passes.back().tile_count) * tile_rows;
  const double row_bytes = static_cast<double>(panel_bytes(batch_.dimension)) / panel_rows;
  const double coarse_row_bytes = static_cast<double>(coarse_panel_bytes(batch_.dimension)) / panel_rows;
  if (!is_forced && rows * row_bytes < static_cast<double>(device_.tuning.coarse_bytes_min)) return {};
  sieve_plan plan{};
  plan.shape = choose_coarse_shape(static_cast<uint32_t>(made.queries.size()), batch_.dimension,
                                   device_.properties.sharedMemPerBlockOptin);
  if (!plan.is_used()) return {};
  plan_scans(made, rows * (row_bytes - coarse_row_bytes) / scored_bytes(batch_.dimension), is_forced, plan);
  return plan;
}

/** Returns the most rows with the slice's basis that any of its queries searches. */
double batch_plan::head_rows_of(const slice& made) const {
  double most = 0;
  for (const uint32_t number : made.scopes) {
    const scope& from = scopes_.all()[number];
    double rows = 0;
    for (uint32_t v = from.first_view; v < from.first_view + from.view_count; v++) {
      const sagitta_block_view& view = batch_.views[v];
      if (basis_of_block_[view.block] == made.basis) rows += view.row_count;
    }
    most = std::max(most, rows);
  }
  return most;
}

/**
 * Returns the rows of all queries that are expected to be scored because of head tiles: those that their bounds leave,
 * and the best estimates of every scan, which int8 codes have only once. Sets `is_too_many` if those of
 * a query would fill more than a part of its list after one of the scans, each of which starts with the threshold that
 * the rows before it prove.
 */
double batch_plan::rows_left(const slice& made, const sieve_plan& plan, bool& is_too_many) const {
  const basis_shares& shares = bases_[made.basis]->header.shares[plan.level];
  double left = 0;
  is_too_many = false;
  for (size_t i = 0; i < made.queries.size(); i++) {
    const planned_query& query = made.queries[i];
    if (!query.is_scannable || made.is_gathered[i] != 0) continue;
    const auto passing = static_cast<double>(query.passing);
    const uint32_t k = batch_.queries[query.number].k;
    left += passing * expected_left(shares, k / passing);
    left += static_cast<double>((plan.scans.size() - 1) * scored_estimates(k));
    double seen = 0;
    for (size_t p = 0; p < plan.first_pass; p++) seen += made.passes[p].tile_count;
    for (const scan_pass& scan : plan.scans) {
      const double fraction = std::min(1.0, k / passing * tile_count_ / seen);
      const double added = passing * scan.tile_count / tile_count_ * expected_left(shares, fraction);
      if (added > expected_list_share * std::min(plan.list_capacity, made.list_capacity)) is_too_many = true;
      seen += scan.tile_count;
    }
  }
  return left;
}

scan_shape batch_plan::shape_of_head(const slice& made, uint32_t level) const {
  const size_t shared_bytes_max = device_.properties.sharedMemPerBlockOptin;
  const uint32_t directions = directions_of_level(batch_.dimension, level);
  if (head_queries_together(batch_.dimension, directions, shared_bytes_max) == 0) return {};
  wgmma_use use = use_of_wgmma();
  // Rings expect the codes of a panel right behind the facts that are tested.
  use.ring_stages_max = 0;
  return choose_shape(queries_to_shape(made), directions, shared_bytes_max, use);
}

/** Chooses the level that is expected to cost less. */
sieve_plan batch_plan::plan_head(const slice& made) const {
  if (made.basis == no_basis) return {};
  const bool is_forced = batch_.method == SAGITTA_METHOD_HEAD_TILES;
  const double sharing = sharing_of(made.queries.size());
  const double scanned = head_rows_of(made) * sharing;
  const double int8_cost = scanned * static_cast<double>(panel_bytes(batch_.dimension)) / panel_rows;
  sieve_plan best{};
  double best_cost = is_forced ? unbounded : head_share_max * int8_cost;
  for (uint32_t level = 0; level < head_levels; level++) {
    if (device_.tuning.head_level != UINT32_MAX && device_.tuning.head_level != level) continue;
    sieve_plan plan{};
    plan.shape = shape_of_head(made, level);
    if (!plan.is_used()) continue;
    plan.basis = made.basis;
    plan.level = level;
    const double row_bytes =
        static_cast<double>(fact_bytes) / panel_rows + directions_of_level(batch_.dimension, level);
    const double scan_cost = scanned * row_bytes;
    plan_scans(made, (int8_cost - scan_cost) / scored_bytes(batch_.dimension), is_forced, plan);
    bool is_too_many = false;
    const double cost = scan_cost + rows_left(made, plan, is_too_many) * scored_bytes(batch_.dimension);
    if (cost >= best_cost || (is_too_many && !is_forced)) continue;
    best = plan;
    best_cost = cost;
  }
  return best;
}

/** Whether gathering is cheaper: a scan shares the reading of codes among queries, gathering does not. */
bool batch_plan::is_gathered(const slice& made, const planned_query& query) const {
  if (!query.has_values || query.passing > made.list_capacity) return false;
  if (!query.is_scannable) return true;
  const auto scanned_rows = static_cast<double>(scopes_.all()[query.scope].row_count);
  const double sharing = std::min(static_cast<double>(made.queries.size()), sharing_max);
  return static_cast<double>(query.passing) * gathered_byte_cost < scanned_rows / sharing;
}

}  // namespace sagitta::cuda
