// Programs whose kernels are instrumented: every plain access of global or shared memory is a point where
// another thread may run, and accesses that race end the process.
//
// Instrumented means compiled with -fsanitize=thread, but not linked with ThreadSanitizer: the calls that
// the compiler inserts before each access come here. Two accesses of the same bytes race if one of them is
// a plain write and the other does not certainly come before it or after it. What orders them, by CUDA's
// memory model, is __syncthreads for the threads of a block, __syncwarp for the lanes of a mask, and the
// end of a grid. Shuffles, votes and matrix instructions order nothing. Atomic operations order an access
// before a __threadfence before the operation with one after a __threadfence after another operation on
// the same address. An mbarrier orders what comes before the arrivals of a phase, and the copies that the
// phase waits for, with what comes after a wait for it. A copy writes from its call to the end of its phase.
//
// Only the last write and one read of a word are remembered, so that a race may be missed; what is reported
// is one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "block.h"

namespace sagitta::cuda::emulation {

/** Whether the kernels of this program are instrumented. */
bool is_instrumented();

void start_races_of_grid();
void start_races(block& block);

/** A __syncwarp of these lanes. */
void order_lanes(uint32_t warp, unsigned mask);
/** A barrier of the running block. */
void order_block();

/** mbarriers of a block are numbered in the order in which they are added. */
void add_mbarrier();
/** An arrival of the running thread at the current phase. */
void note_arrival(uint32_t mbarrier);
/** The current phase has ended; now so many have. */
void end_phase(uint32_t mbarrier, uint32_t ended);
/** The running thread has waited for the last phase that has ended. */
void note_wait(uint32_t mbarrier);

/** A thread's fence.proxy.async: what it has written before may be accessed by asynchronous operations. */
void fence_async_writes();

/**
 * Ends the process if the bytes of dynamic shared memory were written by a thread that has not called
 * fence_async_shared since, or without a barrier after that: `what`, wgmma or a copy, accesses them through
 * the asynchronous proxy. What a copy has written needs no fence, but a wait.
 */
void check_async_access(const char* what, const unsigned char* at, size_t bytes,
                        const location& where);

/** A wgmma of the running warp has read dynamic shared memory and is complete, as all its lanes know. */
void note_async_read(const unsigned char* from, size_t bytes);

/**
 * The running thread has called a copy to dynamic shared memory, for which this phase of the mbarrier
 * waits. Ends the process if others may still access what is there.
 */
void note_async_write(const unsigned char* to, size_t bytes, uint32_t mbarrier, uint32_t phase,
                      const location& where);

}  // namespace sagitta::cuda::emulation
