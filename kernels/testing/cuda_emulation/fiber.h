// Fibers of an OS thread: each has its own stack, and a switch saves six registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta::cuda::emulation {

struct fiber {
  /** The stack pointer while the fiber does not run; its registers are saved there. */
  void* top = nullptr;
  unsigned char* stack = nullptr;
  size_t stack_bytes = 0;
  /** ASan's fake stack. */
  void* fake_stack = nullptr;
};

/** Allocates a stack with a guard page below it, which is never freed. */
void allocate_stack(fiber& fiber);

/** Makes the next switch to the fiber call `entry`, which must not return. */
void prepare(fiber& fiber, void (*entry)());

/** Switches from one fiber to another. If `has_ended`, `from` will never run again. */
void switch_fiber(fiber& from, fiber& to, bool has_ended = false);

/** Must be called first in every entry. */
void entered(fiber& self, fiber& starter);

}  // namespace sagitta::cuda::emulation
