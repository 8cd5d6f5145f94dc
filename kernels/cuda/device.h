/* The C interface of the kernels for NVIDIA GPUs: the searches of kernels.h, answered by a device. It
 * needs no CUDA header, and its library starts where there is neither a device nor a driver.
 *
 * A device and what belongs to it are used by one thread at a time; different devices may be used
 * at the same time. After SAGITTA_DEVICE_LOST nothing but closing works on that device.
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

/** What the last call of this thread that failed has to say, for an operator; never NULL. */
const char* sagitta_device_error(void);

/* ── devices ─────────────────────────────────────────────────────────────────────────────── */

/** SAGITTA_DEVICE_LOST, with a reason, where CUDA does not start: no driver, or one that is too old. */
sagitta_status sagitta_device_count(uint32_t* count);

/**
 * Opens a device with these kernels: "wgmma" (compute capability 9.0), "mma" (8.0 and later), or NULL
 * for the fastest that proves itself on the device. SAGITTA_UNSUPPORTED_TARGET for what it cannot run.
 */
sagitta_status sagitta_device_open(uint32_t index, const char* kernels, sagitta_device** device);
/** Its blocks and answers are gone with it. */
void sagitta_device_close(sagitta_device* device);

typedef struct sagitta_device_facts {
  char name[256];
  /** The kernels in use. */
  const char* kernels;
  /** 90 for compute capability 9.0. */
  uint32_t compute_capability;
  uint32_t multiprocessor_count;
  /** Of CUDA: 13000 is 13.0. */
  uint32_t driver_version;
  uint32_t runtime_version;
  uint64_t memory_bytes;
  uint64_t free_bytes;
} sagitta_device_facts;

sagitta_status sagitta_device_describe(sagitta_device* device, sagitta_device_facts* facts);

/* ── blocks ──────────────────────────────────────────────────────────────────────────────── */

/** Bytes of device memory that a block of so many rows takes. */
uint64_t sagitta_device_block_bytes(uint32_t dimension, uint32_t row_capacity, int has_values);

/** A block without rows. */
sagitta_status sagitta_device_block_create(sagitta_device* device, uint32_t dimension,
                                           sagitta_device_block** block);
/** Not while an answer is made from it. */
void sagitta_device_block_destroy(sagitta_device_block* block);

/**
 * Room for exactly so many rows, at least those that are there, which stay. Without values, rows are
 * rescored on the CPU, and values that are there leave; values cannot come back to a block with rows.
 * SAGITTA_OUT_OF_MEMORY leaves the block as it was.
 */
sagitta_status sagitta_device_block_reserve(sagitta_device_block* block, uint32_t row_capacity,
                                            int has_values);

/**
 * Brings the rows up to `to`; those before stay as they are. `values` [to, dimension] and `codes`
 * (of the first `to` rows; NULL: made here) are on the host, and are not needed any more afterwards.
 * Does not wait for the device, but for room in the pinned memory through which everything goes.
 */
sagitta_status sagitta_device_block_extend(sagitta_device_block* block, const float* values,
                                           const uint8_t* codes, uint32_t to);
uint32_t sagitta_device_block_rows(const sagitta_device_block* block);

/* ── search ──────────────────────────────────────────────────────────────────────────────── */

/**
 * Answers a batch, and waits for it. `residents[i]` holds the rows of `batch->blocks[i]`, at least as
 * many as its parts search. Of batch->blocks, the ids are needed, and the values where the resident
 * block has none; `worker_count` is not looked at.
 */
sagitta_status sagitta_device_search(sagitta_device* device, const sagitta_batch* batch,
                                     sagitta_device_block* const* residents,
                                     sagitta_device_answer** answer);

/**
 * The best rows of one query, as in kernels.h. SAGITTA_NOT_DONE for a query that the device cannot
 * decide, since more rows lie too close together than it keeps (duplicates, above all): the CPU has to.
 */
sagitta_status sagitta_device_answer_hits(const sagitta_device_answer* answer, uint32_t query,
                                          sagitta_hits* hits);

/** Milliseconds on the device, by CUDA events; and what moved. */
typedef struct sagitta_device_times {
  double upload_ms;
  double scan_ms;
  double select_ms;
  double rescore_ms;
  double total_ms;
  /** On the host: before the first launch, and after the readback. */
  double prepare_ms;
  double finish_ms;
  uint64_t readback_bytes;
} sagitta_device_times;

sagitta_status sagitta_device_answer_times(const sagitta_device_answer* answer,
                                           sagitta_device_times* times);
void sagitta_device_answer_destroy(sagitta_device_answer* answer);

#ifdef __cplusplus
}
#endif

#endif
