// Selects the target: the fastest one when the library is loaded, or another one by name.

#include <atomic>
#include <cstring>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "kernels.h"
#include "target.h"

namespace sagitta {
namespace {

struct entry {
  const target* table;
  bool is_supported;
};

#if defined(SAGITTA_EMULATE)
bool has_avx2() { return true; }
bool has_avx512_vnni() { return true; }
bool has_avx_vnni() { return true; }
#elif defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("popcnt");
}
bool has_avx512_vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
/** Reads CPUID leaf 7, subleaf 1, EAX bit 4, because older compilers do not know the feature's name. */
bool has_avx_vnni() {
  if (!has_avx2()) return false;
  uint32_t a = 7;
  uint32_t b = 0;
  uint32_t c = 1;
  uint32_t d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (a >> 4 & 1) != 0;
}
#elif defined(__aarch64__)
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
#if defined(__x86_64__)
    __builtin_cpu_init();
    add({avx512_vnni_target, has_avx512_vnni()});
    add({avx_vnni_target, has_avx_vnni()});
    add({avx2_target, has_avx2()});
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
