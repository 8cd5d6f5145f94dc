// Validation of arguments, as far as is possible without reading rows.
#pragma once

#include "../kernels.h"

namespace sagitta {

bool is_dimension(uint32_t dimension);

bool is_valid(const sagitta_scoring& scoring);

/** Whether counts and indexes are within bounds, no pointer is missing and no score is NaN. */
bool is_valid(const sagitta_batch& batch);

/** Whether each rank key has an id and a score that is a number. */
bool are_valid(const sagitta_rank_key* rank_keys, uint32_t count);

}  // namespace sagitta
