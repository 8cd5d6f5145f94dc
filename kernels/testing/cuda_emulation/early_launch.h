// Checks of kernels that are launched early: every thread must wait for the kernels before it first. The
// emulation runs the kernels of a stream one after another, so that results would not show a mistake.
#pragma once

#include "launch.h"

namespace sagitta::cuda::emulation {

/** Chooses a thread whose reads and writes of device memory before its wait ASan will report. */
void begin_early_grid(const grid_launch& launch);
/** When a thread begins. */
void begin_early_thread(uint32_t thread);
/** Ends the process unless the running thread has waited, or need not. */
void require_awaited(const char* what, const location& where = location::current());

}  // namespace sagitta::cuda::emulation
