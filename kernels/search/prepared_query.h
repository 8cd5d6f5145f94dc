// A query prepared for scans and canonical scores.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "bounds.h"

namespace sagitta {

/** Sets the inputs of the bounds for a query that is encoded in one step. */
inline void set_codes(bounded_query& query, const encoded_vector& encoded) {
  query.scale = encoded.scale;
  query.code_length = std::sqrt(static_cast<double>(encoded.code_square)) * (1 + 0x1p-40);
  query.residual = encoded.residual / query.scale * (1 + 0x1p-40);
}

/** Made once; shared by all threads. */
struct prepared_query : bounded_query {
  uint32_t k;
  double floor;
  std::vector<uint8_t> after_id;
  /** [dimension], widened to float64. */
  const double* values;
  /** Whether its length is within the limits of layout.h; if not, every row is scored canonically. */
  bool is_scannable;
  /** Codes b as packed by the target, and −128·Σb. */
  const uint8_t* packed;
  int32_t offset;
  /**
   * The rotated query, for coarse codes; `packed` is null if there are none. The sums of its levels start
   * at −3·Σb and −64·Σb.
   */
  struct {
    bounded_query bounds;
    const uint8_t* packed;
    int32_t first_offset;
    int32_t second_offset;
  } coarse;
  /** The first of its views, which are batch.views[first_view .. first_view + view_count). */
  uint32_t first_view;
  uint32_t view_count;
};

}  // namespace sagitta
