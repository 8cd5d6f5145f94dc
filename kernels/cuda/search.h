// The search of a batch on a device, from queries to hits on the host.
//
//   plan      similar queries are put together; few passing rows are gathered, more are scanned
//   encode    queries become codes, on the device
//   scan      in passes: first a dense sample, then the rows that reach the current threshold
//   prune     after each pass: bounds of candidates, whose k-th best lower bound is the next threshold
//   rescore   canonical scores of the remaining rows; then the k best and all that tie with the last
//   finish    one readback; the host, which has the ids, breaks ties
#pragma once

#include <memory>
#include <vector>

#include "device_state.h"

struct sagitta_device_answer {
  /** [query_count] and, of query q, offsets[q] .. offsets[q + 1] of the columns. */
  std::vector<uint32_t> offsets;
  std::vector<uint32_t> views;
  std::vector<uint32_t> rows;
  std::vector<double> scores;
  std::vector<uint64_t> scanned_counts;
  std::vector<uint64_t> rescored_counts;
  std::vector<uint8_t> is_decided;
  sagitta_device_times times{};
};

namespace sagitta::cuda {

/** Throws `failure`. */
std::unique_ptr<sagitta_device_answer> search_batch(sagitta_device& device,
                                                    const sagitta_batch& batch,
                                                    sagitta_device_block* const* residents);

}  // namespace sagitta::cuda
