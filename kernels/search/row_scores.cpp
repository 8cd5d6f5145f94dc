// Rows are processed in tiles that stay in the cache while all vectors score them, so that values are read
// from memory once, and x·x of a row is computed once, with the products of the first vector.

#include "row_scores.h"

#include <algorithm>

#include "canonical.h"
#include "prefetch.h"

namespace sagitta {
namespace {

/** Bytes of the values of a tile: half of the smallest L2 caches. */
constexpr size_t tile_bytes = 128 * 1024;
constexpr uint32_t tile_rows_max = 256;

uint32_t rows_of_tile(uint32_t dimension) {
  const auto fitting = static_cast<uint32_t>(tile_bytes / (size_t{dimension} * sizeof(float)));
  return std::clamp(fitting / canonical_rows * canonical_rows, canonical_rows, tile_rows_max);
}

/** The rows from..to of the list, which form a tile. */
struct tile_range {
  uint32_t from;
  uint32_t to;
};

/** Scores a tile with one vector. Stores x·x in `squares` unless it is null. */
template <class Each>
void multiply_tile(const target& functions, const row_scoring& scoring, const tile_range& tile,
                   uint32_t vector, double* squares, const Each& each) {
  for (uint32_t first = tile.from; first < tile.to; first += canonical_rows) {
    const uint32_t together = std::min(tile.to - first, canonical_rows);
    const float* rows[canonical_rows];
    double products[canonical_rows];
    for (uint32_t i = 0; i < together; i++) {
      rows[i] = scoring.values + size_t{scoring.rows[first + i]} * scoring.dimension;
    }
    if (vector == 0) {
      const uint32_t end = std::min(scoring.row_count, first + 2 * canonical_rows);
      for (uint32_t next = first + canonical_rows; next < end; next++) {
        prefetch_row(scoring.values + size_t{scoring.rows[next]} * scoring.dimension,
                     scoring.dimension);
      }
    }
    functions.products(scoring.vectors[vector].values, scoring.dimension, rows, together, products,
                       squares == nullptr ? nullptr : squares + (first - tile.from));
    for (uint32_t i = 0; i < together; i++) each(first + i, products[i]);
  }
}

}  // namespace

void score_rows(const target& functions, const row_scoring& scoring, double* scores) {
  const bool needs_squares = scoring.metric != SAGITTA_DOT && scoring.squares == nullptr;
  double computed[tile_rows_max] = {};
  const uint32_t tile_rows = rows_of_tile(scoring.dimension);
  for (uint32_t from = 0; from < scoring.row_count; from += tile_rows) {
    const tile_range tile = {from, std::min(scoring.row_count, from + tile_rows)};
    const double* const squares = scoring.squares == nullptr ? computed : scoring.squares + from;
    for (uint32_t vector = 0; vector < scoring.vector_count; vector++) {
      multiply_tile(functions, scoring, tile, vector,
                    needs_squares && vector == 0 ? computed : nullptr,
                    [&](uint32_t index, double product) {
                      scores[size_t{index} * scoring.vector_count + vector] =
                          canonical_score(scoring.metric, product, scoring.vectors[vector].square,
                                          squares[index - from]);
                    });
    }
  }
}

void score_rows(const target& functions, const sagitta_scoring& scoring, double* scores) {
  const uint32_t dimension = scoring.dimension;
  const size_t value_count = size_t{scoring.vector_count} * dimension;
  const std::vector<double> widened(scoring.vectors, scoring.vectors + value_count);
  std::vector<scored_vector> vectors(scoring.vector_count);
  for (uint32_t v = 0; v < scoring.vector_count; v++) {
    const float* const vector = scoring.vectors + size_t{v} * dimension;
    vectors[v].values = widened.data() + size_t{v} * dimension;
    double product;
    functions.products(vectors[v].values, dimension, &vector, 1, &product, &vectors[v].square);
  }
  score_rows(functions,
             row_scoring{scoring.values, dimension, scoring.metric, vectors.data(),
                         scoring.vector_count, scoring.rows, scoring.row_count, scoring.squares},
             scores);
}

}  // namespace sagitta
