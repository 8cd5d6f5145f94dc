// The CUDA platform that every .cu file includes: CUDA itself or its emulation on the CPU.
//
// nvcc compiles the sources for devices. A C++ compiler with -DSAGITTA_EMULATE_CUDA compiles the same sources against
// testing/cuda_emulation/, for tests only: there, threads are fibers, and streams run as late as CUDA allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
#include <cuda_runtime.h>

#include "launch_order.h"
#elif defined(SAGITTA_EMULATE_CUDA)
#include "../testing/cuda_emulation/arithmetic.h"
#include "../testing/cuda_emulation/launch.h"
#include "../testing/cuda_emulation/runtime.h"
#include "../testing/cuda_emulation/threads.h"
#include "../testing/cuda_emulation/types.h"
#else
#error "kernels for devices are compiled by nvcc, or with -DSAGITTA_EMULATE_CUDA by a C++ compiler"
#endif

namespace sagitta::cuda {

inline constexpr uint32_t warp_threads = 32;
/** Threads of one wgmma: four consecutive warps, the first at a multiple of four. */
inline constexpr uint32_t warpgroup_threads = 128;

#if defined(__CUDACC__)

/**
 * Launches a kernel that takes one struct by value. Returns the error of the launch; an error of the
 * running kernel is returned by the next call that waits for the stream.
 */
template <class P>
cudaError_t launch(void (*kernel)(P), dim3 grid, uint32_t threads, size_t shared_bytes,
                   launch_order order, const P& parameters) {
  static_assert(std::is_trivially_copyable_v<P>);
  void* arguments[] = {const_cast<P*>(&parameters)};
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launched{};
  launched.gridDim = grid;
  launched.blockDim = dim3(threads);
  launched.dynamicSmemBytes = shared_bytes;
  launched.stream = order.stream;
  launched.attrs = &early;
  launched.numAttrs = order.is_early ? 1 : 0;
  const cudaError_t error =
      cudaLaunchKernelExC(&launched, reinterpret_cast<const void*>(kernel), arguments);
  // The caller has the error; unless it is cleared here, the next call would return it again.
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

/**
 * Waits until the preceding kernels in the stream have ended and their writes are visible, and lets the
 * next one be launched meanwhile. Every thread of every kernel of a search calls it first: a kernel that
 * ended without it would end before those that it depends on. Without an early launch it does nothing.
 */
__device__ __forceinline__ void await_earlier_kernels() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

/** The block's dynamic shared memory, aligned to 1024 bytes. */
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char sagitta_dynamic_shared[];
  return reinterpret_cast<T*>(sagitta_dynamic_shared);
}

#else

using emulation::await_earlier_kernels;
using emulation::dynamic_shared;
using emulation::launch;

#endif

/**
 * Loads the kernel's code now, so that no launch has to, for which memory may be missing later. For every
 * kernel of a search, shared memory gets as much of a multiprocessor's memory as possible: a kernel that
 * needed another share would have to wait until the multiprocessor is empty, and could not start early.
 */
template <class P>
cudaError_t preload(void (*kernel)(P)) {
  const auto* const function = reinterpret_cast<const void*>(kernel);
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, function);
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                              cudaSharedmemCarveoutMaxShared);
}

}  // namespace sagitta::cuda
