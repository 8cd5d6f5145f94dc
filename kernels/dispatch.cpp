// Selects the target: the fastest one when the library is loaded, or another one by name.

#include <atomic>
#include <cstring>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "kernels.h"
#include "processor.h"
#include "target.h"

namespace sagitta {
namespace {

struct entry {
  const target* table;
  bool is_supported;
};

#if defined(__aarch64__)
bool has_dotprod() {
#if defined(__linux__)
  constexpr unsigned long dotprod_capability = 1ul << 20;
  return (getauxval(AT_HWCAP) & dotprod_capability) != 0;
#else
  return true;
#endif
}
#endif

struct registry {
  const target* supported[8] = {};
  size_t count = 0;

  registry() {
#if defined(SAGITTA_EMULATE)
    const instruction_sets sets = {true, true, true, true};
    const bool has_tiles = true;
#elif defined(__x86_64__)
    const instruction_sets sets = find_instruction_sets(read_processor_words());
    const bool has_tiles = avx512_amx_target != nullptr && sets.avx512_amx && request_tiles();
#endif
#if defined(__x86_64__)
    add({avx512_amx_target, has_tiles});
    add({avx512_vnni_target, sets.avx512_vnni});
    add({avx_vnni_target, sets.avx_vnni});
    add({avx2_target, sets.avx2});
#elif defined(__aarch64__)
    add({neon_target, has_dotprod()});
#endif
    add({&reference_target, true});
  }

  void add(const entry& candidate) {
    if (candidate.table != nullptr && candidate.is_supported) supported[count++] = candidate.table;
  }
};

const registry& targets() {
  static const registry all;
  return all;
}

std::atomic<const target*>& selection() {
  static std::atomic<const target*> selected{targets().supported[0]};
  return selected;
}

}  // namespace

const target& selected_target() { return *selection().load(std::memory_order_relaxed); }

}  // namespace sagitta

using namespace sagitta;

size_t sagitta_target_count(void) { return targets().count; }

const char* sagitta_target_name(size_t index) {
  return index < targets().count ? targets().supported[index]->name : nullptr;
}

const char* sagitta_selected_target(void) { return selected_target().name; }

sagitta_status sagitta_select_target(const char* name) {
  if (name == nullptr) {
    selection() = targets().supported[0];
    return SAGITTA_OK;
  }
  for (size_t i = 0; i < targets().count; i++) {
    if (std::strcmp(name, targets().supported[i]->name) == 0) {
      selection() = targets().supported[i];
      return SAGITTA_OK;
    }
  }
  return SAGITTA_UNSUPPORTED_TARGET;
}
