// What searches have seen of single rows read by coarse codes: the share that had to be scored nevertheless.
// It depends on the data, and decides only how fast a later search is.
#pragma once

#include <cstdint>

namespace sagitta {

/**
 * The expected share for rows of a block whose coarse codes are at `coarse`, when `rows_per_k` rows pass for
 * each of the k best. Without observations it is moderate, and it falls to that again with each call.
 */
double expect_scored_share(const uint8_t* coarse, uint64_t rows_per_k);

void observe_scored_share(const uint8_t* coarse, uint64_t rows_per_k, double share);

}  // namespace sagitta
