#include "search.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "../layout.h"
#include "learned_shares.h"
#include "passing.h"

namespace sagitta {
namespace {

/**
 * A query considers after one part in this many of its rows, shared by the threads, whether to leave coarse codes,
 * and decides after four such parts, from which the last scores can be told much better.
 */
constexpr uint64_t sampled_part = 28;
constexpr uint64_t decisive_parts = 4;

/** Candidates are scored together if there are at least this many on average over all rows. */
constexpr uint64_t shared_candidates_per_row = 2;

/** Rows whose bitmaps are tested together: their codes are skipped if no query searches any of them. */
constexpr uint32_t skipped_rows = 4 * panel_rows;

void prefetch_coarse_row(const uint8_t* panel, uint32_t lane, uint32_t row_bytes) {
  constexpr uint32_t line_bytes = 64;
  for (uint32_t i = 0; i < 4; i++) __builtin_prefetch(panel + i * line_bytes);
  const uint8_t* const codes = panel + fact_bytes + lane * row_bytes;
  for (uint32_t i = 0; i < row_bytes; i += line_bytes) __builtin_prefetch(codes + i);
}

bool has_same_rows(const sagitta_block_view& left, const sagitta_block_view& right) {
  return left.rows == right.rows && left.row_count == right.row_count;
}

/** Whether the view searches any of the rows that are tested together, from the first row of a panel on. */
bool has_bits(const sagitta_block_view& view, uint32_t from) {
  if (from >= view.row_count) return false;
  if (view.rows == nullptr) return true;
  const uint32_t end = std::min(view.row_count, from + skipped_rows);
  // A panel may begin in the middle of a word.
  for (uint32_t word = from / 32; word * 32 < end; word++) {
    if (view.rows[word] != 0) return true;
  }
  return false;
}

}  // namespace

bool search::work() {
  const uint32_t slot = next_worker_.fetch_add(1);
  if (slot >= workers_.size()) return false;
  worker& self = workers_[slot];
  const auto range_count = static_cast<uint32_t>(ranges_.size());
  const uint32_t queries = query_count();
  // A thread refines its rows before its ranges count as done, since its states are merged after that.
  scanning_.take(
      range_count, [&](uint32_t range) { guard([&] { run_range(self, ranges_[range]); }); },
      [&] { guard([&] { refine_all(self); }); });
  scanning_.wait(range_count);
  if (may_share_) score_together(self);
  const bool is_last = finishing_.take(queries, [&](uint32_t query) {
    guard([&] { finish_query(query); });
  });
  if (!is_last && !(queries == 0 && slot == 0)) return false;
  if (status() == SAGITTA_OK) observe_shares();
  is_done_ = true;
  return true;
}

query_state& search::state_of(worker& self, uint32_t query) {
  if (self.states.empty()) self.states.resize(queries_.size());
  query_state& state = self.states[query];
  if (!state.is_started()) {
    state.start(context_, queries_[query], bounds_[query], passing_[query]);
  }
  return state;
}

search::coarse_progress& search::progress_of(worker& self, uint32_t query) {
  if (self.progress.empty()) self.progress.resize(queries_.size());
  return self.progress[query];
}

bool search::has_left_coarse(worker& self, uint32_t block, uint32_t query) {
  return progress_of(self, query).uses_tiles && blocks_[block].codes != nullptr;
}

void search::run_range(worker& self, const row_range& range) {
  const std::vector<planned_view>& planned = plans_[range.block].views;
  // Tiles come first: a query that changes to tiles in this range has then scanned it.
  scan_tiles(self, range, [&](const planned_view& one) {
    if (one.how == method::tiles) return true;
    return one.how == method::coarse && has_left_coarse(self, range.block, one.query);
  });
  scan_coarse(self, range);
  for (const planned_view& one : planned) {
    if (views_[one.view].row_count <= range.from) continue;
    if (one.how == method::coarse_rows) gather_coarse(self, range, one);
  }
  for (auto first = planned.begin(); first != planned.end();) {
    const auto last = std::find_if(first, planned.end(), [&](const planned_view& one) {
      return !is_gathered_with(one, *first);
    });
    if (is_gathered(*first)) gather_range(self, range, &*first, static_cast<uint32_t>(last - first));
    first = last;
  }
}

bool search::is_gathered(const planned_view& one) {
  return one.how == method::packed || one.how == method::gather;
}

/** Whether two views that are next to each other in a plan read the same rows in the same way. */
bool search::is_gathered_with(const planned_view& left, const planned_view& right) const {
  return left.how == right.how && has_same_rows(views_[left.view], views_[right.view]) &&
         queries_[left.query].has_after == queries_[right.query].has_after;
}

template <class IsWanted>
void search::scan_tiles(worker& self, const row_range& range, const IsWanted& is_wanted) {
  /** The views to scan together, by level of head tiles or for all dimensions. */
  struct scanned_group {
    planned_view views[query_group_max];
    uint32_t count = 0;
    /** Set once they are needed. */
    std::optional<row_limits> limits;
  };
  scanned_group groups[all_dimensions + 1];
  // A single query is limited by the bytes it reads.
  const bool is_alone = plans_[range.block].views.size() == 1;
  const auto scan_level = [&](uint32_t level) {
    scanned_group& group = groups[level];
    const uint32_t count = std::exchange(group.count, 0);
    if (count == 0) return;
    if (level == 0 && is_alone && state_of(self, group.views[0].query).may_halve()) {
      scan_head_in_halves(self, range, group.views[0]);
    } else {
      const scanned_codes codes = level < all_dimensions ? head_of(range.block, level) : tiles_of(range.block);
      // The test of a whole panel saves time only if several queries share it.
      if (!group.limits.has_value()) group.limits = is_alone ? unlimited_rows : limits_of(codes, range);
      scan_range(self, range, codes, *group.limits, group.views, count);
    }
    if (level == all_dimensions) return;
    for (uint32_t i = 0; i < count; i++) {
      state_of(self, group.views[i].query).review_level(level, range.to - range.from, plans_[range.block].costs);
    }
  };
  for (const planned_view& one : plans_[range.block].views) {
    if (views_[one.view].row_count <= range.from || !is_wanted(one)) continue;
    const uint32_t level = choose_level(self, range, one);
    scanned_group& group = groups[level];
    const bool is_group =
        group.count == 0 || queries_[group.views[0].query].has_after == queries_[one.query].has_after;
    if (!is_group || group.count == functions_->query_group) scan_level(level);
    group.views[group.count++] = one;
  }
  for (uint32_t level = 0; level <= all_dimensions; level++) scan_level(level);
}

uint32_t search::choose_level(worker& self, const row_range& range, const planned_view& one) {
  const bool has_head = one.how == method::tiles && one.has_head;
  if (!has_head) return all_dimensions;
  return state_of(self, one.query).choose_level(basis_numbers_[range.block], range.to - range.from);
}

search::scanned_codes search::tiles_of(uint32_t block) const {
  const uint8_t* const panels = blocks_[block].codes;
  return {scanned_codes::tiles, 0, panels, panel_bytes(dimension_), dimension_, {panels + fact_bytes, nullptr}};
}

search::scanned_codes search::coarse_codes_of(uint32_t block) const {
  return {scanned_codes::coarse, 0, blocks_[block].coarse, coarse_panel_bytes(dimension_), dimension_, {}};
}

search::scanned_codes search::head_of(uint32_t block, uint32_t level) const {
  const head_scan scanned = head_scan_of(blocks_[block].head, blocks_[block].head_bytes, level);
  return {scanned_codes::head, level, scanned.panels, half_panel_bytes(dimension_),
          directions_of_level(dimension_, level), scanned.codes};
}

row_limits search::limits_of(const scanned_codes& codes, const row_range& range) const {
  const uint8_t* const panels = codes.panels + range.from / panel_rows * codes.stride;
  return functions_->limit_rows(panels, codes.stride, range.to - range.from);
}

scan_query& search::scan_of(query_state& state, const scanned_codes& codes, uint32_t block) const {
  switch (codes.kind) {
    case scanned_codes::tiles: return state.current_scan();
    case scanned_codes::coarse: return state.current_coarse_scan();
    case scanned_codes::head:
    case scanned_codes::listed_head: break;
  }
  return state.current_head_scan(basis_numbers_[block], codes.level);
}

search::scan_function search::scan_function_of(const scanned_codes& codes) const {
  switch (codes.kind) {
    case scanned_codes::tiles: return functions_->tiles.scan;
    case scanned_codes::coarse: return functions_->scan_coarse;
    case scanned_codes::head:
    case scanned_codes::listed_head: break;
  }
  return functions_->head.scan;
}

void search::scan_head_in_halves(worker& self, const row_range& range, const planned_view& one) {
  scanned_codes half = head_of(range.block, 1);
  half.kind = scanned_codes::listed_head;
  self.left_panels.clear();
  scan_range(self, range, half, unlimited_rows, &one, 1);
  const std::vector<uint32_t>& left = self.left_panels;
  for (size_t first = 0; first < left.size();) {
    size_t last = first + 1;
    while (last < left.size() && left[last] == left[last - 1] + 1) last++;
    const row_range run = {range.block, left[first] * panel_rows,
                           std::min(range.to, (left[last - 1] + 1) * panel_rows)};
    scan_range(self, run, head_of(range.block, 0), unlimited_rows, &one, 1);
    first = last;
  }
  state_of(self, one.query).review_halves(static_cast<double>(left.size()) / panel_count(range.to - range.from));
}

void search::scan_coarse(worker& self, const row_range& range) {
  planned_view group[coarse_group];
  uint32_t count = 0;
  const auto scan_group = [&] {
    if (count == 0) return;
    scan_range(self, range, coarse_codes_of(range.block), {}, group, count);
    for (uint32_t i = 0; i < count; i++) review_coarse(self, range, group[i]);
    count = 0;
  };
  for (const planned_view& one : plans_[range.block].views) {
    if (one.how != method::coarse) break;
    if (views_[one.view].row_count <= range.from) continue;
    if (has_left_coarse(self, range.block, one.query)) continue;
    const bool is_group =
        count == 0 || queries_[group[0].query].has_after == queries_[one.query].has_after;
    if (!is_group || count == coarse_group) scan_group();
    group[count++] = one;
  }
  scan_group();
}

void search::review_coarse(worker& self, const row_range& range, const planned_view& one) {
  coarse_progress& progress = progress_of(self, one.query);
  const bool has_choice = blocks_[range.block].codes != nullptr && method_ != SAGITTA_METHOD_COARSE;
  if (!has_choice) progress.is_decided = true;
  if (!progress.is_decided) progress.undecided.push_back(range);
  progress.row_count += std::min(range.to, views_[one.view].row_count) - range.from;
  if (progress.row_count < progress.next_review) return;
  const uint64_t sampled = searched_[one.query] / (workers_.size() * sampled_part);
  if (!progress.is_decided && progress.row_count >= std::max(sampled, progress.next_decision)) {
    decide_method(self, one.query, plans_[range.block]);
    if (progress.uses_tiles) return;
    progress.next_decision = decisive_parts * sampled;
  }
  progress.next_review = 4 * progress.row_count;
  if (!progress.is_decided) {
    progress.next_review = std::min(progress.next_review, std::max(sampled, progress.next_decision));
  }
  state_of(self, one.query).score_best_estimates(!progress.is_decided);
}

void search::decide_method(worker& self, uint32_t query, const block_plan& plan) {
  coarse_progress& progress = progress_of(self, query);
  query_state& state = state_of(self, query);
  const expected_shares left = state.expect(progress.row_count, searched_[query]);
  const double coarse_ns =
      plan.costs.coarse + left.refined * plan.costs.refined + left.scored * plan.costs.canonical;
  progress.uses_tiles = coarse_ns > plan.costs.tiles;
  progress.is_decided = progress.uses_tiles || progress.next_decision > 0;
  if (!progress.is_decided) return;
  if (progress.uses_tiles) {
    // Refining the rows would cost more. None of them has been used as a proof.
    state.forget(progress.undecided);
    for (const row_range& range : progress.undecided) {
      scan_tiles(self, range, [&](const planned_view& one) {
        return one.query == query && one.how == method::coarse;
      });
    }
  }
  progress.undecided = {};
}

void search::refine_all(worker& self) {
  for (query_state& state : self.states) {
    if (!state.is_started()) continue;
    state.refine();
    // Otherwise one thread finishes each query later.
    if (query_count() < workers_.size()) state.rescore();
  }
}

void search::scan_range(worker& self, const row_range& range, const scanned_codes& codes,
                        const row_limits& limits, const planned_view* planned,
                        uint32_t planned_count) {
  constexpr uint32_t group_max = std::max(query_group_max, coarse_group);
  struct emit_context {
    const planned_view* planned;
    query_state* states[group_max];
    const scanned_codes* codes;
    const uint8_t* panels;
    uint32_t first_row;
    std::vector<uint32_t>* left_panels;
  };
  emit_context context{};
  scan_query* queries[group_max];
  context.planned = planned;
  context.left_panels = &self.left_panels;
  context.codes = &codes;
  for (uint32_t i = 0; i < planned_count; i++) {
    query_state& state = state_of(self, planned[i].query);
    context.states[i] = &state;
    queries[i] = &scan_of(state, codes, range.block);
  }
  scan_task task{};
  task.dimension = codes.dimension;
  task.stride = codes.stride;
  task.queries = queries;
  task.query_count = planned_count;
  task.context = &context;
  task.limits = limits;
  task.emit = [](void* opaque, uint32_t query, uint32_t panel, uint32_t survivors,
                 const int32_t* sums) {
    const auto& known = *static_cast<const emit_context*>(opaque);
    const planned_view& one = known.planned[query];
    const uint32_t first_row = known.first_row + panel * panel_rows;
    if (known.codes->kind == scanned_codes::listed_head) {
      known.left_panels->push_back(first_row / panel_rows);
      return;
    }
    const auto& facts =
        *reinterpret_cast<const panel_facts*>(known.panels + panel * known.codes->stride);
    query_state& state = *known.states[query];
    switch (known.codes->kind) {
      case scanned_codes::tiles: return state.add_survivors(one.view, first_row, survivors, sums, facts);
      case scanned_codes::coarse: return state.add_coarse_survivors(one.view, first_row, survivors, sums, facts);
      case scanned_codes::head: return state.add_head_survivors(one.view, first_row, survivors, sums, facts);
      case scanned_codes::listed_head: break;
    }
  };
  const auto scan = scan_function_of(codes);
  const auto is_wanted = [&](uint32_t from) {
    for (uint32_t i = 0; i < planned_count; i++) {
      if (has_bits(views_[planned[i].view], from)) return true;
    }
    return false;
  };
  // Scans runs of rows that some query searches; the codes of other rows are not read.
  for (uint32_t from = range.from; from < range.to;) {
    if (!is_wanted(from)) {
      from += skipped_rows;
      continue;
    }
    uint32_t to = from + skipped_rows;
    while (to < range.to && is_wanted(to)) to += skipped_rows;
    to = std::min(to, range.to);
    const size_t place = from / panel_rows * codes.stride;
    context.panels = codes.panels + place;
    context.first_row = from;
    task.codes.first = codes.codes.first + place;
    if (codes.codes.second != nullptr) task.codes.second = codes.codes.second + place;
    task.panels = context.panels;
    task.panel_count = panel_count(to - from);
    scan(task);
    from = to;
  }
}

void search::gather_range(worker& self, const row_range& range, const planned_view* same,
                          uint32_t count) {
  uint32_t rows[gathered_rows];
  uint32_t row_count = 0;
  const auto take_all = [&] {
    if (row_count == 0) return;
    if (same->how == method::packed) scan_rows(self, range, rows, row_count, same, count);
    else score_rows(self, range, rows, row_count, same, count);
    row_count = 0;
  };
  for_each_row(range.from, range.to, views_[same->view], [&](uint32_t row) {
    rows[row_count++] = row;
    if (row_count == gathered_rows_) take_all();
  });
  take_all();
}

void search::score_rows(worker& self, const row_range& range, const uint32_t* rows,
                        uint32_t row_count, const planned_view* same, uint32_t count) {
  double squares[gathered_rows];
  // This also reads the rows into the cache.
  if (count > 1) compute_squares(blocks_[range.block].values, rows, row_count, squares);
  for (uint32_t i = 0; i < count; i++) {
    state_of(self, same[i].query)
        .score(same[i].view, rows, row_count, count > 1 ? squares : nullptr);
  }
}

void search::scan_rows(worker& self, const row_range& range, const uint32_t* rows,
                       uint32_t row_count, const planned_view* same, uint32_t count) {
  struct emit_context {
    const planned_view* planned;
    query_state* states[query_group_max];
    const uint8_t* panels;
    size_t stride;
    const uint32_t* rows;
    uint32_t row_count;
  };
  emit_context context{};
  scan_query* queries[query_group_max];
  context.stride = panel_bytes(dimension_);
  context.panels = pack_rows(self, blocks_[range.block].codes, rows, row_count);
  context.rows = rows;
  context.row_count = row_count;
  scan_task task{};
  task.panels = context.panels;
  task.panel_count = panel_count(row_count);
  task.stride = context.stride;
  task.codes = {task.panels + fact_bytes, nullptr};
  task.dimension = dimension_;
  task.queries = queries;
  task.limits = functions_->limit_rows(context.panels, context.stride, row_count);
  task.context = &context;
  task.emit = [](void* opaque, uint32_t query, uint32_t panel, uint32_t survivors,
                 const int32_t* sums) {
    const auto& known = *static_cast<const emit_context*>(opaque);
    const uint32_t first = panel * panel_rows;
    if (known.row_count - first < panel_rows) survivors &= (1u << (known.row_count - first)) - 1;
    known.states[query]->add_packed_survivors(
        known.planned[query].view, known.rows + first, survivors, sums,
        *reinterpret_cast<const panel_facts*>(known.panels + panel * known.stride));
  };
  for (uint32_t first = 0; first < count; first += functions_->query_group) {
    context.planned = same + first;
    task.query_count = std::min(functions_->query_group, count - first);
    for (uint32_t i = 0; i < task.query_count; i++) {
      context.states[i] = &state_of(self, context.planned[i].query);
      queries[i] = &context.states[i]->current_scan();
    }
    functions_->tiles.scan(task);
  }
}

uint8_t* search::pack_rows(worker& self, const uint8_t* panels, const uint32_t* rows,
                           uint32_t row_count) const {
  const size_t stride = panel_bytes(dimension_);
  self.packed.resize(panel_count(gathered_rows_) * stride / sizeof(cache_line));
  uint8_t* const packed = self.packed.front().bytes;
  for (uint32_t i = 0; i < row_count; i++) {
    // Facts and codes alike are stored in lines of 16 values of four bytes, one per row.
    const uint8_t* const from = panels + rows[i] / panel_rows * stride + rows[i] % panel_rows * 4;
    uint8_t* const to = packed + i / panel_rows * stride + i % panel_rows * 4;
    for (size_t at = 0; at < stride; at += sizeof(cache_line)) std::memcpy(to + at, from + at, 4);
  }
  return packed;
}

void search::compute_squares(const float* values, const uint32_t* rows, uint32_t count,
                             double* squares) const {
  for (uint32_t first = 0; first < count; first += canonical_rows) {
    const uint32_t together = std::min(count - first, canonical_rows);
    const float* pointers[canonical_rows];
    double products[canonical_rows];
    for (uint32_t i = 0; i < together; i++) {
      pointers[i] = values + size_t{rows[first + i]} * dimension_;
    }
    functions_->products(queries_[0].values, dimension_, pointers, together, products,
                         squares + first);
  }
}

void search::gather_coarse(worker& self, const row_range& range, const planned_view& one) {
  const prepared_query& query = queries_[one.query];
  query_state& state = state_of(self, one.query);
  state.current_coarse_scan();
  const coarse_query packed = {query.rotated.packed, query.rotated.first_offset, dimension_};
  const size_t stride = coarse_panel_bytes(dimension_);
  const uint32_t row_bytes = coarse_row_bytes(dimension_);
  const uint8_t* const panels = blocks_[range.block].coarse;
  uint32_t rows[gathered_rows];
  uint32_t count = 0;
  const auto take_all = [&] {
    uint32_t fetched = 0;
    for (uint32_t first = 0; first < count; first += panel_rows) {
      const uint32_t together = std::min(count - first, panel_rows);
      for (; fetched < std::min(count, first + 3 * panel_rows); fetched++) {
        const uint8_t* const panel = panels + rows[fetched] / panel_rows * stride;
        prefetch_coarse_row(panel, rows[fetched] % panel_rows, row_bytes);
      }
      const uint8_t* codes[panel_rows];
      int32_t sums[panel_rows];
      for (uint32_t i = 0; i < together; i++) {
        const uint32_t row = rows[first + i];
        codes[i] = panels + row / panel_rows * stride + fact_bytes + row % panel_rows * row_bytes;
      }
      functions_->coarse_sums(packed, codes, together, sums);
      for (uint32_t i = 0; i < together; i++) {
        const uint32_t row = rows[first + i];
        const auto& facts =
            *reinterpret_cast<const panel_facts*>(panels + row / panel_rows * stride);
        state.add_coarse_row(one.view, row, sums[i], facts_of(facts, row % panel_rows));
      }
    }
    count = 0;
  };
  for_each_row(range.from, range.to, views_[one.view], [&](uint32_t row) {
    rows[count++] = row;
    if (count == gathered_rows) take_all();
  });
  take_all();
  coarse_progress& progress = progress_of(self, one.query);
  progress.row_count += range.to - range.from;
  if (progress.row_count < progress.next_review) return;
  progress.next_review = 4 * progress.row_count;
  state.score_best_estimates();
}

void search::merge_query(uint32_t query) {
  query_state*& merged = merged_[query];
  if (merged != nullptr) return;
  for (worker& self : workers_) {
    if (self.states.empty() || !self.states[query].is_started()) continue;
    if (merged == nullptr) merged = &self.states[query];
    else merged->merge(self.states[query]);
  }
}

void search::score_together(worker& self) {
  const uint32_t queries = query_count();
  merging_.take(queries, [&](uint32_t query) {
    guard([&] {
      merge_query(query);
      if (merged_[query] != nullptr) candidate_count_ += merged_[query]->count_candidates();
    });
  });
  merging_.wait(queries);
  if (candidate_count_.load() < shared_candidates_per_row * row_count_) return;
  const auto each_query = [&](phase& phase, const auto& run) {
    phase.take(queries, [&](uint32_t query) {
      if (merged_[query] != nullptr) guard([&] { run(*merged_[query]); });
    });
    phase.wait(queries);
  };
  for (uint32_t round = 0; round < 2; round++) {
    each_query(rounds_[round].selecting, [&](query_state& state) {
      state.take_scores();
      state.select_candidates(round == 1);
    });
    guard([&] { self.cursors.assign(queries, 0); });
    const auto range_count = static_cast<uint32_t>(shared_ranges_.size());
    rounds_[round].scoring.take(range_count, [&](uint32_t range) {
      guard([&] { score_range(self, shared_ranges_[range]); });
    });
    rounds_[round].scoring.wait(range_count);
  }
  each_query(taking_, [](query_state& state) { state.take_scores(); });
}

void search::score_range(worker& self, const row_range& range) {
  double squares[gathered_rows];
  bool has_squares = false;
  const auto is_before = [&](const candidate& row) {
    const uint32_t block = views_[row.view].block;
    return block != range.block ? block < range.block : row.row < range.from;
  };
  const auto is_inside = [&](const candidate& row) {
    return views_[row.view].block == range.block && row.row < range.to;
  };
  for (uint32_t query = 0; query < query_count(); query++) {
    if (merged_[query] == nullptr) continue;
    query_state& state = *merged_[query];
    const std::vector<candidate>& selected = state.selected();
    uint32_t& next = self.cursors[query];
    while (next < selected.size() && is_before(selected[next])) next++;
    while (next < selected.size() && is_inside(selected[next])) {
      if (!has_squares) compute_squares(range, squares);
      has_squares = true;
      const uint32_t view = selected[next].view;
      uint32_t rows[canonical_rows];
      double known[canonical_rows];
      uint32_t count = 0;
      for (uint32_t at = next; count < canonical_rows && at < selected.size(); at++, count++) {
        const candidate& row = selected[at];
        if (row.view != view || row.row >= range.to) break;
        rows[count] = row.row;
        known[count] = squares[row.row - range.from];
      }
      state.scores_of(view, rows, count, known, state.selected_scores() + next);
      next += count;
    }
  }
}

void search::compute_squares(const row_range& range, double* squares) const {
  uint32_t rows[gathered_rows];
  const uint32_t count = range.to - range.from;
  for (uint32_t i = 0; i < count; i++) rows[i] = range.from + i;
  compute_squares(blocks_[range.block].values, rows, count, squares);
}

void search::finish_query(uint32_t query) {
  merge_query(query);
  query_state* const merged = merged_[query];
  if (merged == nullptr) return;
  merged->finish();
  answer& found = answers_[query];
  for (const scored_row& row : merged->top()) {
    found.views.push_back(row.view - queries_[query].first_view);
    found.rows.push_back(row.row);
    found.scores.push_back(row.score);
  }
  found.rescored_count = merged->rescored_count();
}

void search::observe_shares() const {
  for (uint32_t b = 0; b < plans_.size(); b++) {
    for (const planned_view& one : plans_[b].views) {
      if (one.how != method::coarse_rows) continue;
      const auto passing = static_cast<double>(passing_[one.query]);
      const double share = static_cast<double>(answers_[one.query].rescored_count) / passing;
      observe_scored_share(blocks_[b].coarse, passing_[one.query] / queries_[one.query].k, share);
    }
  }
}

sagitta_hits search::hits(uint32_t query) const {
  const answer& found = answers_[query];
  return {found.views.data(),  found.rows.data(), found.scores.data(),
          static_cast<uint32_t>(found.rows.size()), passing_[query], found.rescored_count};
}

}  // namespace sagitta
