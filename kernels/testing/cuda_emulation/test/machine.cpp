// Tests of the emulated host: streams that run late and in any order that events allow, the memory budget,
// and devices that are missing or lost.
#include <vector>

#include "../settings.h"
#include "test.h"

namespace platform_test {
namespace {

using namespace sagitta::cuda;

struct add_parameters {
  uint32_t* values;
  uint32_t count;
};

__global__ void add_one(add_parameters p) {
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < p.count) p.values[index]++;
}

emulation::settings with_seed(uint64_t seed) {
  emulation::settings wanted;
  wanted.seed = seed;
  return wanted;
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  require_success(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  return stream;
}

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  require_success(cudaEventCreate(&event), "an event");
  return event;
}

/** Nothing runs before a wait, so that premature reuse of a buffer is detected. */
void test_laziness() {
  emulation::restart(with_seed(1));
  const cudaStream_t stream = new_stream();
  uint32_t* on_device = nullptr;
  require_success(cudaMalloc(&on_device, 4), "cudaMalloc");
  uint32_t given = 1;
  uint32_t found = 0;
  require_success(cudaMemcpyAsync(on_device, &given, 4, cudaMemcpyHostToDevice, stream), "copy");
  require_success(launch(add_one, dim3(1), 32, 0, stream, add_parameters{on_device, 1}), "launch");
  require_success(cudaMemcpyAsync(&found, on_device, 4, cudaMemcpyDeviceToHost, stream), "copy");
  given = 41;
  require(found == 0, "work was done before a wait");
  require_success(cudaStreamSynchronize(stream), "wait");
  require(found == 42, "a copy did not see its buffer as it was at the wait", found);
  require_success(cudaStreamDestroy(stream), "cudaStreamDestroy");
  require_success(cudaFree(on_device), "cudaFree");
}

/** Returns what another stream reads, with or without an event in between. */
uint32_t read_elsewhere(uint64_t seed, bool is_ordered) {
  emulation::restart(with_seed(seed));
  const cudaStream_t writer = new_stream();
  const cudaStream_t reader = new_stream();
  const cudaEvent_t written = new_event();
  uint32_t* on_device = nullptr;
  require_success(cudaMalloc(&on_device, 4), "cudaMalloc");
  require_success(cudaMemsetAsync(on_device, 0, 4, writer), "memset");
  require_success(launch(add_one, dim3(1), 1, 0, writer, add_parameters{on_device, 1}), "launch");
  require_success(cudaEventRecord(written, writer), "record");
  require(cudaEventElapsedTime(nullptr, written, written) == cudaErrorNotReady, "time too early");
  if (is_ordered) require_success(cudaStreamWaitEvent(reader, written), "cudaStreamWaitEvent");
  uint32_t found = 99;
  require_success(cudaMemcpyAsync(&found, on_device, 4, cudaMemcpyDeviceToHost, reader), "copy");
  require_success(cudaStreamSynchronize(reader), "wait");
  uint32_t queries = 0;
  while (cudaEventQuery(written) == cudaErrorNotReady) require(++queries < 100, "no progress");
  float milliseconds = -1;
  require_success(cudaEventElapsedTime(&milliseconds, written, written), "elapsed time");
  require(milliseconds == 0, "time between an event and itself");
  return found;
}

void test_order() {
  bool seen[3] = {};
  for (uint64_t seed = 1; seed <= 60; seed++) {
    require(read_elsewhere(seed, true) == 1, "a stream did not wait for an event", seed);
    const uint32_t found = read_elsewhere(seed, false);
    seen[found == 0xcdcdcdcdu ? 0 : found == 0 ? 1 : 2] = true;
  }
  require(seen[0] && seen[1] && seen[2], "a missing event is not seen at every point");
  require(read_elsewhere(7, false) == read_elsewhere(7, false), "a seed draws other orders");
}

void test_memory() {
  emulation::settings wanted = with_seed(2);
  wanted.memory_bytes = 1 << 20;
  emulation::restart(wanted);
  unsigned char* first = nullptr;
  unsigned char* second = nullptr;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  require_success(cudaMalloc(&first, 700 << 10), "cudaMalloc");
  require(reinterpret_cast<uintptr_t>(first) % 256 == 0, "alignment of cudaMalloc");
  require(first[12345] == 0xcd, "fresh memory is poisoned");
  require(cudaMalloc(&second, 400 << 10) == cudaErrorMemoryAllocation, "more memory than the device has");
  require(cudaPeekAtLastError() == cudaErrorMemoryAllocation, "the last error is kept");
  require(cudaGetLastError() == cudaErrorMemoryAllocation, "the last error is given");
  require(cudaGetLastError() == cudaSuccess, "the last error is forgotten");
  require_success(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  require(total_bytes == 1 << 20 && free_bytes == 324 << 10, "cudaMemGetInfo", free_bytes);
  uint32_t host = 0;
  require(cudaMemcpyAsync(first + (700 << 10) - 2, &host, 4, cudaMemcpyHostToDevice) ==
              cudaErrorInvalidValue,
          "a copy beyond the end");
  require(cudaMemcpyAsync(first, &host, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue,
          "a copy in the wrong direction");
  require_success(cudaFree(first), "cudaFree");
  require(cudaFree(first) == cudaErrorInvalidValue, "what is free is freed again");
  require_success(cudaMalloc(&second, 1000 << 10), "freed memory can be allocated again");
  require_success(cudaFree(second), "cudaFree");
}

void test_pinned_memory() {
  emulation::settings wanted = with_seed(5);
  wanted.pinned_bytes = 1 << 20;
  emulation::restart(wanted);
  unsigned char* first = nullptr;
  unsigned char* second = nullptr;
  require_success(cudaMallocHost(&first, 700 << 10), "cudaMallocHost");
  require(cudaMallocHost(&second, 400 << 10) == cudaErrorMemoryAllocation, "more than can be pinned");
  require(cudaGetLastError() == cudaErrorMemoryAllocation, "the last error");
  require_success(cudaFreeHost(first), "cudaFreeHost");
  require(cudaFreeHost(first) == cudaErrorInvalidValue, "what is free is freed again");
  require_success(cudaMallocHost(&second, 400 << 10), "freed memory can be pinned again");
  emulation::limit_pinned(0);
  require(cudaMallocHost(&first, 1) == cudaErrorMemoryAllocation, "a lower limit");
  require_success(cudaFreeHost(second), "cudaFreeHost");
}

void test_launch_errors() {
  emulation::restart(with_seed(3));
  const add_parameters nothing = {nullptr, 0};
  require(launch(add_one, dim3(0), 32, 0, nullptr, nothing) == cudaErrorInvalidConfiguration,
          "a grid without blocks");
  require(launch(add_one, dim3(1), 1025, 0, nullptr, nothing) == cudaErrorInvalidConfiguration,
          "too many threads");
  require(launch(add_one, dim3(1), 32, 100 << 10, nullptr, nothing) == cudaErrorInvalidValue,
          "much shared memory without asking");
  const auto limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
  require(cudaFuncSetAttribute(add_one, limit, 228 << 10) == cudaErrorInvalidValue, "too much");
  require_success(cudaFuncSetAttribute(add_one, limit, 100 << 10), "cudaFuncSetAttribute");
  require_success(launch(add_one, dim3(1), 32, 100 << 10, nullptr, nothing), "launch");
  const auto carveout = cudaFuncAttributePreferredSharedMemoryCarveout;
  require(cudaFuncSetAttribute(add_one, carveout, 101) == cudaErrorInvalidValue, "too large a share");
  require_success(cudaFuncSetAttribute(add_one, carveout, cudaSharedmemCarveoutMaxShared),
                  "cudaFuncSetAttribute");
}

void test_devices() {
  emulation::settings wanted = with_seed(4);
  wanted.device_count = 0;
  emulation::restart(wanted);
  int count = 7;
  void* pointer = nullptr;
  require(cudaGetDeviceCount(&count) == cudaErrorNoDevice && count == 0, "no device");
  require(cudaMalloc(&pointer, 4) == cudaErrorNoDevice, "memory of no device");

  wanted.device_count = 2;
  wanted.fault_after = 2;
  wanted.capability = 86;
  emulation::restart(wanted);
  cudaDeviceProp properties;
  require_success(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  require(count == 2 && cudaSetDevice(2) == cudaErrorInvalidDevice, "two devices");
  require_success(cudaGetDeviceProperties(&properties, 1), "cudaGetDeviceProperties");
  require(properties.major == 8 && properties.minor == 6, "the capability");
  uint32_t* on_device = nullptr;
  uint32_t found = 5;
  require_success(cudaMalloc(&on_device, 4), "cudaMalloc");
  require_success(cudaMemsetAsync(on_device, 0, 4), "memset");
  const add_parameters p = {on_device, 1};
  require_success(launch(add_one, dim3(1), 32, 0, nullptr, p), "the first launch");
  require_success(cudaMemcpyAsync(&found, on_device, 4, cudaMemcpyDeviceToHost), "copy");
  require(launch(add_one, dim3(1), 32, 0, nullptr, p) == cudaErrorIllegalAddress, "the fault");
  require(cudaDeviceSynchronize() == cudaErrorIllegalAddress, "a lost device waits");
  require(cudaGetLastError() == cudaErrorIllegalAddress, "a fault stays");
  require(cudaGetLastError() == cudaErrorIllegalAddress, "a fault stays");
  require(found == 5, "a lost device still copied");
  require(cudaFree(on_device) == cudaErrorIllegalAddress, "a lost device frees");
  require_success(cudaSetDevice(1), "the other device");
  require_success(cudaDeviceSynchronize(), "the other device");
}

}  // namespace

void test_machine() {
  test_laziness();
  test_order();
  test_memory();
  test_pinned_memory();
  test_launch_errors();
  test_devices();
  emulation::restart(emulation::settings_of_environment());
}

}  // namespace platform_test
