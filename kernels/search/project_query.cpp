#include "project_query.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sagitta {

projected_query rotate_query(const target& functions, const rotation& rotation,
                             const unprojected_query& query, uint8_t* packed) {
  const uint32_t dimension = rotation.dimension;
  const std::vector<float> vector(query.values, query.values + dimension);
  std::vector<float> rotated(dimension);
  std::vector<int8_t> codes(size_t{step_count(dimension)} * step_dimensions);
  functions.rotate(rotation, vector.data(), rotated.data());
  const encoded_vector encoded = functions.encode_query(rotated.data(), dimension, codes.data());
  functions.pack_coarse_query(codes.data(), dimension, packed);
  projected_query made{};
  made.bounds = query.bounds;
  set_codes(made.bounds, encoded);
  made.packed = packed;
  made.first_offset = static_cast<int32_t>(-3 * encoded.code_sum);
  made.second_offset = static_cast<int32_t>(-refined_offset * encoded.code_sum);
  made.dimension = dimension;
  made.limbs = 1;
  return made;
}

projected_query project_query(const target& functions, const basis& basis,
                              const unprojected_query& query, uint8_t* packed) {
  const uint32_t rows = basis.row_count;
  std::vector<double> projected(rows);
  for (uint32_t from = 0; from < rows; from += canonical_rows) {
    const float* directions[canonical_rows];
    const uint32_t count = std::min(canonical_rows, rows - from);
    for (uint32_t i = 0; i < count; i++) directions[i] = basis.matrix + size_t{from + i} * basis.dimension;
    functions.products(query.values, basis.dimension, directions, count, projected.data() + from, nullptr);
  }
  double in_head = 0;
  double weighted = 0;
  for (uint32_t i = 0; i < rows; i++) {
    in_head += projected[i] * projected[i];
    weighted += projected[i] * projected[i] / static_cast<double>(basis.weights[i]);
  }
  // The rest of q has at most this square; the deviation of H and rounding move it by less than the slack.
  const double slack = (2 * basis.header->deviation + 0x1p-40) * query.bounds.square;
  const double rest = std::max(0.0, query.bounds.square - in_head) + slack;
  weighted += rest / static_cast<double>(basis.header->rest_weight);

  std::vector<double> coefficients(basis.code_count);
  double largest = 0;
  for (uint32_t i = 0; i < rows; i++) {
    const double coefficient = projected[i] * static_cast<double>(basis.units[i]);
    coefficients[i] = i < basis.fine_count ? 4 * coefficient : coefficient;
    if (i < basis.fine_count) coefficients[rows + i] = coefficient;
    largest = std::max(largest, std::fabs(coefficients[i]));
  }
  const double scale = std::max(largest / head_code_max, query.bounds.length * least_head_scale);
  std::vector<int8_t> high(basis.code_count);
  std::vector<int8_t> low(basis.code_count);
  int32_t sum = 0;
  for (uint32_t i = 0; i < basis.code_count; i++) {
    const auto code = static_cast<int32_t>(std::lrint(coefficients[i] / scale));
    const int32_t upper = (code + 128) >> 8;
    high[i] = static_cast<int8_t>(upper);
    low[i] = static_cast<int8_t>(code - 256 * upper);
    sum += code;
  }
  functions.pack_coarse_query(high.data(), basis.code_count, packed);
  functions.pack_coarse_query(low.data(), basis.code_count,
                              packed + coarse_query_bytes(basis.code_count));
  projected_query made{};
  made.bounds = query.bounds;
  made.bounds.scale = scale;
  made.bounds.code_length = std::sqrt(weighted) / scale * (1 + 0x1p-40);
  made.bounds.residual = basis.error * query.bounds.length / scale * (1 + 0x1p-40);
  made.packed = packed;
  made.first_offset = -3 * sum;
  made.dimension = basis.code_count;
  made.limbs = 2;
  return made;
}

namespace {

tile_query encode_tile_query(const target& functions, const basis& basis, const bounded_query& query,
                             const float* mixed, uint8_t* packed) {
  const uint32_t directions = head_tile_directions(basis.dimension);
  tile_query made{};
  const float largest = std::fabs(*std::max_element(mixed, mixed + directions, [](float left, float right) {
    return std::fabs(left) < std::fabs(right);
  }));
  if (!(static_cast<double>(largest) >= query.length * 0x1p-20)) return made;
  std::vector<int8_t> codes(directions);
  const encoded_vector encoded = functions.encode_query(mixed, directions, codes.data());
  functions.pack_query(codes.data(), step_count(directions), packed);
  made.packed = packed;
  const double scale = static_cast<double>(encoded.scale);
  for (uint32_t level = 0; level < head_tile_levels; level++) {
    double error = 0;
    double in_head = 0;
    int64_t square = 0;
    int64_t sum = 0;
    for (uint32_t i = 0; i < directions_of_level(basis.dimension, level); i++) {
      const double value = static_cast<double>(mixed[i]);
      const double missed = value - scale * codes[i];
      error += missed * missed;
      in_head += value * value;
      square += codes[i] * codes[i];
      sum += codes[i];
    }
    const double rest = std::max(0.0, query.square - in_head) + 2 * basis.tile_error * query.square;
    const double weight = static_cast<double>(basis.header->tile_weights[level]) * scale;
    bounded_query& bounds = made.bounds[level];
    bounds = query;
    bounds.scale = scale;
    bounds.code_length = std::sqrt(static_cast<double>(square) + rest / (weight * weight)) * (1 + 0x1p-40);
    bounds.residual = (std::sqrt(error) + 2 * basis.tile_error * query.length) / scale * (1 + 0x1p-40);
    made.offsets[level] = static_cast<int32_t>(-128 * sum);
  }
  return made;
}

}  // namespace

void project_tile_queries(const target& functions, const basis& basis, const bounded_query* const* queries,
                          const float* vectors, uint32_t count, uint8_t* packed, tile_query* made) {
  const uint32_t directions = head_tile_directions(basis.dimension);
  const uint32_t half = directions / 2;
  std::vector<float> projected(size_t{count} * directions);
  functions.project({vectors, basis.dimension}, count, basis.matrix, directions, basis.dimension, projected.data(),
                    directions);
  std::vector<float> mixed(projected.size());
  functions.project({projected.data(), half}, 2 * count, mixing_of(half), half, half, mixed.data(), half);
  for (uint32_t q = 0; q < count; q++) {
    made[q] = encode_tile_query(functions, basis, *queries[q], mixed.data() + size_t{q} * directions,
                                packed + q * tile_query_bytes(functions, basis.dimension));
  }
}

}  // namespace sagitta
