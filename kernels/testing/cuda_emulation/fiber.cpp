// Switches fibers. swapcontext would make a system call each time, but kernels switch at every shuffle.
#include "fiber.h"

#include <sys/mman.h>

#include <cstring>

#include "settings.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#error "the emulation of CUDA supports x86-64 only"
#endif

extern "C" void sagitta_switch_stack(void** save, void* load);

// Saves the registers that a function must preserve by the System V ABI.
asm(R"(
  .text
  .globl sagitta_switch_stack
  .hidden sagitta_switch_stack
  .type sagitta_switch_stack, @function
sagitta_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size sagitta_switch_stack, .-sagitta_switch_stack
)");

namespace sagitta::cuda::emulation {
namespace {

constexpr size_t page_bytes = 4096;
#if defined(__SANITIZE_ADDRESS__)
// ASan puts red zones around every variable.
constexpr size_t stack_bytes = 256 << 10;
#else
constexpr size_t stack_bytes = 64 << 10;
#endif
constexpr size_t saved_registers = 6;
/** Stacks begin at different offsets; otherwise all would compete for the same lines of the cache. */
constexpr size_t line_bytes = 64;
constexpr size_t start_count = 48;

}  // namespace

void allocate_stack(fiber& fiber) {
  if (fiber.stack != nullptr) return;
  void* const memory = mmap(nullptr, page_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, page_bytes, PROT_NONE) != 0) {
    fail("out of memory for the stack of a thread");
  }
  fiber.stack = static_cast<unsigned char*>(memory) + page_bytes;
  static size_t stack_count = 0;
  fiber.stack_bytes = stack_bytes - stack_count++ % start_count * line_bytes;
}

void prepare(fiber& fiber, void (*entry)()) {
  void** top = reinterpret_cast<void**>(fiber.stack + fiber.stack_bytes);
  // The entry has no caller, so unwinding ends there.
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (size_t i = 0; i < saved_registers; i++) *--top = nullptr;
  fiber.top = top;
}

#if defined(__SANITIZE_ADDRESS__)

void switch_fiber(fiber& from, fiber& to, bool has_ended) {
  __sanitizer_start_switch_fiber(has_ended ? nullptr : &from.fake_stack, to.stack, to.stack_bytes);
  sagitta_switch_stack(&from.top, to.top);
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
}

void entered(fiber& self, fiber& starter) {
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  self.fake_stack = nullptr;
  // Remembers the stack of the OS thread, which has no fiber.
  if (starter.stack != nullptr) return;
  starter.stack = static_cast<unsigned char*>(const_cast<void*>(bottom));
  starter.stack_bytes = bytes;
}

#else

void switch_fiber(fiber& from, fiber& to, bool) { sagitta_switch_stack(&from.top, to.top); }

void entered(fiber&, fiber&) {}

#endif

}  // namespace sagitta::cuda::emulation
