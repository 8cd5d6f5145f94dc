// The CUDA platform that every .cu file includes: CUDA itself, or its emulation on the CPU.
//
// nvcc compiles the sources for devices. A C++ compiler with -DSAGITTA_EMULATE_CUDA compiles the same
// sources against testing/cuda_emulation/, for tests only: there, threads are fibers, and streams
// run as late as CUDA allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
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
                   cudaStream_t stream, const P& parameters) {
  static_assert(std::is_trivially_copyable_v<P>);
  void* arguments[] = {const_cast<P*>(&parameters)};
  const cudaError_t error = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid,
                                             dim3(threads), arguments, shared_bytes, stream);
  // The caller has the error: clear it, or the next call would return it again.
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

/** The block's dynamic shared memory, aligned to 1024 bytes. */
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char sagitta_dynamic_shared[];
  return reinterpret_cast<T*>(sagitta_dynamic_shared);
}

#else

using emulation::dynamic_shared;
using emulation::launch;

#endif

/** Loads the kernel's code now, so that no launch has to, for which the memory may be missing later. */
template <class P>
cudaError_t preload(void (*kernel)(P)) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
}

}  // namespace sagitta::cuda
