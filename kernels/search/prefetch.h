// Prefetches of rows that are scattered in memory and longer than what the hardware prefetches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta {

inline void prefetch_bytes(const uint8_t* from, size_t count) {
  constexpr size_t line_bytes = 64;
  for (size_t i = 0; i < count; i += line_bytes) __builtin_prefetch(from + i);
}

inline void prefetch_row(const float* row, size_t dimension) {
  prefetch_bytes(reinterpret_cast<const uint8_t*>(row), dimension * sizeof(float));
}

}  // namespace sagitta
