// A query as scans and canonical scores want it.
#pragma once

#include <cstdint>
#include <vector>

#include "bounds.h"

namespace sagitta {

/** Made once; shared by all threads. */
struct prepared_query : bounded_query {
  uint32_t k;
  double floor;
  std::vector<uint8_t> after_id;
  /** [dimension], widened. */
  const double* values;
  /** Whether its length lets it be scanned; else every row is scored canonically. */
  bool is_scannable;
  /** The target's packed codes; −128·Σb. */
  const uint8_t* packed;
  int32_t offset;
  /** Its parts are batch.parts[first_part .. first_part + part_count). */
  uint32_t first_part;
  uint32_t part_count;
};

}  // namespace sagitta
