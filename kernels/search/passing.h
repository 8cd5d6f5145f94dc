// Counts the rows that views let pass. A bitmap shared by several views is counted once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "../kernels.h"
#include "../target.h"

namespace sagitta {

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
  /** Per bitmap: the row count it was last counted for, and the rows that pass. */
  std::unordered_map<const uint32_t*, std::pair<uint32_t, uint32_t>> counted_;
};

}  // namespace sagitta
