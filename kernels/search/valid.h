// Whether what a caller passes can be right, as far as it can be told without reading rows.
#pragma once

#include "../kernels.h"

namespace sagitta {

bool is_dimension(uint32_t dimension);

/** Counts and indexes within bounds, no pointer missing, no score that is not a number. */
bool is_valid(const sagitta_batch& batch);

}  // namespace sagitta
