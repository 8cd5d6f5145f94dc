// Compares coarse codes with an independent decoder: the rotation in float64 from its definition, codes
// from the layout, and integer sums one dimension at a time.

#include <cmath>
#include <string>
#include <vector>

#include "../layout.h"
#include "../search/rotation.h"
#include "../target.h"
#include "check.h"

namespace check {
namespace {

using sagitta::panel_rows;

/** Multiplies by the Hadamard matrix, one entry at a time: the sign is the parity of i & j. */
void multiply_block(const sagitta::rotation& rotation, double* values) {
  std::vector<double> product(rotation.block);
  for (uint32_t i = 0; i < rotation.block; i++) {
    for (uint32_t j = 0; j < rotation.block; j++) {
      product[i] += __builtin_parity(i & j) != 0 ? -values[j] : values[j];
    }
  }
  const double unit = 1 / std::sqrt(static_cast<double>(rotation.block));
  for (uint32_t i = 0; i < rotation.block; i++) values[i] = product[i] * unit;
}

void multiply_blocks(const sagitta::rotation& rotation, std::vector<double>& values) {
  uint32_t first = 0;
  for (; first + rotation.block <= rotation.dimension; first += rotation.block) {
    multiply_block(rotation, values.data() + first);
  }
  if (first < rotation.dimension) {
    multiply_block(rotation, values.data() + rotation.dimension - rotation.block);
  }
}

std::vector<double> rotate_exactly(const sagitta::rotation& rotation, const float* row) {
  const uint32_t dimension = rotation.dimension;
  std::vector<double> first(dimension);
  std::vector<double> second(dimension);
  for (uint32_t i = 0; i < dimension; i++) {
    first[i] = rotation.first[i] < 0 ? -static_cast<double>(row[i]) : static_cast<double>(row[i]);
  }
  multiply_blocks(rotation, first);
  for (uint32_t i = 0; i < dimension; i++) {
    const double value = first[uint64_t{i} * rotation.stride % dimension];
    second[i] = rotation.second[i] < 0 ? -value : value;
  }
  multiply_blocks(rotation, second);
  return second;
}

uint32_t two_bits(const uint8_t* row, uint32_t i) {
  return row[i / 64 * 16 + i % 16] >> (i % 64 / 16 * 2) & 3;
}

/** The values that the codes of a row represent. */
struct decoded {
  std::vector<int32_t> first;
  std::vector<int32_t> second;
};

decoded decode(const uint8_t* upper, const uint8_t* lower, uint32_t dimension) {
  decoded row;
  for (uint32_t i = 0; i < dimension; i++) {
    const uint32_t high = two_bits(upper, i);
    const uint32_t code = high << 2 | two_bits(lower, i);
    row.first.push_back(2 * static_cast<int32_t>(high) - 3);
    row.second.push_back(code < 8 ? -sagitta::refined_levels[7 - code]
                                  : sagitta::refined_levels[code - 8]);
  }
  return row;
}

double length_of(const std::vector<double>& values) {
  double square = 0;
  for (const double value : values) square += value * value;
  return std::sqrt(square);
}

/** The stored residual is at least ‖y − s·c‖, up to the rounding of the rotation. */
void check_residual(const std::vector<double>& rotated, const std::vector<int32_t>& codes,
                    float scale, float residual, const std::string& what) {
  std::vector<double> difference;
  for (size_t i = 0; i < rotated.size(); i++) {
    difference.push_back(rotated[i] - static_cast<double>(scale) * codes[i]);
  }
  const double length = length_of(rotated);
  require(length_of(difference) <= static_cast<double>(residual) + 0x1p-18 * length, what + ": residual");
  require(static_cast<double>(residual) <= length * (1 + 0x1p-10), what + ": the residual exceeds the length");
}

std::vector<int32_t> expected_sums(const std::vector<int8_t>& query, const std::vector<decoded>& rows,
                                   std::vector<int32_t> decoded::*level) {
  std::vector<int32_t> sums;
  for (const decoded& row : rows) {
    int32_t sum = 0;
    for (size_t i = 0; i < query.size(); i++) sum += query[i] * (row.*level)[i];
    sums.push_back(sum);
  }
  return sums;
}

/** Every target computes the same codes as the reference. */
void check_codes(const sagitta::rotation& rotation, const float* values, const decoded& found,
                 const std::string& what) {
  const uint32_t dimension = rotation.dimension;
  std::vector<uint8_t> coarse(sagitta::coarse_panel_bytes(dimension));
  std::vector<uint8_t> refinement(sagitta::refinement_panel_bytes(dimension));
  sagitta::reference_target.encode_coarse(rotation, values, 0, 1, coarse.data(), refinement.data());
  const decoded expected = decode(coarse.data() + sagitta::fact_bytes,
                                  refinement.data() + sizeof(sagitta::refined_facts), dimension);
  require(found.first == expected.first, what + ": codes of the first level");
  require(found.second == expected.second, what + ": codes of the second level");
}

void check_sums(random_source& random, const sagitta_block& block, uint32_t dimension,
                const std::vector<decoded>& rows, const std::string& what) {
  std::vector<int8_t> query(dimension);
  int32_t code_sum = 0;
  for (int8_t& code : query) {
    // Extremes occur often, because sums must not saturate.
    code = static_cast<int8_t>(random.below(3) == 0 ? (random.below(2) == 0 ? -127 : 127)
                                                    : static_cast<int32_t>(random.below(255)) - 127);
    code_sum += code;
  }
  std::vector<uint8_t> packed(sagitta::coarse_query_bytes(dimension));
  const sagitta::target& functions = sagitta::selected_target();
  functions.pack_coarse_query(query.data(), dimension, packed.data());
  const auto count = static_cast<uint32_t>(std::min<size_t>(rows.size(), panel_rows));
  const uint8_t* upper[panel_rows];
  const uint8_t* lower[panel_rows];
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t row_bytes = sagitta::coarse_row_bytes(dimension);
    upper[i] = block.coarse + sagitta::fact_bytes + i * row_bytes;
    lower[i] = block.refinement + sizeof(sagitta::refined_facts) + i * row_bytes;
  }
  int32_t sums[panel_rows];
  functions.coarse_sums({packed.data(), -3 * code_sum, dimension}, upper, count, sums);
  const std::vector<int32_t> first = expected_sums(query, rows, &decoded::first);
  for (uint32_t i = 0; i < count; i++) require(sums[i] == first[i], what + ": sum of the first level");
  functions.refined_sums({packed.data(), -sagitta::refined_offset * code_sum, dimension}, upper, lower,
                         count, sums);
  const std::vector<int32_t> second = expected_sums(query, rows, &decoded::second);
  for (uint32_t i = 0; i < count; i++) require(sums[i] == second[i], what + ": sum of the second level");
}

}  // namespace

void test_coarse_codes(random_source& random) {
  for (const uint32_t dimension : {64u, 65u, 100u, 128u, 200u, 256u, 384u, 500u, 768u, 1000u}) {
    const sagitta::rotation rotation = sagitta::create_rotation(dimension);
    for (const kind kind : tested_kinds()) {
      const std::string what = std::string(name_of(kind)) + ", dimension " + std::to_string(dimension);
      const uint32_t row_count = 1 + random.below(40);
      rows data(random, kind, row_count, dimension);
      const sagitta_block block = data.block();
      std::vector<decoded> found;
      for (uint32_t row = 0; row < row_count; row++) {
        const uint32_t lane = row % panel_rows;
        const uint8_t* const coarse =
            block.coarse + row / panel_rows * sagitta::coarse_panel_bytes(dimension);
        const uint8_t* const refinement =
            block.refinement + row / panel_rows * sagitta::refinement_panel_bytes(dimension);
        const uint32_t row_bytes = sagitta::coarse_row_bytes(dimension);
        const auto& facts = *reinterpret_cast<const sagitta::panel_facts*>(coarse);
        const auto& refined = reinterpret_cast<const sagitta::refined_facts*>(refinement)->row[lane];
        found.push_back(decode(coarse + sagitta::fact_bytes + lane * row_bytes,
                               refinement + sizeof(sagitta::refined_facts) + lane * row_bytes, dimension));
        const std::vector<double> rotated = rotate_exactly(rotation, data.row(row));
        const double length = length_of(rotated);
        if (facts.residual[lane] == sagitta::unscannable_residual) {
          require(!(length >= sagitta::length_min && length <= sagitta::length_max), what + ": not scanned");
          continue;
        }
        require(std::abs(length - static_cast<double>(facts.norm[lane])) <= 0x1p-20 * length, what + ": norm");
        if (length == 0) continue;
        check_codes(rotation, data.row(row), found.back(), what);
        check_residual(rotated, found.back().first, facts.scale[lane], facts.residual[lane], what + ", first level");
        check_residual(rotated, found.back().second, refined.scale, refined.residual, what + ", second level");
      }
      check_sums(random, block, dimension, found, what);
    }
  }
}

}  // namespace check
