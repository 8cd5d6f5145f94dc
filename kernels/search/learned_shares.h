// The share of single rows that past searches had to score although they had read their coarse codes. It
// depends on the data and decides only how fast a later search is.
#pragma once

#include <cstdint>

namespace sagitta {

/**
 * Returns the expected share for a block whose coarse codes are at `coarse`, when `rows_per_k` rows pass
 * for each of the k best. Without observations it is moderate, and it returns to that value with each call.
 */
double expect_scored_share(const uint8_t* coarse, uint64_t rows_per_k);

void observe_scored_share(const uint8_t* coarse, uint64_t rows_per_k, double share);

}  // namespace sagitta
