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
  return made;
}

head_query project_query(const target& functions, const basis& basis, const unprojected_query& query,
                         uint8_t* packed) {
  const uint32_t directions = basis.directions;
  std::vector<float> projected(directions);
  float largest = 0;
  for (uint32_t from = 0; from < directions; from += canonical_rows) {
    const float* rows[canonical_rows];
    double products[canonical_rows];
    for (uint32_t i = 0; i < canonical_rows; i++) rows[i] = basis.matrix + size_t{from + i} * basis.dimension;
    functions.products(query.values, basis.dimension, rows, canonical_rows, products, nullptr);
    for (uint32_t i = 0; i < canonical_rows; i++) {
      projected[from + i] = static_cast<float>(products[i]);
      largest = std::max(largest, std::fabs(projected[from + i]));
    }
  }
  head_query made{};
  if (!(static_cast<double>(largest) >= query.bounds.length * 0x1p-20)) return made;
  std::vector<int8_t> codes(directions);
  const encoded_vector encoded = functions.encode_query(projected.data(), directions, codes.data());
  functions.head.pack_query(codes.data(), step_count(directions), packed);
  made.packed = packed;
  const double scale = static_cast<double>(encoded.scale);
  for (uint32_t level = 0; level < head_levels; level++) {
    double error = 0;
    double in_head = 0;
    int64_t square = 0;
    int64_t sum = 0;
    for (uint32_t i = 0; i < directions_of_level(basis.dimension, level); i++) {
      const double value = static_cast<double>(projected[i]);
      const double missed = value - scale * codes[i];
      error += missed * missed;
      in_head += value * value;
      square += codes[i] * codes[i];
      sum += codes[i];
    }
    const double rest = std::max(0.0, query.bounds.square - in_head) + 2 * basis.error * query.bounds.square;
    const double weight = static_cast<double>(basis.header->weights[level]) * scale;
    bounded_query& bounds = made.bounds[level];
    bounds = query.bounds;
    bounds.scale = scale;
    bounds.code_length = std::sqrt(static_cast<double>(square) + rest / (weight * weight)) * (1 + 0x1p-40);
    bounds.residual = (std::sqrt(error) + 2 * basis.error * query.bounds.length) / scale * (1 + 0x1p-40);
    made.offsets[level] = static_cast<int32_t>(-128 * sum);
  }
  return made;
}

}  // namespace sagitta
