// Ends a fuzzer at a wrong answer, so that it keeps the input.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::abort();
}

}  // namespace fuzz
