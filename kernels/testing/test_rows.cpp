// Compares scores of chosen rows, to the bit, and counts of rows before rank keys with brute force.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "test_batch.h"

namespace check {
namespace {

constexpr sagitta_metric metrics[] = {SAGITTA_COSINE, SAGITTA_DOT, SAGITTA_EUCLIDEAN,
                                      SAGITTA_JACCARD};

bool is_same(double left, double right) { return std::memcmp(&left, &right, sizeof left) == 0; }

/** Returns arbitrary rows in any order, some of them more than once. */
std::vector<uint32_t> random_rows(random_source& random, uint32_t row_count, uint32_t count) {
  std::vector<uint32_t> chosen(count);
  for (uint32_t& row : chosen) row = random.below(row_count);
  return chosen;
}

void check_scores(random_source& random, const rows& rows, uint32_t vector_count, uint32_t count) {
  std::vector<float> vectors;
  for (uint32_t v = 0; v < vector_count; v++) {
    const std::vector<float> vector = query_like(random, rows);
    vectors.insert(vectors.end(), vector.begin(), vector.end());
  }
  const std::vector<uint32_t> chosen = random_rows(random, rows.row_count, count);
  std::vector<double> squares;
  for (const uint32_t row : chosen) {
    squares.push_back(canonical(SAGITTA_DOT, rows.row(row), rows.row(row), rows.dimension));
  }
  for (const sagitta_metric metric : metrics) {
    for (const bool has_squares : {false, true}) {
      const double* const known = has_squares ? squares.data() : nullptr;
      std::vector<double> scores(size_t{count} * vector_count);
      const sagitta_scoring scoring = {rows.values.data(), vectors.data(), chosen.data(), known,
                                       rows.dimension,     vector_count,   count,         metric};
      require(sagitta_score_rows(&scoring, scores.data()) == SAGITTA_OK, "score rows");
      for (uint32_t i = 0; i < count; i++) {
        for (uint32_t v = 0; v < vector_count; v++) {
          const float* const vector = vectors.data() + size_t{v} * rows.dimension;
          const double expected = canonical(metric, vector, rows.row(chosen[i]), rows.dimension);
          require(is_same(scores[size_t{i} * vector_count + v], expected),
                  "score of row " + std::to_string(i) + " with vector " + std::to_string(v) +
                      ", dimension " + std::to_string(rows.dimension));
        }
      }
    }
  }
}

void check_arguments() {
  sagitta_scoring scoring{};
  double score = 0;
  require(sagitta_score_rows(nullptr, &score) == SAGITTA_INVALID_ARGUMENT, "nothing to score");
  require(sagitta_score_rows(&scoring, &score) == SAGITTA_INVALID_ARGUMENT, "no dimension");
  scoring.dimension = 4;
  require(sagitta_score_rows(&scoring, nullptr) == SAGITTA_OK, "no rows");
  scoring.row_count = 1;
  require(sagitta_score_rows(&scoring, &score) == SAGITTA_INVALID_ARGUMENT, "no values");
  const int unknown_metric = 4;
  std::memcpy(&scoring.metric, &unknown_metric, sizeof scoring.metric);
  scoring.row_count = 0;
  require(sagitta_score_rows(&scoring, &score) == SAGITTA_INVALID_ARGUMENT, "no such metric");
}

/** Returns the rank key of a row, or one with its score, or nearly its score, and the id of another row. */
sagitta_rank_key random_rank_key(random_source& random, const test_batch& batch) {
  const sagitta_query& query = batch.queries.front();
  const rows& rows = *batch.blocks[random.below(static_cast<uint32_t>(batch.blocks.size()))];
  const uint32_t row = random.below(rows.row_count);
  const uint32_t other = random.below(3) == 0 ? random.below(rows.row_count) : row;
  const int32_t start = rows.id_offsets[other];
  double score = canonical(query.metric, query.vector, rows.row(row), rows.dimension);
  if (random.below(8) == 0) score = std::nextafter(score, -1e300);
  if (random.below(40) == 0) score = random.below(2) == 0 ? 1e300 : -1e300;
  return {score, rows.id_bytes.data() + start,
          static_cast<uint32_t>(rows.id_offsets[other + 1] - start)};
}

/** Returns the rows of the query's views, scored and in order. */
std::vector<hit> order_rows(const test_batch& batch) {
  sagitta_batch whole = batch.view(1);
  sagitta_query query = batch.queries.front();
  query.k = UINT32_MAX;
  query.after_id = nullptr;
  whole.queries = &query;
  return brute_force(whole, 0);
}

uint64_t count_by_brute_force(const test_batch& batch, const std::vector<hit>& ordered,
                        const sagitta_rank_key& rank_key) {
  const std::string id(reinterpret_cast<const char*>(rank_key.id), rank_key.id_bytes);
  const auto is_before = [&](const hit& found) {
    if (found.score != rank_key.score) return found.score > rank_key.score;
    const rows& rows = *batch.blocks[batch.views[found.view].block];
    const std::string its(rows.id_bytes.begin() + rows.id_offsets[found.row],
                          rows.id_bytes.begin() + rows.id_offsets[found.row + 1]);
    return its < id;
  };
  return static_cast<uint64_t>(std::count_if(ordered.begin(), ordered.end(), is_before));
}

std::vector<uint64_t> count_on_threads(const sagitta_batch& batch,
                                       const std::vector<sagitta_rank_key>& rank_keys,
                                       uint32_t thread_count) {
  sagitta_search* search = nullptr;
  require(sagitta_search_create_count(&batch, rank_keys.data(),
                                      static_cast<uint32_t>(rank_keys.size()),
                                      &search) == SAGITTA_OK,
          "create a count");
  const uint64_t* counts = nullptr;
  uint32_t count = 0;
  require(sagitta_search_counts(search, &counts, &count) == SAGITTA_NOT_DONE, "counts before work");
  require(sagitta_search_is_done(search) == 0, "not done before work");
  std::vector<int> is_done(thread_count);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < thread_count; t++) {
    threads.emplace_back([&, t] {
      require(sagitta_search_work(search, &is_done[t]) == SAGITTA_OK, "count");
    });
  }
  for (std::thread& thread : threads) thread.join();
  int done_count = 0;
  for (const int done : is_done) done_count += done;
  require(done_count == 1, "one thread completes the count");
  sagitta_hits hits{};
  require(sagitta_search_hits(search, 0, &hits) == SAGITTA_INVALID_ARGUMENT, "hits of a count");
  require(sagitta_search_counts(search, &counts, &count) == SAGITTA_OK, "counts");
  std::vector<uint64_t> found(counts, counts + count);
  sagitta_search_destroy(search);
  return found;
}

void check_counts(random_source& random, kind kind, uint32_t dimension, uint32_t row_count) {
  const rows first(random, kind, row_count, dimension);
  const rows second(random, kind, row_count / 2 + 1, dimension);
  test_batch batch;
  batch.add_block(first);
  batch.add_block(second, random.below(4) != 0);
  batch.add_random_query(random);
  batch.queries.front().floor = -std::numeric_limits<double>::infinity();
  std::vector<sagitta_rank_key> rank_keys(random.below(3) == 0 ? 90 : random.below(5));
  for (sagitta_rank_key& rank_key : rank_keys) rank_key = random_rank_key(random, batch);
  const uint32_t threads = 1 + random.below(3);
  const std::vector<uint64_t> counts =
      count_on_threads(batch.view(1 + random.below(3)), rank_keys, threads);
  const std::string what = std::string("counts over ") + name_of(kind) + ", dimension " +
                           std::to_string(dimension) + ", rows " + std::to_string(row_count);
  require(counts.size() == rank_keys.size(), what);
  const std::vector<hit> ordered = order_rows(batch);
  for (size_t i = 0; i < rank_keys.size(); i++) {
    const uint64_t expected = count_by_brute_force(batch, ordered, rank_keys[i]);
    require(counts[i] == expected, what + ", rank key " + std::to_string(i) + ": " +
                                       std::to_string(counts[i]) + " for " +
                                       std::to_string(expected));
  }
}

void check_count_arguments() {
  const float vector[4] = {1, 2, 3, 4};
  sagitta_query query{};
  query.vector = vector;
  query.k = 1;
  sagitta_batch batch{};
  batch.dimension = 4;
  batch.worker_count = 1;
  sagitta_search* search = nullptr;
  require(sagitta_search_create_count(&batch, nullptr, 0, &search) == SAGITTA_INVALID_ARGUMENT,
          "a count without a query");
  batch.queries = &query;
  batch.query_count = 1;
  require(sagitta_search_create_count(&batch, nullptr, 1, &search) == SAGITTA_INVALID_ARGUMENT,
          "no rank keys");
  const sagitta_rank_key rank_key = {std::nan(""), nullptr, 0};
  require(sagitta_search_create_count(&batch, &rank_key, 1, &search) == SAGITTA_INVALID_ARGUMENT,
          "a score that is not a number");
  require(sagitta_search_create(&batch, &search) == SAGITTA_OK, "a search");
  const uint64_t* counts = nullptr;
  uint32_t count = 0;
  require(sagitta_search_counts(search, &counts, &count) == SAGITTA_INVALID_ARGUMENT,
          "counts of a search for hits");
  sagitta_search_destroy(search);
}

}  // namespace

void test_row_scores(random_source& random) {
  check_arguments();
  for (const uint32_t dimension : {1u, 7u, 8u, 9u, 100u, 768u, 4096u}) {
    for (const kind kind : tested_kinds()) {
      const rows rows(random, kind, 300, dimension);
      check_scores(random, rows, 1 + random.below(5), 1 + random.below(9));
      // More than one tile.
      check_scores(random, rows, 2, dimension > 1000 ? 50 : 270);
    }
  }
}

void test_counts(random_source& random) {
  check_count_arguments();
  for (const uint32_t dimension : {1u, 3u, 9u, 64u, 100u, 768u, 1536u}) {
    const uint32_t most = dimension >= 768 ? 300u : 2000u;
    for (const kind kind : tested_kinds()) {
      for (const uint32_t row_count : {1u, 16u, 65u, 250u, most}) {
        check_counts(random, kind, dimension, row_count);
      }
    }
  }
}

}  // namespace check
