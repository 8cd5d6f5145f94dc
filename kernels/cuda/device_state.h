// The host's state of a device: its properties, resident blocks, staging memory for uploads and the
// workspace of a search.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "../search/basis.h"
#include "../search/rotation.h"
#include "device.h"
#include "resources.h"
#include "tables.h"

namespace sagitta::cuda {

/** Parameters of the search plan; tests set others. */
struct tuning {
  /** The minimum number of rows in the first pass, unless k needs more. */
  uint32_t dense_rows = 2048;
  /** The largest factor by which the number of rows seen grows from pass to pass, for few and for many queries. */
  uint32_t growth_of_few = 64;
  uint32_t growth_of_many = 8;
  /** Capacity of a candidate list: spare_rows + rows_per_k · k. */
  uint32_t spare_rows = 2048;
  uint32_t rows_per_k = 64;
  /** Slices of up to this many queries count as having few. */
  uint32_t few = 128;
  /**
   * If there are fewer lists than this many blocks per multiprocessor, thread blocks share them, provided that each
   * block gets at least this many entries: one per thread. Registers limit a multiprocessor to one such block.
   */
  uint32_t list_blocks_per_multiprocessor = 1;
  uint32_t part_rows_min = 1024;
  /** How often undecided queries are scanned again, with longer lists each time, before they are given up. */
  uint32_t repeats_max = 2;
  uint32_t repeat_growth = 8;
  /**
   * Coarse codes are used for slices of at most this many queries, if at least this many bytes of int8
   * codes would be read and this many rows pass for each of the k best.
   * With fewer bytes, a rejected sample would cost more than a tenth of the search.
   */
  uint32_t coarse_queries_max = 64;
  size_t coarse_bytes_min = size_t{640} << 20;
  uint32_t coarse_rows_per_k = 4000;
  /**
   * Head tiles are used if at least this many bytes of int8 codes would be read, or products of as many queries as
   * take as long: with fewer, the additional launches would take longer than what they save.
   */
  size_t head_bytes_min = size_t{128} << 20;
  /** The level that is scanned; by default, the one that is expected to cost less. */
  uint32_t head_level = UINT32_MAX;
  /** The maximum number of rows that the list of one of few queries holds for a sieve. */
  uint32_t sieve_list_rows = 65536;
  /** The largest group of queries of a wgmma; the check of the kernels sets a smaller one. */
  uint32_t wgmma_group_max = 256;
  /**
   * The maximum number of stages of a warpgroup's ring. Two rings of eight have 128 KiB of codes in flight,
   * six times the product of latency and bandwidth of an H200. The check of the kernels sets fewer.
   */
  uint32_t ring_stages_max = 8;
  /** The maximum number of thread blocks of a scan; the check of rings sets one, which then takes many tiles. */
  uint32_t scan_blocks_max = UINT32_MAX;
};

/**
 * The scan kernels to use: the best for each batch, or always the named ones. `best` does not include rings, which
 * have not been measured on a device, and where shared memory has no room for a ring, wgmma does without.
 */
enum class scan_kind { best, mma, wgmma, wgmma_ring };

/**
 * Like sagitta_device_open. The device calls `on_progress` after each part of a long call, including while
 * it is being opened.
 */
sagitta_device* open_device(uint32_t index, const char* kernels, std::function<void()> on_progress);

/** Rows to append to a block, in host memory. */
struct new_rows {
  /** Values of the new rows; not read for a block without values. */
  const float* values;
  /** Panels starting with the first one that is not yet full. */
  const uint8_t* panels;
  /** Coarse codes of the same rows, and head tiles by join_head_panels; not read for a block without them. */
  const uint8_t* coarse;
  const uint8_t* head;
  /** The basis of the head tiles, which `open_basis` accepts; not read if the block has rows. */
  const uint8_t* basis;
};

/** A basis on the device, which its blocks share. */
struct device_basis {
  basis_header header;
  /** As in `basis`. */
  uint32_t directions;
  double error;
  /** [directions, dimension] float32 */
  device_memory matrix;
};

/** A search whose first slice has been launched; see search.h. */
class running_search;

/** The memory of one of the searches that run at the same time. */
struct search_slot {
  device_memory workspace;
  pinned_memory input;
  pinned_memory output;
  event phases[6];
};

/** Appends rows until there are `to`. */
void extend_block(sagitta_device_block& block, const new_rows& rows, uint32_t to);

/** Whether the rows come with a basis and with the head tiles of the first `to` of them. */
inline bool has_head_of(const sagitta_block& rows, uint32_t dimension, uint32_t to) {
  return rows.head != nullptr && rows.basis != nullptr && rows.basis_bytes == basis_bytes(dimension) &&
         rows.head_bytes >= panel_count(to) * head_panel_bytes(dimension);
}

/** Whether a block has coarse codes: blocks of few dimensions and blocks without values have none. */
inline bool has_coarse(uint32_t dimension, bool has_values) {
  return has_values && has_coarse_codes(dimension);
}

}  // namespace sagitta::cuda

struct sagitta_device_block {
  sagitta_device* device = nullptr;
  uint32_t dimension = 0;
  uint32_t row_capacity = 0;
  uint32_t row_count = 0;
  bool has_values = false;
  bool has_head = false;
  sagitta::cuda::device_memory panels;
  sagitta::cuda::device_memory values;
  /** Allocated and freed with the values, which are needed for the rows that these codes leave. */
  sagitta::cuda::device_memory coarse;
  sagitta::cuda::device_memory head;
  /** Null for a block without head tiles, or without rows. */
  std::shared_ptr<const sagitta::cuda::device_basis> basis;
  /** The `upload_count` of its device after its last upload. */
  uint64_t last_upload = 0;
};

struct sagitta_device {
  uint32_t index = 0;
  cudaDeviceProp properties{};
  sagitta::cuda::scan_kind kind = sagitta::cuda::scan_kind::best;
  bool has_wgmma = false;
  /** Whether its kernels for coarse codes and for head tiles passed their check. */
  bool has_coarse = false;
  bool has_head = false;
  sagitta::cuda::tuning tuning;
  /** Bytes of device memory that one slice of a batch may use, in each slot. */
  size_t workspace_bytes_max = 0;

  sagitta::cuda::stream searching;
  sagitta::cuda::stream uploading;

  /** The launches of a search, which are early where the device supports that. */
  sagitta::cuda::launch_order launches() const { return {searching, properties.major >= 9}; }
  /** The number of thread blocks that run at once, by scan kernel and bytes of dynamic shared memory. */
  std::map<std::pair<uintptr_t, size_t>, uint32_t> resident_blocks;

  /** Uploads, each of a part of a block, alternate between these; an event tells when the last one has ended. */
  sagitta::cuda::pinned_memory staging[2];
  sagitta::cuda::event staged[2];
  uint64_t upload_count = 0;
  /** Searches come after this many uploads. */
  uint64_t awaited_uploads = 0;

  /** Called after each part of a long call; may be null. */
  std::function<void()> on_progress;
  void report_progress() const {
    if (on_progress) on_progress();
  }

  /** Searches take turns in the slots. */
  sagitta::cuda::search_slot slots[SAGITTA_DEVICE_SEARCHES_MAX];
  uint64_t search_count = 0;
  /** In the order in which they have begun. */
  std::deque<std::shared_ptr<sagitta::cuda::running_search>> searches;

  size_t unpinned_bytes() const {
    size_t bytes = 0;
    for (const sagitta::cuda::pinned_memory& buffer : staging) bytes += buffer.unpinned_bytes();
    for (const sagitta::cuda::search_slot& slot : slots) {
      bytes += slot.input.unpinned_bytes() + slot.output.unpinned_bytes();
    }
    return bytes;
  }

  /** The rotation of the last dimension that was searched with coarse codes. */
  sagitta::rotation rotation{};

  /** By digest; a basis is freed with the last of its blocks. */
  std::unordered_map<uint64_t, std::weak_ptr<const sagitta::cuda::device_basis>> bases;
  std::unordered_map<sagitta_device_block*, std::unique_ptr<sagitta_device_block>> blocks;
};
