// Projection of rows on the directions of a basis, and their head codes; see search/basis.h and rows.h.
#pragma once

#include <vector>

#include "../search/basis.h"
#include "rotate.h"

namespace sagitta {
namespace {

/** Steps of a lane that are added up before they are added to the sum of the lane, which limits rounding errors. */
constexpr uint32_t projected_steps = 16;

/** Computes products of `Vectors` vectors with `Directions` directions: `to` [Vectors, stride]. */
template <uint32_t Vectors, uint32_t Directions>
void project_tile(const float* const* vectors, const float* const* directions, uint32_t dimension,
                  float* to, size_t stride) {
  wide_floats sums[Vectors * Directions] = {};
  const uint32_t whole = dimension - dimension % wide_lanes;
  const auto add = [&](wide_floats* block, const wide_floats* x, const wide_floats* h)
                       __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (uint32_t v = 0; v < Vectors; v++) {
#pragma GCC unroll 4
      for (uint32_t d = 0; d < Directions; d++) block[v * Directions + d] += x[v] * h[d];
    }
  };
  for (uint32_t start = 0; start < whole; start += projected_steps * wide_lanes) {
    const uint32_t end = start + projected_steps * wide_lanes < whole ? start + projected_steps * wide_lanes : whole;
    wide_floats block[Vectors * Directions] = {};
    for (uint32_t i = start; i < end; i += wide_lanes) {
      wide_floats x[Vectors];
      wide_floats h[Directions];
#pragma GCC unroll 4
      for (uint32_t v = 0; v < Vectors; v++) x[v] = load_wide(vectors[v] + i);
#pragma GCC unroll 4
      for (uint32_t d = 0; d < Directions; d++) h[d] = load_wide(directions[d] + i);
      add(block, x, h);
    }
#pragma GCC unroll 16
    for (uint32_t i = 0; i < Vectors * Directions; i++) sums[i] += block[i];
  }
  if (whole < dimension) {
    const auto load_tail = [&](const float* from) {
      float padded[wide_lanes] = {};
      std::memcpy(padded, from + whole, (dimension - whole) * sizeof(float));
      return load_wide(padded);
    };
    wide_floats x[Vectors];
    wide_floats h[Directions];
    for (uint32_t v = 0; v < Vectors; v++) x[v] = load_tail(vectors[v]);
    for (uint32_t d = 0; d < Directions; d++) h[d] = load_tail(directions[d]);
    add(sums, x, h);
  }
  for (uint32_t v = 0; v < Vectors; v++) {
    for (uint32_t d = 0; d < Directions; d++) {
      float lanes[wide_lanes];
      store_wide(lanes, sums[v * Directions + d]);
      for (uint32_t half = wide_lanes / 2; half > 0; half /= 2) {
        for (uint32_t i = 0; i < half; i++) lanes[i] += lanes[i + half];
      }
      to[v * stride + d] = lanes[0];
    }
  }
}

constexpr uint32_t projected_together = 4;
constexpr uint32_t directions_together = 2;

template <uint32_t Vectors>
void project_vectors(const float* const* vectors, const float* matrix, uint32_t rows,
                     uint32_t dimension, float* to, size_t stride) {
  uint32_t row = 0;
  for (; row + directions_together <= rows; row += directions_together) {
    const float* directions[directions_together];
    for (uint32_t d = 0; d < directions_together; d++) {
      directions[d] = matrix + size_t{row + d} * dimension;
    }
    project_tile<Vectors, directions_together>(vectors, directions, dimension, to + row, stride);
  }
  for (; row < rows; row++) {
    const float* const direction = matrix + size_t{row} * dimension;
    project_tile<Vectors, 1>(vectors, &direction, dimension, to + row, stride);
  }
}

/** Takes few vectors at a time, which stay in the L1 cache for all directions. */
void project(const float* vectors, uint32_t count, const float* matrix, uint32_t rows,
             uint32_t dimension, float* projected) {
  uint32_t vector = 0;
  for (; vector + projected_together <= count; vector += projected_together) {
    const float* together[projected_together];
    for (uint32_t v = 0; v < projected_together; v++) {
      together[v] = vectors + size_t{vector + v} * dimension;
    }
    project_vectors<projected_together>(together, matrix, rows, dimension,
                                        projected + size_t{vector} * rows, rows);
  }
  for (; vector < count; vector++) {
    const float* const one = vectors + size_t{vector} * dimension;
    project_vectors<1>(&one, matrix, rows, dimension, projected + size_t{vector} * rows, rows);
  }
}

/** Subtracts its part along `unit`, which has length 1, from `values`. */
inline void subtract_part(const float* unit, float* values, uint32_t dimension) {
  wide_floats sum = {};
  const uint32_t whole = dimension - dimension % wide_lanes;
  for (uint32_t i = 0; i < whole; i += wide_lanes) sum += load_wide(unit + i) * load_wide(values + i);
  float product = 0;
  for (uint32_t i = 0; i < wide_lanes; i++) product += sum[i];
  for (uint32_t i = whole; i < dimension; i++) product += unit[i] * values[i];
  for (uint32_t i = 0; i < whole; i += wide_lanes) {
    store_wide(values + i, load_wide(values + i) - product * load_wide(unit + i));
  }
  for (uint32_t i = whole; i < dimension; i++) values[i] -= product * unit[i];
}

void subtract_parts(const float* unit, float* rows, uint32_t count, uint32_t dimension) {
  for (uint32_t i = 0; i < count; i++) subtract_part(unit, rows + size_t{i} * dimension, dimension);
}

/** What a row's head codes and facts are computed from, padded to whole registers. */
struct head_scratch {
  explicit head_scratch(const basis& basis)
      : padded((basis.row_count + coarse_chunk_bytes - 1) / coarse_chunk_bytes * coarse_chunk_bytes),
        inverses(padded),
        scaled_weights(padded),
        units(padded),
        weights(padded),
        values(padded),
        codes(padded),
        projected(size_t{panel_rows} * basis.row_count),
        parts(basis.code_count),
        mixing(mixing_of(head_tile_directions(basis.dimension) / 2)),
        mixed(head_tile_directions(basis.dimension)) {
    for (uint32_t i = 0; i < basis.row_count; i++) {
      const bool is_fine = i < basis.fine_count;
      units[i] = basis.units[i];
      weights[i] = basis.weights[i];
      inverses[i] = 1 / basis.units[i];
      // The spread of values that have this unit, see basis_units.
      const float share = inverses[i] * (is_fine ? fine_unit : coarse_unit);
      scaled_weights[i] = share * share / static_cast<float>(basis.row_count);
    }
  }

  uint32_t padded;
  std::vector<float> inverses;
  /** The weight of a squared value in the square of the row's spread. */
  std::vector<float> scaled_weights;
  std::vector<float> units;
  std::vector<float> weights;
  std::vector<float> values;
  /** Odd integers: −15 to 15, or −3 to 3. */
  std::vector<float> codes;
  std::vector<float> projected;
  /** Two-bit codes in their order in a row. */
  std::vector<uint8_t> parts;
  /** For head tiles: see mixing_of. */
  const float* mixing;
  std::vector<float> mixed;
};

/** Rounds values, in units of their codes, to odd integers of at most `largest`. */
inline void round_to_odd(const float* values, const float* inverses, float inverse, float largest,
                         uint32_t from, uint32_t to, float* codes) {
  for (uint32_t i = from; i < to; i++) {
    const float half = values[i] * inverses[i] * inverse * 0.5f;
    const float bounded = half > 8 ? 8.0f : half < -8 ? -8.0f : half;
    const float code = 2 * static_cast<float>(static_cast<int32_t>(bounded + 16) - 16) + 1;
    codes[i] = code > largest ? largest : code < -largest ? -largest : code;
  }
}

/** Sums of eight lanes, so that the loops over directions are vectorised. */
template <class Term>
double sum_of(uint32_t count, const Term& term) {
  double lanes[lane_count] = {};
  for (uint32_t i = 0; i < count; i += lane_count) {
#pragma GCC unroll 8
    for (uint32_t lane = 0; lane < lane_count; lane++) lanes[lane] += term(i + lane);
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

/** Two-bit codes of the directions, the lower ones of those with four bits at the end; see layout.h. */
inline void pack_head(const basis& basis, head_scratch& scratch, uint8_t* to) {
  uint8_t* const parts = scratch.parts.data();
  for (uint32_t i = 0; i < basis.fine_count; i++) {
    const auto code = static_cast<uint32_t>(static_cast<int32_t>(scratch.codes[i]) + 15) / 2;
    parts[i] = static_cast<uint8_t>(code >> 2);
    parts[basis.row_count + i] = static_cast<uint8_t>(code & 3);
  }
  for (uint32_t i = basis.fine_count; i < basis.row_count; i++) {
    parts[i] = static_cast<uint8_t>((static_cast<int32_t>(scratch.codes[i]) + 3) / 2);
  }
  for (uint32_t chunk = 0; chunk < basis.code_count / coarse_chunk_dimensions; chunk++) {
    const uint8_t* const from = parts + size_t{chunk} * coarse_chunk_dimensions;
    for (uint32_t j = 0; j < coarse_chunk_bytes; j++) {
      to[chunk * coarse_chunk_bytes + j] = static_cast<uint8_t>(
          from[j] | from[j + coarse_chunk_bytes] << 2 | from[j + 2 * coarse_chunk_bytes] << 4 |
          from[j + 3 * coarse_chunk_bytes] << 6);
    }
  }
}

/** The square of the length of the two-bit codes: exact, as they are small integers. */
inline double square_of_parts(const basis& basis, const head_scratch& scratch) {
  uint32_t square = 0;
  for (uint32_t i = 0; i < basis.code_count; i++) {
    const int32_t code = 2 * scratch.parts[i] - 3;
    square += static_cast<uint32_t>(code * code);
  }
  return square;
}

/** Returns x·x, 0 for a row of zeros, and −1 for a row that cannot be scanned. */
double encode_head_row(const basis& basis, const float* values, const float* projected, uint32_t lane,
                       head_scratch& scratch, uint8_t* panel) {
  const uint32_t row_bytes = coarse_row_bytes(basis.code_count);
  auto& facts = *reinterpret_cast<panel_facts*>(panel);
  uint8_t* const codes = panel + fact_bytes + lane * row_bytes;
  const vector_facts measured = measure(values, basis.dimension);
  const double length = std::sqrt(measured.square);
  if (!(length >= length_min && length <= length_max)) {
    facts.scale[lane] = facts.norm[lane] = facts.square[lane] = 0;
    facts.residual[lane] = measured.square == 0 ? 0 : unscannable_residual;
    std::memset(codes, 0, row_bytes);
    return measured.square == 0 ? 0 : -1;
  }
  const uint32_t count = scratch.padded;
  float* const y = scratch.values.data();
  std::memcpy(y, projected, basis.row_count * sizeof(float));
  const auto square_at = [&](uint32_t i) { return static_cast<double>(y[i]) * static_cast<double>(y[i]); };
  const double spread = sum_of(count, [&](uint32_t i) {
    return square_at(i) * static_cast<double>(scratch.scaled_weights[i]);
  });
  const double least_spread = length * 0x1p-20;
  const double deviation = std::sqrt(spread);
  const auto inverse = static_cast<float>(1 / (deviation > least_spread ? deviation : least_spread));
  float* const c = scratch.codes.data();
  const float* const inverses = scratch.inverses.data();
  round_to_odd(y, inverses, inverse, 15, 0, basis.fine_count, c);
  round_to_odd(y, inverses, inverse, 3, basis.fine_count, basis.row_count, c);
  const auto coded = [&](uint32_t i) {
    return static_cast<double>(scratch.units[i]) * static_cast<double>(c[i]);
  };
  const auto weight = [&](uint32_t i) { return static_cast<double>(scratch.weights[i]); };
  const double product = sum_of(count, [&](uint32_t i) { return weight(i) * coded(i) * static_cast<double>(y[i]); });
  const double square = sum_of(count, [&](uint32_t i) { return weight(i) * coded(i) * coded(i); });
  const auto scale = static_cast<float>(product / square);
  const double residual = sum_of(count, [&](uint32_t i) {
    const double error = static_cast<double>(y[i]) - static_cast<double>(scale) * coded(i);
    return weight(i) * error * error;
  });
  const double in_head = sum_of(count, square_at);
  const double slack = 2 * basis.error * measured.square;
  const double rest = measured.square - in_head;
  pack_head(basis, scratch, codes);
  const double whole = std::sqrt(residual + static_cast<double>(basis.header->rest_weight) *
                                          ((rest > 0 ? rest : 0) + slack)) +
                       basis.rounding * static_cast<double>(scale) *
                           std::sqrt(square_of_parts(basis, scratch));
  facts.scale[lane] = scale;
  facts.norm[lane] = static_cast<float>(length);
  facts.residual[lane] = static_cast<float>(whole * (1 + 0x1p-20));
  facts.square[lane] = static_cast<float>(measured.square);
  return measured.square;
}

/** Writes the codes and facts of a row that can be scanned; see bounds.h. */
void encode_head_tile(const basis& basis, const float* projected, double square, uint32_t lane,
                      head_scratch& scratch, uint8_t* panel) {
  const uint32_t directions = head_tile_directions(basis.dimension);
  const uint32_t half = directions / 2;
  float* const mixed = scratch.mixed.data();
  for (uint32_t first = 0; first < directions; first += half) {
    project(projected + first, 1, scratch.mixing, half, half, mixed + first);
  }
  const float largest = measure(mixed, directions).largest;
  const bool is_zero = !(static_cast<double>(largest) >= 0x1p-40);
  uint8_t* const codes = panel + head_tile_levels * fact_bytes + lane * step_dimensions;
  const double scale = static_cast<double>(largest / code_max);
  double errors[head_tile_levels] = {};
  double in_head[head_tile_levels] = {};
  for (uint32_t i = 0; i < directions; i++) {
    const double value = static_cast<double>(mixed[i]);
    const float rounded = is_zero ? 0 : mixed[i] * (code_max / largest) + rounder - rounder;
    codes[size_t{i} / step_dimensions * step_bytes + i % step_dimensions] =
        static_cast<uint8_t>(static_cast<int32_t>(rounded) + 128);
    const double error = value - (is_zero ? 0 : scale * static_cast<double>(rounded));
    for (uint32_t level = 0; level < (i < half ? 2u : 1u); level++) {
      errors[level] += error * error;
      in_head[level] += value * value;
    }
  }
  for (uint32_t level = 0; level < head_tile_levels; level++) {
    auto& facts = reinterpret_cast<panel_facts*>(panel)[level];
    const double left = square - in_head[level];
    const double rest = (left > 0 ? left : 0) + 2 * basis.tile_error * square;
    const double weight = static_cast<double>(basis.header->tile_weights[level]);
    facts.scale[lane] = is_zero ? 0 : static_cast<float>(scale);
    facts.norm[lane] = static_cast<float>(std::sqrt(square));
    facts.residual[lane] = static_cast<float>(std::sqrt(errors[level] + weight * weight * rest) * (1 + 0x1p-20));
    facts.square[lane] = static_cast<float>(square);
  }
}

/** Writes a row that is not scanned: of length 0, or one that is rescored. */
void skip_head_tile(uint32_t directions, bool is_zero, uint32_t lane, uint8_t* panel) {
  for (uint32_t level = 0; level < head_tile_levels; level++) {
    auto& facts = reinterpret_cast<panel_facts*>(panel)[level];
    facts.scale[lane] = facts.norm[lane] = facts.square[lane] = 0;
    facts.residual[lane] = is_zero ? 0 : unscannable_residual;
  }
  uint8_t* const codes = panel + head_tile_levels * fact_bytes + lane * step_dimensions;
  for (uint32_t step = 0; step < step_count(directions); step++) {
    std::memset(codes + size_t{step} * step_bytes, 0x80, step_dimensions);
  }
}

void encode_head(const basis& basis, const float* values, uint32_t from, uint32_t to, uint8_t* head,
                 uint8_t* head_tiles) {
  head_scratch scratch(basis);
  const uint32_t directions = head_tile_directions(basis.dimension);
  const size_t stride = coarse_panel_bytes(basis.code_count);
  const size_t tile_stride = head_tile_panel_bytes(directions);
  for (uint32_t first = from; first < to;) {
    const uint32_t next = (first / panel_rows + 1) * panel_rows;
    const uint32_t end = to < next ? to : next;
    const float* const rows = values + size_t{first} * basis.dimension;
    project(rows, end - first, basis.matrix, basis.row_count, basis.dimension,
            scratch.projected.data());
    for (uint32_t row = first; row < end; row++) {
      const float* const projected = scratch.projected.data() + size_t{row - first} * basis.row_count;
      const uint32_t lane = row % panel_rows;
      uint8_t* const tile = head_tiles + row / panel_rows * tile_stride;
      const double square = encode_head_row(basis, values + size_t{row} * basis.dimension, projected,
                                            lane, scratch, head + row / panel_rows * stride);
      if (square > 0) encode_head_tile(basis, projected, square, lane, scratch, tile);
      else skip_head_tile(directions, square == 0, lane, tile);
    }
    first = end;
  }
}

}  // namespace
}  // namespace sagitta
