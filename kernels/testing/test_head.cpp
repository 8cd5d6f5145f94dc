// Tests of bases and head codes: bounds contain canonical scores for any basis, sums are those of an independent
// decoder, learned bases are orthonormal and worth it, and damaged ones are refused.

#include <cmath>
#include <cstring>
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

/** The values −3, −1, 1 and 3 of a row's two-bit codes. */
std::vector<int32_t> decode(const uint8_t* row, uint32_t count) {
  std::vector<int32_t> codes(count);
  for (uint32_t i = 0; i < count; i++) {
    codes[i] = 2 * (row[i / 64 * 16 + i % 16] >> (i % 64 / 16 * 2) & 3) - 3;
  }
  return codes;
}

/** The stored residual is at least that of the decoded row, in float64 and from all directions. */
void check_residual(const sagitta::basis& basis, const float* values, const std::vector<int32_t>& codes,
                    float scale, float residual, const std::string& what) {
  double weighted = 0;
  double in_head = 0;
  double square = 0;
  for (uint32_t d = 0; d < basis.dimension; d++) {
    square += static_cast<double>(values[d]) * static_cast<double>(values[d]);
  }
  for (uint32_t i = 0; i < basis.row_count; i++) {
    double y = 0;
    for (uint32_t d = 0; d < basis.dimension; d++) {
      y += static_cast<double>(values[d]) * static_cast<double>(basis.matrix[size_t{i} * basis.dimension + d]);
    }
    const int32_t code = i < basis.fine_count ? 4 * codes[i] + codes[basis.row_count + i] : codes[i];
    const double error = y - static_cast<double>(scale) * static_cast<double>(basis.units[i]) * code;
    weighted += static_cast<double>(basis.weights[i]) * error * error;
    in_head += y * y;
  }
  const double rest = square > in_head ? square - in_head : 0;
  const double least = std::sqrt(weighted + static_cast<double>(basis.header->rest_weight) * rest);
  const double length = std::sqrt(square);
  require(least <= static_cast<double>(residual) + basis.error * length, what + ": residual");
  require(static_cast<double>(residual) <= 3 * length, what + ": the residual exceeds the length");
}

struct bounded_search {
  sagitta_metric metric;
  std::vector<float> vector;
};

/** The bounds of every row contain its canonical score, and sums are those of the decoded codes. */
void check_bounds(const rows& data, const sagitta::basis& basis, const bounded_search& searched,
                  const std::string& what) {
  const sagitta::target& functions = sagitta::selected_target();
  const uint32_t dimension = data.dimension;
  const std::vector<double> values(searched.vector.begin(), searched.vector.end());
  sagitta::bounded_query bounds{};
  bounds.metric = searched.metric;
  for (const double value : values) bounds.square += value * value;
  bounds.length = std::sqrt(bounds.square);
  if (!(bounds.length >= sagitta::length_min && bounds.length <= sagitta::length_max)) return;
  std::vector<uint8_t> packed(sagitta::head_query_bytes(basis));
  const sagitta::projected_query query =
      sagitta::project_query(functions, basis, {bounds, values.data()}, packed.data());
  const size_t stride = sagitta::coarse_panel_bytes(basis.code_count);
  const uint32_t row_bytes = sagitta::coarse_row_bytes(basis.code_count);
  for (uint32_t row = 0; row < data.row_count; row++) {
    const uint8_t* const panel = data.head + row / panel_rows * stride;
    const uint32_t lane = row % panel_rows;
    const auto& facts = *reinterpret_cast<const sagitta::panel_facts*>(panel);
    const uint8_t* const codes = panel + sagitta::fact_bytes + lane * row_bytes;
    int32_t sum = 0;
    functions.coarse_sums({query.packed, query.first_offset, query.dimension, query.limbs}, &codes, 1, &sum);
    const sagitta::score_bounds found = sagitta::bounds_of(query.bounds, sum, facts, lane);
    const double score = canonical(searched.metric, searched.vector.data(), data.row(row), dimension);
    require(found.lower <= score && score <= found.upper,
            what + ", row " + std::to_string(row) + ": the score " + std::to_string(score) + " is outside " +
                std::to_string(found.lower) + " to " + std::to_string(found.upper));
    if (facts.residual[lane] == sagitta::unscannable_residual || facts.norm[lane] == 0) continue;
    if (searched.metric != SAGITTA_DOT) continue;
    const std::vector<int32_t> decoded = decode(codes, basis.code_count);
    check_residual(basis, data.row(row), decoded, facts.scale[lane], facts.residual[lane], what);
  }
}

/** Rows whose lengths are mostly in few directions, as those of neural embeddings. */
void concentrate(random_source& random, rows& data) {
  std::vector<double> mixed(size_t{8} * data.dimension);
  for (double& value : mixed) value = static_cast<double>(random.normal());
  for (uint32_t row = 0; row < data.row_count; row++) {
    float* const values = data.values.data() + size_t{row} * data.dimension;
    double parts[8];
    for (double& part : parts) part = static_cast<double>(random.normal());
    // Most rows point the same way, so that two bits per dimension leave many of them.
    parts[0] += 4;
    for (uint32_t d = 0; d < data.dimension; d++) {
      double value = 0.1 * static_cast<double>(random.normal());
      for (uint32_t i = 0; i < 8; i++) value += parts[i] * mixed[size_t{i} * data.dimension + d] / (i + 1);
      values[d] = static_cast<float>(value);
    }
  }
}

std::vector<uint8_t> learn(const rows& data, const std::vector<uint8_t>& previous = {}) {
  std::vector<uint8_t> bytes(sagitta_basis_bytes_max(data.dimension));
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

}  // namespace

void test_head_codes(random_source& random) {
  for (const uint32_t dimension : {128u, 200u, 257u, 768u}) {
    for (const kind kind : tested_kinds()) {
      const uint32_t row_count = 1 + random.below(40);
      rows data(random, kind, row_count, dimension);
      const float* const row = random.below(2) == 0 ? data.row(random.below(row_count)) : nullptr;
      data.basis = random_basis(random, dimension, row);
      data.encode();
      const sagitta::basis basis = open(data.basis, dimension);
      for (const sagitta_metric metric : metrics) {
        const std::string what = std::string("head codes, ") + name_of(kind) + ", dimension " +
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
  for (const uint32_t dimension : {500u, 768u}) {
    rows data(random, kind::random, 2300, dimension);
    require(learn(data).empty(), "rows without important directions have no basis");
    concentrate(random, data);
    data.basis = learn(data);
    require(!data.basis.empty(), "rows with important directions have a basis");
    require(learn(data, data.basis) == data.basis, "a basis of the same rows is taken");
    data.encode();
    const sagitta::basis basis = open(data.basis, dimension);
    check_bounds(data, basis, {SAGITTA_COSINE, query_like(random, data)}, "a learned basis");
    check_damage(data.basis, dimension, random);
    rows others(random, kind::random, 2300, dimension);
    concentrate(random, others);
    const std::vector<uint8_t> learned = learn(others, data.basis);
    require(!learned.empty() && learned != data.basis, "other directions have another basis");
    others.basis = learned;
    others.encode();
    test_batch batch;
    batch.add_block(data);
    batch.add_block(others);
    batch.add_block(data);
    for (uint32_t q = 0; q < 6; q++) batch.add_random_query(random);
    for (const sagitta_method method : {SAGITTA_METHOD_AUTO, SAGITTA_METHOD_COARSE}) {
      batch.method = method;
      require_exact(batch.view(1 + random.below(3)), 2, "blocks with learned bases");
    }
  }
  for (const kind kind : {kind::equal, kind::duplicates, kind::zeros, kind::huge, kind::denormal, kind::sorted}) {
    rows data(random, kind, 2100, 500);
    data.basis = learn(data);
    if (data.basis.empty()) continue;
    data.encode();
    check_bounds(data, open(data.basis, 500), {SAGITTA_DOT, query_like(random, data)},
                 std::string("a basis of ") + name_of(kind));
  }
}

}  // namespace check
