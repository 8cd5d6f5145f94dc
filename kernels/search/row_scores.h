// Canonical scores of chosen rows with several vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels.h"
#include "../target.h"

namespace sagitta {

struct scored_vector {
  /** [dimension], widened to float64. */
  const double* values;
  /** Its canonical sum of squares. */
  double square;
};

/** Rows of a block and the vectors to score them with. */
struct row_scoring {
  /** Row-major [.., dimension]. */
  const float* values;
  uint32_t dimension;
  sagitta_metric metric;
  const scored_vector* vectors;
  uint32_t vector_count;
  /** Row numbers, in any order. */
  const uint32_t* rows;
  uint32_t row_count;
  /** x·x of these rows, or null to compute them. */
  const double* squares;
};

/** `scores` is row-major [row_count, vector_count]. */
void score_rows(const target& functions, const row_scoring& scoring, double* scores);

/** See sagitta_score_rows. */
void score_rows(const target& functions, const sagitta_scoring& scoring, double* scores);

}  // namespace sagitta
