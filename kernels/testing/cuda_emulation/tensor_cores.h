// The matrix multiplications of the tensor cores, with fragments, descriptors and swizzle as in the PTX ISA.
//
// wgmma is as asynchronous as allowed: sums are poisoned from the call until the wait, and shared memory is read at
// one of the two, at random. Checked are fences before it and the barrier before it (for each thread in programs
// whose kernels are instrumented, see races.h), no writes to sums in flight, equal calls of the four warps, and a
// wait at the end. Changes of row registers before the wait are not checked; they are read at the call.
#pragma once

#include <cstdint>

#include "threads.h"

namespace sagitta::cuda::emulation {

struct block;

/** Called before a block and when all threads of a warp have returned. */
void start_tensor_cores(block& block);
void end_warp(uint32_t warp);

void mma_u8s8(int32_t (&sums)[4], const uint32_t (&rows)[4], uint2 queries, const location& where);

/** The product has `column_count` columns; a lane has column_count / 2 sums. */
void wgmma_u8s8(int32_t* sums, uint32_t column_count, const uint32_t (&rows)[4],
                uint64_t descriptor, bool keep, const location& where);
void wgmma_fence(const location& where);
void wgmma_commit(const location& where);
void wgmma_wait(uint32_t groups_left, const location& where);
uint64_t wgmma_descriptor(const void* shared);
void fence_async_shared();

/** Ends the process if the bytes are not inside one allocation of cudaMalloc or not aligned. */
void check_global(const void* pointer, size_t bytes, const location& where);

}  // namespace sagitta::cuda::emulation
