// Tests of reading JSON, and of every target of this processor: encoding, canonical products, scans, and searches
// over adversarial rows, bitmaps, rank keys and score limits, on one and several threads. Exits with 1 at
// the first answer that differs from brute force by a bit.
//
//   test [--seed N] [--quick]      --quick: few kinds of rows

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "../layout.h"
#include "../target.h"
#include "check.h"
#include "test_batch.h"
#include "test_json.h"
#include "test_partial_files.h"
#include "test_term_vectors.h"

namespace {

using check::kind;
using check::random_source;
using check::require;
using check::test_batch;

constexpr uint32_t dimensions[] = {1, 3, 7, 8, 9, 64, 100, 256, 768, 1536, 4096};
constexpr sagitta_metric metrics[] = {SAGITTA_COSINE, SAGITTA_DOT, SAGITTA_EUCLIDEAN,
                                      SAGITTA_JACCARD};
constexpr double infinity = std::numeric_limits<double>::infinity();

/** Codes represent their rows to within the stored residuals. */
void test_encode(random_source& random) {
  for (const uint32_t dimension : dimensions) {
    for (const kind kind : check::tested_kinds()) {
      const check::rows rows(random, kind, 37, dimension);
      for (uint32_t row = 0; row < rows.row_count; row++) {
        const uint8_t* const panel =
            rows.codes + row / sagitta::panel_rows * sagitta::panel_bytes(dimension);
        const auto& facts = *reinterpret_cast<const sagitta::panel_facts*>(panel);
        const uint32_t lane = row % sagitta::panel_rows;
        const std::string what = std::string("encode ") + check::name_of(kind) + ", dimension " +
                                 std::to_string(dimension) + ", row " + std::to_string(row);
        double square = 0;
        double residual_square = 0;
        for (uint32_t i = 0; i < dimension; i++) {
          const double value = rows.row(row)[i];
          const uint8_t code =
              panel[sagitta::fact_bytes + i / 4 * sagitta::step_bytes + lane * 4 + i % 4];
          require(code >= 1, what + ": code below -127");
          const double residual = value - static_cast<double>(facts.scale[lane]) * (code - 128);
          square += value * value;
          residual_square += residual * residual;
        }
        if (facts.residual[lane] == sagitta::unscannable_residual) continue;
        require(std::abs(facts.norm[lane] - std::sqrt(square)) <= 1e-6 * std::sqrt(square),
                what + ": norm");
        require(std::abs(facts.square[lane] - square) <= 1e-6 * square, what + ": square");
        require(facts.residual[lane] >= std::sqrt(residual_square) * (1 - 1e-9),
                what + ": residual too small");
        require(facts.residual[lane] <= std::sqrt(residual_square) * 1.00001 + 1e-30,
                what + ": residual too large");
      }
    }
  }
}

/** Canonical sums have the same bits as those of the reference target. */
void test_products(random_source& random) {
  for (uint32_t dimension = 1; dimension <= 4096; dimension += dimension < 40 ? 1 : 509) {
    for (const kind kind : check::tested_kinds()) {
      const check::rows rows(random, kind, 4, dimension);
      const std::vector<float> query = check::query_like(random, rows);
      const std::vector<double> wide(query.begin(), query.end());
      const float* pointers[4] = {rows.row(0), rows.row(1), rows.row(2), rows.row(3)};
      for (uint32_t count = 1; count <= 4; count++) {
        double actual[8];
        double expected[8];
        sagitta::selected_target().products(wide.data(), dimension, pointers, count, actual,
                                            actual + 4);
        sagitta::reference_target.products(wide.data(), dimension, pointers, count, expected,
                                           expected + 4);
        for (uint32_t i = 0; i < count; i++) {
          require(std::memcmp(&actual[i], &expected[i], 8) == 0 &&
                      std::memcmp(&actual[4 + i], &expected[4 + i], 8) == 0,
                  std::string("products of ") + check::name_of(kind) + ", dimension " +
                      std::to_string(dimension));
        }
      }
    }
  }
}

void test_search(random_source& random, uint32_t dimension, kind kind, uint32_t row_count,
                 uint32_t query_count) {
  const check::rows first(random, kind, row_count, dimension);
  const check::rows second(random, kind, row_count / 2 + 1, dimension);
  test_batch batch;
  batch.add_block(first);
  batch.add_block(second, random.below(4) != 0);
  for (uint32_t q = 0; q < query_count; q++) batch.add_random_query(random);
  constexpr sagitta_method methods[] = {SAGITTA_METHOD_AUTO, SAGITTA_METHOD_TILES,
                                        SAGITTA_METHOD_COARSE, SAGITTA_METHOD_HEAD_TILES};
  batch.method = methods[random.below(4)];
  const uint32_t threads = 1 + random.below(3);
  const uint32_t workers = 1 + random.below(3);
  check::require_exact(batch.view(workers), threads,
                       std::string(check::name_of(kind)) + ", dimension " +
                           std::to_string(dimension) + ", rows " + std::to_string(row_count) +
                           ", queries " + std::to_string(query_count) + ", threads " +
                           std::to_string(threads));
}

void test_searches(random_source& random) {
  for (const uint32_t dimension : dimensions) {
    const uint32_t most = dimension >= 768 ? 300u : 2000u;
    for (const kind kind : check::tested_kinds()) {
      for (const uint32_t row_count : {0u, 1u, 16u, 17u, 65u, 250u, most}) {
        test_search(random, dimension, kind, row_count, 1 + random.below(9));
      }
    }
  }
}

/** More candidates than there is room for, with bounds too close together to decide. */
void test_crowds(random_source& random, bool is_quick) {
  for (const kind kind : {kind::equal, kind::duplicates, kind::clustered, kind::scattered}) {
    if (is_quick && kind != kind::duplicates) continue;
    test_search(random, 8, kind, 20000, 7);
    test_search(random, 64, kind, 6000, 3);
    // Candidates of many queries are scored together, and queries share bitmaps.
    test_search(random, 72, kind, 3000, 60);
    test_search(random, 200, kind, 1500, 40);
  }
}

void test_arguments() {
  sagitta_search* search = nullptr;
  sagitta_batch batch{};
  require(sagitta_search_create(nullptr, &search) == SAGITTA_INVALID_ARGUMENT, "no batch");
  require(sagitta_search_create(&batch, &search) == SAGITTA_INVALID_ARGUMENT, "no dimension");
  batch.dimension = 4;
  require(sagitta_search_create(&batch, &search) == SAGITTA_INVALID_ARGUMENT, "no workers");
  batch.worker_count = 1;
  require(sagitta_search_create(&batch, &search) == SAGITTA_OK, "an empty batch");
  int is_done = 0;
  sagitta_hits hits{};
  require(sagitta_search_work(search, &is_done) == SAGITTA_OK && is_done == 1, "empty work");
  require(sagitta_search_hits(search, 0, &hits) == SAGITTA_INVALID_ARGUMENT, "no such query");
  sagitta_search_cancel(search);
  require(sagitta_search_work(search, &is_done) == SAGITTA_CANCELLED, "cancelled work");
  sagitta_search_destroy(search);
  const float vector[4] = {1, 2, 3, 4};
  sagitta_query query{};
  query.vector = vector;
  query.k = 1;
  batch.query_count = 1;
  require(sagitta_search_create(&batch, &search) == SAGITTA_INVALID_ARGUMENT, "no queries");
  batch.queries = &query;
  query.floor = std::nan("");
  require(sagitta_search_create(&batch, &search) == SAGITTA_INVALID_ARGUMENT, "no floor");
  query.floor = -infinity;
  require(sagitta_search_create(&batch, &search) == SAGITTA_OK, "a query without views");
  require(sagitta_search_hits(search, 0, &hits) == SAGITTA_NOT_DONE, "hits before work");
  require(sagitta_search_work(search, &is_done) == SAGITTA_OK && is_done == 1, "work");
  require(sagitta_search_hits(search, 0, &hits) == SAGITTA_OK && hits.count == 0, "no hits");
  sagitta_search_destroy(search);
  const sagitta_block_view view{nullptr, 1, 0};
  batch.views = &view;
  batch.view_count = 1;
  require(sagitta_search_create(&batch, &search) == SAGITTA_INVALID_ARGUMENT, "no such block");
  require(sagitta_select_target("no such target") == SAGITTA_UNSUPPORTED_TARGET, "target");
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = 1;
  bool is_quick = false;
  for (int i = 1; i < argc; i++) {
    if (std::strcmp(argv[i], "--quick") == 0) is_quick = true;
    if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    }
  }
  if (is_quick) check::test_few_kinds();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  test_arguments();
  random_source texts(seed);
  check::test_json(texts);
  check::test_term_vectors(texts);
  check::test_partial_files(texts, is_quick);
  check::test_processor();
  check::test_emulated_tiles(texts);
  for (size_t i = 0; i < sagitta_target_count(); i++) {
    const char* const name = sagitta_target_name(i);
    require(sagitta_select_target(name) == SAGITTA_OK, "select");
    random_source random(seed);
    test_encode(random);
    test_products(random);
    check::test_scans(random, is_quick);
    check::test_coarse_codes(random);
    check::test_matrix_products(random);
    check::test_head_tiles(random);
    check::test_learned_bases(random);
    check::test_row_scores(random);
    check::test_counts(random);
    test_searches(random);
    test_crowds(random, is_quick);
    std::printf("%s: ok\n", name);
    std::fflush(stdout);
  }
}
