/* The C interface of Sagitta's kernels: exact top-k over blocks of float32 vectors on the CPU.
 * It does not depend on Node. Every function may be called from any thread at any time. The caller owns
 * all arrays that it passes and must keep them valid and unchanged for as long as documented.
 *
 * Rows are float32, row-major. Bitmaps have one bit per row, low bit first, in 32-bit words. Ids are
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
  /** A pointer, count or name is invalid; nothing was done. */
  SAGITTA_INVALID_ARGUMENT = 1,
  SAGITTA_OUT_OF_MEMORY = 2,
  /** This processor or this build does not support the requested target. */
  SAGITTA_UNSUPPORTED_TARGET = 3,
  /** The search was cancelled; it has no hits. */
  SAGITTA_CANCELLED = 4,
  /** The search is not complete and has no hits yet. */
  SAGITTA_NOT_DONE = 5,
  /** The GPU does not exist or has stopped responding. */
  SAGITTA_DEVICE_LOST = 6,
  /** The host has no memory for a call to a GPU, whereas SAGITTA_OUT_OF_MEMORY is about the GPU's memory. */
  SAGITTA_OUT_OF_HOST_MEMORY = 7
} sagitta_status;

typedef enum sagitta_metric {
  SAGITTA_COSINE = 0,
  SAGITTA_DOT = 1,
  SAGITTA_EUCLIDEAN = 2,
  SAGITTA_JACCARD = 3
} sagitta_metric;

/** The largest dimension for which integer sums of products of codes stay below 2^30. */
#define SAGITTA_DIMENSION_MAX 16384u

/* ── targets ─────────────────────────────────────────────────────────────────────────────── */

/** Returns the number of targets of this build that run on this processor; the fastest has index 0. */
size_t sagitta_target_count(void);
/** The last target is `reference`. Returns NULL for an index out of range. */
const char* sagitta_target_name(size_t index);
/** Selects the target for all later calls. NULL selects the fastest, which is the default. */
sagitta_status sagitta_select_target(const char* name);
const char* sagitta_selected_target(void);

/* ── codes ───────────────────────────────────────────────────────────────────────────────── */

/** Codes start at a multiple of this many bytes, so that no load straddles two cache lines. */
#define SAGITTA_CODES_ALIGNMENT 64u

/** Returns the bytes of the codes of `row_count` rows; see layout.h. */
size_t sagitta_codes_bytes(uint32_t row_count, uint32_t dimension);

/**
 * Encodes the rows from..to. `values` [to, dimension] holds all rows from row 0 on; `codes` has room for
 * `to` rows. Rows before `from` keep their codes and may be read concurrently.
 */
sagitta_status sagitta_encode(const float* values, uint32_t dimension, uint32_t from, uint32_t to,
                              uint8_t* codes);

/** The smallest dimension for which rows can have coarse codes. */
#define SAGITTA_COARSE_DIMENSION_MIN 64u

/** Returns the bytes of the two arrays of coarse codes; see layout.h. 0 below SAGITTA_COARSE_DIMENSION_MIN. */
size_t sagitta_coarse_bytes(uint32_t row_count, uint32_t dimension);
size_t sagitta_refinement_bytes(uint32_t row_count, uint32_t dimension);

/** Like sagitta_encode. Both arrays are aligned like codes. */
sagitta_status sagitta_encode_coarse(const float* values, uint32_t dimension, uint32_t from,
                                     uint32_t to, uint8_t* coarse, uint8_t* refinement);

/**
 * Returns the bytes of a basis: see search/basis.h. 0 for dimensions without head tiles, which represent the
 * directions in which the rows of a segment have most of their length.
 */
size_t sagitta_basis_bytes(uint32_t dimension);

/**
 * Learns a basis for these rows, or takes `previous`, a basis of similar rows, if its codes leave hardly more rows to
 * a search. `basis` has room for sagitta_basis_bytes(dimension) bytes. `byte_count` is set to these, or to 0 if head
 * tiles would not make searches of these rows faster. Takes up to seconds.
 */
sagitta_status sagitta_learn_basis(const float* values, uint32_t row_count, uint32_t dimension,
                                   const uint8_t* previous, size_t previous_bytes, uint8_t* basis,
                                   size_t* byte_count);

/** Whether these are the unchanged bytes of a basis for this dimension. */
int sagitta_is_basis(const uint8_t* basis, size_t byte_count, uint32_t dimension);

/** Returns the bytes of the head tiles of `row_count` rows; see layout.h. */
size_t sagitta_head_bytes(uint32_t row_count, uint32_t dimension);

/** Like sagitta_encode. `head` is aligned like codes. Its length is that for all its rows, which tells where they are. */
sagitta_status sagitta_encode_head(const float* values, uint32_t dimension, uint32_t from, uint32_t to,
                                   const uint8_t* basis, size_t basis_bytes, uint8_t* head,
                                   size_t head_bytes);

/* ── scores of rows ──────────────────────────────────────────────────────────────────────── */

/** Rows and the vectors to score them with. */
typedef struct sagitta_scoring {
  /** Row-major, holding the rows of all row numbers; all finite. */
  const float* values;
  /** Row-major [vector_count, dimension], all finite. */
  const float* vectors;
  /** Row numbers [row_count], in any order. */
  const uint32_t* rows;
  /** x·x of these rows [row_count], or NULL to compute them. Not read for dot products. */
  const double* squares;
  uint32_t dimension;
  uint32_t vector_count;
  uint32_t row_count;
  sagitta_metric metric;
} sagitta_scoring;

/** Computes canonical scores, row-major [row_count, vector_count], in the units of the hits of a search. */
sagitta_status sagitta_score_rows(const sagitta_scoring* scoring, double* scores);

/* ── products of matrices ────────────────────────────────────────────────────────────────── */

/** Pairs of float32 matrices to multiply, all row-major. */
typedef struct sagitta_factors {
  /** [count, rows, inner] */
  const float* left;
  /** [count, inner, columns], or [count, columns, inner] if it is transposed. */
  const float* right;
  uint32_t count;
  uint32_t rows;
  uint32_t inner;
  uint32_t columns;
  int is_right_transposed;
} sagitta_factors;

/** Computes the products of all pairs in float32, [count, rows, columns], on the calling thread. */
sagitta_status sagitta_multiply(const sagitta_factors* factors, float* products);

/* ── search ──────────────────────────────────────────────────────────────────────────────── */

/** Rows to search. The arrays must stay unchanged until the search is destroyed. */
typedef struct sagitta_block {
  /** [row_count, dimension], all finite. */
  const float* values;
  /** Made by sagitta_encode, or NULL to score every row canonically. */
  const uint8_t* codes;
  /** Offsets [row_count + 1] into the bytes. */
  const int32_t* id_offsets;
  const uint8_t* id_bytes;
  uint32_t row_count;
  /** Made by sagitta_encode_coarse. Both are NULL if the block is to be searched without them. */
  const uint8_t* coarse;
  const uint8_t* refinement;
  /**
   * Made by sagitta_learn_basis and sagitta_encode_head. All are NULL if the block is to be searched without them; a
   * block with head tiles has coarse codes and codes. Blocks of equal bases should share one array.
   */
  const uint8_t* basis;
  const uint8_t* head;
  size_t basis_bytes;
  size_t head_bytes;
} sagitta_block;

/** A block and the rows of it that one query searches. */
typedef struct sagitta_block_view {
  /** A bitmap of at least `row_count` rows, kept like a block's arrays; NULL for all rows. */
  const uint32_t* rows;
  uint32_t block;
  /** Only rows below this number are searched. */
  uint32_t row_count;
} sagitta_block_view;

typedef struct sagitta_query {
  /** [dimension], all finite. */
  const float* vector;
  /** The minimum score, in the units of the hits; -INFINITY for no minimum. */
  double floor;
  /** The rank key: only rows that come after (after_score, after_id) are searched, if after_id is not NULL. */
  double after_score;
  const uint8_t* after_id;
  uint32_t after_id_bytes;
  sagitta_metric metric;
  uint32_t k;
  /** The first of its views, which are views[first_view .. first_view + view_count). */
  uint32_t first_view;
  uint32_t view_count;
} sagitta_query;

/** How rows are searched where there is a choice; the answer is the same. For tests and benches. */
typedef enum sagitta_method {
  /** Chosen by estimated cost and by what the search observes. */
  SAGITTA_METHOD_AUTO = 0,
  SAGITTA_METHOD_TILES = 1,
  SAGITTA_METHOD_COARSE = 2,
  /** Head tiles wherever there are any. */
  SAGITTA_METHOD_HEAD_TILES = 3
} sagitta_method;

typedef struct sagitta_batch {
  const sagitta_block* blocks;
  const sagitta_block_view* views;
  const sagitta_query* queries;
  uint32_t block_count;
  uint32_t view_count;
  uint32_t query_count;
  uint32_t dimension;
  /** The maximum number of threads that work on it at once. */
  uint32_t worker_count;
  sagitta_method method;
} sagitta_batch;

typedef struct sagitta_search sagitta_search;

/** Copies queries and views. Borrows the arrays of blocks and bitmaps until the search is destroyed. */
sagitta_status sagitta_search_create(const sagitta_batch* batch, sagitta_search** search);

/** Returns the estimated work of the whole search, in nanoseconds on one thread. */
double sagitta_search_cost(const sagitta_search* search);

/**
 * Works on the search until no work is left. Any number of threads may call it, at the same time or one
 * after another; a single call also completes the search. `is_done` is set to 1 for exactly one caller, the
 * one that completed it.
 */
sagitta_status sagitta_search_work(sagitta_search* search, int* is_done);

/** Stops work in progress soon. The search will have no hits. */
void sagitta_search_cancel(sagitta_search* search);

/** Whether a search is complete or has failed. */
int sagitta_search_is_done(const sagitta_search* search);

/** The best rows of one query, best first. The search owns the arrays. */
typedef struct sagitta_hits {
  /** Indexes into the query's views, and row numbers in their blocks. */
  const uint32_t* views;
  const uint32_t* rows;
  /** Canonical: cosine, dot product, or minus the squared L2 distance. */
  const double* scores;
  uint32_t count;
  /** The number of rows that the views let pass, and of those whose canonical score was computed. */
  uint64_t scanned_count;
  uint64_t rescored_count;
} sagitta_hits;

/** Returns SAGITTA_NOT_DONE until the search is complete. */
sagitta_status sagitta_search_hits(const sagitta_search* search, uint32_t query,
                                   sagitta_hits* hits);

/* ── counts of rows before rank keys ─────────────────────────────────────────────────────── */

/** A rank key: a place in the order (score descending, id bytes ascending), of a row or between rows. */
typedef struct sagitta_rank_key {
  /** In the units of the hits; never NaN. */
  double score;
  const uint8_t* id;
  uint32_t id_bytes;
} sagitta_rank_key;

/**
 * Creates a search that counts, for the only query of the batch, the rows of its views that come strictly
 * before each rank key. It is worked on, cancelled and destroyed like other searches, and has no hits. The
 * query's k, floor and rank key are not read. The rank keys are copied.
 */
sagitta_status sagitta_search_create_count(const sagitta_batch* batch,
                                           const sagitta_rank_key* rank_keys,
                                           uint32_t rank_key_count, sagitta_search** search);

/**
 * Returns one count per rank key [count], in the order in which the rank keys were given; the search owns
 * them. Returns SAGITTA_NOT_DONE until the search is complete.
 */
sagitta_status sagitta_search_counts(const sagitta_search* search, const uint64_t** counts,
                                     uint32_t* count);

/** Must not be called while a thread works on the search. */
void sagitta_search_destroy(sagitta_search* search);

#ifdef __cplusplus
}
#endif

#endif
