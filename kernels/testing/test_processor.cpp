// Compares the instruction sets found in the words of real processors, and in damaged ones, with what they support.

#include "../processor.h"

#include <string>

#include "check.h"

namespace check {
namespace {

using sagitta::find_instruction_sets;
using sagitta::instruction_sets;
using sagitta::processor_words;

/** As guests of KVM see them, with all state that the processor has. */
constexpr processor_words sapphire_rapids = {0xfffa3223, 0xf1bf27eb, 0x1b415f4e,
                                             0xafc14410, 0x00000030, 0x04002000,
                                             0x00080040, 0x00000010, 0x602e7};
constexpr processor_words granite_rapids = {0xfffa3203, 0xf1bf27eb, 0x1b415f4e,
                                            0xafc14410, 0x00000030, 0x04002000,
                                            0x00080040, 0x00000010, 0x602e7};
constexpr processor_words zen_4 = {0xfffa3203, 0xf1bf07ab, 0x00415f4e, 0x8c000010, 0x00000020,
                                   0,          0,          0,          0x2e7};
/** With AVX-VNNI, MOVDIRI, MOVDIR64B and VP2INTERSECT beyond Zen 4. */
constexpr processor_words zen_5 = {0xfffa3203, 0xf1bf07ab, 0x18415f4e, 0x8c000110, 0x00000030,
                                   0,          0,          0,          0x2e7};
/** A guest on Zen 4 whose hypervisor hides AVX-512. */
constexpr processor_words zen_4_guest = {0xfffa3203, 0x219c07ab, 0x00400684, 0x00000010, 0, 0, 0,
                                         0,          0x7};

std::string names_of(const instruction_sets& sets) {
  std::string names;
  if (sets.avx512_amx) names += " avx512_amx";
  if (sets.avx512_vnni) names += " avx512_vnni";
  if (sets.avx_vnni) names += " avx_vnni";
  if (sets.avx2) names += " avx2";
  return names;
}

void require_sets(const std::string& what, const processor_words& words,
                  const std::string& expected) {
  const std::string found = names_of(find_instruction_sets(words));
  require(found == expected, what + ": expected" + expected + "; found" + found);
}

processor_words with_state(processor_words words, uint64_t xcr0) {
  words.xcr0 = xcr0;
  return words;
}

void test_damaged_words() {
  const std::string without_amx = " avx512_vnni avx_vnni avx2";
  for (const uint64_t state : {0x2e7, 0x202e7, 0x402e7}) {
    require_sets("without the state of tiles", with_state(sapphire_rapids, state), without_amx);
  }
  for (const uint64_t state : {0x60007, 0x60067, 0x600a7, 0x600c7}) {
    require_sets("without state of AVX-512", with_state(sapphire_rapids, state), " avx_vnni avx2");
  }
  for (const uint64_t state : {0x0, 0x1, 0x3, 0x5, 0x602e5, 0x602e3}) {
    require_sets("without state of AVX", with_state(sapphire_rapids, state), "");
  }
  for (const uint32_t bit : {24u, 25u}) {
    processor_words words = sapphire_rapids;
    words.leaf7_edx &= ~(1u << bit);
    require_sets("without a part of AMX", words, without_amx);
  }
  processor_words words = sapphire_rapids;
  words.leaf29_1_eax = words.leaf29_1_ebx = words.leaf29_1_ecx = 0;
  require_sets("without the size of tiles", words, without_amx);
  words = sapphire_rapids;
  words.leaf29_1_ecx = 8;
  require_sets("tiles of 8 rows", words, without_amx);
  for (const uint32_t bit : {16u, 17u, 30u, 31u}) {
    words = sapphire_rapids;
    words.leaf7_ebx &= ~(1u << bit);
    require_sets("without a part of AVX-512", words, " avx_vnni avx2");
  }
  words = sapphire_rapids;
  words.leaf7_ecx &= ~(1u << 11);
  require_sets("without AVX-512 VNNI", words, " avx_vnni avx2");
  words = sapphire_rapids;
  words.leaf7_ebx &= ~(1u << 5);
  require_sets("without AVX2", words, "");
  for (const uint32_t bit : {12u, 23u, 27u, 28u}) {
    words = sapphire_rapids;
    words.leaf1_ecx &= ~(1u << bit);
    require_sets("without FMA, POPCNT, XGETBV or AVX", words, "");
  }
}

}  // namespace

void test_processor() {
  require_sets("Sapphire Rapids", sapphire_rapids, " avx512_amx avx512_vnni avx_vnni avx2");
  require_sets("Granite Rapids", granite_rapids, " avx512_amx avx512_vnni avx_vnni avx2");
  require_sets("Zen 4", zen_4, " avx512_vnni avx2");
  require_sets("Zen 5", zen_5, " avx512_vnni avx_vnni avx2");
  require_sets("a guest on Zen 4", zen_4_guest, " avx2");
  require_sets("no words", processor_words{}, "");
  test_damaged_words();
#if defined(__x86_64__) && !defined(__APPLE__)
  // The compiler's library reads the same words.
  __builtin_cpu_init();
  const instruction_sets found = find_instruction_sets(sagitta::read_processor_words());
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("popcnt");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl");
  require(found.avx2 == has_avx2 && found.avx512_vnni == (has_avx2 && has_avx512),
          "this processor: found" + names_of(found));
#endif
}

}  // namespace check
