// Rotation and coarse encoding, in vectors of the register width of the including file; see rows.h.
#pragma once

#include <vector>

#include "../search/rotation.h"
#include "rows.h"

namespace sagitta {
namespace {

using wide_floats = float __attribute__((vector_size(sizeof(doubles))));
using wide_integers = int32_t __attribute__((vector_size(sizeof(doubles))));
constexpr uint32_t wide_lanes = sizeof(wide_floats) / sizeof(float);

wide_floats load_wide(const float* from) {
  wide_floats values;
  std::memcpy(&values, from, sizeof values);
  return values;
}

void store_wide(float* to, const wide_floats& values) { std::memcpy(to, &values, sizeof values); }

/** Stores values 0…255 as bytes, with intrinsics where GCC 12 would extract the values one by one. */
void store_bytes(uint8_t* to, const wide_integers& values) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  const auto all = reinterpret_cast<__m256i>(values);
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
#else
  using wide_bytes = uint8_t __attribute__((vector_size(wide_lanes)));
  const wide_bytes bytes = __builtin_convertvector(values, wide_bytes);
  std::memcpy(to, &bytes, sizeof bytes);
#endif
}

/**
 * One stage within registers: each value and the one `distance` lanes away are replaced by their sum and difference.
 */
template <uint32_t distance>
wide_floats butterfly(const wide_floats& values) {
  wide_integers partner;
  wide_floats sign;
  for (uint32_t i = 0; i < wide_lanes; i++) {
    partner[i] = static_cast<int32_t>(i ^ distance);
    sign[i] = (i & distance) == 0 ? 1.0f : -1.0f;
  }
#if defined(__clang__)
  wide_floats swapped;
  for (uint32_t i = 0; i < wide_lanes; i++) swapped[i] = values[i ^ distance];
#else
  const wide_floats swapped = __builtin_shuffle(values, partner);
#endif
  return values * sign + swapped;
}

/** Values that `multiply_group` keeps in registers; blocks have at least as many. */
constexpr uint32_t group_values = 64;

/** Computes the stages whose values are less than `group_values` apart. */
inline void multiply_group(float* values) {
  constexpr uint32_t count = group_values / wide_lanes;
  wide_floats lanes[count];
#pragma GCC unroll 16
  for (uint32_t i = 0; i < count; i++) lanes[i] = load_wide(values + i * wide_lanes);
#pragma GCC unroll 4
  for (uint32_t half = count / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
    for (uint32_t i = 0; i < count; i++) {
      if ((i & half) != 0) continue;
      const wide_floats left = lanes[i];
      lanes[i] = left + lanes[i + half];
      lanes[i + half] = left - lanes[i + half];
    }
  }
#pragma GCC unroll 16
  for (uint32_t i = 0; i < count; i++) {
    if constexpr (wide_lanes > 8) lanes[i] = butterfly<8 % wide_lanes>(lanes[i]);
    if constexpr (wide_lanes > 4) lanes[i] = butterfly<4 % wide_lanes>(lanes[i]);
    lanes[i] = butterfly<1>(butterfly<2>(lanes[i]));
    store_wide(values + i * wide_lanes, lanes[i]);
  }
}

/** Multiplies `count` values, a power of two of at least `group_values`, by the Hadamard matrix. */
void multiply_hadamard(float* values, uint32_t count) {
  for (uint32_t half = count / 2; half >= group_values; half /= 2) {
    for (uint32_t start = 0; start < count; start += 2 * half) {
      for (uint32_t i = start; i < start + half; i += wide_lanes) {
        const wide_floats left = load_wide(values + i);
        const wide_floats right = load_wide(values + i + half);
        store_wide(values + i, left + right);
        store_wide(values + i + half, left - right);
      }
    }
  }
  for (uint32_t start = 0; start < count; start += group_values) multiply_group(values + start);
}

/** Multiplies all blocks, whose values have already been multiplied by 1 / √P. */
void multiply_blocks(const rotation& rotation, float* values) {
  uint32_t first = 0;
  for (; first + rotation.block <= rotation.dimension; first += rotation.block) {
    multiply_hadamard(values + first, rotation.block);
  }
  if (first == rotation.dimension) return;
  const uint32_t last = rotation.dimension - rotation.block;
  for (uint32_t i = last; i < first; i++) values[i] *= rotation.unit;
  multiply_hadamard(values + last, rotation.block);
}

/** `scratch` [dimension]. */
void rotate_into(const rotation& rotation, const float* values, float* __restrict scratch,
                 float* __restrict rotated) {
  const uint32_t dimension = rotation.dimension;
  for (uint32_t i = 0; i < dimension; i++) scratch[i] = values[i] * rotation.first[i];
  multiply_blocks(rotation, scratch);
  for (uint32_t i = 0; i < dimension; i++) {
    rotated[i] = scratch[rotation.source[i]] * rotation.second[i];
  }
  multiply_blocks(rotation, rotated);
}

void rotate(const rotation& rotation, const float* values, float* rotated) {
  std::vector<float> scratch(rotation.dimension);
  rotate_into(rotation, values, scratch.data(), rotated);
}

struct fitted {
  float scale;
  float residual;
};

/** Finds the scale s with the least ‖y − s·c‖, and that residual, from y·c, c·c and y·y; see search/bounds.h. */
inline fitted fit_scale(double product, double square, double yy) {
  const auto scale = static_cast<float>(product / square);
  const auto s = static_cast<double>(scale);
  const double residual = yy - 2 * s * product + s * s * square;
  const double bounded = (residual > 0 ? residual : 0) + 0x1p-19 * yy;
  return {scale, static_cast<float>(std::sqrt(bounded) * (1 + 0x1p-20))};
}

inline wide_integers bits_of(const wide_floats& values) { return reinterpret_cast<wide_integers>(values); }

inline wide_floats absolute(const wide_floats& values) {
  return reinterpret_cast<wide_floats>(bits_of(values) & 0x7fffffff);
}

/** Returns table[index mod 8]. */
inline wide_floats look_up(const float* table, const wide_integers& indexes) {
  wide_floats found;
#if !defined(__clang__)
  if constexpr (wide_lanes >= 8) {
    for (uint32_t i = 0; i < wide_lanes; i++) found[i] = table[i % 8];
    return __builtin_shuffle(found, indexes);
  }
#endif
  for (uint32_t i = 0; i < wide_lanes; i++) found[i] = table[indexes[i] % 8];
  return found;
}

/** The values of the codes' magnitudes. */
constexpr float first_levels[8] = {1, 1, 1, 1, 3, 3, 3, 3};
constexpr float second_levels[8] = {refined_levels[0], refined_levels[1], refined_levels[2],
                                    refined_levels[3], refined_levels[4], refined_levels[5],
                                    refined_levels[6], refined_levels[7]};

/** Computes codes 8…15 from magnitudes in units of σ / 4. */
inline wide_integers quantize_magnitudes(const wide_floats& quarters) {
  static_assert(coarse_thresholds[0] == 0.25f && coarse_thresholds[1] == 0.5f &&
                    coarse_thresholds[2] == 0.75f && coarse_thresholds[3] == 1,
                "rounding down counts the first four thresholds");
  // Floats that are not negative have the same order as their bits.
  const wide_integers bits = bits_of(quarters);
  const wide_integers four = bits_of(wide_floats{} + 4);
  wide_integers codes = __builtin_convertvector(
      reinterpret_cast<wide_floats>(bits < four ? bits : four), wide_integers);
#pragma GCC unroll 3
  for (uint32_t t = 4; t < 7; t++) codes -= quarters >= 4 * coarse_thresholds[t];
  return codes + 8;
}

/** Sums of squares and products of a row with its codes, by dimension modulo `coarse_chunk_bytes`. */
struct coarse_row_sums {
  double yy[coarse_chunk_bytes];
  double first_product[coarse_chunk_bytes];
  double second_product[coarse_chunk_bytes];
  /** Sums of integers below 2^24, and therefore exact. */
  float first_square[coarse_chunk_bytes];
  float second_square[coarse_chunk_bytes];
};

template <class Number>
double fold(const Number* lanes) {
  double sums[coarse_chunk_bytes];
  for (uint32_t i = 0; i < coarse_chunk_bytes; i++) sums[i] = static_cast<double>(lanes[i]);
  for (uint32_t half = coarse_chunk_bytes / 2; half > 0; half /= 2) {
    for (uint32_t i = 0; i < half; i++) sums[i] += sums[i + half];
  }
  return sums[0];
}

struct wide_doubles {
  doubles low = {};
  doubles high = {};

  void add(const wide_floats& values) {
    floats halves[2];
    std::memcpy(halves, &values, sizeof halves);
    low += widen(halves[0]);
    high += widen(halves[1]);
  }

  void store(double* to) const {
    std::memcpy(to, &low, sizeof low);
    std::memcpy(to + register_lanes, &high, sizeof high);
  }
};

/**
 * Encodes and sums `wide_lanes` lanes of all planes, from `lane` on, of a rotated row that is padded with
 * zeros to whole chunks. `inverse` is 4 / σ.
 */
inline void encode_coarse_lanes(const float* rotated, float inverse, uint32_t chunks, uint32_t lane,
                                uint8_t* upper, uint8_t* lower, coarse_row_sums& sums) {
  wide_doubles yy;
  wide_doubles first_product;
  wide_doubles second_product;
  wide_floats first_square = {};
  wide_floats second_square = {};
  for (uint32_t chunk = 0; chunk < chunks; chunk++) {
    const float* const from = rotated + size_t{chunk} * coarse_chunk_dimensions + lane;
    wide_integers upper_bits = {};
    wide_integers lower_bits = {};
    // Summed in float32 per chunk: converting each plane to float64 would take longer than the products.
    wide_floats chunk_yy = {};
    wide_floats chunk_first = {};
    wide_floats chunk_second = {};
#pragma GCC unroll 4
    for (uint32_t plane = 0; plane < 4; plane++) {
      const wide_floats y = load_wide(from + plane * coarse_chunk_bytes);
      const wide_floats scaled = y * inverse;
      const wide_integers magnitudes = quantize_magnitudes(absolute(scaled));
      // The codes of negative values are those of positive values in reverse.
      const wide_integers is_negative = scaled < 0;
      const wide_integers codes = magnitudes ^ (is_negative & 15);
      upper_bits |= codes >> 2 << 2 * plane;
      lower_bits |= (codes & 3) << 2 * plane;
      const wide_floats first = look_up(first_levels, magnitudes);
      const wide_floats second = look_up(second_levels, magnitudes);
      chunk_yy += y * y;
      chunk_first += absolute(y) * first;
      chunk_second += absolute(y) * second;
      first_square += first * first;
      second_square += second * second;
    }
    yy.add(chunk_yy);
    first_product.add(chunk_first);
    second_product.add(chunk_second);
    store_bytes(upper + chunk * coarse_chunk_bytes + lane, upper_bits);
    store_bytes(lower + chunk * coarse_chunk_bytes + lane, lower_bits);
  }
  yy.store(sums.yy + lane);
  first_product.store(sums.first_product + lane);
  second_product.store(sums.second_product + lane);
  store_wide(sums.first_square + lane, first_square);
  store_wide(sums.second_square + lane, second_square);
}

/** The buffers for encoding one row at a time. */
struct coarse_scratch {
  explicit coarse_scratch(uint32_t dimension)
      : values(dimension), rotated(size_t{coarse_row_bytes(dimension)} * 4) {}
  std::vector<float> values;
  /** Padded with zeros after the last dimension. */
  std::vector<float> rotated;
};

void encode_coarse_row(const rotation& rotation, const float* values, uint32_t lane,
                       coarse_scratch& scratch, uint8_t* coarse, uint8_t* refinement) {
  const uint32_t dimension = rotation.dimension;
  const uint32_t row_bytes = coarse_row_bytes(dimension);
  auto& facts = *reinterpret_cast<panel_facts*>(coarse);
  auto& refined = reinterpret_cast<refined_facts*>(refinement)->row[lane];
  uint8_t* const upper = coarse + fact_bytes + lane * row_bytes;
  uint8_t* const lower = refinement + sizeof(refined_facts) + lane * row_bytes;
  const vector_facts measured = measure(values, dimension);
  const double length = std::sqrt(measured.square);
  if (!(length >= length_min && length <= length_max)) {
    const float residual = measured.square == 0 ? 0 : unscannable_residual;
    facts.scale[lane] = facts.norm[lane] = facts.square[lane] = 0;
    facts.residual[lane] = residual;
    refined = {0, residual};
    std::memset(upper, 0, row_bytes);
    std::memset(lower, 0, row_bytes);
    return;
  }
  rotate_into(rotation, values, scratch.values.data(), scratch.rotated.data());
  const auto inverse = static_cast<float>(std::sqrt(static_cast<double>(dimension)) / length);
  coarse_row_sums sums;
  for (uint32_t from = 0; from < coarse_chunk_bytes; from += wide_lanes) {
    encode_coarse_lanes(scratch.rotated.data(), 4 * inverse, row_bytes / coarse_chunk_bytes, from, upper,
                        lower, sums);
  }
  // The zeros after the last dimension have codes too, but the query is 0 there.
  const uint32_t zeros = row_bytes * 4 - dimension;
  const double yy = fold(sums.yy);
  const fitted first = fit_scale(fold(sums.first_product), fold(sums.first_square) - zeros, yy);
  const fitted second =
      fit_scale(fold(sums.second_product),
                fold(sums.second_square) - zeros * refined_levels[0] * refined_levels[0], yy);
  facts.scale[lane] = first.scale;
  facts.norm[lane] = static_cast<float>(length);
  facts.residual[lane] = first.residual;
  facts.square[lane] = static_cast<float>(measured.square);
  refined = {second.scale, second.residual};
}

void encode_coarse(const rotation& rotation, const float* values, uint32_t from, uint32_t to,
                   uint8_t* coarse, uint8_t* refinement) {
  const uint32_t dimension = rotation.dimension;
  coarse_scratch scratch(dimension);
  for (uint32_t row = from; row < to; row++) {
    const size_t panel = row / panel_rows;
    encode_coarse_row(rotation, values + size_t{row} * dimension, row % panel_rows, scratch,
                      coarse + panel * coarse_panel_bytes(dimension),
                      refinement + panel * refinement_panel_bytes(dimension));
  }
}

}  // namespace
}  // namespace sagitta
