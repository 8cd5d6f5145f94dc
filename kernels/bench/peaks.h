// What the machine can do at best, one thread at a time: streams of independent operations with
// nothing else. A translation unit per instruction set makes a table, as for targets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta {

struct peak_functions {
  const char* name;
  /** Does `rounds` rounds; returns how many float32 or 8-bit operations that were (a multiply-add is two). */
  double (*float_operations)(uint64_t rounds);
  double (*int8_operations)(uint64_t rounds);
  /** Reads the bytes and returns something that depends on them; `count` is a multiple of 4096. */
  uint64_t (*read)(const uint8_t* bytes, size_t count);
};

/** Null where the build does not have it. */
extern const peak_functions baseline_peaks;
extern const peak_functions* const avx2_peaks;
extern const peak_functions* const avx_vnni_peaks;
extern const peak_functions* const avx512_vnni_peaks;

}  // namespace sagitta
