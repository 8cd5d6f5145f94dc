// mbarriers in dynamic shared memory and bulk copies that report to them, by the PTX ISA.
//
// A copy lands at a random time between its call and the end of the phase, together with its bytes of that
// phase. Until a thread has waited for the phase, AddressSanitizer reports accesses of what is copied to;
// by thread, they are found in programs whose kernels are instrumented (races.h), and so are copies over
// what other threads may still read or write. Checked in every build: mbarriers without the fence and the
// barrier of the block, arrivals beyond the count, more bytes than a phase expects, and fewer; addresses
// and lengths; a second copy to a place without any wait since the first one; and copies in the end that
// no thread has waited for.
//
// Two orders that CUDA leaves open are required, because they make mistakes certain to be seen: the bytes
// of copies are expected before they are copied, and a thread that waits for phases of an mbarrier waits
// for each of them, so that its parities alternate.
#pragma once

#include <cstdint>
#include <string>

#include "threads.h"

namespace sagitta::cuda::emulation {

struct block;

/** Called before a block, and when all its threads have returned. */
void start_mbarriers(block& block);
void end_mbarriers();

/** Lets a copy of the running block land, if one is in flight; else returns false. */
bool land_copy();
/** Sometimes lets one land. */
void maybe_land_copy();
/** What the mbarriers of the running block lack, where threads wait for them; for messages. */
std::string missing_for_mbarriers();

void mbarrier_init(uint64_t* barrier, uint32_t count, SAGITTA_WHERE);
void fence_mbarrier_init(SAGITTA_WHERE);
void mbarrier_arrive(uint64_t* barrier, SAGITTA_WHERE);
void mbarrier_arrive_expect(uint64_t* barrier, uint32_t byte_count, SAGITTA_WHERE);
void mbarrier_wait(uint64_t* barrier, uint32_t parity, SAGITTA_WHERE);
void copy_to_shared(void* to, const void* from, uint32_t byte_count, uint64_t* barrier,
                    SAGITTA_WHERE);

}  // namespace sagitta::cuda::emulation
