#include "early_launch.h"

#include "block.h"
#include "machine.h"
#include "settings.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace sagitta::cuda::emulation {
namespace {

bool is_early = false;
/** The thread whose accesses are checked: only one per launch, because hiding memory takes long. */
uint3 checked_block{};
uint32_t checked_thread = 0;
bool is_memory_hidden = false;

void hide_memory([[maybe_unused]] bool hidden) {
#if defined(__SANITIZE_ADDRESS__)
  for (const auto& [start, allocation] : machine_in_use().memory) {
    if (hidden) __asan_poison_memory_region(start, allocation.bytes);
    else __asan_unpoison_memory_region(start, allocation.bytes);
  }
#endif
  is_memory_hidden = hidden;
}

}  // namespace

void begin_early_grid(const grid_launch& launch) {
  is_early = launch.is_early;
  if (!is_early) return;
  checked_block = {draw_below(launch.grid.x), draw_below(launch.grid.y), draw_below(launch.grid.z)};
  checked_thread = draw_below(launch.threads);
}

// Before its wait a thread reaches nothing that lets another one run.
void begin_early_thread(uint32_t thread) {
  const uint3& index = block_in_use().index;
  const bool is_checked = index.x == checked_block.x && index.y == checked_block.y &&
                          index.z == checked_block.z && thread == checked_thread;
  if (is_early && is_checked) hide_memory(true);
}

void require_awaited(const char* what, const location& where) {
  if (!is_early || block_in_use().has_awaited[threadIdx.x]) return;
  fail("%s was launched early and comes to %s at %s:%u before await_earlier_kernels",
       name_of_thread(threadIdx.x).c_str(), what, where.file_name(), where.line());
}

void await_earlier_kernels(const location&) {
  block_in_use().has_awaited[threadIdx.x] = true;
  if (is_memory_hidden) hide_memory(false);
}

}  // namespace sagitta::cuda::emulation
