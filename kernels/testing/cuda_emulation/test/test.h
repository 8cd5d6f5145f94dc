// Helpers of the platform tests.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "../../../cuda/platform.h"

namespace platform_test {

/** Ends the process if the condition does not hold. */
inline void require(bool holds, const char* what, uint64_t at = 0) {
  if (holds) return;
  fprintf(stderr, "%s (at %llu)\n", what, static_cast<unsigned long long>(at));
  std::exit(1);
}

inline void require_success(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s, %s\n", what, cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(1);
}

/** splitmix64, which gives the same numbers on host and device. */
__host__ __device__ inline uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/** Device memory, freed by the destructor; `get` waits for the device. */
template <class T>
class device_array {
 public:
  explicit device_array(size_t count) : count_(count) {
    require_success(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    require_success(cudaMemsetAsync(data_, 0, count * sizeof(T)), "cudaMemsetAsync");
  }
  device_array(const device_array&) = delete;
  ~device_array() { cudaFree(data_); }
  T* data() { return data_; }
  void set(const T* values) {
    require_success(cudaMemcpyAsync(data_, values, count_ * sizeof(T), cudaMemcpyHostToDevice),
                    "cudaMemcpyAsync to the device");
    require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  void get(T* values) {
    require_success(cudaMemcpyAsync(values, data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
                    "cudaMemcpyAsync to the host");
    require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

/** Tests of kernels, emulated or on a device. */
void test_threads();
void test_tensor_cores();
void test_bulk_copies();
void test_published_layout();
void test_block_select();
/** Tests of the emulation only: streams, memory, lost devices, resident blocks, and kernels with mistakes. */
void test_machine();
void test_resident_blocks();
void test_mistakes();
void test_races();
/** Prints the speed of the emulation. */
void time_emulation();

}  // namespace platform_test
