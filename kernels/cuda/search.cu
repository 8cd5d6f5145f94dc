#include "search.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "../search/valid.h"
#include "call.h"
#include "slice_search.h"

namespace sagitta::cuda {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/** The rows found for one query before all slices have run. */
struct pending_rows {
  std::vector<row_found> rows;
  uint64_t rescored_count = 0;
  bool is_decided = false;
};

/** Returns the rows of a query of the slice; the device numbers the rows of all blocks together. */
std::vector<row_found> rows_of(const batch_plan& plan, const slice_search& search, uint32_t index) {
  const auto block_count = static_cast<uint32_t>(plan.blocks().size());
  std::vector<row_found> rows;
  rows.reserve(search.outcome(index).found_count);
  for (uint32_t i = 0; i < search.outcome(index).found_count; i++) {
    const found_row& found = search.found(index)[size_t{i} * search.found_stride()];
    const uint32_t block = block_of(plan.blocks().data(), block_count, found.batch_row / tile_rows);
    rows.push_back({found.score, block,
                    found.batch_row - plan.blocks()[block].first_tile * tile_rows});
  }
  return rows;
}

batch_found assemble(const batch_plan& plan, const std::vector<pending_rows>& pending) {
  batch_found found;
  for (size_t q = 0; q < pending.size(); q++) {
    const pending_rows& query = pending[q];
    found.queries.push_back({plan.queries()[q].passing, query.rescored_count,
                             static_cast<uint32_t>(query.rows.size()), query.is_decided ? 1u : 0u});
    found.rows.insert(found.rows.end(), query.rows.begin(), query.rows.end());
  }
  return found;
}

/**
 * Makes the search stream wait for uploads of the blocks that are in progress. It waits only for the last
 * one, since uploads run one after another, and only once, since searches do, too.
 */
void wait_for_uploads(sagitta_device& device, const sagitta_batch& batch,
                      sagitta_device_block* const* residents) {
  uint64_t last = 0;
  for (uint32_t b = 0; b < batch.block_count; b++) last = std::max(last, residents[b]->last_upload);
  // An upload has ended before another one uses its buffer.
  const bool is_over = last + 2 <= device.upload_count;
  if (last <= device.awaited_uploads || is_over) return;
  check(cudaStreamWaitEvent(device.searching, device.staged[(last - 1) % 2], 0), "waiting for rows");
  device.awaited_uploads = last;
}

/** Whether the host has the values that it needs to score rows whose values are not on the device. */
bool has_values(const sagitta_batch& batch, sagitta_device_block* const* residents) {
  for (uint32_t p = 0; p < batch.view_count; p++) {
    const sagitta_block_view& view = batch.views[p];
    if (view.row_count == 0 || residents[view.block]->has_values) continue;
    if (batch.blocks[view.block].values == nullptr) return false;
  }
  return true;
}

}  // namespace

class running_search {
 public:
  running_search(sagitta_device& device, search_slot& slot, const sagitta_batch& batch,
                 sagitta_device_block* const* residents)
      : device_(device),
        slot_(slot),
        batch_(batch),
        residents_(residents, residents + batch.block_count),
        plan_(device, batch_, residents_.data()),
        pending_(batch.query_count),
        thresholds_(batch.query_count, -unbounded) {
    wait_for_uploads(device, batch_, residents_.data());
    for (uint32_t q = 0; q < batch_.query_count; q++) {
      pending_[q].is_decided = plan_.queries()[q].passing == 0;
    }
    if (!plan_.slices().empty()) launch(plan_.slices().front());
  }
  running_search(const running_search&) = delete;

  batch_found finish() {
    const std::vector<slice>& slices = plan_.slices();
    for (size_t i = 0; i < slices.size(); i++) {
      if (i > 0) launch(slices[i]);
      collect(slices[i]);
    }
    // A list that was too short has still raised its query's threshold, so the next scan leaves fewer rows.
    for (uint32_t repeat = 0, factor = 1; repeat < device_.tuning.repeats_max; repeat++) {
      factor *= device_.tuning.repeat_growth;
      for (const slice& one : plan_.repeated_slices(undecided(), thresholds_, factor)) {
        times_.repeated_queries += one.queries.size();
        launch(one);
        collect(one);
      }
    }
    batch_found found = assemble(plan_, pending_);
    add_time_since(times_.finish_ms);
    times_.unpinned_bytes = device_.unpinned_bytes();
    found.times = times_;
    return found;
  }

 private:
  /** The slice must live until it has been collected. */
  void launch(const slice& one) {
    current_ = std::make_unique<slice_search>(device_, slot_, batch_, plan_, one);
    current_->prepare();
    add_time_since(times_.prepare_ms);
    try {
      current_->launch();
    } catch (...) {
      drain();
      throw;
    }
  }

  void collect(const slice& one) {
    try {
      current_->wait(times_);
    } catch (...) {
      drain();
      throw;
    }
    device_.report_progress();
    started_ = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < one.queries.size(); i++) take_outcome(one, i);
    current_.reset();
    add_time_since(times_.finish_ms);
  }

  void take_outcome(const slice& one, uint32_t index) {
    const planned_query& planned = one.queries[index];
    const query_outcome& outcome = current_->outcome(index);
    const bool is_scanned = one.is_gathered[index] == 0 && planned.is_scannable;
    if (is_scanned) {
      double& threshold = thresholds_[planned.number];
      threshold = std::max(threshold, outcome.threshold);
    }
    if (is_scanned && one.sieve.is_used()) {
      if (outcome.is_sieved == 0) times_.abandoned_queries++;
      else (one.sieve.basis == no_basis ? times_.coarse_queries : times_.head_queries)++;
    }
    const bool is_searched = one.is_gathered[index] != 0 || planned.is_scannable;
    if (outcome.is_undecided != 0 || !is_searched) return;
    pending_rows& hits = pending_[planned.number];
    hits.rows = rows_of(plan_, *current_, index);
    hits.rescored_count = outcome.rescored_count;
    hits.is_decided = true;
  }

  std::vector<uint32_t> undecided() const {
    std::vector<uint32_t> numbers;
    for (uint32_t q = 0; q < batch_.query_count; q++) {
      if (!pending_[q].is_decided) numbers.push_back(q);
    }
    return numbers;
  }

  /** After a failure midway, copies and kernels that were already launched may still use the buffers of the slot. */
  void drain() const {
    (void)cudaStreamSynchronize(device_.searching);
    (void)cudaGetLastError();
  }

  void add_time_since(double& milliseconds) {
    milliseconds += milliseconds_since(started_);
    started_ = std::chrono::steady_clock::now();
  }

  /** The beginning of what the host does next. */
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  sagitta_device& device_;
  search_slot& slot_;
  const sagitta_batch batch_;
  const std::vector<sagitta_device_block*> residents_;
  const batch_plan plan_;
  std::vector<pending_rows> pending_;
  /** Scores that k rows are known to reach. */
  std::vector<double> thresholds_;
  sagitta_device_times times_{};
  std::unique_ptr<slice_search> current_;
};

void begin_search(sagitta_device& device, const sagitta_batch& batch, sagitta_device_block* const* residents) {
  if (device.searches.size() >= SAGITTA_DEVICE_SEARCHES_MAX) {
    throw failure{SAGITTA_INVALID_ARGUMENT, "too many searches have begun"};
  }
  search_slot& slot = device.slots[device.search_count % SAGITTA_DEVICE_SEARCHES_MAX];
  device.searches.push_back(std::make_shared<running_search>(device, slot, batch, residents));
  device.search_count++;
}

batch_found end_search(sagitta_device& device) {
  if (device.searches.empty()) throw failure{SAGITTA_INVALID_ARGUMENT, "no search has begun"};
  const std::shared_ptr<running_search> first = device.searches.front();
  device.searches.pop_front();
  return first->finish();
}

bool has_rows(const sagitta_device& device, const sagitta_batch& batch,
              sagitta_device_block* const* residents) {
  std::vector<uint32_t> wanted(batch.block_count);
  for (uint32_t p = 0; p < batch.view_count; p++) {
    const sagitta_block_view& view = batch.views[p];
    wanted[view.block] = std::max(wanted[view.block], view.row_count);
  }
  for (uint32_t b = 0; b < batch.block_count; b++) {
    const sagitta_device_block* const block = residents[b];
    if (block == nullptr || block->device != &device) return false;
    if (block->dimension != batch.dimension || block->row_count < wanted[b]) return false;
  }
  return true;
}

}  // namespace sagitta::cuda

using namespace sagitta;
using namespace sagitta::cuda;

extern "C" {

sagitta_status sagitta_device_search_begin(sagitta_device* device, const sagitta_batch* batch,
                                           sagitta_device_block* const* residents) {
  return guarded_on(*device, [&] {
    if (!is_valid(*batch) || !has_rows(*device, *batch, residents) || !has_values(*batch, residents)) {
      return SAGITTA_INVALID_ARGUMENT;
    }
    begin_search(*device, *batch, residents);
    return SAGITTA_OK;
  });
}

sagitta_status sagitta_device_search_end(sagitta_device* device, const sagitta_batch* batch,
                                         sagitta_device_answer** answer) {
  return guarded_on(*device, [&] {
    *answer = finish(*batch, end_search(*device)).release();
    return SAGITTA_OK;
  });
}

sagitta_status sagitta_device_search(sagitta_device* device, const sagitta_batch* batch,
                                     sagitta_device_block* const* residents,
                                     sagitta_device_answer** answer) {
  if (!device->searches.empty()) return SAGITTA_INVALID_ARGUMENT;
  const sagitta_status status = sagitta_device_search_begin(device, batch, residents);
  return status == SAGITTA_OK ? sagitta_device_search_end(device, batch, answer) : status;
}

sagitta_status sagitta_device_answer_hits(const sagitta_device_answer* answer, uint32_t query,
                                          sagitta_hits* hits) {
  if (query >= answer->is_decided.size()) return SAGITTA_INVALID_ARGUMENT;
  if (answer->is_decided[query] == 0) return SAGITTA_NOT_DONE;
  const uint32_t from = answer->offsets[query];
  *hits = {answer->views.data() + from,   answer->rows.data() + from,
           answer->scores.data() + from,  answer->offsets[query + 1] - from,
           answer->scanned_counts[query], answer->rescored_counts[query]};
  return SAGITTA_OK;
}

sagitta_status sagitta_device_answer_times(const sagitta_device_answer* answer,
                                           sagitta_device_times* times) {
  *times = answer->times;
  return SAGITTA_OK;
}

void sagitta_device_answer_destroy(sagitta_device_answer* answer) { delete answer; }

}  // extern "C"
