// Starting a kernel: the call keeps a copy of the parameters in the stream, which runs the blocks.
#pragma once

#include <functional>
#include <source_location>
#include <string>
#include <type_traits>

#include "runtime.h"

namespace sagitta::cuda::emulation {

/** One launch, as the stream keeps it. */
struct grid_launch {
  const void* kernel;
  std::source_location place;
  dim3 grid;
  uint32_t threads;
  size_t shared_bytes;
  /** One thread of it. */
  std::function<void()> run;
};

cudaError_t put_launch(grid_launch launch, cudaStream_t stream);

/** Runs every block, one after another, in an order that is drawn. */
void run_grid(const grid_launch& launch);

/** For messages: the kernel's name where the program has its symbols, and where it was started. */
std::string name_of(const grid_launch& launch);

template <class P>
cudaError_t launch(void (*kernel)(P), dim3 grid, uint32_t threads, size_t shared_bytes,
                   cudaStream_t stream, const P& parameters,
                   std::source_location where = std::source_location::current()) {
  static_assert(std::is_trivially_copyable_v<P>);
  return put_launch({reinterpret_cast<const void*>(kernel), where, grid, threads, shared_bytes,
                     [kernel, parameters] { kernel(parameters); }},
                    stream);
}

}  // namespace sagitta::cuda::emulation
