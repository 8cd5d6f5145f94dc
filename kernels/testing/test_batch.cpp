#include "test_batch.h"

namespace check {

void test_batch::add_block(const rows& rows, bool has_codes) {
  blocks.push_back(&rows);
  block_table.push_back(rows.block());
  if (!has_codes) {
    block_table.back().codes = nullptr;
    block_table.back().coarse = nullptr;
    block_table.back().refinement = nullptr;
    block_table.back().basis = nullptr;
    block_table.back().head = nullptr;
  }
  dimension = rows.dimension;
}

sagitta_query& test_batch::add_query(std::vector<float> vector, sagitta_metric metric,
                                     uint32_t k) {
  vectors.push_back(std::move(vector));
  sagitta_query query{};
  query.vector = vectors.back().data();
  query.metric = metric;
  query.k = k;
  query.floor = -std::numeric_limits<double>::infinity();
  query.first_view = static_cast<uint32_t>(views.size());
  queries.push_back(query);
  return queries.back();
}

void test_batch::add_view(uint32_t block, uint32_t row_count, const std::vector<uint32_t>* bitmap) {
  views.push_back({bitmap == nullptr ? nullptr : bitmap->data(), block, row_count});
  queries.back().view_count++;
}

void test_batch::add_random_query(random_source& random) {
  constexpr sagitta_metric metrics[] = {SAGITTA_COSINE, SAGITTA_DOT, SAGITTA_EUCLIDEAN,
                                      SAGITTA_JACCARD};
  constexpr uint32_t ks[] = {1, 2, 10, 33, 100, 10000};
  constexpr double probabilities[] = {0, 0.002, 0.1, 0.5, 0.9, 1};
  add_query(query_like(random, *blocks.front()), metrics[random.below(4)], ks[random.below(6)]);
  for (uint32_t b = 0; b < block_table.size(); b++) {
    if (random.below(8) == 0) continue;
    const uint32_t row_count = block_table[b].row_count;
    const uint32_t limit = random.below(4) == 0 ? random.below(row_count + 1) : row_count;
    if (random.below(2) == 0) {
      add_view(b, limit);
      continue;
    }
    if (random.below(3) != 0 && share_view(random, b)) continue;
    bitmaps.push_back(random_bitmap(random, row_count, probabilities[random.below(6)]));
    add_view(b, limit, &bitmaps.back());
  }
  if (queries.back().view_count > 0) restrict_last(random);
}

/** Adds an earlier view with a bitmap, if there is one, because queries share the work on these rows. */
bool test_batch::share_view(random_source& random, uint32_t block) {
  std::vector<sagitta_block_view> filtered;
  for (const sagitta_block_view& view : views) {
    if (view.block == block && view.rows != nullptr) filtered.push_back(view);
  }
  if (filtered.empty()) return false;
  views.push_back(filtered[random.below(static_cast<uint32_t>(filtered.size()))]);
  queries.back().view_count++;
  return true;
}

/** Sets a rank key or a score limit at a row, as pages and thresholds do. */
void test_batch::restrict_last(random_source& random) {
  sagitta_query& query = queries.back();
  const sagitta_block_view& view = views[query.first_view];
  if (view.row_count == 0) return;
  const rows& rows = *blocks[view.block];
  const uint32_t row = random.below(view.row_count);
  const double score = canonical(query.metric, query.vector, rows.row(row), rows.dimension);
  const uint32_t choice = random.below(4);
  if (choice == 0) query.floor = score;
  if (choice == 1) {
    query.after_score = score;
    query.after_id = rows.id_bytes.data() + rows.id_offsets[row];
    query.after_id_bytes = static_cast<uint32_t>(rows.id_offsets[row + 1] - rows.id_offsets[row]);
  }
}

sagitta_batch test_batch::view(uint32_t worker_count) const {
  return {block_table.data(),
          views.data(),
          queries.data(),
          static_cast<uint32_t>(block_table.size()),
          static_cast<uint32_t>(views.size()),
          static_cast<uint32_t>(queries.size()),
          dimension,
          worker_count,
          method};
}

}  // namespace check
