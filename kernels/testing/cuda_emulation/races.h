// Programs whose kernels are instrumented: every plain access to global or shared memory is a point where
// another thread may run, and accesses that race end the process.
//
// Instrumented means compiled with -fsanitize=thread, but not linked with ThreadSanitizer: the calls that
// the compiler inserts before each access come here. Two accesses to the same bytes race if one of them is
// a plain write and they are not certain to be ordered. By CUDA's memory model, accesses are ordered by
// __syncthreads for the threads of a block, __syncwarp for the lanes of a mask, and the end of a grid.
// Shuffles, votes and matrix instructions order nothing. Atomic operations order an access before a
// __threadfence before the operation with one after a __threadfence after another operation on the same
// address. An mbarrier orders what comes before the arrivals of a phase, and the copies that the phase
// waits for, with what comes after a wait for it. A copy writes from its call to the end of its phase.
//
// Only the last write and one read of a word are remembered, so that a race may be missed; every race that
// is reported is real.
#pragma once

#include <cstddef>
#include <cstdint>

#include "block.h"

namespace sagitta::cuda::emulation {

/** Whether the kernels of this program are instrumented. */
bool is_instrumented();

void start_races_of_grid();
void start_races(block& block);

/** Orders these lanes: a __syncwarp. */
void order_lanes(uint32_t warp, unsigned mask);
/** Orders the threads of the running block: a barrier. */
void order_block();

/** Mbarriers of a block are numbered in the order in which they are added. */
void add_mbarrier();
/** Records an arrival of the running thread at the current phase. */
void record_arrival(uint32_t mbarrier);
/** Ends the current phase; `ended` phases have ended now. */
void end_phase(uint32_t mbarrier, uint32_t ended);
/** Records that the running thread has waited for the last phase that has ended. */
void record_wait(uint32_t mbarrier);

/** A thread's fence.proxy.async: asynchronous operations may access what it has written before. */
void fence_async_writes();

/**
 * Ends the process if the bytes of dynamic shared memory were written by a thread that has not called
 * fence_async_shared since then, or without a barrier after that: `what`, wgmma or a copy, accesses them
 * through the asynchronous proxy. What a copy has written needs a wait, but no fence.
 */
void check_async_access(const char* what, const unsigned char* at, size_t bytes,
                        const location& where);

/** Records that a wgmma of the running warp has read dynamic shared memory and is complete, as all its lanes know. */
void record_async_read(const unsigned char* from, size_t bytes);

/**
 * Records that the running thread has called a copy to dynamic shared memory, for which this phase of the
 * mbarrier waits. Ends the process if others may still access what is there.
 */
void record_async_write(const unsigned char* to, size_t bytes, uint32_t mbarrier, uint32_t phase,
                      const location& where);

}  // namespace sagitta::cuda::emulation
