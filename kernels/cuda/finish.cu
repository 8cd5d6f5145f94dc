// The host's part of a search, in the process that holds the ids.

#include <algorithm>
#include <cmath>

#include "../search/canonical.h"
#include "../search/top_rows.h"
#include "../target.h"
#include "found.h"
#include "resources.h"

namespace sagitta::cuda {
namespace {

/** Turns the rows that the device has found for a query into its hits; ids break ties between scores. */
class hit_builder {
 public:
  explicit hit_builder(const sagitta_batch& batch)
      : batch_(batch), order_{batch.blocks, batch.views}, view_of_(batch.block_count, batch.view_count) {}

  /** Returns the hits, best first, valid until the next call. */
  const std::vector<scored_row>& build(const sagitta_query& query, const row_found* found,
                                       uint32_t count) {
    find_views(query);
    rows_.clear();
    for (uint32_t i = 0; i < count; i++) add(query, found[i]);
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
  /** Neighbouring queries often have the same views. */
  void find_views(const sagitta_query& query) {
    if (query.first_view == first_view_ && query.view_count == view_count_) return;
    first_view_ = query.first_view;
    view_count_ = query.view_count;
    std::fill(view_of_.begin(), view_of_.end(), batch_.view_count);
    for (uint32_t view = first_view_; view < first_view_ + view_count_; view++) {
      view_of_[batch_.views[view].block] = view;
    }
  }

  void add(const sagitta_query& query, const row_found& found) {
    const uint32_t view = found.block < batch_.block_count ? view_of_[found.block] : batch_.view_count;
    if (view == batch_.view_count || found.row >= batch_.views[view].row_count) {
      throw failure{SAGITTA_DEVICE_LOST, "the device found a row that is not searched"};
    }
    scored_row scored{found.score, view, found.row};
    if (std::isnan(found.score)) scored.score = score(query, found.block, found.row);
    if (scored.score < query.floor) return;
    if (query.after_id != nullptr &&
        !order_.is_after(scored, query.after_score, query.after_id, query.after_id_bytes)) {
      return;
    }
    rows_.push_back(scored);
  }

  /** Computes the canonical score of a row whose values only the host has. */
  double score(const sagitta_query& query, uint32_t block, uint32_t row) {
    double product = 0;
    if (widened_of_ != query.vector) {
      widened_.assign(query.vector, query.vector + batch_.dimension);
      widened_of_ = query.vector;
      selected_target().products(widened_.data(), batch_.dimension, &query.vector, 1, &product,
                                 &query_square_);
    }
    if (batch_.blocks[block].values == nullptr) {
      throw failure{SAGITTA_DEVICE_LOST, "the device found a row without a score"};
    }
    const float* const values = batch_.blocks[block].values + size_t{row} * batch_.dimension;
    double square = 0;
    selected_target().products(widened_.data(), batch_.dimension, &values, 1, &product, &square);
    return canonical_score(query.metric, product, query_square_, square);
  }

  const sagitta_batch& batch_;
  row_order order_;
  /** The current query's view of each block; the number of views for blocks that it does not search. */
  std::vector<uint32_t> view_of_;
  uint32_t first_view_ = 0;
  uint32_t view_count_ = 0;
  std::vector<scored_row> rows_;
  std::vector<double> widened_;
  const float* widened_of_ = nullptr;
  double query_square_ = 0;
};

}  // namespace

std::unique_ptr<sagitta_device_answer> finish(const sagitta_batch& batch,
                                              const batch_found& found) {
  auto answer = std::make_unique<sagitta_device_answer>();
  hit_builder builder(batch);
  size_t at = 0;
  answer->offsets.push_back(0);
  for (uint32_t q = 0; q < batch.query_count; q++) {
    const query_found& query = found.queries[q];
    const auto& rows = builder.build(batch.queries[q], found.rows.data() + at, query.row_count);
    at += query.row_count;
    for (const scored_row& row : rows) {
      answer->views.push_back(row.view - batch.queries[q].first_view);
      answer->rows.push_back(row.row);
      answer->scores.push_back(row.score);
    }
    answer->offsets.push_back(static_cast<uint32_t>(answer->rows.size()));
    answer->scanned_counts.push_back(query.scanned_count);
    answer->rescored_counts.push_back(query.rescored_count);
    answer->is_decided.push_back(query.is_decided != 0 ? 1 : 0);
  }
  answer->times = found.times;
  return answer;
}

}  // namespace sagitta::cuda
