// The peak rates of the machine per thread, measured with streams of independent operations. One
// translation unit per instruction set defines a table, as for targets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta {

struct peak_functions {
  const char* name;
  /** Runs `rounds` rounds. Returns the number of operations; a multiply-add counts as two. */
  double (*float_operations)(uint64_t rounds);
  double (*int8_operations)(uint64_t rounds);
  /** Reads the bytes and returns something that depends on them; `count` is a multiple of 4096. */
  uint64_t (*read)(const uint8_t* bytes, size_t count);
};

/** Null where the build does not have the instruction set. */
extern const peak_functions baseline_peaks;
extern const peak_functions* const avx2_peaks;
extern const peak_functions* const avx_vnni_peaks;
extern const peak_functions* const avx512_vnni_peaks;

}  // namespace sagitta
