// What the queries of a batch search. Queries with equal views, as requests have that search the same rows
// of a collection, share a scope: what is made of views on the host and on the device is made once for them.
#pragma once

#include <vector>

#include "../kernels.h"

namespace sagitta::cuda {

/** The views of one or more queries of a batch. */
struct scope {
  /** The place of the views of the first query that has them. */
  uint32_t first_view;
  uint32_t view_count;
  /** Rows that the views let pass, of the rows that they have. */
  uint64_t passing;
  uint64_t row_count;
  /** Two views are of the same block, so that a row does not tell its view. */
  bool is_ambiguous;
};

class batch_scopes {
 public:
  explicit batch_scopes(const sagitta_batch& batch);
  /** In the order of their first queries. */
  const std::vector<scope>& all() const { return scopes_; }
  uint32_t number_of(uint32_t query) const { return numbers_[query]; }
  /** Rows that a view of a scope lets pass. */
  uint32_t passing(uint32_t view) const { return passing_[view]; }

 private:
  std::vector<scope> scopes_;
  /** [query_count] */
  std::vector<uint32_t> numbers_;
  /** [view_count]; set for the views of scopes only. */
  std::vector<uint32_t> passing_;
};

}  // namespace sagitta::cuda
