// How many rows pass of what is searched: bitmaps that queries share are counted once.
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

  uint32_t count(const sagitta_part& part) {
    if (part.rows == nullptr) return part.row_count;
    auto& [row_count, known] = counted_[part.rows];
    if (row_count != part.row_count) {
      row_count = part.row_count;
      known = functions_.count_bits(part.rows, row_count);
    }
    return known;
  }

 private:
  const target& functions_;
  /** Of each bitmap: the row count that it was last counted for, and the rows that pass. */
  std::unordered_map<const uint32_t*, std::pair<uint32_t, uint32_t>> counted_;
};

}  // namespace sagitta
