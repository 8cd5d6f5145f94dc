// Projection of rows on the directions of a basis, and their head codes; see search/basis.h and rows.h.
#pragma once

#include <vector>

#include "../search/basis.h"
#include "rotate.h"

namespace sagitta {
namespace {

/**
 * Steps that are added up one by one before they are added to the sum of all steps, which limits rounding errors: see
 * projection_error in basis.cpp.
 */
constexpr uint32_t projected_steps = 64;
/** A tile of products: so many vectors by two registers of directions, whose sums stay in registers. */
constexpr uint32_t tile_vectors = 6;
constexpr uint32_t tile_directions = 2 * wide_lanes;
/** Vectors that are multiplied by a tile of directions while this is in the L1 cache: whole panels of rows. */
constexpr uint32_t vectors_together = 3 * panel_rows;

/** A matrix of directions in tiles: [⌈rows / tile_directions⌉, dimension, tile_directions], with zeros at the end. */
class tiled_matrix {
 public:
  tiled_matrix(const float* matrix, uint32_t rows, uint32_t dimension)
      : rows_(rows),
        dimension_(dimension),
        values_(size_t{(rows + tile_directions - 1) / tile_directions} * tile_directions * dimension) {
    for (uint32_t first = 0; first < rows; first += tile_directions) {
      float* to = values_.data() + size_t{first} * dimension;
      const uint32_t count = rows - first < tile_directions ? rows - first : tile_directions;
      for (uint32_t i = 0; i < dimension; i++, to += tile_directions) {
        for (uint32_t d = 0; d < count; d++) to[d] = matrix[size_t{first + d} * dimension + i];
      }
    }
  }

  uint32_t rows() const { return rows_; }
  uint32_t dimension() const { return dimension_; }
  /** The tile that begins with this direction: [dimension, tile_directions]. */
  const float* tile(uint32_t first) const { return values_.data() + size_t{first} * dimension_; }

 private:
  uint32_t rows_;
  uint32_t dimension_;
  std::vector<float> values_;
};

/** Adds the products of `count` vectors with a tile of directions, over so many steps, to `sums` [count, directions]. */
template <uint32_t count>
void add_projected_tile(const float* vectors, size_t stride, const float* tile, uint32_t steps, float* sums) {
  wide_floats left[count] = {};
  wide_floats right[count] = {};
  for (uint32_t i = 0; i < steps; i++, tile += tile_directions) {
    const wide_floats first = load_wide(tile);
    const wide_floats second = load_wide(tile + wide_lanes);
#pragma GCC unroll 6
    for (uint32_t v = 0; v < count; v++) {
      const float value = vectors[v * stride + i];
      left[v] += value * first;
      right[v] += value * second;
    }
  }
#pragma GCC unroll 6
  for (uint32_t v = 0; v < count; v++) {
    float* const to = sums + v * tile_directions;
    store_wide(to, load_wide(to) + left[v]);
    store_wide(to + wide_lanes, load_wide(to + wide_lanes) + right[v]);
  }
}

/** The same for the vectors that are left after whole tiles. */
template <uint32_t count = tile_vectors - 1>
void add_last_tile(uint32_t left, const float* vectors, size_t stride, const float* tile, uint32_t steps,
                   float* sums) {
  if (left == count) return add_projected_tile<count>(vectors, stride, tile, steps, sums);
  if constexpr (count > 1) add_last_tile<count - 1>(left, vectors, stride, tile, steps, sums);
}

/** Computes the products of up to `vectors_together` vectors with all directions: see target::project. */
void project_together(const strided_vectors& vectors, uint32_t count, const tiled_matrix& matrix, float* projected,
                      size_t stride) {
  for (uint32_t first = 0; first < matrix.rows(); first += tile_directions) {
    float sums[vectors_together * tile_directions] = {};
    for (uint32_t start = 0; start < matrix.dimension(); start += projected_steps) {
      const uint32_t left = matrix.dimension() - start;
      const uint32_t steps = left < projected_steps ? left : projected_steps;
      const float* const tile = matrix.tile(first) + size_t{start} * tile_directions;
      const float* from = vectors.values + start;
      float* to = sums;
      uint32_t v = 0;
      for (; v + tile_vectors <= count; v += tile_vectors) {
        add_projected_tile<tile_vectors>(from, vectors.stride, tile, steps, to);
        from += tile_vectors * vectors.stride;
        to += tile_vectors * tile_directions;
      }
      if (v < count) add_last_tile(count - v, from, vectors.stride, tile, steps, to);
    }
    const uint32_t width = matrix.rows() - first;
    for (uint32_t v = 0; v < count; v++) {
      const float* const from = sums + v * tile_directions;
      float* const to = projected + v * stride + first;
      if (width >= tile_directions) std::memcpy(to, from, tile_directions * sizeof(float));
      else std::memcpy(to, from, width * sizeof(float));
    }
  }
}

void project(const strided_vectors& vectors, uint32_t count, const float* matrix, uint32_t rows, uint32_t dimension,
             float* projected, size_t stride) {
  const tiled_matrix tiled(matrix, rows, dimension);
  for (uint32_t first = 0; first < count; first += vectors_together) {
    const uint32_t together = count - first < vectors_together ? count - first : vectors_together;
    project_together({vectors.values + first * vectors.stride, vectors.stride}, together, tiled,
                     projected + first * stride, stride);
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

/** What a row's head codes and facts are computed from, padded to whole registers with directions of weight 0. */
struct head_scratch {
  explicit head_scratch(const basis& basis)
      : padded((basis.row_count + coarse_chunk_bytes - 1) / coarse_chunk_bytes * coarse_chunk_bytes),
        inverses(padded),
        scaled_weights(padded),
        units(padded),
        weights(padded),
        limits(padded, 3),
        values(padded),
        codes(padded),
        parts(padded > basis.code_count ? padded : basis.code_count),
        directions(basis.matrix, basis.row_count, basis.dimension),
        mixing(mixing_of(head_tile_directions(basis.dimension) / 2), head_tile_directions(basis.dimension) / 2,
               head_tile_directions(basis.dimension) / 2),
        projected(size_t{vectors_together} * basis.row_count),
        mixed(size_t{vectors_together} * head_tile_directions(basis.dimension)) {
    for (uint32_t i = 0; i < basis.row_count; i++) {
      const bool is_fine = i < basis.fine_count;
      units[i] = basis.units[i];
      weights[i] = basis.weights[i];
      inverses[i] = 1 / basis.units[i];
      limits[i] = is_fine ? 15 : 3;
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
  /** The largest code. */
  std::vector<float> limits;
  std::vector<float> values;
  /** Odd integers: −15 to 15, or −3 to 3. */
  std::vector<float> codes;
  /** Two-bit codes in their order in a row. */
  std::vector<uint8_t> parts;
  tiled_matrix directions;
  /** For head tiles: see mixing_of. */
  tiled_matrix mixing;
  /** Of rows that are encoded together. */
  std::vector<float> projected;
  std::vector<float> mixed;
};

/** Rounds the values, multiplied by their units' inverses and this one, to odd integers within their limits. */
inline void round_to_odd(float inverse, head_scratch& scratch) {
  const wide_floats bound = wide_floats{} + 8.0f;
  for (uint32_t i = 0; i < scratch.padded; i += wide_lanes) {
    const wide_floats limit = load_wide(scratch.limits.data() + i);
    wide_floats half = load_wide(scratch.values.data() + i) * load_wide(scratch.inverses.data() + i) * (inverse * 0.5f);
    half = half > bound ? bound : half;
    half = half < -bound ? -bound : half;
    wide_floats code = 2 * (half - 0.5f + rounder - rounder) + 1;
    code = code > limit ? limit : code;
    code = code < -limit ? -limit : code;
    store_wide(scratch.codes.data() + i, code);
    // From 0 to 15 or 3.
    store_bytes(scratch.parts.data() + i, __builtin_convertvector(code + limit, wide_integers) >> 1);
  }
}

/** Adds up terms of eight values at a time. */
template <class Term>
double sum_of(uint32_t count, const Term& term) {
  lane_sums sum;
  for (uint32_t i = 0; i < count; i += lane_count) {
#pragma GCC unroll 4
    for (uint32_t p = 0; p < registers; p++) sum.part[p] += term(i + p * register_lanes);
  }
  return sum.fold();
}

/** Two-bit codes of the directions, the lower ones of those with four bits at the end; see layout.h. */
inline void pack_head(const basis& basis, head_scratch& scratch, uint8_t* to) {
  uint8_t* const parts = scratch.parts.data();
  uint8_t* const lower = parts + basis.row_count;
  for (uint32_t i = 0; i < basis.fine_count; i++) lower[i] = parts[i] & 3;
  for (uint32_t i = 0; i < basis.fine_count; i++) parts[i] >>= 2;
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
  std::memcpy(scratch.values.data(), projected, basis.row_count * sizeof(float));
  const auto value = [&](uint32_t i) { return widen(load_floats(scratch.values.data() + i)); };
  const auto coded = [&](uint32_t i) {
    return widen(load_floats(scratch.units.data() + i)) * widen(load_floats(scratch.codes.data() + i));
  };
  const auto weight = [&](uint32_t i) { return widen(load_floats(scratch.weights.data() + i)); };
  const double spread = sum_of(count, [&](uint32_t i) {
    return value(i) * value(i) * widen(load_floats(scratch.scaled_weights.data() + i));
  });
  const double least_spread = length * 0x1p-20;
  const double deviation = std::sqrt(spread);
  round_to_odd(static_cast<float>(1 / (deviation > least_spread ? deviation : least_spread)), scratch);
  const double product = sum_of(count, [&](uint32_t i) { return weight(i) * coded(i) * value(i); });
  const double square = sum_of(count, [&](uint32_t i) { return weight(i) * coded(i) * coded(i); });
  const auto scale = static_cast<float>(product / square);
  const double residual = sum_of(count, [&](uint32_t i) {
    const doubles error = value(i) - static_cast<double>(scale) * coded(i);
    return weight(i) * error * error;
  });
  const double in_head = sum_of(count, [&](uint32_t i) { return value(i) * value(i); });
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
void encode_head_tile(const basis& basis, const float* mixed, double square, uint32_t lane, uint8_t* panel) {
  const uint32_t half = head_tile_directions(basis.dimension) / 2;
  const vector_facts measured[] = {measure(mixed, half), measure(mixed + half, half)};
  const float largest = measured[0].largest > measured[1].largest ? measured[0].largest : measured[1].largest;
  // Values this small are left out like those of other directions.
  const bool is_zero = !(static_cast<double>(largest) >= 0x1p-40);
  uint8_t* const codes = panel + head_tile_levels * fact_bytes + lane * step_dimensions;
  double missed[] = {measured[0].square, measured[1].square};
  for (uint32_t part = 0; part < 2; part++) {
    uint8_t* const first_step = codes + size_t{part} * step_count(half) * step_bytes;
    if (is_zero) clear_steps(step_count(half), first_step);
    else missed[part] = quantize_row(mixed + part * half, half, largest, first_step);
  }
  for (uint32_t level = 0; level < head_tile_levels; level++) {
    auto& facts = reinterpret_cast<panel_facts*>(panel)[level];
    const double error = level == 0 ? missed[0] + missed[1] : missed[0];
    const double in_head = level == 0 ? measured[0].square + measured[1].square : measured[0].square;
    const double left = square - in_head;
    const double rest = (left > 0 ? left : 0) + 2 * basis.tile_error * square;
    const double weight = static_cast<double>(basis.header->tile_weights[level]);
    facts.scale[lane] = is_zero ? 0 : largest / code_max;
    facts.norm[lane] = static_cast<float>(std::sqrt(square));
    facts.residual[lane] = static_cast<float>(std::sqrt(error + weight * weight * rest) * (1 + 0x1p-20));
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
  clear_steps(step_count(directions), panel + head_tile_levels * fact_bytes + lane * step_dimensions);
}

void encode_head(const basis& basis, const float* values, uint32_t from, uint32_t to, uint8_t* head,
                 uint8_t* head_tiles) {
  head_scratch scratch(basis);
  const uint32_t directions = head_tile_directions(basis.dimension);
  const uint32_t half = directions / 2;
  const size_t stride = coarse_panel_bytes(basis.code_count);
  const size_t tile_stride = head_tile_panel_bytes(directions);
  float* const projected = scratch.projected.data();
  float* const mixed = scratch.mixed.data();
  for (uint32_t first = from; first < to; first += vectors_together) {
    const uint32_t count = to - first < vectors_together ? to - first : vectors_together;
    const float* const rows = values + size_t{first} * basis.dimension;
    project_together({rows, basis.dimension}, count, scratch.directions, projected, basis.row_count);
    for (uint32_t begin = 0; begin < directions; begin += half) {
      project_together({projected + begin, basis.row_count}, count, scratch.mixing, mixed + begin, directions);
    }
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t panel = (first + i) / panel_rows;
      const uint32_t lane = (first + i) % panel_rows;
      uint8_t* const tile = head_tiles + panel * tile_stride;
      const double square = encode_head_row(basis, rows + size_t{i} * basis.dimension,
                                            projected + size_t{i} * basis.row_count, lane, scratch,
                                            head + panel * stride);
      if (square > 0) encode_head_tile(basis, mixed + size_t{i} * directions, square, lane, tile);
      else skip_head_tile(directions, square == 0, lane, tile);
    }
  }
}

}  // namespace
}  // namespace sagitta
