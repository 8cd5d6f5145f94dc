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

}  // namespace sagitta
