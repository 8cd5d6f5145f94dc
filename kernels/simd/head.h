// Projection of rows on the directions of a basis, and their head tiles; see search/basis.h and rows.h.
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
/** For fewer vectors it takes longer to arrange a matrix in tiles than to multiply them by it as it is. */
constexpr uint32_t tiled_vectors_min = 8;
/** Directions that one vector is multiplied by together, so that the additions to their sums need not wait for each other. */
constexpr uint32_t directions_together = 4;
/** Steps of all directions that are arranged in tiles together: a cache line of each. */
constexpr uint32_t arranged_steps = 16;
/** Vectors that are multiplied by a tile of directions while this is in the L1 cache: whole panels of rows. */
constexpr uint32_t vectors_together = 3 * panel_rows;

/** A matrix of directions in tiles: [⌈rows / tile_directions⌉, dimension, tile_directions], with zeros at the end. */
class tiled_matrix {
 public:
  tiled_matrix(const strided_matrix& matrix, uint32_t rows, uint32_t dimension)
      : rows_(rows),
        dimension_(dimension),
        values_(size_t{(rows + tile_directions - 1) / tile_directions} * tile_directions * dimension) {
    // In blocks of steps, so that few pages of the matrix are read at a time whichever way it lies.
    for (uint32_t start = 0; start < dimension; start += arranged_steps) {
      const uint32_t end = dimension - start < arranged_steps ? dimension : start + arranged_steps;
      for (uint32_t first = 0; first < rows; first += tile_directions) {
        const uint32_t count = rows - first < tile_directions ? rows - first : tile_directions;
        const float* const from = matrix.values + first * matrix.row_stride;
        float* const to = values_.data() + size_t{first} * dimension;
        for (uint32_t i = start; i < end; i++) {
          arrange(from + i * matrix.stride, matrix.row_stride, count, to + size_t{i} * tile_directions);
        }
      }
    }
  }

  uint32_t rows() const { return rows_; }
  uint32_t dimension() const { return dimension_; }
  /** The tile that begins with this direction: [dimension, tile_directions]. */
  const float* tile(uint32_t first) const { return values_.data() + size_t{first} * dimension_; }

 private:
  static void arrange(const float* from, size_t row_stride, uint32_t count, float* to) {
    if (row_stride == 1 && count == tile_directions) std::memcpy(to, from, tile_directions * sizeof(float));
    else for (uint32_t d = 0; d < count; d++) to[d] = from[d * row_stride];
  }

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

void project(const strided_vectors& vectors, uint32_t count, const strided_matrix& matrix, uint32_t rows,
             uint32_t dimension, float* projected, size_t stride) {
  const tiled_matrix tiled(matrix, rows, dimension);
  for (uint32_t first = 0; first < count; first += vectors_together) {
    const uint32_t together = count - first < vectors_together ? count - first : vectors_together;
    project_together({vectors.values + first * vectors.stride, vectors.stride}, together, tiled,
                     projected + first * stride, stride);
  }
}

/**
 * Computes the products of a vector with the directions of a basis, which are a multiple of those taken together. Rounds
 * less than `project`: a sum has one lane's share of a block, then of all blocks, then the lanes.
 */
void project_alone(const basis& basis, const float* vector, float* projected) {
  const uint32_t dimension = basis.dimension;
  for (uint32_t first = 0; first < basis.directions; first += directions_together) {
    const float* const rows = basis.matrix + size_t{first} * dimension;
    wide_floats sums[directions_together] = {};
    float rests[directions_together] = {};
    for (uint32_t i = 0; i < dimension;) {
      const uint32_t end = dimension - i < projected_steps ? dimension : i + projected_steps;
      wide_floats block[directions_together] = {};
      for (; i + wide_lanes <= end; i += wide_lanes) {
        const wide_floats values = load_wide(vector + i);
#pragma GCC unroll 4
        for (uint32_t d = 0; d < directions_together; d++) {
          block[d] += values * load_wide(rows + size_t{d} * dimension + i);
        }
      }
      for (uint32_t d = 0; d < directions_together; d++) sums[d] += block[d];
      for (; i < end; i++) {
        for (uint32_t d = 0; d < directions_together; d++) rests[d] += vector[i] * rows[size_t{d} * dimension + i];
      }
    }
    for (uint32_t d = 0; d < directions_together; d++) {
      float sum = rests[d];
      for (uint32_t lane = 0; lane < wide_lanes; lane++) sum += sums[d][lane];
      projected[first + d] = sum;
    }
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

/** Returns the facts of a level in a panel. */
inline panel_facts& facts_of_level(const head_arrays& panel, uint32_t level) {
  return *reinterpret_cast<panel_facts*>(level == 0 ? panel.second : panel.first);
}

/** Returns the first step of a row's codes in one of the two arrays. */
inline uint8_t* head_codes(uint8_t* half, uint32_t lane) { return half + fact_bytes + lane * step_dimensions; }

/** Writes the codes and facts of a row that can be scanned; see bounds.h. */
void encode_head_row(const basis& basis, const float* projected, double square, uint32_t lane,
                     const head_arrays& panel) {
  const uint32_t half = basis.directions / 2;
  const vector_facts measured[] = {measure(projected, half), measure(projected + half, half)};
  const float largest = measured[0].largest > measured[1].largest ? measured[0].largest : measured[1].largest;
  // Codes are within ±code_max of this range.
  const float range = largest * (code_max / head_code_max);
  // Values this small are left out like those of other directions.
  const bool is_zero = !(static_cast<double>(largest) >= 0x1p-40);
  double missed[] = {measured[0].square, measured[1].square};
  for (uint32_t part = 0; part < 2; part++) {
    uint8_t* const first_step = head_codes(part == 0 ? panel.first : panel.second, lane);
    if (is_zero) clear_steps(step_count(half), first_step);
    else missed[part] = quantize_row(projected + part * half, half, range, first_step);
  }
  for (uint32_t level = 0; level < head_levels; level++) {
    panel_facts& facts = facts_of_level(panel, level);
    const double error = level == 0 ? missed[0] + missed[1] : missed[0];
    const double in_head = level == 0 ? measured[0].square + measured[1].square : measured[0].square;
    const double left = square - in_head;
    const double rest = (left > 0 ? left : 0) + 2 * basis.error * square;
    const double weight = static_cast<double>(basis.header->weights[level]);
    facts.scale[lane] = is_zero ? 0 : range / code_max;
    facts.norm[lane] = static_cast<float>(std::sqrt(square));
    facts.residual[lane] = static_cast<float>(std::sqrt(error + weight * weight * rest) * (1 + 0x1p-20));
    facts.square[lane] = static_cast<float>(square);
  }
}

/** Writes a row that is not scanned: of length 0, or one that is rescored. */
void skip_head_row(uint32_t directions, bool is_zero, uint32_t lane, const head_arrays& panel) {
  for (uint32_t level = 0; level < head_levels; level++) {
    panel_facts& facts = facts_of_level(panel, level);
    facts.scale[lane] = facts.norm[lane] = facts.square[lane] = 0;
    facts.residual[lane] = is_zero ? 0 : unscannable_residual;
  }
  for (uint8_t* const half : {panel.first, panel.second}) {
    clear_steps(step_count(directions / 2), head_codes(half, lane));
  }
}

void encode_head(const basis& basis, const float* values, uint32_t from, uint32_t to, const head_arrays& head) {
  std::vector<float> projected(size_t{vectors_together} * basis.directions);
  const size_t stride = half_panel_bytes(basis.dimension);
  const auto encode_projected = [&](uint32_t first, uint32_t count) {
    const float* const rows = values + size_t{first} * basis.dimension;
    for (uint32_t i = 0; i < count; i++) {
      const size_t place = (first + i) / panel_rows * stride;
      const head_arrays panel = {head.first + place, head.second + place};
      const uint32_t lane = (first + i) % panel_rows;
      const double square = measure(rows + size_t{i} * basis.dimension, basis.dimension).square;
      const double length = std::sqrt(square);
      if (length >= length_min && length <= length_max) {
        encode_head_row(basis, projected.data() + size_t{i} * basis.directions, square, lane, panel);
      } else {
        skip_head_row(basis.directions, square == 0, lane, panel);
      }
    }
  };
  if (to - from < tiled_vectors_min) {
    for (uint32_t row = from; row < to; row++) {
      project_alone(basis, values + size_t{row} * basis.dimension, projected.data());
      encode_projected(row, 1);
    }
    return;
  }
  const tiled_matrix matrix({basis.matrix, basis.dimension, 1}, basis.directions, basis.dimension);
  for (uint32_t first = from; first < to; first += vectors_together) {
    const uint32_t count = to - first < vectors_together ? to - first : vectors_together;
    const float* const rows = values + size_t{first} * basis.dimension;
    project_together({rows, basis.dimension}, count, matrix, projected.data(), basis.directions);
    encode_projected(first, count);
  }
}

}  // namespace
}  // namespace sagitta
