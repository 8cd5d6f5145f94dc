// The search of a batch on a device, from queries to hits on the host.
//
//   plan      similar queries are grouped; few passing rows are gathered, more are scanned
//   encode    queries become codes, on the device
//   scan      in passes: first a dense sample, then the rows that reach the current threshold
//   prune     after each pass: bounds of candidates, whose k-th best lower bound is the next threshold
//   rescore   canonical scores of the remaining rows; then the k best and all that tie with the last
//   finish    after one readback the host, which holds the ids, breaks ties (finish.cu)
#pragma once

#include "device_state.h"
#include "found.h"

namespace sagitta::cuda {

/** Searches a batch. Of its blocks only the row counts are read; its ids are not needed. Throws `failure`. */
batch_found find_rows(sagitta_device& device, const sagitta_batch& batch,
                      sagitta_device_block* const* residents);

/** Whether the resident blocks belong to this device and hold the rows that the views search. */
bool has_rows(const sagitta_device& device, const sagitta_batch& batch,
              sagitta_device_block* const* residents);

}  // namespace sagitta::cuda
