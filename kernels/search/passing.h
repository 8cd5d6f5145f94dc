// The rows that pass the bitmaps of views. A bitmap shared by several views is counted once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "../kernels.h"
#include "../layout.h"
#include "../target.h"

namespace sagitta {

/** Calls `take(row)` for the rows from..to that the view lets pass; `from` is a multiple of 32. */
template <class Take>
void for_each_row(uint32_t from, uint32_t to, const sagitta_block_view& view, const Take& take) {
  const uint32_t end = std::min(to, view.row_count);
  if (view.rows == nullptr) {
    for (uint32_t row = from; row < end; row++) take(row);
    return;
  }
  for (uint32_t first = from; first < end; first += 32) {
    uint32_t word = view.rows[first / 32];
    if (end - first < 32) word &= ~(~0u << (end - first));
    for (; word != 0; word &= word - 1) take(first + static_cast<uint32_t>(__builtin_ctz(word)));
  }
}

/** Returns the rows of a panel that the view lets pass; the panel begins before the end of the view. */
inline uint32_t passing_of_panel(const sagitta_block_view& view, uint32_t first_row) {
  const uint32_t count = std::min(view.row_count - first_row, panel_rows);
  const uint32_t rows = (1u << count) - 1;
  return view.rows == nullptr ? rows : rows & view.rows[first_row / 32] >> first_row % 32;
}

class passing_counter {
 public:
  explicit passing_counter(const target& functions) : functions_(functions) {}

  uint32_t count(const sagitta_block_view& view) {
    if (view.rows == nullptr) return view.row_count;
    auto& [row_count, known] = counted_[view.rows];
    if (row_count != view.row_count) {
      row_count = view.row_count;
      known = functions_.count_bits(view.rows, row_count);
    }
    return known;
  }

 private:
  const target& functions_;
  /** For each bitmap: the row count for which it was last counted, and the number of rows that pass. */
  std::unordered_map<const uint32_t*, std::pair<uint32_t, uint32_t>> counted_;
};

}  // namespace sagitta
