// The reference target: the formulas in scalar code, compiled without automatic vectorisation. Tests
// compare the other targets with it, and it runs where no other target does.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "../layout.h"
#include "../search/basis.h"
#include "../search/rotation.h"
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
    if (squares != nullptr) squares[r] = sum_of_squares(rows[r], dimension);
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
  const uint32_t steps = step_count(task.dimension);
  const uint32_t steps_of_piece = task.codes.second == nullptr ? steps : steps / 2;
  for (uint32_t panel = 0; panel < task.panel_count; panel++) {
    const size_t start = panel * task.stride;
    const auto& facts = *reinterpret_cast<const panel_facts*>(task.panels + start);
    for (uint32_t q = 0; q < task.query_count; q++) {
      const scan_query& query = *task.queries[q];
      const auto* const query_codes = reinterpret_cast<const int8_t*>(query.packed);
      int32_t sums[panel_rows];
      uint32_t survivors = 0;
      for (uint32_t row = 0; row < panel_rows; row++) {
        const size_t row_codes = start + row * step_dimensions;
        sums[row] = sum_of_codes(task.codes.first + row_codes, query_codes, steps_of_piece, query.offset);
        if (task.codes.second != nullptr) {
          const int8_t* const others = query_codes + steps_of_piece * step_dimensions;
          sums[row] = sum_of_codes(task.codes.second + row_codes, others, steps_of_piece, sums[row]);
        }
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

/** Multiplies values[first..first + count) by the normalised Hadamard matrix, whose factor `unit` is applied here. */
void multiply_hadamard(float* values, uint32_t count, float unit) {
  for (uint32_t i = 0; i < count; i++) values[i] *= unit;
  for (uint32_t half = count / 2; half > 0; half /= 2) {
    for (uint32_t start = 0; start < count; start += 2 * half) {
      for (uint32_t i = start; i < start + half; i++) {
        const float left = values[i];
        const float right = values[i + half];
        values[i] = left + right;
        values[i + half] = left - right;
      }
    }
  }
}

void multiply_blocks(const rotation& rotation, float* values) {
  uint32_t first = 0;
  for (; first + rotation.block <= rotation.dimension; first += rotation.block) {
    multiply_hadamard(values + first, rotation.block, rotation.unit);
  }
  if (first == rotation.dimension) return;
  multiply_hadamard(values + rotation.dimension - rotation.block, rotation.block, rotation.unit);
}

void rotate(const rotation& rotation, const float* values, float* rotated) {
  const uint32_t dimension = rotation.dimension;
  std::vector<float> first(values, values + dimension);
  for (uint32_t i = 0; i < dimension; i++) first[i] *= rotation.first[i] < 0 ? -1.0f : 1.0f;
  multiply_blocks(rotation, first.data());
  for (uint32_t i = 0; i < dimension; i++) {
    const float sign = rotation.second[i] < 0 ? -1.0f : 1.0f;
    rotated[i] = sign * first[uint64_t{i} * rotation.stride % dimension];
  }
  multiply_blocks(rotation, rotated);
}

/** The byte and the shift of a dimension in a row's codes. */
struct coarse_place {
  uint32_t byte;
  uint32_t shift;
};

coarse_place place_of(uint32_t i) {
  const uint32_t in_chunk = i % coarse_chunk_dimensions;
  return {i / coarse_chunk_dimensions * coarse_chunk_bytes + in_chunk % coarse_chunk_bytes,
          in_chunk / coarse_chunk_bytes * 2};
}

int32_t first_value(uint32_t code) { return 2 * static_cast<int32_t>(code >> 2) - 3; }

int32_t second_value(uint32_t code) {
  return code < 8 ? -refined_levels[7 - code] : refined_levels[code - 8];
}

struct fitted {
  float scale;
  float residual;
};

/** Finds the scale of a level with the least residual. */
template <class Value>
fitted fit_scale(const std::vector<float>& rotated, const std::vector<uint32_t>& codes,
                 const Value& value) {
  double product = 0;
  double square = 0;
  double yy = 0;
  for (size_t i = 0; i < rotated.size(); i++) {
    const double y = static_cast<double>(rotated[i]);
    product += y * value(codes[i]);
    square += static_cast<double>(value(codes[i]) * value(codes[i]));
    yy += y * y;
  }
  const auto scale = static_cast<float>(product / square);
  double residual = 0;
  for (size_t i = 0; i < rotated.size(); i++) {
    const double error =
        static_cast<double>(rotated[i]) - static_cast<double>(scale) * value(codes[i]);
    residual += error * error;
  }
  return {scale, static_cast<float>(std::sqrt(residual + 0x1p-40 * yy) * (1 + 0x1p-20))};
}

void encode_coarse_row(const rotation& rotation, const float* values, uint32_t lane,
                       uint8_t* coarse, uint8_t* refinement) {
  const uint32_t dimension = rotation.dimension;
  const uint32_t row_bytes = coarse_row_bytes(dimension);
  auto& facts = *reinterpret_cast<panel_facts*>(coarse);
  auto& refined = reinterpret_cast<refined_facts*>(refinement)->row[lane];
  uint8_t* const upper = coarse + fact_bytes + lane * row_bytes;
  uint8_t* const lower = refinement + sizeof(refined_facts) + lane * row_bytes;
  std::memset(upper, 0, row_bytes);
  std::memset(lower, 0, row_bytes);
  const double square = sum_of_squares(values, dimension);
  const double length = std::sqrt(square);
  if (!(length >= length_min && length <= length_max)) {
    const float residual = square == 0 ? 0 : unscannable_residual;
    facts.scale[lane] = facts.norm[lane] = facts.square[lane] = 0;
    facts.residual[lane] = residual;
    refined = {0, residual};
    return;
  }
  std::vector<float> rotated(dimension);
  rotate(rotation, values, rotated.data());
  const auto inverse = static_cast<float>(std::sqrt(static_cast<double>(dimension)) / length);
  std::vector<uint32_t> codes(dimension);
  for (uint32_t i = 0; i < dimension; i++) {
    const float value = rotated[i] * inverse;
    uint32_t magnitude = 0;
    while (magnitude < 7 && std::fabs(value) >= coarse_thresholds[magnitude]) magnitude++;
    codes[i] = value < 0 ? 7 - magnitude : 8 + magnitude;
    const coarse_place place = place_of(i);
    upper[place.byte] |= static_cast<uint8_t>(codes[i] >> 2 << place.shift);
    lower[place.byte] |= static_cast<uint8_t>((codes[i] & 3) << place.shift);
  }
  const fitted first = fit_scale(rotated, codes, first_value);
  const fitted second = fit_scale(rotated, codes, second_value);
  facts.scale[lane] = first.scale;
  facts.norm[lane] = static_cast<float>(length);
  facts.residual[lane] = first.residual;
  facts.square[lane] = static_cast<float>(square);
  refined = {second.scale, second.residual};
}

void encode_coarse(const rotation& rotation, const float* values, uint32_t from, uint32_t to,
                   uint8_t* coarse, uint8_t* refinement) {
  const uint32_t dimension = rotation.dimension;
  for (uint32_t row = from; row < to; row++) {
    const size_t panel = row / panel_rows;
    encode_coarse_row(rotation, values + size_t{row} * dimension, row % panel_rows,
                      coarse + panel * coarse_panel_bytes(dimension),
                      refinement + panel * refinement_panel_bytes(dimension));
  }
}

void pack_coarse_query(const int8_t* codes, uint32_t dimension, uint8_t* packed) {
  std::memcpy(packed, codes, dimension);
}

uint32_t code_at(const uint8_t* codes, uint32_t i) {
  const coarse_place place = place_of(i);
  return codes[place.byte] >> place.shift & 3u;
}

void coarse_sums(const coarse_query& query, const uint8_t* const* coarse, uint32_t count,
                 int32_t* sums) {
  const auto* const values = reinterpret_cast<const int8_t*>(query.packed);
  for (uint32_t r = 0; r < count; r++) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < query.dimension; i++) {
      sum += static_cast<int32_t>(code_at(coarse[r], i)) * values[i];
    }
    sums[r] = 2 * sum + query.offset;
  }
}

void refined_sums(const coarse_query& query, const uint8_t* const* coarse,
                  const uint8_t* const* refinement, uint32_t count, int32_t* sums) {
  const auto* const values = reinterpret_cast<const int8_t*>(query.packed);
  for (uint32_t r = 0; r < count; r++) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < query.dimension; i++) {
      const uint32_t code = code_at(coarse[r], i) << 2 | code_at(refinement[r], i);
      sum += (second_value(code) + refined_offset) * values[i];
    }
    sums[r] = sum + query.offset;
  }
}

void scan_coarse(const scan_task& task) {
  const size_t stride = coarse_panel_bytes(task.dimension);
  const uint32_t row_bytes = coarse_row_bytes(task.dimension);
  for (uint32_t panel = 0; panel < task.panel_count; panel++) {
    const uint8_t* const start = task.panels + panel * stride;
    const auto& facts = *reinterpret_cast<const panel_facts*>(start);
    const uint8_t* rows[panel_rows];
    for (uint32_t row = 0; row < panel_rows; row++) rows[row] = start + fact_bytes + row * row_bytes;
    for (uint32_t q = 0; q < task.query_count; q++) {
      const scan_query& query = *task.queries[q];
      int32_t sums[panel_rows];
      coarse_sums({query.packed, query.offset, task.dimension}, rows, panel_rows, sums);
      uint32_t survivors = 0;
      for (uint32_t row = 0; row < panel_rows; row++) {
        if (survives(sums[row], facts, row, query)) survivors |= 1u << row;
      }
      if (survivors != 0) task.emit(task.context, q, panel, survivors, sums);
    }
  }
}

// ── head tiles ────────────────────────────────────────────────────────────────────────────

void project(const strided_vectors& vectors, uint32_t count, const strided_matrix& matrix, uint32_t rows,
             uint32_t dimension, float* projected, size_t stride) {
  for (uint32_t v = 0; v < count; v++) {
    for (uint32_t r = 0; r < rows; r++) {
      double sum = 0;
      for (uint32_t i = 0; i < dimension; i++) {
        sum += static_cast<double>(vectors.values[v * vectors.stride + i]) *
               static_cast<double>(matrix.values[r * matrix.row_stride + i * matrix.stride]);
      }
      projected[v * stride + r] = static_cast<float>(sum);
    }
  }
}

void subtract_parts(const float* unit, float* rows, uint32_t count, uint32_t dimension) {
  for (uint32_t r = 0; r < count; r++) {
    float* const row = rows + size_t{r} * dimension;
    float product = 0;
    project({unit, dimension}, 1, {row, dimension, 1}, 1, dimension, &product, 1);
    for (uint32_t i = 0; i < dimension; i++) row[i] -= product * unit[i];
  }
}

/** A row in a panel of head tiles. */
struct head_row {
  head_arrays panel;
  uint32_t lane;
  /** The directions of each array. */
  uint32_t half;

  panel_facts& facts(uint32_t level) const {
    return *reinterpret_cast<panel_facts*>(level == 0 ? panel.second : panel.first);
  }
  uint8_t& code(uint32_t direction) const {
    uint8_t* const codes = (direction < half ? panel.first : panel.second) + fact_bytes;
    const uint32_t i = direction % half;
    return codes[size_t{i} / step_dimensions * step_bytes + lane * step_dimensions + i % step_dimensions];
  }
};

/** `projected` [directions] is H·x of a row that can be scanned. */
void encode_head_row(const basis& basis, const float* projected, double square, const head_row& row) {
  float largest = 0;
  for (uint32_t i = 0; i < basis.directions; i++) largest = std::fmax(largest, std::fabs(projected[i]));
  const float scale = largest / head_code_max;
  double errors[head_levels] = {};
  double in_head[head_levels] = {};
  for (uint32_t i = 0; i < basis.directions; i++) {
    const double value = static_cast<double>(projected[i]);
    const double code = scale > 0 ? std::nearbyint(value / static_cast<double>(scale)) : 0;
    row.code(i) = static_cast<uint8_t>(static_cast<int32_t>(code) + 128);
    const double error = value - static_cast<double>(scale) * code;
    for (uint32_t level = 0; level < (i < basis.directions / 2 ? 2u : 1u); level++) {
      errors[level] += error * error;
      in_head[level] += value * value;
    }
  }
  for (uint32_t level = 0; level < head_levels; level++) {
    panel_facts& facts = row.facts(level);
    const uint32_t lane = row.lane;
    const double rest = std::max(0.0, square - in_head[level]) + 2 * basis.error * square;
    const double weight = static_cast<double>(basis.header->weights[level]);
    facts.scale[lane] = scale;
    facts.norm[lane] = static_cast<float>(std::sqrt(square));
    facts.residual[lane] = static_cast<float>(std::sqrt(errors[level] + weight * weight * rest) * (1 + 0x1p-20));
    facts.square[lane] = static_cast<float>(square);
  }
}

/** Writes a row that is not scanned: of length 0, or one that is rescored. */
void skip_head_row(const basis& basis, bool is_zero, const head_row& row) {
  for (uint32_t level = 0; level < head_levels; level++) {
    panel_facts& facts = row.facts(level);
    facts.scale[row.lane] = facts.norm[row.lane] = facts.square[row.lane] = 0;
    facts.residual[row.lane] = is_zero ? 0 : unscannable_residual;
  }
  for (uint32_t i = 0; i < basis.directions; i++) row.code(i) = 128;
}

void encode_head(const basis& basis, const float* values, uint32_t from, uint32_t to, const head_arrays& head) {
  std::vector<float> projected(basis.directions);
  for (uint32_t row = from; row < to; row++) {
    const float* const vector = values + size_t{row} * basis.dimension;
    const size_t place = row / panel_rows * half_panel_bytes(basis.dimension);
    const head_row made = {{head.first + place, head.second + place}, row % panel_rows, basis.directions / 2};
    const double square = sum_of_squares(vector, basis.dimension);
    const double length = std::sqrt(square);
    if (!(length >= length_min && length <= length_max)) {
      skip_head_row(basis, square == 0, made);
      continue;
    }
    project({vector, basis.dimension}, 1, {basis.matrix, basis.dimension, 1}, basis.directions, basis.dimension,
            projected.data(), basis.directions);
    encode_head_row(basis, projected.data(), square, made);
  }
}

uint32_t count_bits(const uint32_t* words, uint32_t row_count) {
  uint32_t count = 0;
  for (uint32_t row = 0; row < row_count; row++) count += words[row / 32] >> (row % 32) & 1;
  return count;
}

}  // namespace

const target reference_target = {
    "reference",
    {1, 1},
    query_group,
    encode,
    encode_query,
    {step_dimensions, pack_query, scan},
    {step_dimensions, pack_query, scan},
    limit_rows,
    products,
    rotate,
    encode_coarse,
    pack_coarse_query,
    scan_coarse,
    coarse_sums,
    refined_sums,
    project,
    subtract_parts,
    encode_head,
    count_bits,
};

}  // namespace sagitta
