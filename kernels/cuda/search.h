// The search of a batch on a device, from queries to hits on the host.
//
//   plan      similar queries are grouped; few passing rows are gathered, more are scanned
//   encode    queries become codes, on the device
//   scan      in passes: first a dense sample, then the rows that reach the current threshold
//   prune     after each pass: bounds of candidates, whose k-th best lower bound is the next threshold
//   rescore   canonical scores of the remaining rows; then the k best and all that tie with the last
//   finish    after one readback the host, which holds the ids, breaks ties (finish.cu)
//
// Two searches may be in progress. The host plans, launches and finishes one while the device works on the other.
#pragma once

#include "device_state.h"
#include "found.h"

namespace sagitta::cuda {

/**
 * Begins to search a batch, of whose blocks only the row counts are read; its ids are not needed. Until the search has
 * ended, the tables of the batch must not change, and rows may only be appended to the blocks. Throws `failure`, then
 * nothing has begun.
 */
void begin_search(sagitta_device& device, const sagitta_batch& batch, sagitta_device_block* const* residents);

/** Waits for the search that began first. Throws `failure`; then it has ended as well. */
batch_found end_search(sagitta_device& device);

/** Whether the resident blocks belong to this device and hold the rows that the views search. */
bool has_rows(const sagitta_device& device, const sagitta_batch& batch,
              sagitta_device_block* const* residents);

}  // namespace sagitta::cuda
