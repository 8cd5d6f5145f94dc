// What the threads of a block share: indexes, barriers, exchanges between the lanes of a warp, and atomics.
// At every synchronisation other threads and blocks may run, in random order. A deadlock ends the process
// with a message that says where each thread waits.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "types.h"

extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
inline constexpr int warpSize = 32;

namespace sagitta::cuda::emulation {

using location = std::source_location;

/** An operation of the lanes of a warp, which is run once, with a pointer from each lane of the mask. */
struct collective {
  const char* name;
  void (*run)(unsigned mask, void* const* operands);
};

/** Waits until every lane of the mask has called the same collective, which is then run once. */
void meet(const collective& collective, unsigned mask, void* operands, const location& where);

enum class barrier { plain, any, count };

/** Waits for all threads of the block that have not returned; counts those whose predicate is set. */
int meet_block(barrier barrier, bool predicate, const location& where);

/** Lets other threads run first, at random, where a device might. */
void maybe_yield();

/** The start of an atomic operation, which may yield and is distinguished from a plain access (races.h). */
void begin_atomic(const void* address, size_t bytes);
/** __threadfence and __threadfence_block. */
void fence_memory();

[[noreturn]] void trap(const location& where);

/** The block's dynamic shared memory, of the size given at launch. */
unsigned char* dynamic_shared_memory();
size_t dynamic_shared_bytes();

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(dynamic_shared_memory());
}

/** A value for another lane, replaced by the value from another lane. */
struct exchange {
  uint64_t value;
  unsigned source;
};
extern const collective shuffle, ballot, reduce_add, reduce_min, reduce_max, reduce_and, reduce_or,
    warp_barrier;

template <class T>
concept shuffled = std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

template <shuffled T>
T exchanged(unsigned mask, T value, unsigned source, const location& where) {
  using bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  exchange operands = {std::bit_cast<bits>(value), source};
  meet(shuffle, mask, &operands, where);
  return std::bit_cast<T>(static_cast<bits>(operands.value));
}

inline unsigned together(const collective& collective, unsigned mask, unsigned value,
                         const location& where) {
  exchange operands = {value, 0};
  meet(collective, mask, &operands, where);
  return static_cast<unsigned>(operands.value);
}

inline unsigned own_lane() { return threadIdx.x % 32; }

template <class T>
concept atomic = std::same_as<T, int> || std::same_as<T, unsigned> ||
                 std::same_as<T, unsigned long long>;

// Not among the accesses of a kernel that are instrumented (races.h).
template <class T>
__attribute__((noinline, no_sanitize("thread"))) T load_atomically(const T* address) {
  return *address;
}
template <class T>
__attribute__((noinline, no_sanitize("thread"))) void store_atomically(T* address, T value) {
  *address = value;
}

// Inlined, so that messages say where the kernel calls it.
template <class T, class F>
__forceinline__ T replace(T* address, F next) {
  begin_atomic(address, sizeof(T));
  const T old = load_atomically(address);
  store_atomically(address, next(old));
  return old;
}

}  // namespace sagitta::cuda::emulation

#define SAGITTA_WHERE \
  const sagitta::cuda::emulation::location &where = sagitta::cuda::emulation::location::current()

inline void __syncthreads(SAGITTA_WHERE) {
  sagitta::cuda::emulation::meet_block(sagitta::cuda::emulation::barrier::plain, false, where);
}
inline int __syncthreads_or(int predicate, SAGITTA_WHERE) {
  return sagitta::cuda::emulation::meet_block(sagitta::cuda::emulation::barrier::any,
                                              predicate != 0, where) != 0;
}
inline int __syncthreads_count(int predicate, SAGITTA_WHERE) {
  return sagitta::cuda::emulation::meet_block(sagitta::cuda::emulation::barrier::count,
                                              predicate != 0, where);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, SAGITTA_WHERE) {
  sagitta::cuda::emulation::meet(sagitta::cuda::emulation::warp_barrier, mask, nullptr, where);
}

// Widths are powers of two. A source outside the lane's segment gives the lane's own value.
template <sagitta::cuda::emulation::shuffled T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, SAGITTA_WHERE) {
  const unsigned within = static_cast<unsigned>(width) - 1;
  const unsigned lane = sagitta::cuda::emulation::own_lane();
  return sagitta::cuda::emulation::exchanged(
      mask, value, (lane & ~within) | (static_cast<unsigned>(source) & within), where);
}
template <sagitta::cuda::emulation::shuffled T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, SAGITTA_WHERE) {
  const unsigned lane = sagitta::cuda::emulation::own_lane();
  const unsigned source = lane ^ static_cast<unsigned>(lanes);
  // A source in a later segment is ignored, one in an earlier segment is not.
  const unsigned last = lane | (static_cast<unsigned>(width) - 1);
  return sagitta::cuda::emulation::exchanged(mask, value, source <= last ? source : lane, where);
}
template <sagitta::cuda::emulation::shuffled T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32, SAGITTA_WHERE) {
  const unsigned lane = sagitta::cuda::emulation::own_lane();
  const unsigned last = lane | (static_cast<unsigned>(width) - 1);
  return sagitta::cuda::emulation::exchanged(mask, value, lane + lanes <= last ? lane + lanes : lane,
                                             where);
}
template <sagitta::cuda::emulation::shuffled T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32, SAGITTA_WHERE) {
  const unsigned lane = sagitta::cuda::emulation::own_lane();
  const unsigned first = lane & ~(static_cast<unsigned>(width) - 1);
  return sagitta::cuda::emulation::exchanged(mask, value, lane >= first + lanes ? lane - lanes : lane,
                                             where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, SAGITTA_WHERE) {
  return sagitta::cuda::emulation::together(sagitta::cuda::emulation::ballot, mask, predicate != 0,
                                            where);
}
inline int __any_sync(unsigned mask, int predicate, SAGITTA_WHERE) {
  return __ballot_sync(mask, predicate, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate, SAGITTA_WHERE) {
  return __ballot_sync(mask, predicate, where) == mask;
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, SAGITTA_WHERE) {
  return sagitta::cuda::emulation::together(sagitta::cuda::emulation::reduce_add, mask, value,
                                            where);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, SAGITTA_WHERE) {
  return sagitta::cuda::emulation::together(sagitta::cuda::emulation::reduce_min, mask, value,
                                            where);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, SAGITTA_WHERE) {
  return sagitta::cuda::emulation::together(sagitta::cuda::emulation::reduce_max, mask, value,
                                            where);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, SAGITTA_WHERE) {
  return sagitta::cuda::emulation::together(sagitta::cuda::emulation::reduce_and, mask, value,
                                            where);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, SAGITTA_WHERE) {
  return sagitta::cuda::emulation::together(sagitta::cuda::emulation::reduce_or, mask, value,
                                            where);
}

// Threads do not switch between the read and the write, so plain updates are atomic.
template <sagitta::cuda::emulation::atomic T>
__forceinline__ T atomicAdd(T* address, std::type_identity_t<T> value) {
  return sagitta::cuda::emulation::replace(address, [value](T old) {
    using wrapping = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<wrapping>(old) + static_cast<wrapping>(value));
  });
}
template <sagitta::cuda::emulation::atomic T>
__forceinline__ T atomicMax(T* address, std::type_identity_t<T> value) {
  return sagitta::cuda::emulation::replace(address,
                                           [value](T old) { return old > value ? old : value; });
}
template <sagitta::cuda::emulation::atomic T>
__forceinline__ T atomicMin(T* address, std::type_identity_t<T> value) {
  return sagitta::cuda::emulation::replace(address,
                                           [value](T old) { return old < value ? old : value; });
}
/** Counts from 0 to `last`, then starts again. */
__forceinline__ unsigned atomicInc(unsigned* address, unsigned last) {
  return sagitta::cuda::emulation::replace(
      address, [last](unsigned old) { return old >= last ? 0 : old + 1; });
}
template <sagitta::cuda::emulation::atomic T>
__forceinline__ T atomicOr(T* address, std::type_identity_t<T> value) {
  return sagitta::cuda::emulation::replace(address, [value](T old) { return old | value; });
}
template <sagitta::cuda::emulation::atomic T>
__forceinline__ T atomicAnd(T* address, std::type_identity_t<T> value) {
  return sagitta::cuda::emulation::replace(address, [value](T old) { return old & value; });
}
template <sagitta::cuda::emulation::atomic T>
__forceinline__ T atomicExch(T* address, std::type_identity_t<T> value) {
  return sagitta::cuda::emulation::replace(address, [value](T) { return value; });
}
template <sagitta::cuda::emulation::atomic T>
__forceinline__ T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return sagitta::cuda::emulation::replace(
      address, [expected, value](T old) { return old == expected ? value : old; });
}

template <class T>
T __ldg(const T* address) {
  return *address;
}

inline void __threadfence() { sagitta::cuda::emulation::fence_memory(); }
inline void __threadfence_block() { sagitta::cuda::emulation::fence_memory(); }
[[noreturn]] inline void __trap(SAGITTA_WHERE) { sagitta::cuda::emulation::trap(where); }
