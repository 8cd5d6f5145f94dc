// Queries in the coordinates of coarse codes or of head codes, encoded for their scans.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "../target.h"
#include "basis.h"
#include "bounds.h"
#include "rotation.h"

namespace sagitta {

/** Sets the inputs of the bounds for a query that is encoded in one step. */
inline void set_codes(bounded_query& query, const encoded_vector& encoded) {
  query.scale = encoded.scale;
  query.code_length = std::sqrt(static_cast<double>(encoded.code_square)) * (1 + 0x1p-40);
  query.residual = encoded.residual / query.scale * (1 + 0x1p-40);
}

/** A query that is encoded for one kind of two-bit codes. */
struct projected_query {
  bounded_query bounds;
  /** As packed by the target. */
  const uint8_t* packed;
  /** The sums of the first and second level start here. Head codes have no second level. */
  int32_t first_offset;
  int32_t second_offset;
  /** The number of its codes and their limbs, as in coarse_query. */
  uint32_t dimension;
  uint32_t limbs;
};

/** The vector of a query: its quantities without codes, and its values [dimension]. */
struct unprojected_query {
  const bounded_query& bounds;
  const double* values;
};

/** Encodes a query for coarse codes; `packed` has room for coarse_query_bytes(dimension). */
projected_query rotate_query(const target& functions, const rotation& rotation,
                             const unprojected_query& query, uint8_t* packed);

/** Returns the room that `project_query` needs. */
constexpr size_t head_query_bytes(const basis& basis) { return 2 * coarse_query_bytes(basis.code_count); }

/** A query that is encoded for head tiles. */
struct tile_query {
  /** By level: all directions, and the first half of them. */
  bounded_query bounds[head_tile_levels];
  int32_t offsets[head_tile_levels];
  /** As packed by the target; null for a query without a part along these directions, which head tiles cannot help. */
  const uint8_t* packed;
};

/** Returns the bytes of a query as packed for head tiles. */
inline size_t tile_query_bytes(const target& functions, uint32_t dimension) {
  return size_t{step_count(head_tile_directions(dimension))} * functions.query_step_bytes;
}

/**
 * Encodes `count` queries for head tiles: `queries` are their quantities without codes, `vectors` [count, dimension] and
 * `packed` has tile_query_bytes for each.
 */
void project_tile_queries(const target& functions, const basis& basis, const bounded_query* const* queries,
                          const float* vectors, uint32_t count, uint8_t* packed, tile_query* made);

/** Encodes a query for head codes. */
projected_query project_query(const target& functions, const basis& basis,
                              const unprojected_query& query, uint8_t* packed);

}  // namespace sagitta
