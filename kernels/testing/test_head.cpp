// Tests of bases and head tiles: bounds contain canonical scores for any basis, residuals those of decoded rows, learned
// bases are orthonormal and worth it, and damaged ones are refused. Also of products of matrices in general.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "../search/basis.h"
#include "../search/project_query.h"
#include "check.h"
#include "test_batch.h"

namespace check {
namespace {

using sagitta::panel_rows;

constexpr sagitta_metric metrics[] = {SAGITTA_COSINE, SAGITTA_DOT, SAGITTA_EUCLIDEAN, SAGITTA_JACCARD};

sagitta::basis open(const std::vector<uint8_t>& bytes, uint32_t dimension) {
  sagitta::basis opened;
  require(sagitta::open_basis(bytes.data(), bytes.size(), dimension, opened), "open a basis");
  return opened;
}

/** The stored residual of a level is at least that of the decoded row, in float64 and from all directions. */
void check_residual(const sagitta::basis& basis, const float* values, const std::vector<uint8_t>& panel, uint32_t lane,
                    uint32_t level, const std::string& what) {
  const auto& facts = reinterpret_cast<const sagitta::panel_facts*>(panel.data())[level];
  const uint8_t* const codes = panel.data() + sagitta::head_levels * sagitta::fact_bytes;
  double missed = 0;
  double in_head = 0;
  double square = 0;
  for (uint32_t d = 0; d < basis.dimension; d++) {
    square += static_cast<double>(values[d]) * static_cast<double>(values[d]);
  }
  for (uint32_t i = 0; i < sagitta::directions_of_level(basis.dimension, level); i++) {
    double y = 0;
    for (uint32_t d = 0; d < basis.dimension; d++) {
      y += static_cast<double>(values[d]) * static_cast<double>(basis.matrix[size_t{i} * basis.dimension + d]);
    }
    const int32_t code = codes[size_t{i} / 4 * sagitta::step_bytes + lane * 4 + i % 4] - 128;
    const double error = y - static_cast<double>(facts.scale[lane]) * code;
    missed += error * error;
    in_head += y * y;
  }
  const double rest = square > in_head ? square - in_head : 0;
  const auto weight = static_cast<double>(basis.header->weights[level]);
  const double least = std::sqrt(missed + weight * weight * rest);
  const double length = std::sqrt(square);
  const auto residual = static_cast<double>(facts.residual[lane]);
  require(least <= residual + basis.error * length, what + ": residual");
  require(residual <= 1.1 * length, what + ": the residual exceeds the length");
}

struct bounded_search {
  sagitta_metric metric;
  std::vector<float> vector;
};

/** A scan of a level whose results are compared with canonical scores. */
struct checked_scan {
  const rows& data;
  const sagitta::basis& basis;
  const bounded_search& searched;
  const sagitta::head_query& query;
  uint32_t level;
  std::string what;
  uint32_t seen = 0;

  std::vector<uint8_t> panel(uint32_t number) const {
    std::vector<uint8_t> joined(sagitta::head_panel_bytes(data.dimension));
    const size_t byte_count = sagitta_head_bytes(data.row_count, data.dimension);
    sagitta::join_head_panels(data.head, byte_count, data.dimension, number, 1, joined.data());
    return joined;
  }

  void check(uint32_t number, const int32_t* sums) {
    const std::vector<uint8_t> panel = this->panel(number);
    const auto& facts = reinterpret_cast<const sagitta::panel_facts*>(panel.data())[level];
    for (uint32_t lane = 0; lane < panel_rows && number * panel_rows + lane < data.row_count; lane++, seen++) {
      const uint32_t row = number * panel_rows + lane;
      const sagitta::score_bounds found = sagitta::bounds_of(query.bounds[level], sums[lane], facts, lane);
      const double score = canonical(searched.metric, searched.vector.data(), data.row(row), data.dimension);
      require(found.lower <= score && score <= found.upper,
              what + ", row " + std::to_string(row) + ": the score " + std::to_string(score) + " is outside " +
                  std::to_string(found.lower) + " to " + std::to_string(found.upper));
      const bool is_scanned = facts.residual[lane] != sagitta::unscannable_residual && facts.norm[lane] != 0;
      if (!is_scanned || searched.metric != SAGITTA_DOT) continue;
      check_residual(basis, data.row(row), panel, lane, level, what);
    }
  }
};

/** The bounds of head tiles contain the canonical score of every row, at both levels. */
void check_bounds(const rows& data, const sagitta::basis& basis, const bounded_search& searched,
                  const std::string& what) {
  const sagitta::target& functions = sagitta::selected_target();
  const std::vector<double> values(searched.vector.begin(), searched.vector.end());
  sagitta::bounded_query bounds{};
  bounds.metric = searched.metric;
  for (const double value : values) bounds.square += value * value;
  bounds.length = std::sqrt(bounds.square);
  if (!(bounds.length >= sagitta::length_min && bounds.length <= sagitta::length_max)) return;
  std::vector<uint8_t> packed(sagitta::head_query_bytes(functions, data.dimension));
  const sagitta::head_query query =
      sagitta::project_query(functions, basis, {bounds, values.data()}, packed.data());
  if (query.packed == nullptr) return;
  for (uint32_t level = 0; level < sagitta::head_levels; level++) {
    sagitta::scan_query scan{create_weights(query.bounds[level]), query.packed, query.offsets[level], false};
    // Some targets scan several queries in another way.
    sagitta::scan_query* const scans[] = {&scan, &scan, &scan, &scan, &scan};
    const auto count = static_cast<uint32_t>(std::min<size_t>(std::size(scans), functions.query_group));
    sagitta::scan_task task{};
    const size_t byte_count = sagitta_head_bytes(data.row_count, data.dimension);
    const sagitta::head_scan scanned = sagitta::head_scan_of(data.head, byte_count, level);
    task.panels = scanned.panels;
    task.codes = scanned.codes;
    task.panel_count = sagitta::panel_count(data.row_count);
    task.dimension = sagitta::directions_of_level(data.dimension, level);
    task.stride = sagitta::half_panel_bytes(data.dimension);
    task.limits = functions.limit_rows(task.panels, task.stride, data.row_count);
    task.queries = scans;
    task.query_count = count;
    checked_scan checked{data, basis, searched, query, level, what + ", level " + std::to_string(level)};
    task.context = &checked;
    task.emit = [](void* context, uint32_t, uint32_t panel, uint32_t, const int32_t* sums) {
      static_cast<checked_scan*>(context)->check(panel, sums);
    };
    functions.head.scan(task);
    require(checked.seen == count * data.row_count, what + ": a scan without a threshold leaves every row");
  }
}

/** Rows whose lengths are mostly in some directions, falling off as those of neural embeddings do. */
void concentrate(random_source& random, rows& data) {
  constexpr uint32_t count = 64;
  std::vector<double> directions(size_t{count} * data.dimension);
  for (double& value : directions) value = static_cast<double>(random.normal());
  for (uint32_t row = 0; row < data.row_count; row++) {
    std::vector<double> values(data.dimension);
    for (double& value : values) value = 0.1 * static_cast<double>(random.normal());
    for (uint32_t i = 0; i < count; i++) {
      const double part = (static_cast<double>(random.normal()) + (i == 0 ? 0.7 : 0)) / std::sqrt(i + 1.0);
      for (uint32_t d = 0; d < data.dimension; d++) values[d] += part * directions[size_t{i} * data.dimension + d];
    }
    for (uint32_t d = 0; d < data.dimension; d++) {
      data.values[size_t{row} * data.dimension + d] = static_cast<float>(values[d]);
    }
  }
}

std::vector<uint8_t> learn(const rows& data, const std::vector<uint8_t>& previous = {}) {
  std::vector<uint8_t> bytes(sagitta_basis_bytes(data.dimension));
  size_t count = 0;
  require(sagitta_learn_basis(data.values.data(), data.row_count, data.dimension,
                              previous.empty() ? nullptr : previous.data(), previous.size(), bytes.data(),
                              &count) == SAGITTA_OK,
          "learn a basis");
  bytes.resize(count);
  return bytes;
}

void check_damage(std::vector<uint8_t> bytes, uint32_t dimension, random_source& random) {
  require(sagitta_is_basis(bytes.data(), bytes.size(), dimension) == 1, "a learned basis");
  require(sagitta_is_basis(bytes.data(), bytes.size(), dimension + 64) == 0, "another dimension");
  require(sagitta_is_basis(bytes.data(), bytes.size() - 1, dimension) == 0, "a shorter basis");
  require(sagitta_is_basis(nullptr, 0, dimension) == 0, "no basis");
  for (uint32_t i = 0; i < 200; i++) {
    const uint32_t at = i < 100 ? i : random.below(static_cast<uint32_t>(bytes.size()));
    const auto flipped = static_cast<uint8_t>(1u << random.below(8));
    bytes[at % bytes.size()] ^= flipped;
    require(sagitta_is_basis(bytes.data(), bytes.size(), dimension) == 0, "a changed byte");
    bytes[at % bytes.size()] ^= flipped;
  }
}

/** Compares products with those in float64, whose error is at most `bound` times the sum of absolute products. */
void check_products(random_source& random, const sagitta_factors& sizes) {
  constexpr double bound = 1e-5;
  const auto random_matrices = [&](uint32_t rows, uint32_t columns) {
    std::vector<float> values(size_t{sizes.count} * rows * columns);
    for (float& value : values) value = random.normal();
    return values;
  };
  const std::vector<float> left = random_matrices(sizes.rows, sizes.inner);
  const std::vector<float> right = random_matrices(sizes.inner, sizes.columns);
  std::vector<float> products(size_t{sizes.count} * sizes.rows * sizes.columns + 1, 7);
  sagitta_factors factors = sizes;
  factors.left = left.data();
  factors.right = right.data();
  require(sagitta_multiply(&factors, products.data()) == SAGITTA_OK, "multiply");
  require(products.back() == 7, "nothing is written after the products");
  const size_t row_stride = sizes.is_right_transposed != 0 ? 1 : sizes.columns;
  const size_t column_stride = sizes.is_right_transposed != 0 ? sizes.inner : 1;
  for (size_t at = 0; at + 1 < products.size(); at++) {
    const size_t column = at % sizes.columns;
    const size_t row = at / sizes.columns;
    const float* const other = right.data() + row / sizes.rows * sizes.inner * sizes.columns + column * column_stride;
    double expected = 0;
    double size = 0;
    for (size_t i = 0; i < sizes.inner; i++) {
      const double product = static_cast<double>(left[row * sizes.inner + i]) * static_cast<double>(other[i * row_stride]);
      expected += product;
      size += std::abs(product);
    }
    require(std::abs(static_cast<double>(products[at]) - expected) <= bound * size,
            "product " + std::to_string(at) + " of " + std::to_string(sizes.rows) + " x " +
                std::to_string(sizes.inner) + " x " + std::to_string(sizes.columns));
  }
}

}  // namespace

void test_matrix_products(random_source& random) {
  for (const int is_transposed : {0, 1}) {
    // Sizes around those of tiles and of the vectors that are multiplied together.
    for (const uint32_t rows : {1u, 5u, 6u, 48u, 50u}) {
      for (const uint32_t columns : {1u, 15u, 32u, 1 + random.below(70)}) {
        check_products(random, {nullptr, nullptr, 1 + random.below(3), rows, 1 + random.below(150), columns, is_transposed});
      }
    }
    check_products(random, {nullptr, nullptr, 2, 3, 0, 4, is_transposed});
    check_products(random, {nullptr, nullptr, 0, 3, 5, 4, is_transposed});
  }
  float value = 1;
  const sagitta_factors one = {&value, &value, 1, 1, 1, 1, 0};
  sagitta_factors without = one;
  without.right = nullptr;
  require(sagitta_multiply(nullptr, &value) == SAGITTA_INVALID_ARGUMENT, "nothing to multiply");
  require(sagitta_multiply(&without, &value) == SAGITTA_INVALID_ARGUMENT, "no right factor");
  require(sagitta_multiply(&one, nullptr) == SAGITTA_INVALID_ARGUMENT, "no room for products");
}

void test_head_tiles(random_source& random) {
  for (const uint32_t dimension : {128u, 200u, 257u, 640u, 768u}) {
    for (const kind kind : tested_kinds()) {
      const uint32_t row_count = 1 + random.below(40);
      rows data(random, kind, row_count, dimension);
      const float* const row = random.below(2) == 0 ? data.row(random.below(row_count)) : nullptr;
      data.basis = random_basis(random, dimension, row);
      data.encode();
      const sagitta::basis basis = open(data.basis, dimension);
      for (const sagitta_metric metric : metrics) {
        const std::string what = std::string("head tiles, ") + name_of(kind) + ", dimension " +
                                 std::to_string(dimension) + ", metric " + std::to_string(metric);
        check_bounds(data, basis, {metric, query_like(random, data)}, what);
        // A query that is one of the directions, and one without any part of them.
        std::vector<float> direction(basis.matrix, basis.matrix + dimension);
        check_bounds(data, basis, {metric, direction}, what + ", a direction");
        std::vector<float> other(dimension);
        other[dimension - 1] = 1e5f;
        check_bounds(data, basis, {metric, other}, what + ", an axis");
      }
    }
  }
}

void test_learned_bases(random_source& random) {
  // Scalar code would learn for minutes, and rates the codes of all kinds alike.
  if (std::string(sagitta_selected_target()) == "reference") return;
  constexpr uint32_t dimension = 500;
  constexpr uint32_t row_count = 2600;
  rows data(random, kind::random, row_count, dimension);
  require(learn(data).empty(), "rows without important directions have no basis");
  concentrate(random, data);
  data.basis = learn(data);
  require(!data.basis.empty(), "rows with important directions have a basis");
  require(learn(data, data.basis) == data.basis, "a basis of the same rows is taken");
  data.encode();
  const sagitta::basis basis = open(data.basis, dimension);
  check_bounds(data, basis, {SAGITTA_COSINE, query_like(random, data)}, "a learned basis");
  check_damage(data.basis, dimension, random);
  rows others(random, kind::random, row_count, dimension);
  concentrate(random, others);
  others.basis = learn(others, data.basis);
  require(!others.basis.empty() && others.basis != data.basis, "other directions have another basis");
  others.encode();
  test_batch batch;
  batch.add_block(data);
  batch.add_block(others);
  batch.add_block(data);
  for (uint32_t q = 0; q < 12; q++) batch.add_random_query(random);
  for (const sagitta_method method :
       {SAGITTA_METHOD_AUTO, SAGITTA_METHOD_COARSE, SAGITTA_METHOD_HEAD_TILES}) {
    batch.method = method;
    require_exact(batch.view(1 + random.below(3)), 2, "blocks with learned bases");
  }
  // A query alone reads the second half of head tiles only for runs of panels, of which a filter skips parts.
  for (uint32_t q = 0; q < 1000; q++) {
    test_batch alone;
    alone.add_block(data);
    alone.add_query(query_like(random, data), metrics[random.below(4)], 1 + random.below(3));
    alone.bitmaps.push_back(random_bitmap(random, row_count, 0.01));
    alone.add_view(0, row_count, &alone.bitmaps.back());
    alone.method = SAGITTA_METHOD_HEAD_TILES;
    require_exact(alone.view(1), 1, "a filtered query of a block with a learned basis");
  }
  for (const kind kind : {kind::equal, kind::zeros, kind::huge, kind::denormal}) {
    rows odd(random, kind, 2100, 256);
    odd.basis = learn(odd);
    if (odd.basis.empty()) continue;
    odd.encode();
    check_bounds(odd, open(odd.basis, 256), {SAGITTA_DOT, query_like(random, odd)},
                 std::string("a basis of ") + name_of(kind));
  }
}

}  // namespace check
