// Scores of chosen rows against brute force, to the bit.

#include <cstring>
#include <string>
#include <vector>

#include "check.h"

namespace check {
namespace {

constexpr sagitta_metric metrics[] = {SAGITTA_COSINE, SAGITTA_DOT, SAGITTA_EUCLIDEAN};

bool is_same(double left, double right) { return std::memcmp(&left, &right, sizeof left) == 0; }

/** Any rows, some of them more than once, in any order. */
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
  scoring.metric = static_cast<sagitta_metric>(3);
  scoring.row_count = 0;
  require(sagitta_score_rows(&scoring, &score) == SAGITTA_INVALID_ARGUMENT, "no such metric");
}

}  // namespace

void test_row_scores(random_source& random) {
  check_arguments();
  for (const uint32_t dimension : {1u, 7u, 8u, 9u, 100u, 768u, 4096u}) {
    for (const kind kind : all_kinds) {
      const rows rows(random, kind, 300, dimension);
      check_scores(random, rows, 1 + random.below(5), 1 + random.below(9));
      // More than a tile.
      check_scores(random, rows, 2, dimension > 1000 ? 50 : 270);
    }
  }
}

}  // namespace check
