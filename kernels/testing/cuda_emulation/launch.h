// Kernel launches: a launch puts a copy of the parameters into the stream, which runs the blocks later.
#pragma once

#include <functional>
#include <source_location>
#include <string>
#include <type_traits>

#include "runtime.h"
#include "threads.h"

#include "../../cuda/launch_order.h"

namespace sagitta::cuda::emulation {

/** A launch in a stream. */
struct grid_launch {
  const void* kernel;
  std::source_location location;
  dim3 grid;
  uint32_t threads;
  size_t shared_bytes;
  /** Runs one thread. */
  std::function<void()> run;
  bool is_early;
};

cudaError_t put_launch(grid_launch launch, cudaStream_t stream);

/** Runs all blocks, several at a time, in random order. */
void run_grid(const grid_launch& launch);

/** The kernel's name, if symbols are available, and the location of its launch, for messages. */
std::string name_of(const grid_launch& launch);

template <class P>
cudaError_t launch(void (*kernel)(P), dim3 grid, uint32_t threads, size_t shared_bytes,
                   launch_order order, const P& parameters,
                   std::source_location where = std::source_location::current()) {
  static_assert(std::is_trivially_copyable_v<P>);
  return put_launch({reinterpret_cast<const void*>(kernel), where, grid, threads, shared_bytes,
                     [kernel, parameters] { kernel(parameters); }, order.is_early},
                    order.stream);
}

/** The device's wait in early launches; see early_launch.h. */
void await_earlier_kernels(SAGITTA_WHERE);

}  // namespace sagitta::cuda::emulation
