#include "valid.h"

#include <cmath>
#include <cstring>

#include "basis.h"

namespace sagitta {

namespace {

/** Callers may pass any number, which must not be read as an enumerator before it is known to be one. */
bool is_metric(const sagitta_metric& metric) {
  int value = 0;
  static_assert(sizeof value == sizeof metric);
  std::memcpy(&value, &metric, sizeof value);
  return value >= SAGITTA_COSINE && value <= SAGITTA_JACCARD;
}

}  // namespace

bool is_dimension(uint32_t dimension) {
  return dimension >= 1 && dimension <= SAGITTA_DIMENSION_MAX;
}

bool is_valid(const sagitta_scoring& scoring) {
  if (!is_dimension(scoring.dimension)) return false;
  if (!is_metric(scoring.metric)) return false;
  if (scoring.vector_count > 0 && scoring.vectors == nullptr) return false;
  return scoring.row_count == 0 || (scoring.values != nullptr && scoring.rows != nullptr);
}

bool is_valid(const sagitta_batch& batch) {
  if (!is_dimension(batch.dimension)) return false;
  if (batch.block_count > 0 && batch.blocks == nullptr) return false;
  if (batch.view_count > 0 && batch.views == nullptr) return false;
  if (batch.query_count > 0 && batch.queries == nullptr) return false;
  for (uint32_t p = 0; p < batch.view_count; p++) {
    const sagitta_block_view& view = batch.views[p];
    if (view.block >= batch.block_count) return false;
    if (view.row_count > batch.blocks[view.block].row_count) return false;
  }
  for (uint32_t b = 0; b < batch.block_count; b++) {
    const sagitta_block& block = batch.blocks[b];
    if (block.head == nullptr) continue;
    basis opened;
    if (block.coarse == nullptr || block.codes == nullptr) return false;
    if (!has_basis(batch.dimension)) return false;
    const size_t panels = panel_count(block.row_count);
    if (block.head_bytes < panels * head_panel_bytes(batch.dimension)) return false;
    if (!open_basis(block.basis, block.basis_bytes, batch.dimension, opened)) return false;
  }
  for (uint32_t q = 0; q < batch.query_count; q++) {
    const sagitta_query& query = batch.queries[q];
    if (query.vector == nullptr || query.k == 0) return false;
    if (query.view_count > batch.view_count) return false;
    if (query.first_view > batch.view_count - query.view_count) return false;
    if (!is_metric(query.metric)) return false;
    if (std::isnan(query.floor) || std::isnan(query.after_score)) return false;
  }
  return true;
}

bool are_valid(const sagitta_rank_key* rank_keys, uint32_t count) {
  if (count > 0 && rank_keys == nullptr) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (std::isnan(rank_keys[i].score)) return false;
    if (rank_keys[i].id == nullptr && rank_keys[i].id_bytes > 0) return false;
  }
  return true;
}

}  // namespace sagitta
