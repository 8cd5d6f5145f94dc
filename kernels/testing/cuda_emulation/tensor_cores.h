// The tensor cores' multiplications, as the PTX ISA lays out their fragments, descriptors and swizzle.
//
// wgmma is as asynchronous as it may be: sums are poisoned from the call until the wait, and shared
// memory is read at either of them, as drawn. What is checked: the fences before it, that nobody
// writes to sums in flight, that the four warps do the same, and that somebody waits in the end.
// Not checked: registers of rows that change before the wait. They are read at the call, here.
#pragma once

#include <cstdint>

#include "threads.h"

namespace sagitta::cuda::emulation {

/** Before a block; and when all threads of one of its warps have returned. */
void start_tensor_cores();
void end_warp(uint32_t warp);

void mma_u8s8(int32_t (&sums)[4], const uint32_t (&rows)[4], uint2 queries, const place& place);

/** `column_count` columns; a lane has column_count / 2 sums. */
void wgmma_u8s8(int32_t* sums, uint32_t column_count, const uint32_t (&rows)[4],
                uint64_t descriptor, bool keep, const place& place);
void wgmma_fence(const place& place);
void wgmma_commit(const place& place);
void wgmma_wait(uint32_t groups_left, const place& place);
uint64_t wgmma_descriptor(const void* shared);
void fence_async_shared();

/** Ends the process where the bytes are not all of one cudaMalloc, or not aligned. */
void check_global(const void* pointer, size_t bytes, const place& place);

}  // namespace sagitta::cuda::emulation
