// mbarriers in dynamic shared memory and bulk copies that report to them, as in the PTX ISA.
//
// A copy lands at a random time between its call and the end of the phase, together with its bytes of that phase.
// Until a thread has waited for the phase, AddressSanitizer reports accesses to the target of the copy. In programs
// whose kernels are instrumented (races.h), this is checked for each thread, and so are copies over memory that other
// threads may still read or write. Checked in every build: mbarriers without the fence and the barrier of the block,
// arrivals beyond the count, more bytes than a phase expects, and fewer; addresses and lengths; a second copy to the
// same place without any wait since the first one; and, at the end, copies that no thread has waited for.
//
// Two orders that CUDA leaves open are required, because then mistakes are certain to be noticed: the bytes
// of copies are expected before they are copied, and a thread that waits for phases of an mbarrier waits
// for each of them, so that its parities alternate.
#pragma once

#include <cstdint>
#include <string>

#include "threads.h"

namespace sagitta::cuda::emulation {

struct block;

/** Called before a block and when all its threads have returned. */
void start_mbarriers(block& block);
void end_mbarriers();

/** Lets a copy of the running block land. Returns false if none is in flight. */
bool land_copy();
/** Lets a copy land, at random. */
void maybe_land_copy();
/** Describes what the mbarriers of the running block lack where threads wait for them; for messages. */
std::string missing_for_mbarriers();

void mbarrier_init(uint64_t* barrier, uint32_t count, SAGITTA_WHERE);
void fence_mbarrier_init(SAGITTA_WHERE);
void mbarrier_arrive(uint64_t* barrier, SAGITTA_WHERE);
void mbarrier_arrive_expect(uint64_t* barrier, uint32_t byte_count, SAGITTA_WHERE);
void mbarrier_wait(uint64_t* barrier, uint32_t parity, SAGITTA_WHERE);
void copy_to_shared(void* to, const void* from, uint32_t byte_count, uint64_t* barrier,
                    SAGITTA_WHERE);

}  // namespace sagitta::cuda::emulation
