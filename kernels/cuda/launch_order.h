// The stream of a launch and whether it is early; part of platform.h.
#pragma once

namespace sagitta::cuda {

/**
 * The stream of a launch. An early launch (programmatic dependent launch, compute capability 9.0) puts the
 * thread blocks of a kernel in place while the preceding kernel in the stream still runs, which hides the
 * latency of the launch; every thread of the kernel must call await_earlier_kernels before anything else.
 */
struct launch_order {
  launch_order(cudaStream_t wanted, bool early = false) : stream(wanted), is_early(early) {}
  cudaStream_t stream;
  bool is_early;
};

}  // namespace sagitta::cuda
