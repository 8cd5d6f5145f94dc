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
 * Bytes of memory traffic per row that coarse codes leave, relative to the bytes of its values: rows are
 * read one by one, not streamed.
 */
constexpr double scored_byte_cost = 1.5;
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

coarse_shape choose_coarse_shape(uint32_t query_count, uint32_t dimension,
                                 size_t shared_bytes_max) {
  if (2 * size_t{dimension} * sizeof(float) > shared_bytes_max) return {};
  const uint32_t quad_count = ceiling(dimension, quad_dimensions);
  for (uint32_t group = coarse_group_max; group >= query_block; group /= 2) {
    if (group > query_block && query_count <= group / 2) continue;
    const size_t bytes = size_t{quad_count} * quad_dimensions * group +
                         bytes_beside_codes(group, group, tile_panels);
    if (bytes <= shared_bytes_max) return {group, quad_count, bytes};
  }
  return {};
}

size_t coarse_bytes_per_query(const coarse_plan& plan) {
  if (!plan.is_used()) return 0;
  return size_t{plan.list_capacity} * (sizeof(candidate) + sizeof(candidate_score)) +
         sizeof(bounded_query) + 256;
}

size_t coarse_bytes_per_padded_query(const coarse_plan& plan) {
  if (!plan.is_used()) return 0;
  return plan.shape.padded_dimension() + sizeof(int32_t) + sizeof(scan_weights) + sizeof(uint32_t);
}

batch_plan::batch_plan(const sagitta_device& device, const sagitta_batch& batch,
                       sagitta_device_block* const* residents)
    : device_(device), batch_(batch), residents_(residents), scopes_(batch) {
  lay_out_blocks();
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
    resident_block coarse = blocks_.back();
    coarse.panels = block.coarse.data();
    coarse_blocks_.push_back(coarse);
    // At least one tile, so that a tile number identifies its block.
    tile_count_ += std::max(1u, ceiling(batch_.blocks[b].row_count, tile_rows));
  }
}

void batch_plan::describe_queries() {
  const target& functions = selected_target();
  std::vector<double> widened(batch_.dimension);
  // For each scope, whether all its blocks have their values on the device.
  std::vector<uint8_t> has_values;
  for (const scope& one : scopes_.all()) {
    const sagitta_block_view* const views = batch_.views + one.first_view;
    has_values.push_back(std::all_of(views, views + one.view_count, [&](const sagitta_block_view& view) {
      return blocks_[view.block].values != nullptr;
    }));
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
    query.threshold = -unbounded;
    // Batch rows are 32-bit numbers.
    query.is_unsupported = scopes_.all()[query.scope].is_ambiguous || tile_count_ > no_row / tile_rows;
    const tuning& tuned = device_.tuning;
    const uint64_t wanted = tuned.spare_rows + uint64_t{tuned.rows_per_k} * from.k;
    query.list_rows = power_of_two_from(std::min<uint64_t>(wanted, 1u << 30));
    queries_.push_back(query);
  }
}

/** The queries of a slice need lists of one length and must fit into the workspace together. */
std::vector<slice> batch_plan::cut(std::vector<planned_query> sorted) const {
  std::vector<slice> slices;
  const auto key = [&](const planned_query& query) {
    // Groups of queries skip the tiles that none of them searches: those of other collections.
    const sagitta_block_view& first = batch_.views[batch_.queries[query.number].first_view];
    return std::tuple(query.list_rows, query.has_values, first.block,
                      reinterpret_cast<uintptr_t>(first.rows), query.scope, query.number);
  };
  std::sort(sorted.begin(), sorted.end(), [&](const planned_query& left, const planned_query& right) {
    return key(left) < key(right);
  });
  for (size_t at = 0; at < sorted.size();) {
    const planned_query& first = sorted[at];
    size_t end = at;
    while (end < sorted.size() && end - at < slice_queries_max &&
           sorted[end].list_rows == first.list_rows && sorted[end].has_values == first.has_values) {
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
    left.push_back(query);
  }
  return cut(std::move(left));
}

bool batch_plan::fits(const slice& made) const {
  const size_t each = bytes_per_query(batch_.dimension, made.list_capacity, made.found_max);
  const size_t coarse = made.queries.size() * coarse_bytes_per_query(made.coarse) +
                        made.padded_count * coarse_bytes_per_padded_query(made.coarse);
  return scope_bytes(made) + made.padded_count * each + coarse <= device_.workspace_bytes_max;
}

/** Returns the bytes of the views of a slice's scopes and groups, and of their bitmaps. */
size_t batch_plan::scope_bytes(const slice& made) const {
  std::unordered_set<const uint32_t*> seen;
  size_t groups = made.padded_count / made.shape.group;
  if (made.coarse.is_used()) groups += made.padded_count / made.coarse.shape.group;
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

  made.shape = choose_shape(device_.kind == scan_kind::wgmma ? std::max(count, 129u) : count,
                            batch_.dimension, device_.properties.sharedMemPerBlockOptin,
                            use_of_wgmma());
  if (made.shape.group == 0) return;
  made.padded_count = ceiling(count, made.shape.group) * made.shape.group;

  for (const planned_query& query : made.queries) {
    const bool gathered = is_gathered(made, query);
    made.is_gathered.push_back(gathered ? 1 : 0);
    if (!gathered && query.is_scannable) made.is_scanned = true;
  }

  if (!made.is_scanned) return;
  made.passes = passes_over(tile_count_, std::max<uint64_t>(1, dense_rows / tile_rows), growth_max);
  made.coarse = plan_coarse(made);
  if (made.coarse.is_used() && !fits(made)) made.coarse = {};
}

wgmma_use batch_plan::use_of_wgmma() const {
  const scan_kind kind = device_.kind;
  const tuning& tuned = device_.tuning;
  return {kind == scan_kind::wgmma_ring ? 1u : 65u,
          device_.has_wgmma && kind != scan_kind::mma ? tuned.wgmma_group_max : 0,
          kind == scan_kind::wgmma_ring ? tuned.ring_stages_max : 0};
}

bool batch_plan::may_use_coarse(const slice& made, bool is_forced) const {
  const tuning& tuned = device_.tuning;
  // The threshold comes from the passes before the last one.
  if (!device_.has_coarse || !has_coarse_codes(batch_.dimension) || made.passes.size() < 2) return false;
  if (made.queries.size() > tuned.coarse_queries_max || made.k_max > estimated_k_max) return false;
  for (size_t i = 0; i < made.queries.size(); i++) {
    const planned_query& query = made.queries[i];
    if (!query.has_values || query.is_repeated) return false;
    const uint64_t wanted = uint64_t{tuned.coarse_rows_per_k} * batch_.queries[query.number].k;
    const bool is_scanned = query.is_scannable && made.is_gathered[i] == 0;
    if (is_scanned && query.passing < wanted && !is_forced) return false;
  }
  return true;
}

coarse_plan batch_plan::plan_coarse(const slice& made) const {
  const tuning& tuned = device_.tuning;
  const bool is_forced = batch_.method == SAGITTA_METHOD_COARSE;
  if (batch_.method == SAGITTA_METHOD_TILES || !may_use_coarse(made, is_forced)) return {};
  const scan_pass& last = made.passes.back();
  const double rows = static_cast<double>(last.tile_count) * tile_rows;
  const double row_bytes = static_cast<double>(panel_bytes(batch_.dimension)) / panel_rows;
  const double coarse_row_bytes =
      static_cast<double>(coarse_panel_bytes(batch_.dimension)) / panel_rows;
  if (!is_forced && rows * row_bytes < static_cast<double>(tuned.coarse_bytes_min)) return {};
  coarse_plan plan{};
  plan.shape = choose_coarse_shape(static_cast<uint32_t>(made.queries.size()), batch_.dimension,
                                   device_.properties.sharedMemPerBlockOptin);
  if (!plan.is_used()) return {};
  plan.sample = plan.rest = last;
  plan.sample.part = scan_pass::part_kind::sample;
  plan.sample.tile_count = ceiling(last.tile_count, sample_stride);
  plan.rest.part = scan_pass::part_kind::rest;
  plan.rest.tile_count = last.tile_count - plan.sample.tile_count;
  plan.list_capacity = static_cast<uint32_t>(
      std::min<uint64_t>(tuned.coarse_list_rows, uint64_t{last.tile_count} * tile_rows));
  const double parts = static_cast<double>(last.tile_count) / plan.sample.tile_count;
  const double scored_bytes =
      scored_byte_cost * sizeof(float) * static_cast<double>(batch_.dimension);
  const double affordable = rows * (row_bytes - coarse_row_bytes) / scored_bytes / parts;
  plan.estimate_limit = static_cast<uint32_t>(
      is_forced ? estimate_limit_max : std::min(affordable, estimate_limit_max));
  // Leaves some room, because the extrapolation from the sample is not exact.
  const double room = std::min(plan.list_capacity, made.list_capacity) / 2.0;
  plan.rows_max = static_cast<uint32_t>(is_forced ? plan.list_capacity : room / parts);
  return plan;
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
