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

/** One stage within registers: each value and the one `distance` lanes away become sum and difference. */
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

/** Multiplies `count` values, a power of two of at least 64, by the Hadamard matrix. */
void multiply_hadamard(float* values, uint32_t count) {
  for (uint32_t half = count / 2; half >= wide_lanes; half /= 2) {
    for (uint32_t start = 0; start < count; start += 2 * half) {
      for (uint32_t i = start; i < start + half; i += wide_lanes) {
        const wide_floats left = load_wide(values + i);
        const wide_floats right = load_wide(values + i + half);
        store_wide(values + i, left + right);
        store_wide(values + i + half, left - right);
      }
    }
  }
  for (uint32_t i = 0; i < count; i += wide_lanes) {
    wide_floats lanes = load_wide(values + i);
    if constexpr (wide_lanes > 8) lanes = butterfly<8 % wide_lanes>(lanes);
    if constexpr (wide_lanes > 4) lanes = butterfly<4 % wide_lanes>(lanes);
    lanes = butterfly<2>(lanes);
    store_wide(values + i, butterfly<1>(lanes));
  }
}

/** Multiplies all blocks, whose values have been multiplied by 1 / √P. */
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
void rotate_into(const rotation& rotation, const float* values, float* scratch, float* rotated) {
  const uint32_t dimension = rotation.dimension;
  for (uint32_t i = 0; i < dimension; i++) scratch[i] = values[i] * rotation.first[i];
  multiply_blocks(rotation, scratch);
  for (uint32_t i = 0, from = 0; i < dimension; i++) {
    rotated[i] = scratch[from] * rotation.second[i];
    from += rotation.stride;
    if (from >= dimension) from -= dimension;
  }
  multiply_blocks(rotation, rotated);
}

void rotate(const rotation& rotation, const float* values, float* rotated) {
  std::vector<float> scratch(rotation.dimension);
  rotate_into(rotation, values, scratch.data(), rotated);
}

/** The sums that give the scale s with the least ‖y − s·c‖, and that residual. */
struct fit {
  lane_sums product;
  lane_sums square;

  void add(uint32_t p, const doubles& value, const doubles& code) {
    product.part[p] += value * code;
    square.part[p] += code * code;
  }
};

struct fitted {
  float scale;
  float residual;
};

/** `yy` = y·y. The slack covers the cancellation in the square of the residual. */
inline fitted fit_scale(const fit& sums, double yy) {
  const double product = sums.product.fold();
  const double square = sums.square.fold();
  const auto scale = static_cast<float>(product / square);
  const auto s = static_cast<double>(scale);
  const double residual = yy - 2 * s * product + s * s * square;
  const double bounded = (residual > 0 ? residual : 0) + 0x1p-40 * yy;
  return {scale, static_cast<float>(std::sqrt(bounded) * (1 + 0x1p-20))};
}

/** Packs codes 0…3 [64 · chunks] as layout.h says. */
void pack_coarse(const uint8_t* codes, uint32_t chunks, uint8_t* packed) {
  for (uint32_t chunk = 0; chunk < chunks; chunk++) {
    const uint8_t* const from = codes + size_t{chunk} * coarse_chunk_dimensions;
    uint8_t* const to = packed + size_t{chunk} * coarse_chunk_bytes;
    for (uint32_t j = 0; j < coarse_chunk_bytes; j++) {
      to[j] = static_cast<uint8_t>(from[j] | from[j + 16] << 2 | from[j + 32] << 4 | from[j + 48] << 6);
    }
  }
}

/** What encoding needs for one row at a time. */
struct coarse_scratch {
  explicit coarse_scratch(uint32_t dimension)
      : values(size_t{coarse_row_bytes(dimension)} * 4),
        rotated(values.size()),
        upper(values.size()),
        lower(values.size()) {}
  std::vector<float> values;
  /** Zero past the last dimension. */
  std::vector<float> rotated;
  std::vector<uint8_t> upper;
  std::vector<uint8_t> lower;
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
  fit coarse_fit;
  fit refined_fit;
  lane_sums yy;
  const uint32_t padded = row_bytes * 4;
  for (uint32_t i = 0; i < padded; i += lane_count) {
    const uint32_t left = i < dimension ? dimension - i : 0;
#pragma GCC unroll 4
    for (uint32_t p = 0; p < registers; p++) {
      const floats y = load_floats(scratch.rotated.data() + i + p * register_lanes);
      const floats z = y * inverse;
      const integers is_negative = z < 0;
      const floats magnitude = is_negative ? -z : z;
      integers reached = {};
      integers level = {};
      level += refined_levels[0];
#pragma GCC unroll 7
      for (uint32_t t = 0; t < 7; t++) {
        const integers is_above = magnitude >= coarse_thresholds[t];
        reached -= is_above;
        level -= is_above * (refined_levels[t + 1] - refined_levels[t]);
      }
      const integers code = is_negative ? 7 - reached : 8 + reached;
      const integers first = 2 * (code >> 2) - 3;
      const integers second = is_negative ? -level : level;
      const integers upper_bits = code >> 2;
      const integers lower_bits = code & 3;
#pragma GCC unroll 8
      for (uint32_t j = 0; j < register_lanes; j++) {
        const uint32_t at = i + p * register_lanes + j;
        scratch.upper[at] = static_cast<uint8_t>(upper_bits[j]);
        scratch.lower[at] = static_cast<uint8_t>(lower_bits[j]);
      }
      const doubles value = widen(y);
      yy.part[p] += value * value;
      doubles c0 = __builtin_convertvector(first, doubles);
      doubles c1 = __builtin_convertvector(second, doubles);
      if (left < lane_count) {
        // Codes past the last dimension do not count: the query is 0 there.
        for (uint32_t j = 0; j < register_lanes; j++) {
          if (p * register_lanes + j >= left) c0[j] = c1[j] = 0;
        }
      }
      coarse_fit.add(p, value, c0);
      refined_fit.add(p, value, c1);
    }
  }
  const double square = yy.fold();
  const fitted first = fit_scale(coarse_fit, square);
  const fitted second = fit_scale(refined_fit, square);
  facts.scale[lane] = first.scale;
  facts.norm[lane] = static_cast<float>(length);
  facts.residual[lane] = first.residual;
  facts.square[lane] = static_cast<float>(measured.square);
  refined = {second.scale, second.residual};
  pack_coarse(scratch.upper.data(), row_bytes / coarse_chunk_bytes, upper);
  pack_coarse(scratch.lower.data(), row_bytes / coarse_chunk_bytes, lower);
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
