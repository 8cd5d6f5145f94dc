#include "peaks.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "../intrinsics.h"
#include "../resources.h"

#if !defined(SAGITTA_EMULATE_CUDA)
#include <cuda_profiler_api.h>
#endif

namespace sagitta::cuda {
namespace {

constexpr uint32_t threads = 256;
#if defined(SAGITTA_EMULATE_CUDA)
// The emulation only checks that the program runs.
constexpr uint32_t rounds = 4;
constexpr size_t copied = size_t{1} << 20;
constexpr double measured_ms = 0;
#else
constexpr uint32_t rounds = 4096;
constexpr size_t copied = size_t{1} << 30;
// Clocks follow the power draw only after some milliseconds.
constexpr double measured_ms = 50;
#endif
constexpr int independent = 8;
constexpr int columns = 256;
constexpr double mma_operations = 2.0 * 16 * 8 * 32;
constexpr double wgmma_operations = 2.0 * 64 * columns * 32;

struct rate_parameters {
  /** Written only for impossible sums, so that the compiler cannot remove the loop. */
  int32_t* sink;
};

/** Operands that are not zeros, because the power consumption, and with it the clock, depends on them. */
__device__ inline void fill(uint32_t (&words)[4]) {
  for (uint32_t i = 0; i < 4; i++) words[i] = (threadIdx.x + i) * 2654435761u;
}

__global__ __launch_bounds__(threads) void run_mma(const __grid_constant__ rate_parameters p) {
  uint32_t rows[4];
  fill(rows);
  int32_t sums[independent][4] = {};
  for (uint32_t round = 0; round < rounds; round++) {
#pragma unroll
    for (int i = 0; i < independent; i++) mma_u8s8(sums[i], rows, make_uint2(rows[1], rows[2]));
  }
  int32_t total = 0;
  for (int i = 0; i < independent; i++) total ^= sums[i][0] ^ sums[i][1] ^ sums[i][2] ^ sums[i][3];
  if (total == 0x7fffffff) p.sink[threadIdx.x] = total;
}

__global__ __launch_bounds__(threads, 1) void run_wgmma(const __grid_constant__ rate_parameters p) {
  auto* const shared = dynamic_shared<uint32_t>();
  for (uint32_t i = threadIdx.x; i < columns * 128 / 4; i += threads) shared[i] = i * 2654435761u;
  fence_async_shared();
  __syncthreads();
  uint32_t rows[4];
  fill(rows);
  int32_t sums[columns / 2] = {};
  const uint64_t descriptor = wgmma_descriptor(shared);
  for (uint32_t round = 0; round < rounds / 4; round++) {
    wgmma_fence();
#pragma unroll
    for (uint64_t step = 0; step < 4; step++) {
      wgmma_u8s8<columns>(sums, rows, descriptor + 2 * step, true);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_sums(sums);
  }
  int32_t total = 0;
#pragma unroll
  for (int i = 0; i < columns / 2; i++) total ^= sums[i];
  if (total == 0x7fffffff) p.sink[threadIdx.x] = total;
}

/** Returns the milliseconds of what `work` puts on the stream: the median of runs of at least `measured_ms`. */
template <class Work>
double milliseconds(const stream& on, Work work) {
  event before;
  event after;
  before.open();
  after.open();
  const auto time_of = [&](int count) {
    before.record(on);
    for (int i = 0; i < count; i++) work();
    after.record(on);
    on.synchronize("peak");
    float time = 0;
    check(cudaEventElapsedTime(&time, before, after), "peak");
    return static_cast<double>(time);
  };
  (void)time_of(1);
  constexpr double count_max = 1000;
  const double wanted = std::ceil(measured_ms / std::max(1e-3, time_of(1)));
  const int count = static_cast<int>(std::clamp(wanted, 1.0, count_max));
  std::vector<double> times;
  for (int run = 0; run < 3; run++) times.push_back(time_of(count) / count);
  std::sort(times.begin(), times.end());
  return times[1];
}

}  // namespace

device_peaks measure_peaks(bool may_wgmma) {
  device_peaks peaks{};
  stream on;
  on.open();
  int device = 0;
  check(cudaGetDevice(&device), "device");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "device");
  const auto multiprocessors = static_cast<uint32_t>(properties.multiProcessorCount);

  device_memory memory;
  memory.require(2 * copied);
  check(cudaMemsetAsync(memory.data(), 1, 2 * copied, on), "peak");
  const double copy_ms = milliseconds(on, [&] {
    check(cudaMemcpyAsync(memory.data() + copied, memory.data(), copied, cudaMemcpyDeviceToDevice, on),
          "copy");
  });
  peaks.copy_bytes_per_second = 2.0 * static_cast<double>(copied) / copy_ms * 1e3;

  const rate_parameters parameters{reinterpret_cast<int32_t*>(memory.data())};
  const uint32_t blocks = 4 * multiprocessors;
  const double mma_ms = milliseconds(on, [&] {
    check(launch(run_mma, dim3(blocks), threads, 0, cudaStream_t{on}, parameters), "mma");
  });
  peaks.mma_operations_per_second =
      static_cast<double>(blocks) * (threads / 32) * rounds * independent * mma_operations / mma_ms * 1e3;
  if (!may_wgmma) return peaks;
  constexpr size_t shared_bytes = columns * 128;
  check(cudaFuncSetAttribute(run_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        "wgmma");
  const double wgmma_ms = milliseconds(on, [&] {
    check(launch(run_wgmma, dim3(multiprocessors), threads, shared_bytes, cudaStream_t{on}, parameters),
          "wgmma");
  });
  peaks.wgmma_operations_per_second =
      static_cast<double>(multiprocessors) * (threads / 128) * rounds * wgmma_operations / wgmma_ms * 1e3;
  return peaks;
}

#if defined(SAGITTA_EMULATE_CUDA)
void start_profile() {}
void stop_profile() {}
#else
void start_profile() { (void)cudaProfilerStart(); }
void stop_profile() { (void)cudaProfilerStop(); }
#endif

}  // namespace sagitta::cuda
