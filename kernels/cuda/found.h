// The rows that a device has found for a batch, before ids are compared: plain data that can leave the
// process of the device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device.h"

struct sagitta_device_answer {
  /** [query_count]; the columns of query q are at offsets[q] .. offsets[q + 1]. */
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

struct query_found {
  /** The number of rows that the views let pass, and of those whose canonical score was computed. */
  uint64_t scanned_count;
  uint64_t rescored_count;
  uint32_t row_count;
  /** 0 if the device could not decide the query, which then has no rows. */
  uint32_t is_decided;
};

/** A row that is among the best or ties with the last of them. */
struct row_found {
  /** NaN where the host has to compute it. */
  double score;
  /** Indexes of the batch's block and of the row in it. */
  uint32_t block;
  uint32_t row;
};

struct batch_found {
  /** [query_count] */
  std::vector<query_found> queries;
  /** The rows of all queries, one query after another. */
  std::vector<row_found> rows;
  sagitta_device_times times{};
};

/**
 * Turns the rows that a device has found into hits: computes missing scores, breaks ties by id, and applies
 * rank keys and score limits. Throws `failure` when a row is not one that its query searches.
 */
std::unique_ptr<sagitta_device_answer> finish(const sagitta_batch& batch, const batch_found& found);

}  // namespace sagitta::cuda
