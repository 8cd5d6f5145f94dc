#include "search.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "../search/canonical.h"
#include "../search/top_rows.h"
#include "../search/valid.h"
#include "../target.h"
#include "call.h"
#include "slice_search.h"

namespace sagitta::cuda {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/** Turns the rows that the device has found for a query into its hits; ids break ties of scores. */
class hit_builder {
 public:
  hit_builder(const sagitta_batch& batch, const batch_plan& plan)
      : batch_(batch), plan_(plan), order_{batch.blocks, batch.views}, view_of_(batch.block_count) {}

  /** Hits, best first, valid until the next call. Rows found are `stride` entries apart. */
  const std::vector<scored_row>& build(const planned_query& planned, const found_row* found,
                                        uint32_t stride, uint32_t count) {
    const sagitta_query& query = batch_.queries[planned.number];
    for (uint32_t view = query.first_view; view < query.first_view + query.view_count; view++) {
      view_of_[batch_.views[view].block] = view;
    }
    rows_.clear();
    for (uint32_t i = 0; i < count; i++) add(query, planned, found[size_t{i} * stride]);
    const auto is_better = [&](const scored_row& left, const scored_row& right) {
      return order_.is_worse(right, left);
    };
    if (!std::is_sorted(rows_.begin(), rows_.end(), is_better)) {
      std::sort(rows_.begin(), rows_.end(), is_better);
    }
    if (rows_.size() > query.k) rows_.resize(query.k);
    return rows_;
  }

 private:
  void add(const sagitta_query& query, const planned_query& planned, const found_row& found) {
    const uint32_t tile = found.batch_row / tile_rows;
    const auto block_count = static_cast<uint32_t>(plan_.blocks().size());
    const uint32_t block = block_of(plan_.blocks().data(), block_count, tile);
    const uint32_t row = found.batch_row - plan_.blocks()[block].first_tile * tile_rows;
    scored_row scored{found.score, view_of_[block], row};
    if (std::isnan(found.score)) scored.score = score(query, planned, block, row);
    if (scored.score < query.floor) return;
    if (query.after_id != nullptr &&
        !order_.is_after(scored, query.after_score, query.after_id, query.after_id_bytes)) {
      return;
    }
    rows_.push_back(scored);
  }

  /** The canonical score of a row whose values only the host has. */
  double score(const sagitta_query& query, const planned_query& planned, uint32_t block,
               uint32_t row) {
    if (widened_of_ != query.vector) {
      widened_.assign(query.vector, query.vector + batch_.dimension);
      widened_of_ = query.vector;
    }
    const float* const values = batch_.blocks[block].values + size_t{row} * batch_.dimension;
    double product = 0;
    double square = 0;
    selected_target().products(widened_.data(), batch_.dimension, &values, 1, &product, &square);
    return canonical_score(query.metric, product, planned.square, square);
  }

  const sagitta_batch& batch_;
  const batch_plan& plan_;
  row_order order_;
  /** The current query's view of each block it searches. */
  std::vector<uint32_t> view_of_;
  std::vector<scored_row> rows_;
  std::vector<double> widened_;
  const float* widened_of_ = nullptr;
};

/** The hits of one query until those of all are known. */
struct pending_hits {
  std::vector<scored_row> rows;
  uint64_t rescored_count = 0;
  bool is_decided = false;
};

std::unique_ptr<sagitta_device_answer> assemble(const sagitta_batch& batch, const batch_plan& plan,
                                                const std::vector<pending_hits>& pending) {
  auto answer = std::make_unique<sagitta_device_answer>();
  answer->offsets.push_back(0);
  for (uint32_t q = 0; q < batch.query_count; q++) {
    for (const scored_row& row : pending[q].rows) {
      answer->views.push_back(row.view - batch.queries[q].first_view);
      answer->rows.push_back(row.row);
      answer->scores.push_back(row.score);
    }
    answer->offsets.push_back(static_cast<uint32_t>(answer->rows.size()));
    answer->scanned_counts.push_back(plan.queries()[q].passing);
    answer->rescored_counts.push_back(pending[q].rescored_count);
    answer->is_decided.push_back(pending[q].is_decided ? 1 : 0);
  }
  return answer;
}

/** Makes the search stream wait for uploads under way. */
void wait_for_uploads(sagitta_device& device, const sagitta_batch& batch,
                      sagitta_device_block* const* residents) {
  for (uint32_t b = 0; b < batch.block_count; b++) {
    check(cudaStreamWaitEvent(device.searching, residents[b]->uploaded, 0), "waiting for rows");
  }
}

/**
 * Runs a slice. After a failure midway, copies and kernels that were already launched may still use the
 * buffers that the next batch writes: waits for them first.
 */
void run_or_drain(slice_search& search, const sagitta_device& device, sagitta_device_times& times) {
  try {
    search.run(times);
  } catch (...) {
    (void)cudaStreamSynchronize(device.searching);
    (void)cudaGetLastError();
    throw;
  }
}

bool fits(const sagitta_device& device, const sagitta_batch& batch,
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
    if (!block->has_values && wanted[b] > 0 && batch.blocks[b].values == nullptr) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<sagitta_device_answer> search_batch(sagitta_device& device,
                                                    const sagitta_batch& batch,
                                                    sagitta_device_block* const* residents) {
  auto started = std::chrono::steady_clock::now();
  sagitta_device_times times{};
  const batch_plan plan(device, batch, residents);
  wait_for_uploads(device, batch, residents);
  std::vector<pending_hits> pending(batch.query_count);
  for (uint32_t q = 0; q < batch.query_count; q++) {
    pending[q].is_decided = plan.queries()[q].passing == 0;
  }
  hit_builder builder(batch, plan);
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
      if (outcome.is_undecided != 0 || !is_searched) continue;
      pending_hits& hits = pending[planned.number];
      hits.rows =
          builder.build(planned, search.found(i), search.found_stride(), outcome.found_count);
      hits.rescored_count = one.is_exhaustive ? planned.passing : outcome.rescored_count;
      hits.is_decided = true;
    }
    times.finish_ms += milliseconds_since(started);
    started = std::chrono::steady_clock::now();
  };
  for (const slice& one : plan.slices()) run(one);
  std::vector<uint32_t> undecided;
  for (uint32_t q = 0; q < batch.query_count; q++) {
    if (!pending[q].is_decided) undecided.push_back(q);
  }
  for (const slice& one : plan.exhaustive_slices(undecided)) run(one);
  auto answer = assemble(batch, plan, pending);
  times.finish_ms += milliseconds_since(started);
  answer->times = times;
  return answer;
}

}  // namespace sagitta::cuda

using namespace sagitta;
using namespace sagitta::cuda;

extern "C" {

sagitta_status sagitta_device_search(sagitta_device* device, const sagitta_batch* batch,
                                     sagitta_device_block* const* residents,
                                     sagitta_device_answer** answer) {
  return guarded_on(*device, [&] {
    if (!is_valid(*batch) || !fits(*device, *batch, residents)) return SAGITTA_INVALID_ARGUMENT;
    *answer = search_batch(*device, *batch, residents).release();
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
