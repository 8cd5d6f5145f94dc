// The host's state of a device: its properties, resident blocks, staging memory for uploads and the
// workspace of a search.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "device.h"
#include "resources.h"
#include "tables.h"

namespace sagitta::cuda {

/** Parameters of the search plan; tests set others. */
struct tuning {
  /** Rows of the first pass, unless k needs more. */
  uint32_t dense_rows = 2048;
  /** The factor by which the rows seen grow from pass to pass, for few and for many queries. */
  uint32_t growth_of_few = 32;
  uint32_t growth_of_many = 8;
  /** Capacity of a candidate list: spare_rows + rows_per_k · k. */
  uint32_t spare_rows = 2048;
  uint32_t rows_per_k = 64;
  /** Up to this many queries a slice has few queries. */
  uint32_t few = 128;
  /** How often undecided queries are scanned again, with longer lists each time, before every row is scored. */
  uint32_t repeats_max = 2;
  uint32_t repeat_growth = 8;
  /** Exhaustive slices: rows gathered and scored at a time, and rows kept beside k for ties. */
  uint32_t exhaustive_rows = 32768;
  uint32_t exhaustive_ties = 4096;
  /** The largest group of queries of a wgmma; the check of the kernels sets less. */
  uint32_t wgmma_group_max = 256;
};

/** The scan kernels to use: the best for each batch, or always the named ones. */
enum class scan_kind { best, mma, wgmma };

/**
 * Like sagitta_device_open. The device tells `on_progress` about each part of a long call, also while
 * it is opened.
 */
sagitta_device* open_device(uint32_t index, const char* kernels, std::function<void()> on_progress);

/**
 * Appends rows until there are `to`: their values, null for a block without values, and the panels from
 * the first one on that is not full yet.
 */
void extend_block(sagitta_device_block& block, const float* new_values, const uint8_t* new_panels,
                  uint32_t to);

}  // namespace sagitta::cuda

struct sagitta_device_block {
  sagitta_device* device = nullptr;
  uint32_t dimension = 0;
  uint32_t row_capacity = 0;
  uint32_t row_count = 0;
  bool has_values = false;
  sagitta::cuda::device_memory panels;
  sagitta::cuda::device_memory values;
  /** Recorded after its last upload. */
  sagitta::cuda::event uploaded;
};

struct sagitta_device {
  uint32_t index = 0;
  cudaDeviceProp properties{};
  sagitta::cuda::scan_kind kind = sagitta::cuda::scan_kind::best;
  bool has_wgmma = false;
  sagitta::cuda::tuning tuning;
  /** Bytes of device memory that one slice of a batch may use. */
  size_t workspace_bytes_max = 0;

  sagitta::cuda::stream searching;
  sagitta::cuda::stream uploading;
  sagitta::cuda::event phases[6];

  /** Uploads alternate between these. */
  sagitta::cuda::pinned_memory staging[2];
  sagitta::cuda::event staged[2];
  uint32_t next_staging = 0;

  /** Told after each part of a long call; null for nobody. */
  std::function<void()> on_progress;
  void note_progress() const {
    if (on_progress) on_progress();
  }

  sagitta::cuda::device_memory workspace;
  sagitta::cuda::pinned_memory input;
  sagitta::cuda::pinned_memory output;

  std::unordered_map<sagitta_device_block*, std::unique_ptr<sagitta_device_block>> blocks;
};
