// Encoding and canonical products in portable vectors: the compiler turns them into the registers of
// whatever instruction set the including file is compiled for. All of it has internal linkage, so
// that no two files share a function compiled for different processors.
#pragma once

#include <cmath>
#include <cstring>

#include "../layout.h"
#include "../target.h"

namespace sagitta {
namespace {

using float_8 = float __attribute__((vector_size(32)));
using float_16 = float __attribute__((vector_size(64)));
using uint32_16 = uint32_t __attribute__((vector_size(64)));
using int32_16 = int32_t __attribute__((vector_size(64)));
using int8_16 = int8_t __attribute__((vector_size(16)));
using double_8 = double __attribute__((vector_size(64)));

template <class Vector>
Vector load(const float* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

/** The last values of a vector whose length is no multiple of the lanes, zeros after them. */
template <class Vector>
Vector load_tail(const float* from, uint32_t count) {
  Vector vector{};
  std::memcpy(&vector, from, count * sizeof(float));
  return vector;
}

/** The fold of canonical.h. */
double fold(const double_8& lanes) {
  const double t0 = lanes[0] + lanes[4];
  const double t1 = lanes[1] + lanes[5];
  const double t2 = lanes[2] + lanes[6];
  const double t3 = lanes[3] + lanes[7];
  return (t0 + t2) + (t1 + t3);
}

// ── canonical products ────────────────────────────────────────────────────────────────────

template <uint32_t Count>
void products_of(const double* query, uint32_t dimension, const float* const* rows,
                 double* products, double* squares) {
  double_8 product[Count] = {};
  double_8 square[Count] = {};
  const uint32_t whole = dimension & ~7u;
  for (uint32_t i = 0; i < whole; i += 8) {
    double_8 q;
    std::memcpy(&q, query + i, sizeof q);
    for (uint32_t r = 0; r < Count; r++) {
      const double_8 x = __builtin_convertvector(load<float_8>(rows[r] + i), double_8);
      product[r] += q * x;
      square[r] += x * x;
    }
  }
  if (whole < dimension) {
    double_8 q{};
    std::memcpy(&q, query + whole, (dimension - whole) * sizeof(double));
    for (uint32_t r = 0; r < Count; r++) {
      const float_8 tail = load_tail<float_8>(rows[r] + whole, dimension - whole);
      const double_8 x = __builtin_convertvector(tail, double_8);
      product[r] += q * x;
      square[r] += x * x;
    }
  }
  for (uint32_t r = 0; r < Count; r++) {
    products[r] = fold(product[r]);
    squares[r] = fold(square[r]);
  }
}

void products(const double* query, uint32_t dimension, const float* const* rows, uint32_t count,
              double* products, double* squares) {
  static_assert(canonical_rows == 4);
  switch (count) {
    case 4: return products_of<4>(query, dimension, rows, products, squares);
    case 3: return products_of<3>(query, dimension, rows, products, squares);
    case 2: return products_of<2>(query, dimension, rows, products, squares);
    case 1: return products_of<1>(query, dimension, rows, products, squares);
  }
}

// ── codes ─────────────────────────────────────────────────────────────────────────────────

/** Adding and subtracting it rounds a float32 of less than 2^22 to an integer, ties to even. */
constexpr float rounder = 0x1.8p23f;
constexpr int32_t rounder_bits = 0x4b400000;
constexpr float code_max = 127;

struct vector_facts {
  float largest;
  double square;
};

vector_facts measure(const float* values, uint32_t dimension) {
  uint32_16 largest{};
  double_8 square{};
  const auto add = [&](const float_16& x) {
    uint32_16 bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits &= 0x7fffffffu;
    largest = bits > largest ? bits : largest;
    float_8 halves[2];
    std::memcpy(halves, &x, sizeof halves);
    for (const float_8& half : halves) {
      const double_8 wide = __builtin_convertvector(half, double_8);
      square += wide * wide;
    }
  };
  const uint32_t whole = dimension & ~15u;
  for (uint32_t i = 0; i < whole; i += 16) add(load<float_16>(values + i));
  if (whole < dimension) add(load_tail<float_16>(values + whole, dimension - whole));
  uint32_t most = 0;
  for (int lane = 0; lane < 16; lane++) most = largest[lane] > most ? largest[lane] : most;
  vector_facts facts;
  std::memcpy(&facts.largest, &most, sizeof most);
  facts.square = fold(square);
  return facts;
}

/** Sixteen codes at a time: `store(first, codes)`. Returns Σ(x − s·c)². */
template <class Store>
double quantize(const float* values, uint32_t dimension, float largest, const Store& store) {
  const float inverse = code_max / largest;
  const double scale = largest / code_max;
  double_8 residual{};
  const auto add = [&](uint32_t first, const float_16& x) {
    const float_16 rounded = x * inverse + rounder;
    int32_16 codes;
    std::memcpy(&codes, &rounded, sizeof codes);
    codes -= rounder_bits;
    const float_16 back = rounded - rounder;
    float_8 halves[2];
    float_8 back_halves[2];
    std::memcpy(halves, &x, sizeof halves);
    std::memcpy(back_halves, &back, sizeof back_halves);
    for (int half = 0; half < 2; half++) {
      const double_8 error = __builtin_convertvector(halves[half], double_8) -
                             scale * __builtin_convertvector(back_halves[half], double_8);
      residual += error * error;
    }
    store(first, __builtin_convertvector(codes, int8_16));
  };
  const uint32_t whole = dimension & ~15u;
  for (uint32_t i = 0; i < whole; i += 16) add(i, load<float_16>(values + i));
  if (whole < dimension) add(whole, load_tail<float_16>(values + whole, dimension - whole));
  return fold(residual);
}

/** Puts the codes of one row into its place in the panel. */
void encode_row(const float* values, uint32_t dimension, uint32_t row, uint8_t* panel) {
  auto& facts = *reinterpret_cast<panel_facts*>(panel);
  uint8_t* const place = panel + fact_bytes + row * step_dimensions;
  const uint32_t steps = step_count(dimension);
  const vector_facts measured = measure(values, dimension);
  const double length = std::sqrt(measured.square);
  if (!(length >= length_min && length <= length_max)) {
    const bool is_zero = measured.square == 0;
    facts.scale[row] = 0;
    facts.norm[row] = 0;
    facts.residual[row] = is_zero ? 0 : unscannable_residual;
    facts.square[row] = 0;
    for (uint32_t step = 0; step < steps; step++) {
      std::memset(place + size_t{step} * step_bytes, 0x80, step_dimensions);
    }
    return;
  }
  const double residual_square =
      quantize(values, dimension, measured.largest, [&](uint32_t first, const int8_16& codes) {
        uint32_t quads[4];
        std::memcpy(quads, &codes, sizeof quads);
        const uint32_t step = first / step_dimensions;
        for (uint32_t i = 0; i < 4 && step + i < steps; i++) {
          const uint32_t code = quads[i] ^ 0x80808080u;
          std::memcpy(place + size_t{step + i} * step_bytes, &code, sizeof code);
        }
      });
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
      quantize(values, dimension, measured.largest, [&](uint32_t first, const int8_16& part) {
        const uint32_t left = code_count - first;
        std::memcpy(codes + first, &part, left < 16 ? left : 16);
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
