// What an x86 processor and its operating system support, as far as targets depend on it.
#pragma once

#include <cstdint>

namespace sagitta {

/** Registers of CPUID, by leaf and subleaf, and XCR0: the state that the system saves, one bit per kind. */
struct processor_words {
  uint32_t leaf1_ecx;
  uint32_t leaf7_ebx;
  uint32_t leaf7_ecx;
  uint32_t leaf7_edx;
  uint32_t leaf7_1_eax;
  /** The size of tiles. */
  uint32_t leaf29_1_eax;
  uint32_t leaf29_1_ebx;
  uint32_t leaf29_1_ecx;
  uint64_t xcr0;
};

struct instruction_sets {
  bool avx2;
  bool avx_vnni;
  bool avx512_vnni;
  bool avx512_amx;
};

instruction_sets find_instruction_sets(const processor_words& words);

#if defined(__x86_64__)
/** Reads the words of this processor; those that it does not have are 0. */
processor_words read_processor_words();
#endif

/** Asks the system once for the tiles of AMX, for all threads of the process. Returns whether they may be used. */
bool request_tiles();

}  // namespace sagitta
