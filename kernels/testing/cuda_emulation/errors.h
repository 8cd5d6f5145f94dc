// The start of every runtime call: takes the lock, finds the device and checks that it is not lost. Errors
// are kept per thread, as in CUDA.
#pragma once

#include <functional>
#include <mutex>

#include "machine.h"

namespace sagitta::cuda::emulation {

class call {
 public:
  /** A call for the current device of this thread. */
  call();
  /** A call for the device of the stream; null means the default stream. */
  explicit call(cudaStream_t stream);
  call(const call&) = delete;

  /** The error if the device or stream does not exist or the device is lost; the call must then do nothing. */
  cudaError_t error() const { return error_; }
  /** Stores the error for cudaGetLastError and returns it. */
  cudaError_t fails(cudaError_t error) const;
  /** Returns the error of work that has finished: the call that waits for a kernel reports its fault. */
  cudaError_t outcome() const;
  emulation::device* device() const { return device_; }
  CUstream_st* stream() const { return stream_; }

  void put(operation operation);
  /** Waits for all streams of the device. */
  void finish(emulation::device& device);
  void finish(CUstream_st& stream);

 private:
  void begin();
  std::unique_lock<std::recursive_mutex> guard_;
  emulation::device* device_ = nullptr;
  CUstream_st* stream_ = nullptr;
  cudaError_t error_ = cudaSuccess;
};

/** The device index set by cudaSetDevice on this thread. */
int& device_of_thread();

}  // namespace sagitta::cuda::emulation
