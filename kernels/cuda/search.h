// A batch on a device, from queries on the host to rows on the host.
//
//   plan      queries that are alike come together; few passing rows are gathered, others scanned
//   encode    queries become codes, on the device
//   scan      pass by pass: a first sample, dense, then what reaches the threshold so far
//   prune     after each pass: bounds, the k-th best of which is the next threshold
//   rescore   what is left, canonically; then the k best, and all that tie with the last
//   finish    one readback; ids break ties on the host, where they are
#pragma once

#include <memory>
#include <vector>

#include "device_state.h"

struct sagitta_device_answer {
  /** [query_count] and, of query q, offsets[q] .. offsets[q + 1] of the columns. */
  std::vector<uint32_t> offsets;
  std::vector<uint32_t> parts;
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
