/* The C interface of the kernels for NVIDIA GPUs: the searches of kernels.h, answered by a device. It
 * needs no CUDA header, and its library loads even if there is neither a device nor a driver.
 *
 * A device and its objects may be used by one thread at a time; different devices may be used
 * concurrently. After SAGITTA_DEVICE_LOST a device can only be closed.
 */
#ifndef SAGITTA_CUDA_DEVICE_H
#define SAGITTA_CUDA_DEVICE_H

#include "../kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sagitta_device sagitta_device;
typedef struct sagitta_device_block sagitta_device_block;
typedef struct sagitta_device_answer sagitta_device_answer;

/** The message of the last failed call of this thread, for an operator; never NULL. */
const char* sagitta_device_error(void);

/* ── devices ─────────────────────────────────────────────────────────────────────────────── */

/** Returns SAGITTA_DEVICE_LOST if CUDA does not start because there is no driver or it is too old. */
sagitta_status sagitta_device_count(uint32_t* count);

/**
 * Opens a device with these kernels: "wgmma" or "wgmma-ring" (compute capability 9.0), "mma" (8.0 and
 * later), or NULL for the better of "wgmma" and "mma" for each batch, provided that they pass their check
 * on the device. Returns SAGITTA_UNSUPPORTED_TARGET for kernels that the device cannot run.
 */
sagitta_status sagitta_device_open(uint32_t index, const char* kernels, sagitta_device** device);
/** Frees the device and its blocks. */
void sagitta_device_close(sagitta_device* device);

typedef struct sagitta_device_facts {
  char name[256];
  /** The kernels in use. */
  const char* kernels;
  /** 90 for compute capability 9.0. */
  uint32_t compute_capability;
  uint32_t multiprocessor_count;
  /** CUDA versions: 13000 is 13.0. */
  uint32_t driver_version;
  uint32_t runtime_version;
  uint64_t memory_bytes;
  uint64_t free_bytes;
} sagitta_device_facts;

/** Returns the facts of a device that is not open, without kernels ("") and free memory (0). */
sagitta_status sagitta_device_identify(uint32_t index, sagitta_device_facts* facts);
sagitta_status sagitta_device_describe(sagitta_device* device, sagitta_device_facts* facts);

/* ── blocks ──────────────────────────────────────────────────────────────────────────────── */

/**
 * Returns the bytes of device memory of a block with room for `row_capacity` rows. From
 * SAGITTA_COARSE_DIMENSION_MIN dimensions on, a block with values also has coarse codes, and with `has_head` also head
 * tiles, without the basis, which blocks share.
 */
uint64_t sagitta_device_block_bytes(uint32_t dimension, uint32_t row_capacity, int has_values, int has_head);

/** Creates a block without rows. */
sagitta_status sagitta_device_block_create(sagitta_device* device, uint32_t dimension,
                                           sagitta_device_block** block);
/** Must not be called during a search of the block. */
void sagitta_device_block_destroy(sagitta_device_block* block);

/**
 * Sets the capacity to exactly `row_capacity` rows, which is at least the number of rows present; these
 * stay. Without values, present values are freed and the host rescores the block's rows; a block with rows
 * cannot get values again. The same holds for head tiles, which a block without values never has.
 * SAGITTA_OUT_OF_MEMORY leaves the block unchanged.
 */
sagitta_status sagitta_device_block_reserve(sagitta_device_block* block, uint32_t row_capacity,
                                            int has_values, int has_head);

/**
 * Appends rows until there are `to`; present rows stay. The values, codes and coarse codes of `rows` are those of the
 * first `to` rows; this call computes codes that are NULL. A block with head tiles needs those of the first `to` rows
 * and always the same basis. Nothing else of `rows` is read. All are in host memory, which the caller may free after
 * the call. The call waits for free staging memory, not for the end of the upload.
 */
sagitta_status sagitta_device_block_extend(sagitta_device_block* block, const sagitta_block* rows,
                                           uint32_t to);
uint32_t sagitta_device_block_rows(const sagitta_device_block* block);

/* ── search ──────────────────────────────────────────────────────────────────────────────── */

/** The number of searches that may be begun and not ended. */
#define SAGITTA_DEVICE_SEARCHES_MAX 2

/**
 * Begins to search a batch, after those begun before it, and returns while the device works. `residents[i]` holds the
 * rows of `batch->blocks[i]`, at least as many as its views search. The blocks of the batch need ids, and values where
 * the resident block has none; `worker_count` is ignored. Until the search has ended, the batch must not change, and
 * rows may only be appended to the blocks. After a failure nothing has begun.
 */
sagitta_status sagitta_device_search_begin(sagitta_device* device, const sagitta_batch* batch,
                                           sagitta_device_block* const* residents);

/** Waits for the answer of the search that began first, whose batch this is. It has ended even after a failure. */
sagitta_status sagitta_device_search_end(sagitta_device* device, const sagitta_batch* batch,
                                         sagitta_device_answer** answer);

/** Begins and ends a search, while no other has begun. */
sagitta_status sagitta_device_search(sagitta_device* device, const sagitta_batch* batch,
                                     sagitta_device_block* const* residents,
                                     sagitta_device_answer** answer);

/**
 * The best rows of one query, as in kernels.h. Returns SAGITTA_NOT_DONE for a query that the device could not decide
 * because more rows have nearly the same score (mostly duplicates) than its lists hold: the CPU has to search it.
 */
sagitta_status sagitta_device_answer_hits(const sagitta_device_answer* answer, uint32_t query,
                                          sagitta_hits* hits);

/**
 * Milliseconds of the phases on the device, measured by CUDA events, and on the host. For slices of few queries,
 * `scan_ms` covers all from the upload to the readback, since events between kernels would cost time.
 */
typedef struct sagitta_device_times {
  double upload_ms;
  double scan_ms;
  double select_ms;
  double rescore_ms;
  double total_ms;
  /** On the host: before the launches, and after the readback. */
  double prepare_ms;
  double finish_ms;
  uint64_t readback_bytes;
  /** Queries that were scanned again because a list was too short. */
  uint64_t repeated_queries;
  /** Bytes of the host's buffers that could not be pinned, so that copying them takes longer. */
  uint64_t unpinned_bytes;
  /**
   * Queries that coarse codes and that head tiles answered, and queries that changed from either to int8 codes after a
   * part of the rows.
   */
  uint64_t coarse_queries;
  uint64_t head_queries;
  uint64_t abandoned_queries;
} sagitta_device_times;

sagitta_status sagitta_device_answer_times(const sagitta_device_answer* answer,
                                           sagitta_device_times* times);
void sagitta_device_answer_destroy(sagitta_device_answer* answer);

#ifdef __cplusplus
}
#endif

#endif
