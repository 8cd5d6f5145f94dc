#include "top_rows.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

namespace sagitta {
namespace {

struct id_bytes {
  const uint8_t* start;
  size_t count;
};

id_bytes id_of(const row_order& order, const scored_row& row) {
  const sagitta_block& block = order.blocks[order.views[row.view].block];
  const int32_t start = block.id_offsets[row.row];
  return {block.id_bytes + start, static_cast<size_t>(block.id_offsets[row.row + 1] - start)};
}

int compare(const id_bytes& left, const id_bytes& right) {
  const size_t shared = std::min(left.count, right.count);
  const int difference = shared == 0 ? 0 : std::memcmp(left.start, right.start, shared);
  if (difference != 0) return difference;
  return left.count < right.count ? -1 : left.count > right.count ? 1 : 0;
}

}  // namespace

bool row_order::is_worse(const scored_row& left, const scored_row& right) const {
  if (left.score != right.score) return left.score < right.score;
  const int ids = compare(id_of(*this, left), id_of(*this, right));
  if (ids != 0) return ids > 0;
  if (left.view != right.view) return left.view > right.view;
  return left.row > right.row;
}

bool row_order::is_after(const scored_row& row, double score, const uint8_t* id,
                         uint32_t id_bytes_count) const {
  if (row.score != score) return row.score < score;
  return compare(id_of(*this, row), {id, id_bytes_count}) > 0;
}

bool row_order::is_before(const scored_row& row, double score, const uint8_t* id,
                          uint32_t id_bytes_count) const {
  if (row.score != score) return row.score > score;
  return compare(id_of(*this, row), {id, id_bytes_count}) < 0;
}

void top_rows::offer(const scored_row& row, const row_order& order) {
  if (capacity_ == 0) return;
  const auto is_better = [&](const scored_row& left, const scored_row& right) {
    return order.is_worse(right, left);
  };
  if (!is_full()) {
    rows_.push_back(row);
    std::push_heap(rows_.begin(), rows_.end(), is_better);
  } else if (order.is_worse(rows_.front(), row)) {
    std::pop_heap(rows_.begin(), rows_.end(), is_better);
    rows_.back() = row;
    std::push_heap(rows_.begin(), rows_.end(), is_better);
  }
}

void top_rows::make_heap(const row_order& order) {
  std::make_heap(rows_.begin(), rows_.end(), [&](const scored_row& left, const scored_row& right) {
    return order.is_worse(right, left);
  });
}

void top_rows::sort(const row_order& order) {
  std::sort(rows_.begin(), rows_.end(), [&](const scored_row& left, const scored_row& right) {
    return order.is_worse(right, left);
  });
}

void largest_values::reset(size_t capacity) {
  capacity_ = capacity;
  smallest_ = -std::numeric_limits<double>::infinity();
  values_.clear();
}

/** Selecting once per many values takes a few nanoseconds per value; a heap would take log k steps. */
double largest_values::add(const std::vector<double>& values) {
  if (capacity_ == 0 || values.empty()) return smallest_;
  for (const double value : values) {
    if (value <= smallest_) continue;
    values_.push_back(value);
    if (values_.size() > capacity_ + capacity_ / 4) select();
  }
  select();
  return smallest_;
}

void largest_values::select() {
  if (values_.size() < capacity_) return;
  const auto last = values_.begin() + static_cast<std::ptrdiff_t>(capacity_ - 1);
  std::nth_element(values_.begin(), last, values_.end(), std::greater<>());
  values_.resize(capacity_);
  smallest_ = values_.back();
}

}  // namespace sagitta
