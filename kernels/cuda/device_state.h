// A device as the host sees it: what it is, its resident blocks, the memory through which rows come
// and in which batches are worked on.
#pragma once

#include <memory>
#include <unordered_map>

#include "device.h"
#include "resources.h"
#include "tables.h"

namespace sagitta::cuda {

/** What a search chooses by itself, and tests choose for it. */
struct tuning {
  /** Rows of the first pass, unless k asks for more. */
  uint32_t dense_rows = 2048;
  /** How many times more rows each pass sees than all before it, by the number of queries. */
  uint32_t growth_of_few = 32;
  uint32_t growth_of_many = 8;
  /** Room in a list beside a multiple of k. */
  uint32_t spare_rows = 2048;
  uint32_t rows_per_k = 64;
  /** Queries that are few. */
  uint32_t few = 128;
  /** Where every row is scored: rows at once, and ties that are kept beside k. */
  uint32_t exhaustive_rows = 32768;
  uint32_t exhaustive_ties = 4096;
};

/** How queries are scanned: what the device can do best, or as it is told. */
enum class scan_kind { best, mma, wgmma };

}  // namespace sagitta::cuda

struct sagitta_device_block {
  sagitta_device* device = nullptr;
  uint32_t dimension = 0;
  uint32_t row_capacity = 0;
  uint32_t row_count = 0;
  bool has_values = false;
  sagitta::cuda::device_memory panels;
  sagitta::cuda::device_memory values;
  /** When its last upload is done. */
  sagitta::cuda::event uploaded;
};

struct sagitta_device {
  uint32_t index = 0;
  cudaDeviceProp properties{};
  sagitta::cuda::scan_kind kind = sagitta::cuda::scan_kind::best;
  bool has_wgmma = false;
  sagitta::cuda::tuning tuning;
  /** Of what one slice of a batch may use. */
  size_t workspace_bytes_max = 0;

  sagitta::cuda::stream searching;
  sagitta::cuda::stream uploading;
  sagitta::cuda::event phases[6];

  /** Uploads go through these in turns. */
  sagitta::cuda::pinned_memory staging[2];
  sagitta::cuda::event staged[2];
  uint32_t next_staging = 0;

  sagitta::cuda::device_memory workspace;
  sagitta::cuda::pinned_memory input;
  sagitta::cuda::pinned_memory output;

  std::unordered_map<sagitta_device_block*, std::unique_ptr<sagitta_device_block>> blocks;
};
