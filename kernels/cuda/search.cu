#include "search.h"

#include <algorithm>
#include <chrono>

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

/**
 * Runs a slice. After a failure midway, copies and kernels that were already launched may still use the
 * buffers that the next batch writes, so it waits for them first.
 */
void run_or_drain(slice_search& search, const sagitta_device& device, sagitta_device_times& times) {
  try {
    search.run(times);
  } catch (...) {
    (void)cudaStreamSynchronize(device.searching);
    (void)cudaGetLastError();
    throw;
  }
  device.report_progress();
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

batch_found find_rows(sagitta_device& device, const sagitta_batch& batch,
                      sagitta_device_block* const* residents) {
  auto started = std::chrono::steady_clock::now();
  sagitta_device_times times{};
  const batch_plan plan(device, batch, residents);
  wait_for_uploads(device, batch, residents);
  std::vector<pending_rows> pending(batch.query_count);
  std::vector<double> thresholds(batch.query_count, -unbounded);
  for (uint32_t q = 0; q < batch.query_count; q++) {
    pending[q].is_decided = plan.queries()[q].passing == 0;
  }
  const auto run = [&](const slice& one) {
    slice_search search(device, batch, plan, one);
    search.prepare();
    times.prepare_ms += milliseconds_since(started);
    run_or_drain(search, device, times);
    started = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < one.queries.size(); i++) {
      const planned_query& planned = one.queries[i];
      const query_outcome& outcome = search.outcome(i);
      const bool is_searched = one.is_gathered[i] != 0 || planned.is_scannable;
      if (is_searched && one.is_gathered[i] == 0) {
        double& threshold = thresholds[planned.number];
        threshold = std::max(threshold, outcome.threshold);
      }
      if (one.sieve.is_used() && one.is_gathered[i] == 0 && planned.is_scannable) {
        if (outcome.is_sieved == 0) times.abandoned_queries++;
        else (one.sieve.basis == no_basis ? times.coarse_queries : times.head_queries)++;
      }
      if (outcome.is_undecided != 0 || !is_searched) continue;
      pending_rows& hits = pending[planned.number];
      hits.rows = rows_of(plan, search, i);
      hits.rescored_count = outcome.rescored_count;
      hits.is_decided = true;
    }
    times.finish_ms += milliseconds_since(started);
    started = std::chrono::steady_clock::now();
  };
  for (const slice& one : plan.slices()) run(one);
  const auto undecided = [&] {
    std::vector<uint32_t> numbers;
    for (uint32_t q = 0; q < batch.query_count; q++) {
      if (!pending[q].is_decided) numbers.push_back(q);
    }
    return numbers;
  };
  // A list that was too short has still raised its query's threshold, so the next scan leaves fewer rows.
  for (uint32_t repeat = 0, factor = 1; repeat < device.tuning.repeats_max; repeat++) {
    factor *= device.tuning.repeat_growth;
    for (const slice& one : plan.repeated_slices(undecided(), thresholds, factor)) {
      times.repeated_queries += one.queries.size();
      run(one);
    }
  }
  batch_found found = assemble(plan, pending);
  times.finish_ms += milliseconds_since(started);
  times.unpinned_bytes = device.unpinned_bytes();
  found.times = times;
  return found;
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

sagitta_status sagitta_device_search(sagitta_device* device, const sagitta_batch* batch,
                                     sagitta_device_block* const* residents,
                                     sagitta_device_answer** answer) {
  return guarded_on(*device, [&] {
    if (!is_valid(*batch) || !has_rows(*device, *batch, residents) ||
        !has_values(*batch, residents)) {
      return SAGITTA_INVALID_ARGUMENT;
    }
    *answer = finish(*batch, find_rows(*device, *batch, residents)).release();
    return SAGITTA_OK;
  });
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
