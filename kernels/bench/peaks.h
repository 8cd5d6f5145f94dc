// The peak rates of the machine per thread, measured with streams of independent operations. One
// translation unit per instruction set defines a table, as for targets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sagitta {

/**
 * Functions that read the bytes in different patterns, because the fastest one depends on the machine, and
 * return something that depends on the bytes; `count` is a multiple of 16 KiB.
 */
using read_functions = std::array<uint64_t (*)(const uint8_t* bytes, size_t count), 3>;

struct peak_functions {
  const char* name;
  /** Runs `rounds` rounds. Returns the number of operations; a multiply-add counts as two. */
  double (*float_operations)(uint64_t rounds);
  double (*int8_operations)(uint64_t rounds);
  read_functions reads;
};

/** Runs additions that wait for each other and take one cycle each, so that their rate is the clock. */
double dependent_additions(uint64_t rounds);

/** Null if the build does not contain the instruction set. */
extern const peak_functions baseline_peaks;
extern const peak_functions* const avx2_peaks;
extern const peak_functions* const avx_vnni_peaks;
extern const peak_functions* const avx512_vnni_peaks;
extern const peak_functions* const avx512_amx_peaks;
extern const peak_functions* const neon_dotprod_peaks;

}  // namespace sagitta
