// The costs of searches, and the sizes of the row ranges that their threads take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../layout.h"

namespace sagitta {

/**
 * Nanoseconds per value or per row on one thread, measured at 100 000 × 768 with rows in memory rather than
 * in a cache. Only their ratios matter.
 */
inline constexpr double value_memory_ns = 0.45;
inline constexpr double value_product_ns = 0.07;
inline constexpr double canonical_row_ns = 50;
inline constexpr double code_memory_ns = 0.034;

/** Bytes of the codes of a range, which fit into the L2 cache together with the queries. */
inline constexpr size_t range_bytes = 256 * 1024;
/** The rows of a range are a multiple of this, so that scans fill whole tiles. */
inline constexpr uint32_t range_alignment = 8 * panel_rows;
/** The minimum number of ranges per thread, given enough rows, so that threads finish close together. */
inline constexpr uint32_t ranges_per_worker = 8;

}  // namespace sagitta
