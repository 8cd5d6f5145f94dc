// Learns the basis of the head tiles of a segment from a sample of its rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../target.h"

namespace sagitta {

/** Row-major [row_count, dimension]. */
struct learned_rows {
  const float* values;
  uint32_t row_count;
  uint32_t dimension;
};

/** The bytes of a basis; empty if `bytes` is null. */
struct stored_basis {
  const uint8_t* bytes;
  size_t byte_count;
};

/**
 * Writes a basis for the rows to `written`, which has room for head_code_count(dimension) directions, and returns
 * its length. Takes `previous` if its codes leave hardly more of these rows than of those that it was learned from.
 * Returns 0 if head tiles would not make searches of these rows faster.
 */
size_t learn_basis(const target& functions, const learned_rows& rows, const stored_basis& previous,
                   uint8_t* written);

}  // namespace sagitta
