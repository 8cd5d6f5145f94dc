// Instructions that CUDA C++ does not expose: loads with cache hints, the tensor cores, mbarriers and bulk
// copies. On a device they are inline PTX; in tests the emulation implements them.
//
// The order for wgmma: write shared memory, fence_async_shared, a barrier; load rows; wgmma_fence; wgmma_u8s8 …;
// wgmma_commit; wgmma_wait<0>; wgmma_fence_sums. Sums and rows must not be touched before that.
//
// The order for bulk copies: one thread calls mbarrier_init and fence_mbarrier_init, then comes a barrier
// of the block. For each phase: mbarrier_arrive_expect with all bytes, copy_to_shared …; threads that read
// the copied bytes first mbarrier_wait for the phase to end. Shared memory that threads have written needs
// fence_async_shared and a barrier before it is copied to. Memory that they have only read does not, but
// they must have signalled that by an mbarrier.
#pragma once

#include "platform.h"

#if defined(SAGITTA_EMULATE_CUDA)
#include "../testing/cuda_emulation/mbarriers.h"
#include "../testing/cuda_emulation/tensor_cores.h"
#endif

namespace sagitta::cuda {

#if defined(SAGITTA_EMULATE_CUDA)

template <class T>
T load_streaming(const T* address, SAGITTA_WHERE) {
  emulation::check_global(address, sizeof(T), where);
  return *address;
}
template <class T>
T load_cached(const T* address, SAGITTA_WHERE) {
  return load_streaming(address, where);
}

/** As inexact as a device may be: some results are one unit in the last place too high or too low. */
inline float approximate_reciprocal(float value) {
  const float nearest = 1 / value;
  const uint32_t kind = __float_as_uint(value) % 3;
  if (kind == 0 || !std::isnormal(nearest)) return nearest;
  return nextafterf(nearest, kind == 1 ? 0.0f : 2 * nearest);
}

inline void mma_u8s8(int32_t (&sums)[4], const uint32_t (&rows)[4], uint2 queries, SAGITTA_WHERE) {
  emulation::mma_u8s8(sums, rows, queries, where);
}

template <int N>
void wgmma_u8s8(int32_t (&sums)[N / 2], const uint32_t (&rows)[4], uint64_t descriptor, bool keep,
                SAGITTA_WHERE) {
  static_assert(N == 64 || N == 128 || N == 192 || N == 256);
  emulation::wgmma_u8s8(sums, N, rows, descriptor, keep, where);
}
inline void wgmma_fence(SAGITTA_WHERE) { emulation::wgmma_fence(where); }
inline void wgmma_commit(SAGITTA_WHERE) { emulation::wgmma_commit(where); }
template <int groups_left>
void wgmma_wait(SAGITTA_WHERE) {
  emulation::wgmma_wait(groups_left, where);
}
/** The emulation has no compiler that moves registers, so there is nothing to keep in order. */
template <int count>
void wgmma_fence_sums(int32_t (&)[count]) {}
using emulation::fence_async_shared;
using emulation::wgmma_descriptor;

/** The emulation does not count registers. */
template <int count>
void lower_registers() {}
template <int count>
void raise_registers() {}

inline uint32_t load_shared(const uint32_t* address) { return *address; }
using emulation::copy_to_shared;
using emulation::fence_mbarrier_init;
using emulation::mbarrier_arrive;
using emulation::mbarrier_arrive_expect;
using emulation::mbarrier_init;
using emulation::mbarrier_wait;

#else

/** Loads data that is read once, bypassing the L1 cache. The memory must not change while the kernel runs. */
__device__ __forceinline__ uint2 load_streaming(const uint2* address) {
  uint2 value;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
               : "=r"(value.x), "=r"(value.y)
               : "l"(__cvta_generic_to_global(address)));
  return value;
}
__device__ __forceinline__ uint4 load_streaming(const uint4* address) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(__cvta_generic_to_global(address)));
  return value;
}

/**
 * Loads data that other warps read too. The memory must not change while the kernel runs. Volatile, so that
 * the compiler does not move a load into registers that a wgmma in flight still reads.
 */
__device__ __forceinline__ uint2 load_cached(const uint2* address) {
  uint2 value;
  asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];"
               : "=r"(value.x), "=r"(value.y)
               : "l"(__cvta_generic_to_global(address)));
  return value;
}
__device__ __forceinline__ uint4 load_cached(const uint4* address) {
  uint4 value;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(__cvta_generic_to_global(address)));
  return value;
}

/** Approximates 1 / value to within 2^-23 of it; infinity for 0. */
__device__ __forceinline__ float approximate_reciprocal(float value) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

/**
 * sums [16, 8] += rows [16, 32] u8 · queries [32, 8] s8, by all lanes of a warp. With g = lane / 4 and
 * t = lane % 4: rows[0] is row g, dimensions 4t to 4t + 3; rows[1] the same of row g + 8; rows[2] and
 * rows[3] the same rows, 16 dimensions further. queries.x is column g, dimensions 4t to 4t + 3;
 * queries.y 16 dimensions further. sums[0] and sums[1] are row g, columns 2t and 2t + 1; sums[2] and
 * sums[3] the same columns of row g + 8.
 */
__device__ __forceinline__ void mma_u8s8(int32_t (&sums)[4], const uint32_t (&rows)[4],
                                         uint2 queries) {
#if defined(__CUDA_ARCH__)
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(queries.x), "r"(queries.y));
#endif
}

// Operand lists of the asm statement: ten operand numbers at a time, eight or 32 sums at a time.
#define SAGITTA_TEN(tens)                                                                          \
  "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, "    \
  "%" #tens "7, %" #tens "8, %" #tens "9"
#define SAGITTA_SUMS_8(i)                                                                          \
  "+r"(sums[i]), "+r"(sums[(i) + 1]), "+r"(sums[(i) + 2]), "+r"(sums[(i) + 3]),                    \
      "+r"(sums[(i) + 4]), "+r"(sums[(i) + 5]), "+r"(sums[(i) + 6]), "+r"(sums[(i) + 7])
#define SAGITTA_SUMS_32(i)                                                                         \
  SAGITTA_SUMS_8(i), SAGITTA_SUMS_8((i) + 8), SAGITTA_SUMS_8((i) + 16), SAGITTA_SUMS_8((i) + 24)
/** `list` contains the operand numbers of the sums; those of rows, descriptor and keep follow. */
#define SAGITTA_WGMMA(n, list, r0, r1, r2, r3, from, kept, ...)                                    \
  asm volatile(                                                                                    \
      "{\n"                                                                                        \
      ".reg .pred p;\n"                                                                            \
      "setp.ne.b32 p, %" #kept ", 0;\n"                                                            \
      "wgmma.mma_async.sync.aligned.m64n" #n "k32.s32.u8.s8 {" list "}, "                          \
      "{%" #r0 ", %" #r1 ", %" #r2 ", %" #r3 "}, %" #from ", p;\n"                                 \
      "}\n"                                                                                        \
      : __VA_ARGS__                                                                                \
      : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(descriptor),                   \
        "r"(static_cast<uint32_t>(keep)))

/**
 * sums [64, N] (+)= rows [64, 32] u8 · columns [32, N] s8, by the 128 threads of a warpgroup; without `keep`, the
 * sums are overwritten. Warp w holds rows 16w to 16w + 15, laid out as for mma_u8s8, and sums[4j] to sums[4j + 3]
 * belong to columns 8j to 8j + 7. Columns are in shared memory, see wgmma_descriptor. Traps on devices without wgmma.
 */
template <int N>
__device__ __forceinline__ void wgmma_u8s8(int32_t (&sums)[N / 2], const uint32_t (&rows)[4],
                                           uint64_t descriptor, bool keep) {
  static_assert(N == 64 || N == 128 || N == 192 || N == 256);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (N == 64) {
    SAGITTA_WGMMA(64, SAGITTA_TEN() ", " SAGITTA_TEN(1) ", " SAGITTA_TEN(2) ", %30, %31",  //
                  32, 33, 34, 35, 36, 37, SAGITTA_SUMS_32(0));
  } else if constexpr (N == 128) {
    SAGITTA_WGMMA(128,
                  SAGITTA_TEN() ", " SAGITTA_TEN(1) ", " SAGITTA_TEN(2) ", " SAGITTA_TEN(3)
                  ", " SAGITTA_TEN(4) ", " SAGITTA_TEN(5) ", %60, %61, %62, %63",
                  64, 65, 66, 67, 68, 69, SAGITTA_SUMS_32(0), SAGITTA_SUMS_32(32));
  } else if constexpr (N == 192) {
    SAGITTA_WGMMA(192,
                  SAGITTA_TEN() ", " SAGITTA_TEN(1) ", " SAGITTA_TEN(2) ", " SAGITTA_TEN(3)
                  ", " SAGITTA_TEN(4) ", " SAGITTA_TEN(5) ", " SAGITTA_TEN(6) ", " SAGITTA_TEN(7)
                  ", " SAGITTA_TEN(8) ", %90, %91, %92, %93, %94, %95",
                  96, 97, 98, 99, 100, 101, SAGITTA_SUMS_32(0), SAGITTA_SUMS_32(32),
                  SAGITTA_SUMS_32(64));
  } else {
    SAGITTA_WGMMA(256,
                  SAGITTA_TEN() ", " SAGITTA_TEN(1) ", " SAGITTA_TEN(2) ", " SAGITTA_TEN(3)
                  ", " SAGITTA_TEN(4) ", " SAGITTA_TEN(5) ", " SAGITTA_TEN(6) ", " SAGITTA_TEN(7)
                  ", " SAGITTA_TEN(8) ", " SAGITTA_TEN(9) ", " SAGITTA_TEN(10) ", " SAGITTA_TEN(11)
                  ", %120, %121, %122, %123, %124, %125, %126, %127",
                  128, 129, 130, 131, 132, 133, SAGITTA_SUMS_32(0), SAGITTA_SUMS_32(32),
                  SAGITTA_SUMS_32(64), SAGITTA_SUMS_32(96));
  }
#else
  __trap();
#endif
}

#undef SAGITTA_WGMMA
#undef SAGITTA_SUMS_32
#undef SAGITTA_SUMS_8
#undef SAGITTA_TEN

/** Required before the first wgmma and before any wgmma that follows a change of sums or rows. */
__device__ __forceinline__ void wgmma_fence() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

/** Commits the wgmma since the last commit as one group. */
__device__ __forceinline__ void wgmma_commit() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/** Waits until at most `groups_left` groups are in flight; the sums of the others are complete. */
template <int groups_left>
__device__ __forceinline__ void wgmma_wait() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups_left) : "memory");
#endif
}

/**
 * Keeps reads of the sums behind the wait: the wait's memory clobber does not order registers, so that a
 * compiler might convert sums before the wait that completes them.
 */
template <int count>
__device__ __forceinline__ void wgmma_fence_sums(int32_t (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("" : "+r"(sums[i])::"memory");
}

/**
 * The descriptor of columns in dynamic shared memory, aligned to 1024 bytes: 128 dimensions (bytes)
 * per column, eight columns per atom of 1024 bytes, one atom after another; within a column, 16-byte
 * unit i is at i XOR (column % 8). Adding 2 moves on by 32 dimensions.
 */
__device__ __forceinline__ uint64_t wgmma_descriptor(const void* shared) {
  const auto address = static_cast<uint64_t>(__cvta_generic_to_shared(shared));
  return (address & 0x3ffff) >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}

/** Required after writing shared memory that wgmma reads or a bulk copy overwrites, before the barrier. */
__device__ __forceinline__ void fence_async_shared() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/** Returns the address of shared memory in the form that instructions take. */
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/** Loads from shared memory. Volatile for the same reason as load_cached. */
__device__ __forceinline__ uint32_t load_shared(const uint32_t* address) {
  uint32_t value;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(shared_address(address)));
  return value;
}

// Mbarriers and bulk copies do nothing before compute capability 9.0: no kernel that uses them runs there.

/**
 * Makes an mbarrier of 8 bytes of shared memory, aligned to 8. Each of its phases, from phase 0, ends when
 * `count` arrivals have happened and all bytes that they expect have been copied.
 */
__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, uint32_t count) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
#endif
}

/** Required after mbarrier_init, before the barrier, for copies and other threads to see the mbarrier. */
__device__ __forceinline__ void fence_mbarrier_init() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

/** One arrival. What the thread has read or written before it comes before the end of the phase. */
__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#endif
}

/** One arrival, which adds bytes of copies that the phase waits for: at most 2^20 − 1 in a phase. */
__device__ __forceinline__ void mbarrier_arrive_expect(uint64_t* barrier, uint32_t byte_count) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(byte_count)
               : "memory");
#endif
}

/**
 * Waits for the end of the current phase if it has this parity (phase 0 has parity 0). Otherwise returns at
 * once: the phase before it has ended, where a phase with parity 1 counts as having ended before phase 0.
 * Copied data, and what came before arrivals, is visible afterwards.
 */
__device__ __forceinline__ void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t has_ended;
  do {
    // Suspends the thread until the phase ends, but not longer than a time chosen by the device.
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(has_ended)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (has_ended == 0);
#endif
}

/**
 * Copies from device memory to the block's shared memory, asynchronously: the mbarrier's current phase,
 * which expects these bytes, ends no earlier than the copy. Addresses and length are multiples of 16.
 */
__device__ __forceinline__ void copy_to_shared(void* to, const void* from, uint32_t byte_count,
                                               uint64_t* barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(byte_count), "r"(shared_address(barrier))
      : "memory");
#endif
}

/**
 * Changes the number of registers of each thread of a warpgroup, all of whose warps must call it, to
 * `count`, a multiple of 8. To get more, it waits until other warpgroups of the block have released enough.
 */
template <int count>
__device__ __forceinline__ void lower_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
#endif
}
template <int count>
__device__ __forceinline__ void raise_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
#endif
}

#endif

}  // namespace sagitta::cuda
