// The C interface: checks arguments and turns exceptions into statuses.

#include "kernels.h"

#include <memory>
#include <new>

#include "layout.h"
#include "search/basis.h"
#include "search/count_before.h"
#include "search/learn_basis.h"
#include "search/rotation.h"
#include "search/row_scores.h"
#include "search/search.h"
#include "search/valid.h"
#include "target.h"

using namespace sagitta;

/** One of the two members is null. */
struct sagitta_search {
  std::unique_ptr<search> top;
  std::unique_ptr<count_before> count;

  shared_work& work() const { return top == nullptr ? static_cast<shared_work&>(*count) : *top; }
};

size_t sagitta_codes_bytes(uint32_t row_count, uint32_t dimension) {
  return panel_count(row_count) * panel_bytes(dimension);
}

sagitta_status sagitta_encode(const float* values, uint32_t dimension, uint32_t from, uint32_t to,
                              uint8_t* codes) {
  if (!is_dimension(dimension) || from > to) return SAGITTA_INVALID_ARGUMENT;
  if (from < to && (values == nullptr || codes == nullptr)) return SAGITTA_INVALID_ARGUMENT;
  selected_target().encode(values, dimension, from, to, codes);
  return SAGITTA_OK;
}

size_t sagitta_coarse_bytes(uint32_t row_count, uint32_t dimension) {
  if (!has_coarse_codes(dimension)) return 0;
  return panel_count(row_count) * coarse_panel_bytes(dimension) + coarse_padding;
}

size_t sagitta_refinement_bytes(uint32_t row_count, uint32_t dimension) {
  if (!has_coarse_codes(dimension)) return 0;
  return panel_count(row_count) * refinement_panel_bytes(dimension) + coarse_padding;
}

sagitta_status sagitta_encode_coarse(const float* values, uint32_t dimension, uint32_t from,
                                     uint32_t to, uint8_t* coarse, uint8_t* refinement) {
  if (!is_dimension(dimension) || !has_coarse_codes(dimension) || from > to) {
    return SAGITTA_INVALID_ARGUMENT;
  }
  if (from < to && (values == nullptr || coarse == nullptr || refinement == nullptr)) {
    return SAGITTA_INVALID_ARGUMENT;
  }
  try {
    const rotation rotation = create_rotation(dimension);
    selected_target().encode_coarse(rotation, values, from, to, coarse, refinement);
    return SAGITTA_OK;
  } catch (const std::bad_alloc&) {
    return SAGITTA_OUT_OF_MEMORY;
  }
}

size_t sagitta_basis_bytes(uint32_t dimension) {
  return has_basis(dimension) ? basis_bytes(dimension) : 0;
}

sagitta_status sagitta_learn_basis(const float* values, uint32_t row_count, uint32_t dimension,
                                   const uint8_t* previous, size_t previous_bytes, uint8_t* basis,
                                   size_t* byte_count) {
  if (!has_basis(dimension) || basis == nullptr || byte_count == nullptr) {
    return SAGITTA_INVALID_ARGUMENT;
  }
  if (row_count > 0 && values == nullptr) return SAGITTA_INVALID_ARGUMENT;
  try {
    *byte_count = learn_basis(selected_target(), {values, row_count, dimension},
                              {previous, previous_bytes}, basis);
    return SAGITTA_OK;
  } catch (const std::bad_alloc&) {
    return SAGITTA_OUT_OF_MEMORY;
  }
}

int sagitta_is_basis(const uint8_t* bytes, size_t byte_count, uint32_t dimension) {
  basis opened;
  return open_basis(bytes, byte_count, dimension, opened) && has_true_digest(bytes, byte_count);
}

size_t sagitta_head_bytes(uint32_t row_count, uint32_t dimension) {
  return has_basis(dimension) ? panel_count(row_count) * head_panel_bytes(dimension) : 0;
}

sagitta_status sagitta_encode_head(const float* values, uint32_t dimension, uint32_t from, uint32_t to,
                                   const uint8_t* basis_of_rows, size_t basis_bytes, uint8_t* head,
                                   size_t head_bytes) {
  basis opened;
  if (from > to || !open_basis(basis_of_rows, basis_bytes, dimension, opened)) {
    return SAGITTA_INVALID_ARGUMENT;
  }
  if (head_bytes < sagitta_head_bytes(to, dimension)) return SAGITTA_INVALID_ARGUMENT;
  if (from < to && (values == nullptr || head == nullptr)) return SAGITTA_INVALID_ARGUMENT;
  try {
    selected_target().encode_head(opened, values, from, to, head_arrays_of(head, head_bytes));
    return SAGITTA_OK;
  } catch (const std::bad_alloc&) {
    return SAGITTA_OUT_OF_MEMORY;
  }
}

sagitta_status sagitta_score_rows(const sagitta_scoring* scoring, double* scores) {
  if (scoring == nullptr || !is_valid(*scoring)) return SAGITTA_INVALID_ARGUMENT;
  if (scoring->row_count == 0 || scoring->vector_count == 0) return SAGITTA_OK;
  if (scores == nullptr) return SAGITTA_INVALID_ARGUMENT;
  try {
    score_rows(selected_target(), *scoring, scores);
    return SAGITTA_OK;
  } catch (const std::bad_alloc&) {
    return SAGITTA_OUT_OF_MEMORY;
  }
}

sagitta_status sagitta_multiply(const sagitta_factors* factors, float* products) {
  if (factors == nullptr) return SAGITTA_INVALID_ARGUMENT;
  const auto& [left, right, count, rows, inner, columns, is_right_transposed] = *factors;
  const size_t product_values = size_t{rows} * columns;
  if (count == 0 || product_values == 0) return SAGITTA_OK;
  if (products == nullptr || (inner > 0 && (left == nullptr || right == nullptr))) return SAGITTA_INVALID_ARGUMENT;
  // The rows of the projecting matrix are the columns of the right factor.
  const size_t row_stride = is_right_transposed != 0 ? inner : 1;
  const size_t stride = is_right_transposed != 0 ? 1 : columns;
  try {
    for (size_t i = 0; i < count; i++) {
      selected_target().project({left + i * rows * inner, inner}, rows,
                                {right + i * inner * columns, row_stride, stride}, columns, inner,
                                products + i * product_values, columns);
    }
    return SAGITTA_OK;
  } catch (const std::bad_alloc&) {
    return SAGITTA_OUT_OF_MEMORY;
  }
}

sagitta_status sagitta_search_create(const sagitta_batch* batch, sagitta_search** created) {
  if (batch == nullptr || created == nullptr) return SAGITTA_INVALID_ARGUMENT;
  if (batch->worker_count == 0 || !is_valid(*batch)) return SAGITTA_INVALID_ARGUMENT;
  try {
    *created = new sagitta_search{std::make_unique<search>(*batch), nullptr};
    return SAGITTA_OK;
  } catch (const std::bad_alloc&) {
    return SAGITTA_OUT_OF_MEMORY;
  }
}

sagitta_status sagitta_search_create_count(const sagitta_batch* batch,
                                           const sagitta_rank_key* rank_keys,
                                           uint32_t rank_key_count, sagitta_search** created) {
  if (batch == nullptr || created == nullptr) return SAGITTA_INVALID_ARGUMENT;
  if (batch->worker_count == 0 || !is_valid(*batch)) return SAGITTA_INVALID_ARGUMENT;
  if (batch->query_count != 1 || !are_valid(rank_keys, rank_key_count)) {
    return SAGITTA_INVALID_ARGUMENT;
  }
  try {
    *created = new sagitta_search{
        nullptr, std::make_unique<count_before>(*batch, rank_keys, rank_key_count)};
    return SAGITTA_OK;
  } catch (const std::bad_alloc&) {
    return SAGITTA_OUT_OF_MEMORY;
  }
}

double sagitta_search_cost(const sagitta_search* search) { return search->work().cost(); }

sagitta_status sagitta_search_work(sagitta_search* search, int* is_done) {
  *is_done = search->work().work() ? 1 : 0;
  return search->work().status();
}

void sagitta_search_cancel(sagitta_search* search) { search->work().cancel(); }

int sagitta_search_is_done(const sagitta_search* search) {
  return search->work().is_done() || search->work().status() != SAGITTA_OK ? 1 : 0;
}

sagitta_status sagitta_search_hits(const sagitta_search* search, uint32_t query,
                                   sagitta_hits* hits) {
  if (search->top == nullptr || query >= search->top->query_count()) return SAGITTA_INVALID_ARGUMENT;
  if (search->top->status() != SAGITTA_OK) return search->top->status();
  if (!search->top->is_done()) return SAGITTA_NOT_DONE;
  *hits = search->top->hits(query);
  return SAGITTA_OK;
}

sagitta_status sagitta_search_counts(const sagitta_search* search, const uint64_t** counts,
                                     uint32_t* count) {
  if (search->count == nullptr) return SAGITTA_INVALID_ARGUMENT;
  if (search->count->status() != SAGITTA_OK) return search->count->status();
  if (!search->count->is_done()) return SAGITTA_NOT_DONE;
  *counts = search->count->counts().data();
  *count = static_cast<uint32_t>(search->count->counts().size());
  return SAGITTA_OK;
}

void sagitta_search_destroy(sagitta_search* search) { delete search; }
