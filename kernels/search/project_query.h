// Queries in the coordinates of coarse codes or of head tiles, encoded for their scans.
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

/** A query that is encoded for coarse codes. */
struct projected_query {
  bounded_query bounds;
  /** As packed by the target; null if no coarse codes are read. */
  const uint8_t* packed;
  /** The sums of the first and second level start here. */
  int32_t first_offset;
  int32_t second_offset;
};

/** The vector of a query: its quantities without codes, and its values [dimension]. */
struct unprojected_query {
  const bounded_query& bounds;
  const double* values;
};

/** Encodes a query for coarse codes; `packed` has room for coarse_query_bytes(dimension). */
projected_query rotate_query(const target& functions, const rotation& rotation,
                             const unprojected_query& query, uint8_t* packed);

/** A query that is encoded for head tiles. */
struct head_query {
  /** By level: all directions, and the first half of them. */
  bounded_query bounds[head_levels];
  int32_t offsets[head_levels];
  /** As packed by the target; null for a query without a part along these directions, which head tiles cannot help. */
  const uint8_t* packed;
};

/** Returns the bytes of a query as packed for head tiles. */
inline size_t head_query_bytes(const target& functions, uint32_t dimension) {
  return size_t{step_count(head_directions(dimension))} * functions.head.query_step_bytes;
}

/** Encodes a query for head tiles; `packed` has room for head_query_bytes(dimension). */
head_query project_query(const target& functions, const basis& basis, const unprojected_query& query,
                         uint8_t* packed);

}  // namespace sagitta
