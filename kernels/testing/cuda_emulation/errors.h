// What every call of the runtime begins with: the lock, the device it is about, and whether that
// device still answers. Errors are kept per thread, as CUDA keeps them.
#pragma once

#include <functional>
#include <mutex>

#include "machine.h"

namespace sagitta::cuda::emulation {

class call {
 public:
  /** About the device that is set on this thread. */
  call();
  /** About that of the stream; null for the default one. */
  explicit call(cudaStream_t stream);
  call(const call&) = delete;

  /** No device, no such stream, or a lost device; the call then does nothing. */
  cudaError_t error() const { return error_; }
  /** Keeps the error for cudaGetLastError, and gives it back. */
  cudaError_t fails(cudaError_t error) const;
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

/** The index that cudaSetDevice has set on this thread. */
int& device_of_thread();

}  // namespace sagitta::cuda::emulation
