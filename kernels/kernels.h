/* The C interface of Sagitta's kernels: exact top-k over blocks of float32 vectors on the CPU.
 * Nothing here knows Node. Every function may be called from any thread at any time; what one
 * search needs beyond that is said at `sagitta_search_work`. The caller owns every array that it
 * passes and keeps it unchanged and in place as long as said.
 *
 * Rows are float32, row-major. Bitmaps have one bit a row, low bit first, in 32-bit words. Ids are
 * UTF-8 as in Arrow: id i is bytes[offsets[i] .. offsets[i + 1]).
 */
#ifndef SAGITTA_KERNELS_H
#define SAGITTA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sagitta_status {
  SAGITTA_OK = 0,
  /** A pointer, a count or a name that cannot be right; nothing was done. */
  SAGITTA_INVALID_ARGUMENT = 1,
  SAGITTA_OUT_OF_MEMORY = 2,
  /** This processor, or this build, does not have the target that was asked for. */
  SAGITTA_UNSUPPORTED_TARGET = 3,
  /** The search was cancelled; it has no hits. */
  SAGITTA_CANCELLED = 4,
  /** The search has hits when all of it is done. */
  SAGITTA_NOT_DONE = 5,
  /** Of a GPU: it is not there, or does not answer any more. */
  SAGITTA_DEVICE_LOST = 6
} sagitta_status;

typedef enum sagitta_metric {
  SAGITTA_COSINE = 0,
  SAGITTA_DOT = 1,
  SAGITTA_EUCLIDEAN = 2
} sagitta_metric;

/** The widest vectors: integer sums of products of codes then stay below 2^30. */
#define SAGITTA_DIMENSION_MAX 16384u

/* ── targets ─────────────────────────────────────────────────────────────────────────────── */

/** Targets of this build that run on this processor, the fastest first; `reference` is the last. */
size_t sagitta_target_count(void);
/** NULL for an index that is not below the count. */
const char* sagitta_target_name(size_t index);
/** Makes every later call use this target. NULL chooses the fastest, as is done at the start. */
sagitta_status sagitta_select_target(const char* name);
const char* sagitta_selected_target(void);

/* ── codes ───────────────────────────────────────────────────────────────────────────────── */

/** Codes begin at a multiple of this many bytes: a load never straddles two cache lines. */
#define SAGITTA_CODES_ALIGNMENT 64u

/** Bytes of the codes of the first `row_count` rows; see layout.h for what they hold. */
size_t sagitta_codes_bytes(uint32_t row_count, uint32_t dimension);

/**
 * Makes the codes of the rows from..to. `values` [to, dimension] are all rows from row 0 on;
 * `codes` has room for `to` rows. Rows before `from` keep their codes and may be read meanwhile.
 */
sagitta_status sagitta_encode(const float* values, uint32_t dimension, uint32_t from, uint32_t to,
                              uint8_t* codes);

/* ── search ──────────────────────────────────────────────────────────────────────────────── */

/** Rows that are searched. All arrays stay as they are until the search is destroyed. */
typedef struct sagitta_block {
  /** [row_count, dimension], all finite. */
  const float* values;
  /** As sagitta_encode makes them; NULL: every row is scored canonically. */
  const uint8_t* codes;
  /** [row_count + 1] and the bytes that they point into. */
  const int32_t* id_offsets;
  const uint8_t* id_bytes;
  uint32_t row_count;
} sagitta_block;

/** A block, and which of its rows one query searches. */
typedef struct sagitta_part {
  /** Bitmap of `row_count` rows at least, kept like a block's arrays; NULL for all rows. */
  const uint32_t* rows;
  uint32_t block;
  /** Only rows before this one. */
  uint32_t row_count;
} sagitta_part;

typedef struct sagitta_query {
  /** [dimension], all finite. */
  const float* vector;
  /** Only scores of at least this, in the units of the hits; -INFINITY for all. */
  double floor;
  /** Only rows after (after_score descending, after_id ascending), when after_id is not NULL. */
  double after_score;
  const uint8_t* after_id;
  uint32_t after_id_bytes;
  sagitta_metric metric;
  uint32_t k;
  /** Its parts are parts[first_part .. first_part + part_count). */
  uint32_t first_part;
  uint32_t part_count;
} sagitta_query;

typedef struct sagitta_batch {
  const sagitta_block* blocks;
  const sagitta_part* parts;
  const sagitta_query* queries;
  uint32_t block_count;
  uint32_t part_count;
  uint32_t query_count;
  uint32_t dimension;
  /** How many threads may work on it at once. */
  uint32_t worker_count;
} sagitta_batch;

typedef struct sagitta_search sagitta_search;

/** Copies the queries and parts; blocks' arrays and bitmaps are borrowed until the search is destroyed. */
sagitta_status sagitta_search_create(const sagitta_batch* batch, sagitta_search** search);

/** An estimate of all the work in the search, in nanoseconds on one thread. */
double sagitta_search_cost(const sagitta_search* search);

/**
 * Takes pieces of the search until there are none left. Any number of threads may call it, at the
 * same time or one after the other; together they finish the search, and one alone does, too.
 * `is_done` is 1 for exactly one caller: the one after whom the hits are complete.
 */
sagitta_status sagitta_search_work(sagitta_search* search, int* is_done);

/** Work under way ends soon; the search will have no hits. */
void sagitta_search_cancel(sagitta_search* search);

/** The best rows of one query, best first. Owned by the search. */
typedef struct sagitta_hits {
  /** Indexes into the query's parts, and rows of their blocks. */
  const uint32_t* parts;
  const uint32_t* rows;
  /** Canonical: cosine, dot product, or minus the squared L2 distance. */
  const double* scores;
  uint32_t count;
  /** Rows that passed bitmaps and row counts, and those whose canonical score was computed. */
  uint64_t scanned_count;
  uint64_t rescored_count;
} sagitta_hits;

/** SAGITTA_NOT_DONE until `is_done` was given to somebody. */
sagitta_status sagitta_search_hits(const sagitta_search* search, uint32_t query,
                                   sagitta_hits* hits);

/** When no thread works on it any more. */
void sagitta_search_destroy(sagitta_search* search);

#ifdef __cplusplus
}
#endif

#endif
