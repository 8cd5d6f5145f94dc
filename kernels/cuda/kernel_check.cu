#include "kernel_check.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "call.h"
#include "device.h"
#include "encode.h"
#include "scan_kernels.h"
#include "select.h"

namespace sagitta::cuda {
namespace {

void require(sagitta_status status) {
  if (status != SAGITTA_OK) throw failure{status, "check of the kernels: " + last_error()};
}

/** Pseudo-random rows, the same every time, with queries of every metric; every third has a filter. */
class check_data {
 public:
  /** Whole chunks, pairs of steps and tiles, and a rest of each. */
  static constexpr uint32_t dimension = 136;
  static constexpr uint32_t row_count = 330;
  static constexpr uint32_t query_count = 300;
  static_assert(query_count <= row_count, "queries are rows");

  check_data()
      : values_(size_t{row_count} * dimension),
        codes_(sagitta_codes_bytes(row_count, dimension)),
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
    block_ = {values_.data(), codes_.data(), id_offsets_.data(), id_bytes_.data(), row_count, nullptr, nullptr};
    views_ = {{nullptr, 0, row_count}, {bitmap_.data(), 0, row_count - 5}};
    for (uint32_t q = 0; q < query_count; q++) {
      sagitta_query query{};
      query.vector = values_.data() + size_t{q} * dimension;
      query.floor = -unbounded;
      query.metric = static_cast<sagitta_metric>(q % 3);
      query.k = 7;
      query.first_view = q % 3 == 2 ? 1 : 0;
      query.view_count = 1;
      queries_.push_back(query);
    }
  }
  check_data(const check_data&) = delete;

  const float* values() const { return values_.data(); }
  const uint8_t* codes() const { return codes_.data(); }
  /** A batch of the first `count` queries. */
  sagitta_batch batch(uint32_t count) const {
    return {&block_, views_.data(), queries_.data(), 1, 2, count, dimension, 1, SAGITTA_METHOD_AUTO};
  }

 private:
  std::vector<float> values_;
  std::vector<uint8_t> codes_;
  std::vector<int32_t> id_offsets_;
  std::vector<uint8_t> id_bytes_;
  std::vector<uint32_t> bitmap_;
  sagitta_block block_{};
  std::vector<sagitta_block_view> views_;
  std::vector<sagitta_query> queries_;
};

bool is_same(const sagitta_hits& left, const sagitta_hits& right) {
  return left.count == right.count && std::equal(left.rows, left.rows + left.count, right.rows) &&
         std::equal(left.scores, left.scores + left.count, right.scores);
}

/** Whether the device answers all queries of the batch as the CPU does. */
bool agrees(sagitta_device& device, const sagitta_batch& batch, sagitta_device_block* resident,
            const sagitta_search* truth) {
  sagitta_device_answer* answer = nullptr;
  require(sagitta_device_search(&device, &batch, &resident, &answer));
  bool is_right = true;
  for (uint32_t q = 0; q < batch.query_count && is_right; q++) {
    sagitta_hits expected{};
    sagitta_hits actual{};
    require(sagitta_search_hits(truth, q, &expected));
    is_right = sagitta_device_answer_hits(answer, q, &actual) == SAGITTA_OK &&
               is_same(expected, actual);
  }
  sagitta_device_answer_destroy(answer);
  return is_right;
}

/** Checks batches of every group size, with several passes and pruned lists. */
bool is_right(sagitta_device& device, scan_kind kind, const check_data& data) {
  sagitta_device_block* resident = nullptr;
  require(sagitta_device_block_create(&device, check_data::dimension, &resident));
  require(sagitta_device_block_reserve(resident, check_data::row_count, 1));
  require(sagitta_device_block_extend(resident, data.values(), data.codes(), check_data::row_count));
  const sagitta_batch all_queries = data.batch(check_data::query_count);
  sagitta_search* created = nullptr;
  require(sagitta_search_create(&all_queries, &created));
  const std::unique_ptr<sagitta_search, decltype(&sagitta_search_destroy)> truth(
      created, sagitta_search_destroy);
  int is_done = 0;
  require(sagitta_search_work(truth.get(), &is_done));

  const scan_kind wanted = device.kind;
  const tuning usual = device.tuning;
  device.kind = kind;
  device.tuning.dense_rows = 64;
  device.tuning.growth_of_few = 3;
  device.tuning.growth_of_many = 4;
  bool all = true;
  const auto check_batch = [&](uint32_t count) {
    all = all && agrees(device, data.batch(count), resident, truth.get());
  };
  if (kind == scan_kind::mma) {
    // Groups of 8, 16, 32, 64, 128 and 256.
    for (const uint32_t count : {1u, 12u, 24u, 50u, 100u, check_data::query_count}) check_batch(count);
  } else {
    // Groups of 128, 256 and 64, of which the last are otherwise chosen only for dimensions that leave
    // no room for more. Smaller batches use mma in any case.
    for (const uint32_t count : {100u, check_data::query_count}) check_batch(count);
    device.tuning.wgmma_group_max = 64;
    check_batch(100);
  }
  device.kind = wanted;
  device.tuning = usual;
  sagitta_device_block_destroy(resident);
  return all;
}

}  // namespace

void prepare_kernels(sagitta_device& device, bool may_wgmma) {
  check(prepare_scans(device.properties.sharedMemPerBlockOptin, may_wgmma), "scan kernels");
  check(prepare_rescoring(), "rescoring kernels");
  check(preload_encoding(), "encoding kernel");
  check(preload_pruning(), "pruning kernel");
  check(preload_selection(), "selection kernels");
  const check_data data;
  device.has_wgmma = may_wgmma && device.kind != scan_kind::mma;
  // As searches will use it: wgmma for large batches, in groups of 64, 128 and 256.
  if (device.has_wgmma && !is_right(device, scan_kind::best, data)) {
    if (device.kind == scan_kind::wgmma) {
      throw failure{SAGITTA_UNSUPPORTED_TARGET, "the wgmma kernels of this device do not give the answers of the CPU"};
    }
    device.has_wgmma = false;
  }
  if (!is_right(device, scan_kind::mma, data)) {
    throw failure{SAGITTA_UNSUPPORTED_TARGET, "the kernels of this device do not give the answers of the CPU"};
  }
}

}  // namespace sagitta::cuda
