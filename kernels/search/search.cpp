#include "search.h"

#include <algorithm>
#include <new>

#include "../layout.h"

namespace sagitta {
namespace {

/** Rows gathered before they are scored together. */
constexpr uint32_t gathered_rows = 256;

/** Rows whose bitmap is tested together: their codes are skipped if no query searches any of them. */
constexpr uint32_t skipped_rows = 4 * panel_rows;
static_assert(skipped_rows == 64);

bool has_bits(const sagitta_block_view& view, uint32_t from) {
  if (from >= view.row_count) return false;
  if (view.rows == nullptr) return true;
  const uint32_t word = from / 32;
  const bool has_second = from + 32 < view.row_count;
  return (view.rows[word] | (has_second ? view.rows[word + 1] : 0)) != 0;
}

}  // namespace

sagitta_status search::status() const {
  if (has_failed_.load()) return SAGITTA_OUT_OF_MEMORY;
  return is_cancelled_.load() ? SAGITTA_CANCELLED : SAGITTA_OK;
}

bool search::work() {
  const uint32_t slot = next_worker_.fetch_add(1);
  if (slot >= workers_.size()) return false;
  const auto range_count = static_cast<uint32_t>(ranges_.size());
  for (uint32_t next; (next = next_range_.fetch_add(1)) < range_count;) {
    try {
      if (!is_cancelled_.load(std::memory_order_relaxed) && !has_failed_.load()) {
        run_range(workers_[slot], ranges_[next]);
      }
    } catch (const std::bad_alloc&) {
      has_failed_ = true;
    }
    if (ranges_done_.fetch_add(1) + 1 == range_count) ranges_done_.notify_all();
  }
  wait_for_ranges();
  for (uint32_t next; (next = next_query_.fetch_add(1)) < queries_.size();) {
    try {
      if (!is_cancelled_.load(std::memory_order_relaxed) && !has_failed_.load()) finish_query(next);
    } catch (const std::bad_alloc&) {
      has_failed_ = true;
    }
    if (queries_done_.fetch_add(1) + 1 == queries_.size()) {
      is_done_ = true;
      return true;
    }
  }
  if (!queries_.empty() || slot != 0) return false;
  is_done_ = true;
  return true;
}

/** Waits for the ranges that other threads are scanning: at most one range each. */
void search::wait_for_ranges() {
  const auto range_count = static_cast<uint32_t>(ranges_.size());
  for (uint32_t done; (done = ranges_done_.load()) < range_count;) ranges_done_.wait(done);
}

query_state& search::state_of(worker& self, uint32_t query) {
  if (self.states.empty()) self.states.resize(queries_.size());
  query_state& state = self.states[query];
  if (!state.is_started()) {
    state.start(context_, queries_[query], bounds_[query], passing_[query]);
  }
  return state;
}

void search::run_range(worker& self, row_range range) {
  const std::vector<planned_view>& planned = plans_[range.block].views;
  if (!planned.empty() && !planned.front().is_gathered) {
    const size_t stride = panel_bytes(dimension_);
    const uint8_t* const panels = blocks_[range.block].codes + range.from / panel_rows * stride;
    range.limits = functions_->limit_rows(panels, stride, range.to - range.from);
  }
  const auto is_group = [&](const planned_view& first, const planned_view& next) {
    return queries_[first.query].has_after == queries_[next.query].has_after;
  };
  for (size_t at = 0; at < planned.size();) {
    if (views_[planned[at].view].row_count <= range.from) {
      at++;
    } else if (planned[at].is_gathered) {
      gather_range(self, range, planned[at++]);
    } else {
      planned_view group[query_group_max];
      uint32_t count = 0;
      const planned_view& first = planned[at];
      for (; at < planned.size() && count < functions_->query_group; at++) {
        if (planned[at].is_gathered || !is_group(first, planned[at])) break;
        if (views_[planned[at].view].row_count > range.from) group[count++] = planned[at];
      }
      scan_range(self, range, group, count);
    }
  }
}

void search::scan_range(worker& self, const row_range& range, const planned_view* planned,
                        uint32_t planned_count) {
  struct emit_context {
    const planned_view* planned;
    query_state* states[query_group_max];
    const uint8_t* panels;
    size_t stride;
    uint32_t first_row;
  };
  emit_context context{};
  scan_query* queries[query_group_max];
  context.planned = planned;
  context.stride = panel_bytes(dimension_);
  for (uint32_t i = 0; i < planned_count; i++) {
    context.states[i] = &state_of(self, planned[i].query);
    queries[i] = &context.states[i]->current_scan();
  }
  scan_task task{};
  task.step_count = step_count(dimension_);
  task.queries = queries;
  task.query_count = planned_count;
  task.context = &context;
  task.limits = range.limits;
  task.emit = [](void* opaque, uint32_t query, uint32_t panel, uint32_t survivors,
                 const int32_t* sums) {
    const auto& known = *static_cast<const emit_context*>(opaque);
    const auto& facts =
        *reinterpret_cast<const panel_facts*>(known.panels + panel * known.stride);
    known.states[query]->add_survivors(known.planned[query].view,
                                    known.first_row + panel * panel_rows, survivors, sums, facts);
  };
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
    context.panels = blocks_[range.block].codes + from / panel_rows * context.stride;
    context.first_row = from;
    task.panels = context.panels;
    task.panel_count = panel_count(to - from);
    functions_->scan(task);
    from = to;
  }
}

void search::gather_range(worker& self, const row_range& range, const planned_view& one) {
  const sagitta_block_view& view = views_[one.view];
  query_state& state = state_of(self, one.query);
  const uint32_t end = std::min(range.to, view.row_count);
  uint32_t rows[gathered_rows];
  uint32_t count = 0;
  const auto gather = [&](uint32_t row) {
    rows[count++] = row;
    if (count < gathered_rows) return;
    state.score(one.view, rows, count);
    count = 0;
  };
  if (view.rows == nullptr) {
    for (uint32_t row = range.from; row < end; row++) gather(row);
  } else {
    for (uint32_t from = range.from; from < end; from += 32) {
      uint32_t word = view.rows[from / 32];
      if (end - from < 32) word &= ~(~0u << (end - from));
      for (; word != 0; word &= word - 1) {
        gather(from + static_cast<uint32_t>(__builtin_ctz(word)));
      }
    }
  }
  state.score(one.view, rows, count);
}

void search::finish_query(uint32_t query) {
  query_state* merged = nullptr;
  for (worker& self : workers_) {
    if (self.states.empty() || !self.states[query].is_started()) continue;
    if (merged == nullptr) merged = &self.states[query];
    else merged->merge(self.states[query]);
  }
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

sagitta_hits search::hits(uint32_t query) const {
  const answer& found = answers_[query];
  return {found.views.data(),  found.rows.data(), found.scores.data(),
          static_cast<uint32_t>(found.rows.size()), passing_[query], found.rescored_count};
}

}  // namespace sagitta
