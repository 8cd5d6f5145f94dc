#include "kernel_check.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "call.h"
#include "code_ring.h"
#include "device.h"
#include "encode.h"
#include "found.h"
#include "scan_kernels.h"
#include "select.h"
#include "sieve.h"
#if defined(SAGITTA_EMULATE_CUDA)
#include "../testing/cuda_emulation/settings.h"
#endif

namespace sagitta::cuda {
namespace {

void require(sagitta_status status) {
  if (status != SAGITTA_OK) throw failure{status, "check of the kernels: " + last_error()};
}

/** Pseudo-random rows, always the same ones, with queries of every metric, a third of which have a filter. */
class check_data {
 public:
  /**
   * Whole tiles and a remainder: the last pass, even without a sample, has more tiles than a thread block has warps.
   */
  static constexpr uint32_t row_count = 970;
  static constexpr uint32_t query_count = 300;
  static_assert(query_count <= row_count, "queries are rows");

  explicit check_data(uint32_t of_dimension)
      : dimension(of_dimension),
        values_(size_t{row_count} * dimension),
        codes_(sagitta_codes_bytes(row_count, dimension)),
        head_(sagitta_head_bytes(row_count, dimension)),
        id_offsets_(row_count + 1),
        bitmap_((row_count + 31) / 32) {
    uint32_t state = 1;
    const auto next = [&] { return state = state * 1664525 + 1013904223; };
    for (float& value : values_) value = static_cast<float>(static_cast<int32_t>(next())) * 0x1p-31f;
    for (uint32_t& word : bitmap_) word = next() ^ next() >> 16;
    for (uint32_t row = 0; row < row_count; row++) {
      const std::string id = std::to_string(row);
      id_bytes_.insert(id_bytes_.end(), id.begin(), id.end());
      id_offsets_[row + 1] = static_cast<int32_t>(id_bytes_.size());
    }
    sagitta_encode(values_.data(), dimension, 0, row_count, codes_.data());
    block_.values = values_.data();
    block_.codes = codes_.data();
    block_.id_offsets = id_offsets_.data();
    block_.id_bytes = id_bytes_.data();
    block_.row_count = row_count;
    rows_ = block_;
    if (!head_.empty()) encode_head();
    views_ = {{nullptr, 0, row_count}, {bitmap_.data(), 0, row_count - 5}};
    for (uint32_t q = 0; q < query_count; q++) {
      sagitta_query query{};
      query.vector = values_.data() + size_t{q} * dimension;
      query.floor = -unbounded;
      query.metric = static_cast<sagitta_metric>(q % 4);
      query.k = 7;
      query.first_view = q % 3 == 2 ? 1 : 0;
      query.view_count = 1;
      queries_.push_back(query);
    }
  }
  check_data(const check_data&) = delete;
  const uint32_t dimension;

  /** What is uploaded: with head tiles, which the CPU does without. */
  const sagitta_block& rows() const { return rows_; }
  /** A batch of the first `count` queries. */
  sagitta_batch batch(uint32_t count, sagitta_method method) const {
    return {&block_, views_.data(), queries_.data(), 1, 2, count, dimension, 1, method};
  }

 private:
  /** The directions are axes. */
  void encode_head() {
    basis_.resize(basis_bytes(dimension));
    auto* const matrix = reinterpret_cast<float*>(basis_.data() + sizeof(basis_header));
    for (uint32_t i = 0; i < head_directions(dimension); i++) matrix[size_t{i} * (dimension + 1)] = 1;
    basis_header header{};
    header.dimension = dimension;
    for (float& weight : header.weights) weight = 0.5f;
    seal_basis(header, basis_.data());
    rows_.basis = basis_.data();
    rows_.basis_bytes = basis_.size();
    rows_.head = head_.data();
    rows_.head_bytes = head_.size();
    require(sagitta_encode_head(values_.data(), dimension, 0, row_count, basis_.data(), basis_.size(), head_.data(),
                                head_.size()));
  }

  std::vector<float> values_;
  std::vector<uint8_t> codes_;
  /** Empty for dimensions without a basis. */
  std::vector<uint8_t> head_;
  std::vector<uint8_t> basis_;
  std::vector<int32_t> id_offsets_;
  std::vector<uint8_t> id_bytes_;
  std::vector<uint32_t> bitmap_;
  sagitta_block block_{};
  sagitta_block rows_{};
  std::vector<sagitta_block_view> views_;
  std::vector<sagitta_query> queries_;
};

/** The emulation checks only the first batch of each kernel: all would take a minute per opened device. */
bool is_full_check() {
#if defined(SAGITTA_EMULATE_CUDA)
  return emulation::current_settings().has_whole_check;
#else
  return true;
#endif
}

bool is_same(const sagitta_hits& left, const sagitta_hits& right) {
  return left.count == right.count && std::equal(left.rows, left.rows + left.count, right.rows) &&
         std::equal(left.scores, left.scores + left.count, right.scores);
}

/**
 * Whether the device answers all queries of the batch as the CPU does, and from coarse codes or head tiles if the
 * batch asks for them.
 */
bool agrees(sagitta_device& device, const sagitta_batch& batch, sagitta_device_block* resident,
            const sagitta_search* truth) {
  sagitta_device_answer* answer = nullptr;
  require(sagitta_device_search(&device, &batch, &resident, &answer));
  const auto expected_of = [&](sagitta_method method) { return batch.method == method ? batch.query_count : 0; };
  bool is_correct = answer->times.coarse_queries == expected_of(SAGITTA_METHOD_COARSE) &&
                    answer->times.head_queries == expected_of(SAGITTA_METHOD_HEAD_TILES);
  for (uint32_t q = 0; q < batch.query_count && is_correct; q++) {
    sagitta_hits expected{};
    sagitta_hits actual{};
    require(sagitta_search_hits(truth, q, &expected));
    is_correct = sagitta_device_answer_hits(answer, q, &actual) == SAGITTA_OK &&
               is_same(expected, actual);
  }
  sagitta_device_answer_destroy(answer);
  return is_correct;
}

/** How many thread blocks scan: as many as there are tiles for, or one. */
enum class scan_blocks { many, one };

/**
 * Compares batches with the CPU, in several passes and with pruned lists. With one block to scan, its warps
 * take one tile after another, as in a search of many rows, and rings are as short as possible, so that
 * registers and stages are loaded again and again.
 */
class kernel_checker {
 public:
  kernel_checker(sagitta_device& device, const check_data& data, scan_blocks blocks)
      : device_(device), data_(data), kind_(device.kind), usual_(device.tuning) {
    require(sagitta_device_block_create(&device, data.dimension, &resident_));
    require(sagitta_device_block_reserve(resident_, check_data::row_count, 1, data.rows().head != nullptr));
    require(sagitta_device_block_extend(resident_, &data.rows(), check_data::row_count));
    const sagitta_batch all_queries = data.batch(check_data::query_count, SAGITTA_METHOD_AUTO);
    require(sagitta_search_create(&all_queries, &truth_));
    int is_done = 0;
    require(sagitta_search_work(truth_, &is_done));
    device.tuning.dense_rows = 64;
    device.tuning.growth_of_few = 4;
    device.tuning.growth_of_many = 4;
    // Makes thread blocks share the lists of few queries, although they are short here.
    device.tuning.part_rows_min = 16;
    if (blocks == scan_blocks::many) return;
    device.tuning.scan_blocks_max = 1;
    device.tuning.ring_stages_max = ring_stages_min;
  }
  kernel_checker(const kernel_checker&) = delete;
  ~kernel_checker() {
    device_.kind = kind_;
    device_.tuning = usual_;
    sagitta_search_destroy(truth_);
    sagitta_device_block_destroy(resident_);
  }

  /** Checks all kernels except those of sieves. */
  bool is_correct(scan_kind kind) {
    device_.kind = kind;
    // Groups of 8, 16, 32, 64, 128 and 256.
    if (kind == scan_kind::mma) {
      return agree({1, 12, 24, 50, 100, check_data::query_count}, SAGITTA_METHOD_TILES);
    }
    if (kind == scan_kind::wgmma_ring) return agree({50, 100, check_data::query_count}, SAGITTA_METHOD_TILES);
    // Groups of 128, 256 and 64; the last are otherwise chosen only for dimensions that leave no room for
    // more. Smaller batches use mma in any case.
    if (!agree({100, check_data::query_count}, SAGITTA_METHOD_TILES)) return false;
    device_.tuning.wgmma_group_max = 64;
    return agree({100}, SAGITTA_METHOD_TILES);
  }

  /** Checks the kernels of coarse codes, in groups of 8, 16, 32 and 64 queries. */
  bool is_coarse_correct() { return agree({1, 12, 24, 50}, SAGITTA_METHOD_COARSE); }

  /** Checks the encoding for head tiles, both levels of them, and lists of few and of many queries. */
  bool is_head_correct() {
    return std::all_of(std::begin(levels), std::end(levels), [&](uint32_t level) {
      device_.tuning.head_level = level;
      return agree({5, check_data::query_count}, SAGITTA_METHOD_HEAD_TILES);
    });
  }

 private:
  static constexpr uint32_t levels[] = {0, 1};

  bool agree(std::initializer_list<uint32_t> query_counts, sagitta_method method) {
    const uint32_t* const end = is_full_check() ? query_counts.end() : query_counts.begin() + 1;
    return std::all_of(query_counts.begin(), end, [&](uint32_t count) {
      return agrees(device_, data_.batch(count, method), resident_, truth_);
    });
  }

  sagitta_device& device_;
  const check_data& data_;
  scan_kind kind_;
  tuning usual_;
  sagitta_device_block* resident_ = nullptr;
  sagitta_search* truth_ = nullptr;
};

/** Checks dimensions of several whole chunks, pairs of steps and tiles, with a remainder of each. */
bool is_correct(sagitta_device& device, scan_kind kind) {
  const check_data data(400);
  if (is_full_check() && !kernel_checker(device, data, scan_blocks::many).is_correct(kind)) return false;
  return kernel_checker(device, data, scan_blocks::one).is_correct(kind);
}

/** Throws because of kernels without which the device cannot be used as requested. */
[[noreturn]] void refuse(const char* kernels) {
  throw failure{SAGITTA_UNSUPPORTED_TARGET, "the " + std::string(kernels) +
                                                " of this device give other answers than the CPU"};
}

/** Checks dimensions of less than a quad, and of several quads and a remainder. */
bool is_coarse_correct(sagitta_device& device) {
  const check_data narrow(136);
  const check_data wide(600);
  return kernel_checker(device, narrow, scan_blocks::many).is_coarse_correct() &&
         kernel_checker(device, wide, scan_blocks::one).is_coarse_correct();
}

/** Checks dimensions whose directions are whole pairs and chunks, and others. */
bool is_head_correct(sagitta_device& device) {
  const check_data narrow(136);
  const check_data wide(600);
  return kernel_checker(device, narrow, scan_blocks::many).is_head_correct() &&
         kernel_checker(device, wide, scan_blocks::one).is_head_correct();
}

}  // namespace

void prepare_kernels(sagitta_device& device, bool may_wgmma) {
  check(prepare_scans(device.properties.sharedMemPerBlockOptin, may_wgmma), "scan kernels");
  check(prepare_rescoring(), "rescoring kernels");
  check(preload_encoding(), "encoding kernel");
  check(prepare_coarse_encoding(device.properties.sharedMemPerBlockOptin), "encoding for coarse codes");
  check(prepare_head_encoding(device.properties.sharedMemPerBlockOptin), "encoding for head tiles");
  check(preload_raising(), "kernel of sieves");
  check(preload_pruning(), "pruning kernel");
  check(preload_selection(), "selection kernels");
  device.has_wgmma = may_wgmma && device.kind != scan_kind::mma;
  // Checked as searches will use it: wgmma for large batches, in groups of 64, 128 and 256.
  if (device.has_wgmma && !is_correct(device, scan_kind::best)) {
    if (device.kind != scan_kind::best) refuse("wgmma kernels");
    device.has_wgmma = false;
  }
  // Checked only if requested, because nothing else uses rings.
  if (device.kind == scan_kind::wgmma_ring && !is_correct(device, scan_kind::wgmma_ring)) {
    refuse("wgmma-ring kernels");
  }
  if (!is_correct(device, scan_kind::mma)) refuse("kernels");
  // Searches can do without sieves.
  device.has_coarse = true;
  device.has_coarse = is_coarse_correct(device);
  device.has_head = true;
  device.has_head = is_head_correct(device);
}

}  // namespace sagitta::cuda
