// Fibers of one OS thread: a stack of its own each, and a switch that saves six registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta::cuda::emulation {

struct fiber {
  /** Where its registers are, while it does not run. */
  void* top = nullptr;
  unsigned char* stack = nullptr;
  size_t stack_bytes = 0;
  /** Of ASan. */
  void* fake_stack = nullptr;
};

/** Gives it a stack, with a page below that may not be touched; kept for the whole process. */
void give_stack(fiber& fiber);

/** The next switch to the fiber calls `entry`, which never returns. */
void prepare(fiber& fiber, void (*entry)());

/** Leaves `from`, whose last switch it is if it has ended, for `to`. */
void switch_fiber(fiber& from, fiber& to, bool has_ended = false);

/** The first thing that an entry does. */
void entered(fiber& self, fiber& starter);

}  // namespace sagitta::cuda::emulation
