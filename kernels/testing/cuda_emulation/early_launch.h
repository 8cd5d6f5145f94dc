// Checks of kernels that are launched early: every thread must first wait for the preceding kernels. The
// emulation runs the kernels of a stream one after another, so results would not reveal a mistake.
#pragma once

#include "launch.h"

namespace sagitta::cuda::emulation {

/** Chooses a thread for which ASan reports reads and writes of device memory before its wait. */
void begin_early_grid(const grid_launch& launch);
/** Called when a thread begins. */
void begin_early_thread(uint32_t thread);
/** Ends the process unless the running thread has waited or need not wait. */
void require_awaited(const char* what, const location& where = location::current());

}  // namespace sagitta::cuda::emulation
