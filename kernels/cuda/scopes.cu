// Finds equal views and counts the rows that they let pass.

#include "scopes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "../search/passing.h"
#include "../target.h"

namespace sagitta::cuda {
namespace {

/** The first view of a query and the one after its last. */
using view_range = std::pair<const sagitta_block_view*, const sagitta_block_view*>;

bool is_view_before(const sagitta_block_view& left, const sagitta_block_view& right) {
  return std::tuple(reinterpret_cast<uintptr_t>(left.rows), left.block, left.row_count) <
         std::tuple(reinterpret_cast<uintptr_t>(right.rows), right.block, right.row_count);
}

/** An arbitrary order in which equal views are neither before nor after each other. */
struct views_before {
  bool operator()(const view_range& left, const view_range& right) const {
    if (left == right) return false;
    return std::lexicographical_compare(left.first, left.second, right.first, right.second, is_view_before);
  }
};

}  // namespace

batch_scopes::batch_scopes(const sagitta_batch& batch) : passing_(batch.view_count) {
  std::map<view_range, uint32_t, views_before> known;
  for (uint32_t q = 0; q < batch.query_count; q++) {
    const sagitta_query& query = batch.queries[q];
    const sagitta_block_view* const first = batch.views + query.first_view;
    const auto next = static_cast<uint32_t>(scopes_.size());
    const auto [at, is_new] = known.try_emplace({first, first + query.view_count}, next);
    if (is_new) scopes_.push_back({query.first_view, query.view_count, 0, 0, false});
    numbers_.push_back(at->second);
  }
  passing_counter counter(selected_target());
  std::vector<uint32_t> last_scope(batch.block_count, ~0u);
  for (uint32_t s = 0; s < scopes_.size(); s++) {
    scope& made = scopes_[s];
    for (uint32_t view = made.first_view; view < made.first_view + made.view_count; view++) {
      const sagitta_block_view& of = batch.views[view];
      passing_[view] = counter.count(of);
      made.passing += passing_[view];
      made.row_count += of.row_count;
      made.is_ambiguous |= last_scope[of.block] == s;
      last_scope[of.block] = s;
    }
  }
}

}  // namespace sagitta::cuda
