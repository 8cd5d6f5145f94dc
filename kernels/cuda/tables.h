// The tables that host and kernels share: blocks, queries, views and lists in device memory.
//
// Rows of all blocks of a batch are numbered together: a row has the batch row first_tile · tile_rows +
// row, with the first tile of its block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../layout.h"
#include "../search/bounds.h"
#include "../target.h"

namespace sagitta::cuda {

/** Panels that a warp (mma) or a warpgroup (wgmma) scans at a time. */
inline constexpr uint32_t tile_panels = 4;
inline constexpr uint32_t tile_rows = tile_panels * panel_rows;

/** Dimensions of one step of a matrix instruction, and of the pair of steps that a thread loads. */
inline constexpr uint32_t step_bytes_of_mma = 32;
inline constexpr uint32_t pair_dimensions = 2 * step_bytes_of_mma;

/** Dimensions of a K-major chunk of queries in shared memory: a line of the 128-byte swizzle. */
inline constexpr uint32_t chunk_dimensions = 128;

/** Four chunks of coarse codes: the dimensions that the lanes of a row load at a time. */
inline constexpr uint32_t quad_chunks = 4;
inline constexpr uint32_t quad_dimensions = quad_chunks * coarse_chunk_dimensions;

/** Queries of one matrix instruction, which are its columns. */
inline constexpr uint32_t query_block = 8;

/**
 * Bytes that a scan may read past the last panel of a block: it reads whole pairs or chunks of
 * dimensions and multiplies those past the last one by zeros.
 */
inline constexpr size_t panel_slack_bytes = 16 * 1024;

/** A resident block of a batch. */
struct resident_block {
  /** Null in the tables of scans that leave the block to others. */
  const uint8_t* panels;
  /** [row_count, dimension]; null when only the host has them. */
  const float* values;
  uint32_t first_tile;
  uint32_t panel_count;
};

/** The rows of one block that the queries of a scope search (scopes.h). */
struct row_view {
  /** A bitmap; null for all rows. */
  const uint32_t* rows;
  uint32_t row_count;
};

/** The rows of one block that a group of queries searches. */
struct group_view {
  const uint32_t* rows;
  /** The largest row count of the group's views. */
  uint32_t row_count;
  /** Not 0 if the queries search different rows; then the view of each query's scope counts. */
  uint32_t is_mixed;
};

struct device_query : bounded_query {
  double floor;
  uint32_t k;
  /** Both are false for a query that only fills a group. */
  bool is_scanned;
  bool is_gathered;
};

/** A row that may be in the answer, and its integer product with the query. */
struct candidate {
  uint32_t batch_row;
  /** In the lists that `score_estimates` has changed: 1 + a number if the row has its score, otherwise 0. */
  int32_t sum;
};

/** The batch row of an empty entry. */
inline constexpr uint32_t no_row = 0xffffffffu;

/**
 * Bounds of a candidate's score, rounded outwards; rescoring replaces them by the score. In lists of a sieve
 * (sieve.h): the middle of the bounds, which is a good estimate, and the upper bound.
 */
union candidate_score {
  struct {
    float lower;
    float upper;
  } bounds;
  struct {
    float middle;
    float upper;
  } estimate;
  double score;
};
static_assert(sizeof(candidate_score) == sizeof(double));

/** A row of an answer. Its score is NaN if the host has to compute it. */
struct found_row {
  double score;
  uint32_t batch_row;
  uint32_t unused;
};

/** The outcome of one query. */
struct query_outcome {
  uint32_t found_count;
  /** Before the selection, only the rows scored that are no longer in the list. */
  uint32_t rescored_count;
  /** Not 0 if more rows are too close together than a list has room for. The rows found must then be ignored. */
  uint32_t is_undecided;
  /** Not 0 if a sieve has chosen its candidates. */
  uint32_t is_sieved;
  /** Not 0 if rows of its list that have the best estimates already have their scores. */
  uint32_t is_estimated;
  /** For a scanned query, a score that k rows reach, even if a list was too short. */
  double threshold;
};

/**
 * The candidate lists of a batch: rows and scores [query_count, capacity], counts [query_count]. A count
 * above the capacity means that rows were lost.
 */
struct candidate_lists {
  candidate* rows;
  candidate_score* scores;
  uint32_t* counts;
  uint32_t capacity;
};

/** The maximum number of thread blocks that share a list; a power of two. */
inline constexpr uint32_t list_parts_max = 32;

/** The state that the thread blocks of a list share (list_parts.h). */
struct shared_list {
  /** The number of blocks that have finished their parts; 0 between kernels. */
  uint32_t finished;
  /** The best value found in any part, in the order of `ordered`; initially 0, which is below all. */
  uint32_t best;
  /** The number of entries left in each part. */
  uint32_t kept[list_parts_max];
};

/** How thread blocks share the lists of a batch. */
struct list_sharing {
  /** [query_count] */
  shared_list* lists;
  /** The number of thread blocks per list, and the minimum number of entries for each of them. */
  uint32_t parts;
  uint32_t part_rows_min;
};

/** Returns the block that holds a tile; blocks are in the order of their tiles. */
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
