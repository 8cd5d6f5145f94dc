// A query prepared for scans and canonical scores.
#pragma once

#include <cstdint>
#include <vector>

#include "project_query.h"

namespace sagitta {

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
  /** The query as coarse codes and as the head tiles of each basis read it; null or empty if it reads none. */
  projected_query rotated;
  std::vector<head_query> heads;
  /** The first of its views, which are batch.views[first_view .. first_view + view_count). */
  uint32_t first_view;
  uint32_t view_count;
};

}  // namespace sagitta
