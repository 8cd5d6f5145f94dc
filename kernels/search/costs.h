// The costs of searches, and the sizes of the row ranges that their threads take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../layout.h"
#include "../target.h"
#include "basis.h"

namespace sagitta {

/**
 * Nanoseconds per value or per row on one thread, measured at 100 000 × 768 with rows in memory rather than
 * in a cache. Only their ratios matter.
 */
inline constexpr double value_memory_ns = 0.45;
inline constexpr double value_product_ns = 0.07;
inline constexpr double canonical_row_ns = 50;
inline constexpr double code_memory_ns = 0.034;
inline constexpr double tile_row_ns = 0.3;
inline constexpr double coarse_memory_ns = 0.0085;
inline constexpr double coarse_row_ns = 3;
/** Per row that is read alone, which the hardware does not prefetch. */
inline constexpr double coarse_single_row_ns = 40;
/** Per refined row, whose codes and facts are in eight cache lines. */
inline constexpr double refined_row_ns = 190;

/** Per row that head tiles leave while the threshold rises, and the number of these per row that is left in the end. */
inline constexpr double head_survivor_ns = 60;
inline constexpr double survivors_per_left = 4;

/** Nanoseconds per row and query. */
struct row_costs {
  /** Of scans of tiles, of head tiles and of coarse codes. */
  double tiles;
  double head;
  double coarse;
  /** Of coarse codes of single rows. */
  double coarse_single;
  /** Of the refinement of a row that coarse codes have left. */
  double refined;
  /** Of a canonical score. */
  double canonical;
  /** Of one value of a tile in the cache. */
  double tile_value;
};

/** @param sharing the number of queries that read the codes together. */
inline row_costs row_costs_of(const target& functions, uint32_t dimension, double sharing) {
  const scan_costs& costs = functions.costs;
  row_costs made{};
  made.tile_value = sharing >= costs.batch_min ? costs.batch_tile_ns : costs.tile_ns;
  made.tiles = dimension * (code_memory_ns / sharing + made.tile_value) + tile_row_ns;
  const double head_value = costs.head_ns > 0 ? costs.head_ns : made.tile_value;
  made.head = head_directions(dimension) * (code_memory_ns / sharing + head_value) + tile_row_ns;
  made.coarse = dimension * (coarse_memory_ns / sharing + costs.coarse_ns) + coarse_row_ns;
  made.coarse_single = dimension * (coarse_memory_ns + costs.coarse_ns) + coarse_single_row_ns;
  made.refined = dimension * (coarse_memory_ns + costs.coarse_ns) + refined_row_ns;
  made.canonical = dimension * (value_memory_ns + value_product_ns) + canonical_row_ns;
  return made;
}

/** The time per row of a search by head tiles that leaves this share of the rows to be scored. */
inline double head_search_ns(const row_costs& costs, double left) {
  return costs.head + left * (survivors_per_left * head_survivor_ns + costs.canonical);
}

/** Bytes of the codes of a range, which fit into the L2 cache together with the queries. */
inline constexpr size_t range_bytes = 256 * 1024;
/** The rows of a range are a multiple of this, so that scans fill whole tiles. */
inline constexpr uint32_t range_alignment = 8 * panel_rows;
/** The minimum number of ranges per thread, given enough rows, so that threads finish close together. */
inline constexpr uint32_t ranges_per_worker = 8;

}  // namespace sagitta
