// What the queries of a batch search. Queries with equal views, as in requests that search the same rows of
// a collection, share a scope, so that data derived from the views is made only once for them.
#pragma once

#include <vector>

#include "../kernels.h"

namespace sagitta::cuda {

/** The views of one or more queries of a batch. */
struct scope {
  /** The index of the first view of the first query with this scope. */
  uint32_t first_view;
  uint32_t view_count;
  /** The number of rows that the views let pass, and of the rows that they have. */
  uint64_t passing;
  uint64_t row_count;
  /** Whether two views are of the same block, so that a row does not identify its view. */
  bool is_ambiguous;
};

class batch_scopes {
 public:
  explicit batch_scopes(const sagitta_batch& batch);
  /** The scopes in the order of their first queries. */
  const std::vector<scope>& all() const { return scopes_; }
  uint32_t number_of(uint32_t query) const { return numbers_[query]; }
  /** Returns the number of rows that a view of a scope lets pass. */
  uint32_t passing(uint32_t view) const { return passing_[view]; }

 private:
  std::vector<scope> scopes_;
  /** [query_count] */
  std::vector<uint32_t> numbers_;
  /** [view_count]; set only for the views of scopes. */
  std::vector<uint32_t> passing_;
};

}  // namespace sagitta::cuda
