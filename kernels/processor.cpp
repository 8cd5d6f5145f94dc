#include "processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sagitta {
namespace {

/** Bits of XCR0: SSE and AVX; masks and both halves of the registers of AVX-512; configuration and data of tiles. */
constexpr uint64_t avx_state = 0x6;
constexpr uint64_t avx512_state = 0xe0;
constexpr uint64_t tile_state = 0x60000;

constexpr bool has_bits(uint64_t word, uint64_t bits) { return (word & bits) == bits; }

constexpr uint32_t bit(uint32_t index) { return uint32_t{1} << index; }

constexpr uint32_t fma = bit(12);
constexpr uint32_t popcnt = bit(23);
constexpr uint32_t xgetbv = bit(27);
constexpr uint32_t avx = bit(28);
constexpr uint32_t avx2 = bit(5);
constexpr uint32_t avx512f = bit(16);
constexpr uint32_t avx512dq = bit(17);
constexpr uint32_t avx512bw = bit(30);
constexpr uint32_t avx512vl = bit(31);
constexpr uint32_t avx512vnni = bit(11);
constexpr uint32_t amx_tile = bit(24);
constexpr uint32_t amx_int8 = bit(25);
constexpr uint32_t avxvnni = bit(4);

/** Palette 1 has eight tiles of 16 rows of 64 bytes, in which the target counts. */
bool has_known_tiles(const processor_words& words) {
  return words.leaf29_1_eax == (1024u << 16 | 8192) && words.leaf29_1_ebx == (8u << 16 | 64) &&
         (words.leaf29_1_ecx & 0xffff) == 16;
}

}  // namespace

instruction_sets find_instruction_sets(const processor_words& words) {
  instruction_sets found{};
  found.avx2 = has_bits(words.leaf1_ecx, fma | popcnt | xgetbv | avx) &&
               has_bits(words.leaf7_ebx, avx2) && has_bits(words.xcr0, avx_state);
  found.avx_vnni = found.avx2 && has_bits(words.leaf7_1_eax, avxvnni);
  found.avx512_vnni = found.avx2 &&
                      has_bits(words.leaf7_ebx, avx512f | avx512dq | avx512bw | avx512vl) &&
                      has_bits(words.leaf7_ecx, avx512vnni) && has_bits(words.xcr0, avx512_state);
  found.avx512_amx = found.avx512_vnni && has_bits(words.leaf7_edx, amx_tile | amx_int8) &&
                     has_bits(words.xcr0, tile_state) && has_known_tiles(words);
  return found;
}

#if defined(__x86_64__)

processor_words read_processor_words() {
  processor_words words{};
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) words.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    const uint32_t last_subleaf = eax;
    words.leaf7_ebx = ebx;
    words.leaf7_ecx = ecx;
    words.leaf7_edx = edx;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) {
      words.leaf7_1_eax = eax;
    }
  }
  if (has_bits(words.leaf7_edx, amx_tile) &&
      __get_cpuid_count(29, 1, &eax, &ebx, &ecx, &edx) != 0) {
    words.leaf29_1_eax = eax;
    words.leaf29_1_ebx = ebx;
    words.leaf29_1_ecx = ecx;
  }
  // Without this bit, reading XCR0 is an illegal instruction.
  if (has_bits(words.leaf1_ecx, xgetbv)) {
    uint32_t low = 0;
    uint32_t high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.xcr0 = uint64_t{high} << 32 | low;
  }
#if defined(__APPLE__)
  // macOS sets the bits of AVX-512 when a thread first uses it.
  if (has_bits(words.leaf7_ebx, avx512f)) words.xcr0 |= avx512_state;
#endif
  return words;
}

#endif

bool request_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  // ARCH_REQ_XCOMP_PERM of the kernel's asm/prctl.h, which is newer than many systems' headers. It also fails if a
  // thread has a signal stack that is too small for tiles.
  constexpr long request_permission = 0x1023;
  constexpr long tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

}  // namespace sagitta
