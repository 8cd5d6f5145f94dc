// The reference target: the formulas in scalar code, compiled without automatic vectorisation. Tests
// compare the other targets with it, and it runs where none of them does.

#include <cmath>
#include <cstring>
#include <limits>

#include "../layout.h"
#include "../target.h"

namespace sagitta {
namespace {

constexpr uint32_t query_group = query_group_max;

double sum_of_products(const double* left, const float* right, uint32_t dimension) {
  double lanes[8] = {};
  for (uint32_t i = 0; i < dimension; i++) lanes[i % 8] += left[i] * static_cast<double>(right[i]);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

double sum_of_squares(const float* values, uint32_t dimension) {
  double lanes[8] = {};
  for (uint32_t i = 0; i < dimension; i++) {
    lanes[i % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

void products(const double* query, uint32_t dimension, const float* const* rows, uint32_t count,
              double* products, double* squares) {
  for (uint32_t r = 0; r < count; r++) {
    products[r] = sum_of_products(query, rows[r], dimension);
    squares[r] = sum_of_squares(rows[r], dimension);
  }
}

float largest_magnitude(const float* values, uint32_t dimension) {
  float largest = 0;
  for (uint32_t i = 0; i < dimension; i++) largest = std::fmax(largest, std::fabs(values[i]));
  return largest;
}

int8_t code_of(float value, float inverse_scale) {
  return static_cast<int8_t>(std::nearbyint(value * inverse_scale));
}

double residual_of(float value, float scale, int8_t code) {
  return static_cast<double>(value) - static_cast<double>(scale) * code;
}

void encode_row(const float* values, uint32_t dimension, uint32_t row, uint8_t* panel) {
  auto& facts = *reinterpret_cast<panel_facts*>(panel);
  const auto code_at = [&](uint32_t i) -> uint8_t& {
    const size_t step = i / step_dimensions;
    return panel[fact_bytes + step * step_bytes + row * step_dimensions + i % step_dimensions];
  };
  for (uint32_t i = 0; i < step_count(dimension) * step_dimensions; i++) code_at(i) = 128;
  facts.scale[row] = 0;
  facts.norm[row] = 0;
  facts.residual[row] = 0;
  facts.square[row] = 0;
  const double square = sum_of_squares(values, dimension);
  if (square == 0) return;
  const double length = std::sqrt(square);
  if (!(length >= length_min && length <= length_max)) {
    facts.residual[row] = unscannable_residual;
    return;
  }
  const float largest = largest_magnitude(values, dimension);
  const float scale = largest / 127;
  double residual_square = 0;
  for (uint32_t i = 0; i < dimension; i++) {
    const int8_t code = code_of(values[i], 127 / largest);
    const double residual = residual_of(values[i], scale, code);
    residual_square += residual * residual;
    code_at(i) = static_cast<uint8_t>(code + 128);
  }
  facts.scale[row] = scale;
  facts.norm[row] = static_cast<float>(length);
  facts.residual[row] = static_cast<float>(std::sqrt(residual_square) * (1 + 0x1p-20));
  facts.square[row] = static_cast<float>(square);
}

void encode(const float* values, uint32_t dimension, uint32_t from, uint32_t to, uint8_t* codes) {
  for (uint32_t row = from; row < to; row++) {
    encode_row(values + size_t{row} * dimension, dimension, row % panel_rows,
               codes + row / panel_rows * panel_bytes(dimension));
  }
}

encoded_vector encode_query(const float* values, uint32_t dimension, int8_t* codes) {
  encoded_vector encoded{};
  const float largest = largest_magnitude(values, dimension);
  encoded.scale = largest / 127;
  encoded.square = sum_of_squares(values, dimension);
  std::memset(codes, 0, size_t{step_count(dimension)} * step_dimensions);
  double residual_square = 0;
  for (uint32_t i = 0; i < dimension; i++) {
    codes[i] = code_of(values[i], 127 / largest);
    const double residual = residual_of(values[i], encoded.scale, codes[i]);
    residual_square += residual * residual;
    encoded.code_sum += codes[i];
    encoded.code_square += codes[i] * codes[i];
  }
  encoded.residual = std::sqrt(residual_square) * (1 + 0x1p-40);
  return encoded;
}

void pack_query(const int8_t* codes, uint32_t steps, uint8_t* packed) {
  std::memcpy(packed, codes, size_t{steps} * step_dimensions);
}

int32_t sum_of_codes(const uint8_t* row_codes, const int8_t* query_codes, uint32_t steps,
                     int32_t start) {
  int32_t sum = start;
  for (uint32_t step = 0; step < steps; step++) {
    for (uint32_t i = 0; i < step_dimensions; i++) {
      sum += row_codes[step * step_bytes + i] * query_codes[step * step_dimensions + i];
    }
  }
  return sum;
}

bool survives(int32_t sum, const panel_facts& facts, uint32_t row, const scan_query& query) {
  const float product = static_cast<float>(sum) * facts.scale[row];
  const float residual = query.upper_residual * facts.residual[row];
  const float upper = product + residual + query.upper_norm * facts.norm[row] +
                      query.upper_square * facts.square[row];
  if (!(upper >= query.upper_min)) return false;
  if (!query.has_lower) return true;
  const float lower = product - residual + query.lower_norm * facts.norm[row] +
                      query.lower_square * facts.square[row];
  return lower <= query.lower_max;
}

void scan(const scan_task& task) {
  const size_t stride = fact_bytes + size_t{task.step_count} * step_bytes;
  for (uint32_t panel = 0; panel < task.panel_count; panel++) {
    const uint8_t* const start = task.panels + panel * stride;
    const auto& facts = *reinterpret_cast<const panel_facts*>(start);
    for (uint32_t q = 0; q < task.query_count; q++) {
      const scan_query& query = *task.queries[q];
      const auto* const query_codes = reinterpret_cast<const int8_t*>(query.packed);
      int32_t sums[panel_rows];
      uint32_t survivors = 0;
      for (uint32_t row = 0; row < panel_rows; row++) {
        const uint8_t* const row_codes = start + fact_bytes + row * step_dimensions;
        sums[row] = sum_of_codes(row_codes, query_codes, task.step_count, query.offset);
        if (survives(sums[row], facts, row, query)) survivors |= 1u << row;
      }
      if (survivors != 0) task.emit(task.context, q, panel, survivors, sums);
    }
  }
}

row_limits limit_rows(const uint8_t* panels, size_t stride, uint32_t row_count) {
  row_limits limits = {0, 0, std::numeric_limits<float>::max(), std::numeric_limits<float>::max()};
  for (uint32_t row = 0; row < row_count; row++) {
    const auto& facts = *reinterpret_cast<const panel_facts*>(panels + row / panel_rows * stride);
    const uint32_t place = row % panel_rows;
    limits.residual_max = std::fmax(limits.residual_max, facts.residual[place]);
    limits.norm_max = std::fmax(limits.norm_max, facts.norm[place]);
    limits.norm_min = std::fmin(limits.norm_min, facts.norm[place]);
    limits.square_min = std::fmin(limits.square_min, facts.square[place]);
  }
  return limits;
}

uint32_t count_bits(const uint32_t* words, uint32_t row_count) {
  uint32_t count = 0;
  for (uint32_t row = 0; row < row_count; row++) count += words[row / 32] >> (row % 32) & 1;
  return count;
}

}  // namespace

const target reference_target = {
    "reference", query_group, step_dimensions, encode,   encode_query,
    pack_query,  scan,        limit_rows,      products, count_bits,
};

}  // namespace sagitta
