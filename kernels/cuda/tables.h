// What host and kernels share: blocks, queries, views and lists as they lie in device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../layout.h"
#include "../search/bounds.h"
#include "../target.h"

namespace sagitta::cuda {

/** Rows that a warp, or a warpgroup, takes at once: four panels. */
inline constexpr uint32_t tile_panels = 4;
inline constexpr uint32_t tile_rows = tile_panels * panel_rows;

/** Dimensions of one step of a matrix instruction, and of the two that a thread loads together. */
inline constexpr uint32_t step_bytes_of_mma = 32;
inline constexpr uint32_t pair_dimensions = 2 * step_bytes_of_mma;

/** Rows of one K-major chunk of queries in shared memory are as long as a swizzled line. */
inline constexpr uint32_t chunk_dimensions = 128;

/** Queries come in eights: the columns of a matrix instruction. */
inline constexpr uint32_t query_block = 8;

/**
 * Bytes that may be read past the last panel of a block: dimensions that are missing are multiplied
 * with zeros, not left out.
 */
inline constexpr size_t panel_slack_bytes = 16 * 1024;

/** A resident block. Its rows have the places first_tile · tile_rows + row in a batch. */
struct resident_block {
  const uint8_t* panels;
  /** [row_count, dimension]; null when only the host has them. */
  const float* values;
  uint32_t first_tile;
  uint32_t panel_count;
};

/** Which rows of one block one query searches. */
struct row_view {
  /** A bitmap, or null for all rows. */
  const uint32_t* rows;
  uint32_t row_count;
};

/** The same for the queries of a group together; where they differ, `is_mixed`, each has its own. */
struct group_view {
  const uint32_t* rows;
  /** The greatest. */
  uint32_t row_count;
  uint32_t is_mixed;
};

struct device_query : bounded_query {
  double floor;
  uint32_t k;
  /** Neither, if it is there to fill a group. */
  bool is_scanned;
  bool is_gathered;
};

/** A row that may be in the answer, and the integer product with it. */
struct candidate {
  uint32_t place;
  int32_t sum;
};

/** The place of an entry that is none. */
inline constexpr uint32_t no_place = 0xffffffffu;

/** The bounds of a candidate's score, rounded outwards; its score takes their place in the end. */
union candidate_score {
  struct {
    float lower;
    float upper;
  } bounds;
  double score;
};
static_assert(sizeof(candidate_score) == sizeof(double));

/** A row of an answer. The score is not a number where the host has to compute it. */
struct found_row {
  double score;
  uint32_t place;
  uint32_t unused;
};

/** What is known of a query when it is done. */
struct query_outcome {
  uint32_t found_count;
  uint32_t rescored_count;
  /** More rows are too close together than there is room for: nothing found is to be trusted. */
  uint32_t is_undecided;
  uint32_t unused;
};

/** All lists of a batch: [query_count, capacity], and per query how many were added. */
struct candidate_lists {
  candidate* rows;
  candidate_score* scores;
  uint32_t* counts;
  uint32_t capacity;
};

/** The block that holds a tile; blocks are in the order of their tiles. */
SAGITTA_HOST_DEVICE inline uint32_t block_of(const resident_block* blocks, uint32_t block_count,
                                             uint32_t tile) {
  uint32_t low = 0;
  for (uint32_t high = block_count; high - low > 1;) {
    const uint32_t middle = low + (high - low) / 2;
    if (blocks[middle].first_tile <= tile) low = middle;
    else high = middle;
  }
  return low;
}

}  // namespace sagitta::cuda
