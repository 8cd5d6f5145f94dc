// Encoding and canonical products, in vectors of the register width of the including file. Everything has
// internal linkage, so that no two files share a function compiled for different instruction sets.
#pragma once

#include <cmath>
#include <cstring>

#include "../layout.h"
#include "../target.h"
#if defined(__AVX2__)
#include "intrinsics.h"
#endif

namespace sagitta {
namespace {

#if defined(__AVX512F__)
#define SAGITTA_REGISTER_BYTES 64
#elif defined(__AVX2__)
#define SAGITTA_REGISTER_BYTES 32
#else
#define SAGITTA_REGISTER_BYTES 16
#endif

/** A register of float64 values, and vectors of as many float32 values and 32-bit integers. */
using doubles = double __attribute__((vector_size(SAGITTA_REGISTER_BYTES)));
using floats = float __attribute__((vector_size(SAGITTA_REGISTER_BYTES / 2)));
using integers = int32_t __attribute__((vector_size(SAGITTA_REGISTER_BYTES / 2)));
#undef SAGITTA_REGISTER_BYTES

constexpr uint32_t register_lanes = sizeof(doubles) / sizeof(double);

/** The lanes of a canonical sum. */
constexpr uint32_t lane_count = 8;
constexpr uint32_t registers = lane_count / register_lanes;

floats load_floats(const float* from) {
  floats values;
  std::memcpy(&values, from, sizeof values);
  return values;
}

doubles load_doubles(const double* from) {
  doubles values;
  std::memcpy(&values, from, sizeof values);
  return values;
}

/** Uses intrinsics where GCC 12 would convert parts of registers and join them. */
doubles widen(const floats& values) {
#if defined(__AVX512F__)
  return reinterpret_cast<doubles>(_mm512_cvtps_pd(reinterpret_cast<__m256>(values)));
#elif defined(__AVX2__)
  return reinterpret_cast<doubles>(_mm256_cvtps_pd(reinterpret_cast<__m128>(values)));
#else
  return __builtin_convertvector(values, doubles);
#endif
}

/** The eight lanes of a canonical sum. */
struct lane_sums {
  doubles part[registers] = {};

  /** Adds up the lanes as described in search/canonical.h. */
  double fold() const {
    double lane[lane_count];
    std::memcpy(lane, part, sizeof lane);
    const double t0 = lane[0] + lane[4];
    const double t1 = lane[1] + lane[5];
    const double t2 = lane[2] + lane[6];
    const double t3 = lane[3] + lane[7];
    return (t0 + t2) + (t1 + t3);
  }
};

/** Calls `step(first, eight)` for eight values at a time, padded with zeros at the end. */
template <class Step>
void for_each_eight(const float* values, uint32_t dimension, const Step& step) {
  const uint32_t whole = dimension - dimension % lane_count;
  for (uint32_t i = 0; i < whole; i += lane_count) step(i, values + i);
  if (whole == dimension) return;
  float tail[lane_count] = {};
  std::memcpy(tail, values + whole, (dimension - whole) * sizeof(float));
  step(whole, tail);
}

// ── canonical products ────────────────────────────────────────────────────────────────────

template <uint32_t Count, bool has_squares>
void products_of(const double* query, uint32_t dimension, const float* const* rows,
                 double* products, double* squares) {
  lane_sums product[Count];
  lane_sums square[Count];
  const auto add = [&](const double* q, uint32_t r, const float* x) {
#pragma GCC unroll 4
    for (uint32_t p = 0; p < registers; p++) {
      const doubles value = widen(load_floats(x + p * register_lanes));
      product[r].part[p] += load_doubles(q + p * register_lanes) * value;
      if constexpr (has_squares) square[r].part[p] += value * value;
    }
  };
  const uint32_t whole = dimension - dimension % lane_count;
  for (uint32_t i = 0; i < whole; i += lane_count) {
#pragma GCC unroll 4
    for (uint32_t r = 0; r < Count; r++) add(query + i, r, rows[r] + i);
  }
  if (whole < dimension) {
    double query_tail[lane_count] = {};
    std::memcpy(query_tail, query + whole, (dimension - whole) * sizeof(double));
    for (uint32_t r = 0; r < Count; r++) {
      float tail[lane_count] = {};
      std::memcpy(tail, rows[r] + whole, (dimension - whole) * sizeof(float));
      add(query_tail, r, tail);
    }
  }
  for (uint32_t r = 0; r < Count; r++) {
    products[r] = product[r].fold();
    if constexpr (has_squares) squares[r] = square[r].fold();
  }
}

/** Processes `together` rows at a time, so that no addition waits for the previous one and no register spills. */
template <uint32_t together, bool has_squares>
void products_of_rows(const double* query, uint32_t dimension, const float* const* rows,
                      uint32_t count, double* products, double* squares) {
  uint32_t row = 0;
  for (; row + together <= count; row += together) {
    products_of<together, has_squares>(query, dimension, rows + row, products + row,
                                       has_squares ? squares + row : nullptr);
  }
  for (; row < count; row++) {
    products_of<1, has_squares>(query, dimension, rows + row, products + row,
                                has_squares ? squares + row : nullptr);
  }
}

void products(const double* query, uint32_t dimension, const float* const* rows, uint32_t count,
              double* products, double* squares) {
  if (squares == nullptr) {
    products_of_rows<4, false>(query, dimension, rows, count, products, nullptr);
  } else {
    products_of_rows<registers == 1 ? 4 : 2, true>(query, dimension, rows, count, products, squares);
  }
}

// ── codes ─────────────────────────────────────────────────────────────────────────────────

/** Adding and subtracting this rounds a float32 below 2^22 to an integer, ties to even. */
constexpr float rounder = 0x1.8p23f;
constexpr int32_t rounder_bits = 0x4b400000;
constexpr float code_max = 127;

struct vector_facts {
  float largest;
  double square;
};

vector_facts measure(const float* values, uint32_t dimension) {
  integers largest[registers] = {};
  lane_sums square;
  for_each_eight(values, dimension, [&](uint32_t, const float* eight) {
#pragma GCC unroll 4
    for (uint32_t p = 0; p < registers; p++) {
      const floats x = load_floats(eight + p * register_lanes);
      integers bits;
      std::memcpy(&bits, &x, sizeof bits);
      bits &= 0x7fffffff;
      largest[p] = bits > largest[p] ? bits : largest[p];
      const doubles wide = widen(x);
      square.part[p] += wide * wide;
    }
  });
  int32_t lanes[lane_count];
  std::memcpy(lanes, largest, sizeof lanes);
  int32_t most = 0;
  for (const int32_t lane : lanes) most = lane > most ? lane : most;
  vector_facts facts;
  std::memcpy(&facts.largest, &most, sizeof most);
  facts.square = square.fold();
  return facts;
}

/** Calls `store(first, codes)` for eight codes at a time. Returns Σ(x − s·c)². */
template <class Store>
double quantize(const float* values, uint32_t dimension, float largest, const Store& store) {
  const float inverse = code_max / largest;
  const double scale = static_cast<double>(largest / code_max);
  lane_sums residual;
  for_each_eight(values, dimension, [&](uint32_t first, const float* eight) {
    int32_t codes[lane_count];
#pragma GCC unroll 4
    for (uint32_t p = 0; p < registers; p++) {
      const floats x = load_floats(eight + p * register_lanes);
      const floats rounded = x * inverse + rounder;
      integers code;
      std::memcpy(&code, &rounded, sizeof code);
      code -= rounder_bits;
      std::memcpy(codes + p * register_lanes, &code, sizeof code);
      const doubles error = widen(x) - scale * widen(rounded - rounder);
      residual.part[p] += error * error;
    }
    int8_t bytes[lane_count];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < lane_count; i++) bytes[i] = static_cast<int8_t>(codes[i]);
    store(first, bytes);
  });
  return residual.fold();
}

/** Writes zeros as the codes of a row, which has four bytes in each step of its panel. */
inline void clear_steps(uint32_t steps, uint8_t* first_step) {
  for (uint32_t step = 0; step < steps; step++) {
    std::memset(first_step + size_t{step} * step_bytes, 0x80, step_dimensions);
  }
}

/** Writes the codes of a row into the steps of its panel. Returns Σ(x − s·c)². */
double quantize_row(const float* values, uint32_t dimension, float largest, uint8_t* first_step) {
  const uint32_t steps = step_count(dimension);
  return quantize(values, dimension, largest, [&](uint32_t first, const int8_t* codes) {
    uint32_t quads[2];
    std::memcpy(quads, codes, sizeof quads);
    uint8_t* const step = first_step + size_t{first} / step_dimensions * step_bytes;
    const uint32_t code = quads[0] ^ 0x80808080u;
    std::memcpy(step, &code, sizeof code);
    if (first / step_dimensions + 1 == steps) return;
    const uint32_t next = quads[1] ^ 0x80808080u;
    std::memcpy(step + step_bytes, &next, sizeof next);
  });
}

/** Writes the codes and facts of one row into its panel. */
void encode_row(const float* values, uint32_t dimension, uint32_t row, uint8_t* panel) {
  auto& facts = *reinterpret_cast<panel_facts*>(panel);
  uint8_t* const first_step = panel + fact_bytes + row * step_dimensions;
  const vector_facts measured = measure(values, dimension);
  const double length = std::sqrt(measured.square);
  if (!(length >= length_min && length <= length_max)) {
    const bool is_zero = measured.square == 0;
    facts.scale[row] = 0;
    facts.norm[row] = 0;
    facts.residual[row] = is_zero ? 0 : unscannable_residual;
    facts.square[row] = 0;
    clear_steps(step_count(dimension), first_step);
    return;
  }
  const double residual_square = quantize_row(values, dimension, measured.largest, first_step);
  facts.scale[row] = measured.largest / code_max;
  facts.norm[row] = static_cast<float>(length);
  facts.residual[row] = static_cast<float>(std::sqrt(residual_square) * (1 + 0x1p-20));
  facts.square[row] = static_cast<float>(measured.square);
}

void encode(const float* values, uint32_t dimension, uint32_t from, uint32_t to, uint8_t* codes) {
  const size_t bytes = panel_bytes(dimension);
  for (uint32_t row = from; row < to; row++) {
    encode_row(values + size_t{row} * dimension, dimension, row % panel_rows,
               codes + row / panel_rows * bytes);
  }
}

encoded_vector encode_query(const float* values, uint32_t dimension, int8_t* codes) {
  const vector_facts measured = measure(values, dimension);
  const uint32_t code_count = step_count(dimension) * step_dimensions;
  const double residual_square =
      quantize(values, dimension, measured.largest, [&](uint32_t first, const int8_t* eight) {
        const uint32_t left = code_count - first;
        std::memcpy(codes + first, eight, left < lane_count ? left : lane_count);
      });
  encoded_vector encoded{};
  encoded.scale = measured.largest / code_max;
  encoded.residual = std::sqrt(residual_square) * (1 + 0x1p-40);
  encoded.square = measured.square;
  for (uint32_t i = 0; i < code_count; i++) {
    encoded.code_sum += codes[i];
    encoded.code_square += codes[i] * codes[i];
  }
  return encoded;
}

/** Keeps sixteen limits in registers, one per row of a panel, and folds them at the end. */
row_limits limit_rows(const uint8_t* panels, size_t stride, uint32_t row_count) {
  float residual_max[panel_rows] = {};
  float norm_max[panel_rows] = {};
  float norm_min[panel_rows];
  float square_min[panel_rows];
  for (uint32_t i = 0; i < panel_rows; i++) norm_min[i] = square_min[i] = __FLT_MAX__;
  const auto larger = [](float left, float right) { return left > right ? left : right; };
  const auto smaller = [](float left, float right) { return left < right ? left : right; };
  const auto add = [&](uint32_t panel, uint32_t count) {
    const auto& facts = *reinterpret_cast<const panel_facts*>(panels + panel * stride);
    for (uint32_t i = 0; i < count; i++) {
      residual_max[i] = larger(residual_max[i], facts.residual[i]);
      norm_max[i] = larger(norm_max[i], facts.norm[i]);
      norm_min[i] = smaller(norm_min[i], facts.norm[i]);
      square_min[i] = smaller(square_min[i], facts.square[i]);
    }
  };
  const uint32_t whole = row_count / panel_rows;
  for (uint32_t panel = 0; panel < whole; panel++) add(panel, panel_rows);
  if (row_count % panel_rows != 0) add(whole, row_count % panel_rows);
  row_limits limits = {0, 0, __FLT_MAX__, __FLT_MAX__};
  for (uint32_t i = 0; i < panel_rows; i++) {
    limits.residual_max = larger(limits.residual_max, residual_max[i]);
    limits.norm_max = larger(limits.norm_max, norm_max[i]);
    limits.norm_min = smaller(limits.norm_min, norm_min[i]);
    limits.square_min = smaller(limits.square_min, square_min[i]);
  }
  return limits;
}

uint32_t count_bits(const uint32_t* words, uint32_t row_count) {
  uint32_t count = 0;
  const uint32_t whole = row_count / 32;
  for (uint32_t i = 0; i < whole; i++) count += static_cast<uint32_t>(__builtin_popcount(words[i]));
  const uint32_t left = row_count % 32;
  if (left != 0) count += static_cast<uint32_t>(__builtin_popcount(words[whole] & ~(~0u << left)));
  return count;
}

}  // namespace
}  // namespace sagitta
