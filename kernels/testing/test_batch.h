// Batches for tests: random queries over blocks that the caller owns.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "check.h"

namespace check {

/** A batch that borrows its rows and owns the rest. */
struct test_batch {
  std::vector<const rows*> blocks;
  /** Deques, because their elements do not move. */
  std::deque<std::vector<uint32_t>> bitmaps;
  std::deque<std::vector<float>> vectors;
  std::vector<sagitta_block> block_table;
  std::vector<sagitta_block_view> views;
  std::vector<sagitta_query> queries;
  uint32_t dimension = 0;
  sagitta_method method = SAGITTA_METHOD_AUTO;

  void add_block(const rows& rows, bool has_codes = true);
  sagitta_query& add_query(std::vector<float> vector, sagitta_metric metric, uint32_t k);
  /** Adds a view to the last query. The bitmap may be one of `bitmaps`. */
  void add_view(uint32_t block, uint32_t row_count, const std::vector<uint32_t>* bitmap = nullptr);
  /**
   * Adds a query with any metric and k, most blocks, and bitmaps of all densities; half have a rank key or
   * score limit.
   */
  void add_random_query(random_source& random);
  sagitta_batch view(uint32_t worker_count) const;

 private:
  bool share_view(random_source& random, uint32_t block);
  void restrict_last(random_source& random);
};

}  // namespace check
