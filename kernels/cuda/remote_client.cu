// The service's end of a device in another process.

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "../layout.h"
#include "../search/valid.h"
#include "device_state.h"
#include "remote.h"

namespace sagitta::cuda {
namespace {

constexpr size_t alignment = 64;

size_t aligned(size_t byte_count) { return (byte_count + alignment - 1) / alignment * alignment; }

[[noreturn]] void reject() { throw failure{SAGITTA_INVALID_ARGUMENT, "an argument is out of range"}; }

/** Offsets of all parts of a batch; each bitmap is copied once. */
struct batch_layout {
  packed_batch head{};
  struct bitmap {
    uint64_t offset;
    size_t words;
  };
  std::unordered_map<const uint32_t*, bitmap> bitmaps;

  explicit batch_layout(const sagitta_batch& batch) {
    head.block_count = batch.block_count;
    head.view_count = batch.view_count;
    head.query_count = batch.query_count;
    head.dimension = batch.dimension;
    head.method = batch.method;
    size_t used = aligned(sizeof head);
    const auto take = [&](size_t byte_count) {
      const size_t from = used;
      used += aligned(byte_count);
      return from;
    };
    head.blocks = take(batch.block_count * sizeof(packed_block));
    head.views = take(batch.view_count * sizeof(packed_view));
    head.queries = take(batch.query_count * sizeof(packed_query));
    head.vectors = take(size_t{batch.query_count} * batch.dimension * sizeof(float));
    for (uint32_t v = 0; v < batch.view_count; v++) {
      const sagitta_block_view& view = batch.views[v];
      if (view.rows == nullptr) continue;
      bitmap& known = bitmaps[view.rows];
      known.words = std::max<size_t>(known.words, (size_t{view.row_count} + 31) / 32);
    }
    for (auto& [rows, known] : bitmaps) known.offset = take(known.words * sizeof(uint32_t));
    head.byte_count = used;
  }
};

void write_batch(const sagitta_batch& batch, const batch_layout& layout,
                 const remote_block* const* residents, uint8_t* to) {
  std::memcpy(to, &layout.head, sizeof layout.head);
  auto* const blocks = reinterpret_cast<packed_block*>(to + layout.head.blocks);
  for (uint32_t b = 0; b < batch.block_count; b++) {
    blocks[b] = {residents[b]->number, batch.blocks[b].row_count};
  }
  auto* const views = reinterpret_cast<packed_view*>(to + layout.head.views);
  for (uint32_t v = 0; v < batch.view_count; v++) {
    const sagitta_block_view& view = batch.views[v];
    const uint64_t bitmap = view.rows == nullptr ? 0 : layout.bitmaps.at(view.rows).offset;
    views[v] = {bitmap, view.block, view.row_count};
  }
  auto* const queries = reinterpret_cast<packed_query*>(to + layout.head.queries);
  auto* const vectors = reinterpret_cast<float*>(to + layout.head.vectors);
  for (uint32_t q = 0; q < batch.query_count; q++) {
    const sagitta_query& query = batch.queries[q];
    queries[q] = {query.floor,       query.after_score, query.after_id == nullptr ? 0u : 1u,
                  static_cast<uint32_t>(query.metric), query.k, query.first_view,
                  query.view_count, 0};
    std::copy_n(query.vector, batch.dimension, vectors + size_t{q} * batch.dimension);
  }
  for (const auto& [rows, known] : layout.bitmaps) {
    if (known.words > 0) std::memcpy(to + known.offset, rows, known.words * sizeof(uint32_t));
  }
}

batch_found read_found(const channel& from, uint32_t query_count) {
  const auto is_inside = [&](uint64_t offset, uint64_t byte_count) {
    return offset <= from.byte_count() && byte_count <= from.byte_count() - offset;
  };
  packed_found head{};
  std::memcpy(&head, from.data(), sizeof head);
  if (head.row_count > from.byte_count() ||
      !is_inside(head.queries, query_count * sizeof(query_found)) ||
      !is_inside(head.rows, head.row_count * sizeof(row_found))) {
    throw failure{SAGITTA_DEVICE_LOST, "the answer of the GPU is corrupt"};
  }
  batch_found found;
  found.queries.resize(query_count);
  found.rows.resize(head.row_count);
  found.times = head.times;
  std::memcpy(found.queries.data(), from.data() + head.queries, query_count * sizeof(query_found));
  std::memcpy(found.rows.data(), from.data() + head.rows, head.row_count * sizeof(row_found));
  uint64_t total = 0;
  for (const query_found& query : found.queries) total += query.row_count;
  if (total != head.row_count) {
    throw failure{SAGITTA_DEVICE_LOST, "the answer of the GPU is corrupt"};
  }
  return found;
}

}  // namespace

reply remote_device::call(request message, double milliseconds, const char* what) {
  channel_.send(message);
  reply answer{};
  channel_.receive(answer, milliseconds, what);
  answer.text[sizeof answer.text - 1] = 0;
  if (answer.status != SAGITTA_OK) {
    throw failure{static_cast<sagitta_status>(answer.status), answer.text};
  }
  return answer;
}

void remote_device::open(uint32_t index, const char* kernels) {
  request message{request_kind::open, {index, 0, 0}, 0, {}};
  if (kernels != nullptr) {
    if (*kernels == 0 || std::strlen(kernels) >= sizeof message.text) {
      throw failure{SAGITTA_UNSUPPORTED_TARGET, std::string("no device supports the kernels \"") + kernels + "\""};
    }
    std::strcpy(message.text, kernels);
  }
  call(message, deadlines_.open_ms, "being opened");
}

sagitta_device_facts remote_device::describe(std::string& kernels) {
  const reply answer = call({request_kind::describe, {}, 0, {}}, deadlines_.call_ms, "being described");
  kernels = answer.text;
  sagitta_device_facts facts{};
  std::memcpy(&facts, channel_.data(), sizeof facts);
  facts.name[sizeof facts.name - 1] = 0;
  facts.kernels = "";
  return facts;
}

remote_block remote_device::create_block(uint32_t dimension) {
  const reply answer =
      call({request_kind::create_block, {dimension, 0, 0}, 0, {}}, deadlines_.call_ms, "creating a block");
  return {answer.number, dimension};
}

void remote_device::reserve(remote_block& block, uint32_t row_capacity, bool has_values, bool has_head) {
  // Rows that are present may be moved.
  const double moved = static_cast<double>(block.row_count) * block.dimension * (1 + sizeof(float));
  const uint32_t parts = (has_values ? 1u : 0u) | (has_head ? 2u : 0u);
  call({request_kind::reserve, {block.number, row_capacity, parts}, 0, {}},
       deadlines_.call_ms + moved / deadlines_.bytes_per_ms, "allocating memory");
  block.row_capacity = row_capacity;
  block.has_values = has_values;
  block.has_head = has_values && has_head;
}

void remote_device::extend(remote_block& block, const sagitta_block& rows, uint32_t to) {
  const uint32_t dimension = block.dimension;
  if (to < block.row_count || to > block.row_capacity) reject();
  if (to == block.row_count) return;
  if (rows.values == nullptr && (block.has_values || rows.codes == nullptr)) reject();
  if (block.has_head && !has_head_of(rows, dimension, to)) reject();
  const uint32_t first_panel = block.row_count / panel_rows;
  const uint32_t first_row = first_panel * panel_rows;
  const size_t panels = panel_count(to) - first_panel;
  const packed_rows layout = lay_out_rows(block, to);
  channel_.require(layout.byte_count);
  const auto copy = [&](size_t offset, const void* from, size_t byte_count) {
    std::memcpy(channel_.data() + offset, from, byte_count);
  };
  // The rows of the first panel are sent again.
  const auto values_from = [&](uint32_t row) { return rows.values + size_t{row} * dimension; };
  if (rows.codes != nullptr) {
    const size_t stride = panel_bytes(dimension);
    copy(0, rows.codes + first_panel * stride, panels * stride);
  } else {
    sagitta_encode(values_from(first_row), dimension, 0, to - first_row, channel_.data());
  }
  if (has_coarse(dimension, block.has_values)) {
    const size_t stride = coarse_panel_bytes(dimension);
    if (rows.coarse != nullptr) {
      copy(layout.coarse, rows.coarse + first_panel * stride, panels * stride);
    } else {
      std::vector<uint8_t> refinement(sagitta_refinement_bytes(to - first_row, dimension));
      sagitta_encode_coarse(values_from(first_row), dimension, 0, to - first_row,
                            channel_.data() + layout.coarse, refinement.data());
    }
  }
  if (block.has_values) {
    copy(layout.values, values_from(block.row_count),
         size_t{to - block.row_count} * dimension * sizeof(float));
  }
  if (block.has_head) {
    join_head_panels(rows.head, rows.head_bytes, dimension, first_panel, static_cast<uint32_t>(panels),
                     channel_.data() + layout.head);
    if (block.row_count == 0) copy(layout.basis, rows.basis, rows.basis_bytes);
  }
  call({request_kind::extend, {block.number, to, 0}, 0, {}},
       deadlines_.call_ms + static_cast<double>(layout.byte_count) / deadlines_.bytes_per_ms,
       "uploading rows");
  block.row_count = to;
}

void remote_device::destroy(const remote_block& block) {
  call({request_kind::destroy_block, {block.number, 0, 0}, 0, {}}, deadlines_.call_ms, "freeing a block");
}

void remote_device::begin_search(const sagitta_batch& batch, const remote_block* const* residents) {
  if (!is_valid(batch)) reject();
  // Counts the rows of the views before each one, so that the rows that a query searches are a difference.
  std::vector<double> rows_before = {0};
  for (uint32_t v = 0; v < batch.view_count; v++) {
    const sagitta_block_view& view = batch.views[v];
    rows_before.push_back(rows_before.back() + view.row_count);
    if (view.row_count == 0) continue;
    if (view.row_count > residents[view.block]->row_count) reject();
    if (!residents[view.block]->has_values && batch.blocks[view.block].values == nullptr) reject();
  }
  double products = 0;
  for (uint32_t q = 0; q < batch.query_count; q++) {
    const sagitta_query& query = batch.queries[q];
    const double rows = rows_before[query.first_view + query.view_count] - rows_before[query.first_view];
    products += rows * batch.dimension;
  }
  const batch_layout layout(batch);
  channel_.require(layout.head.byte_count);
  write_batch(batch, layout, residents, channel_.data());
  call({request_kind::begin_search, {}, 0, {}}, deadlines_.call_ms, "beginning a search");
  products_.push_back(products);
}

std::unique_ptr<sagitta_device_answer> remote_device::end_search(const sagitta_batch& batch) {
  if (products_.empty()) reject();
  // Parts of the other search may be between parts of this one.
  const double products = products_.front() + products_.back();
  products_.pop_front();
  call({request_kind::end_search, {}, 0, {}}, deadlines_.call_ms + products / deadlines_.products_per_ms,
       "searching");
  return finish(batch, read_found(channel_, batch.query_count));
}

void remote_device::ping() { call({request_kind::ping, {}, 0, {}}, deadlines_.call_ms, "idle"); }

}  // namespace sagitta::cuda
