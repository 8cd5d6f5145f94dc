// Compares mma and wgmma of random fragments with plain loops, and tests the cache-hint loads.
#include <ctime>
#include <vector>

#include "../../../cuda/intrinsics.h"
#include "test.h"

namespace platform_test {
namespace {

using namespace sagitta::cuda;

std::vector<uint8_t> random_bytes(size_t count, uint64_t seed) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; i++) bytes[i] = static_cast<uint8_t>(mixed(seed + i));
  return bytes;
}

/** Returns the product [row_count, column_count] of rows [row_count, depth] u8 and columns [column_count, depth] s8. */
std::vector<int32_t> products(const std::vector<uint8_t>& rows, const std::vector<uint8_t>& columns,
                              uint32_t depth) {
  std::vector<int32_t> sums;
  for (size_t row = 0; row < rows.size() / depth; row++) {
    for (size_t column = 0; column < columns.size() / depth; column++) {
      int32_t sum = 0;
      for (size_t k = 0; k < depth; k++) {
        sum += rows[row * depth + k] * static_cast<int8_t>(columns[column * depth + k]);
      }
      sums.push_back(sum);
    }
  }
  return sums;
}

struct mma_parameters {
  /** [16, depth], [8, depth] and [16, 8]. */
  const uint8_t* rows;
  const uint8_t* columns;
  int32_t* sums;
  uint32_t depth;
  /** The number of repetitions, for timing. */
  uint32_t repeats;
};

__global__ void multiply(const __grid_constant__ mma_parameters p) {
  const uint32_t group = threadIdx.x / 4;
  const uint32_t within = threadIdx.x % 4;
  int32_t sums[4] = {0, 0, 0, 0};
  for (uint32_t k = 0; k < p.depth * p.repeats; k += 32) {
    const uint32_t from = k % p.depth + within * 4;
    uint32_t rows[4];
    for (uint32_t i = 0; i < 4; i++) {
      const uint8_t* const row = p.rows + (group + i % 2 * 8) * p.depth + from + i / 2 * 16;
      rows[i] = *reinterpret_cast<const uint32_t*>(row);
    }
    const uint8_t* const column = p.columns + group * p.depth + from;
    const uint2 queries = make_uint2(*reinterpret_cast<const uint32_t*>(column),
                                     *reinterpret_cast<const uint32_t*>(column + 16));
    mma_u8s8(sums, rows, queries);
  }
  for (uint32_t i = 0; i < 4; i++) {
    p.sums[(group + i / 2 * 8) * 8 + within * 2 + i % 2] = sums[i];
  }
}

void test_mma() {
  constexpr uint32_t depth = 96;
  for (uint64_t seed = 1; seed < 6; seed++) {
    const auto rows = random_bytes(16 * depth, seed << 32);
    const auto columns = random_bytes(8 * depth, seed << 40);
    device_array<uint8_t> row_array(rows.size());
    device_array<uint8_t> column_array(columns.size());
    device_array<int32_t> sums(16 * 8);
    row_array.set(rows.data());
    column_array.set(columns.data());
    const mma_parameters p = {row_array.data(), column_array.data(), sums.data(), depth, 1};
    require_success(launch(multiply, dim3(1), 32, 0, nullptr, p), "mma");
    std::vector<int32_t> found(16 * 8);
    sums.get(found.data());
    require(found == products(rows, columns, depth), "sums of mma_u8s8", seed);
  }
}

constexpr uint32_t wide_depth = 256;

struct wgmma_parameters {
  /** [groups · 64, wide_depth], [N, wide_depth] and [groups · 64, N]. */
  const uint8_t* rows;
  const uint8_t* columns;
  int32_t* sums;
};

/** Two warpgroups, with different rows and the same columns. */
template <int N>
__global__ void __launch_bounds__(256) multiply_widely(const __grid_constant__ wgmma_parameters p) {
  uint8_t* const shared = dynamic_shared<uint8_t>();
  constexpr uint32_t panel_bytes = N * 128;
  for (uint32_t i = threadIdx.x; i < N * wide_depth / 16; i += blockDim.x) {
    const uint32_t column = i / (wide_depth / 16);
    const uint32_t chunk = i % (wide_depth / 16);
    const uint4 bytes =
        load_cached(reinterpret_cast<const uint4*>(p.columns + column * wide_depth + chunk * 16));
    uint8_t* const panel = shared + chunk / 8 * panel_bytes;
    *reinterpret_cast<uint4*>(panel + column * 128 + (chunk % 8 ^ column % 8) * 16) = bytes;
  }
  fence_async_shared();
  __syncthreads();
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t group = threadIdx.x % 32 / 4;
  const uint32_t within = threadIdx.x % 4;
  const uint8_t* const own_rows = p.rows + (warp * 16 + group) * wide_depth + within * 4;
  int32_t sums[N / 2];
  for (uint32_t panel = 0; panel < wide_depth / 128; panel++) {
    uint32_t rows[4][4];
#pragma unroll
    for (uint32_t step = 0; step < 4; step++) {
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) {
        const uint8_t* const from =
            own_rows + i % 2 * 8 * wide_depth + panel * 128 + step * 32 + i / 2 * 16;
        rows[step][i] = *reinterpret_cast<const uint32_t*>(from);
      }
    }
    const uint64_t descriptor = wgmma_descriptor(shared + panel * panel_bytes);
    wgmma_fence();
#pragma unroll
    for (uint32_t step = 0; step < 4; step++) {
      wgmma_u8s8<N>(sums, rows[step], descriptor + step * 2, panel + step > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
  }
  for (uint32_t i = 0; i < N / 2; i++) {
    const uint32_t row = warp * 16 + group + i % 4 / 2 * 8;
    p.sums[row * N + i / 4 * 8 + within * 2 + i % 2] = sums[i];
  }
}

template <int N>
void test_wgmma() {
  constexpr uint32_t row_count = 128;
  const auto rows = random_bytes(row_count * wide_depth, N);
  const auto columns = random_bytes(N * wide_depth, N << 20);
  device_array<uint8_t> row_array(rows.size());
  device_array<uint8_t> column_array(columns.size());
  device_array<int32_t> sums(row_count * N);
  row_array.set(rows.data());
  column_array.set(columns.data());
  const wgmma_parameters p = {row_array.data(), column_array.data(), sums.data()};
  constexpr int shared_bytes = N * wide_depth;
  require_success(cudaFuncSetAttribute(multiply_widely<N>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
                  "cudaFuncSetAttribute");
  require_success(launch(multiply_widely<N>, dim3(1), 256, shared_bytes, nullptr, p), "wgmma");
  std::vector<int32_t> found(row_count * N);
  sums.get(found.data());
  require(found == products(rows, columns, wide_depth), "sums of wgmma_u8s8", N);
}

struct load_parameters {
  const uint2* pairs;
  const uint4* fours;
  uint32_t* sums;
};

__global__ void load(load_parameters p) {
  const uint2 a = load_streaming(p.pairs + threadIdx.x);
  const uint2 b = load_cached(p.pairs + threadIdx.x);
  const uint4 c = load_streaming(p.fours + threadIdx.x);
  const uint4 d = load_cached(p.fours + threadIdx.x);
  const bool same =
      a.x == b.x && a.y == b.y && c.x == d.x && c.y == d.y && c.z == d.z && c.w == d.w;
  p.sums[threadIdx.x] = same ? a.x ^ a.y ^ c.x ^ c.y ^ c.z ^ c.w : ~0u;
}

void test_loads() {
  constexpr uint32_t threads = 32;
  std::vector<uint32_t> words(threads * 4);
  for (size_t i = 0; i < words.size(); i++) words[i] = static_cast<uint32_t>(mixed(i)) >> 1;
  device_array<uint32_t> array(words.size());
  device_array<uint32_t> sums(threads);
  array.set(words.data());
  require_success(launch(load, dim3(1), threads, 0, nullptr,
                         load_parameters{reinterpret_cast<const uint2*>(array.data()),
                                         reinterpret_cast<const uint4*>(array.data()),
                                         sums.data()}),
                  "load");
  std::vector<uint32_t> found(threads);
  sums.get(found.data());
  for (uint32_t i = 0; i < threads; i++) {
    uint32_t expected = words[i * 2] ^ words[i * 2 + 1];
    for (uint32_t k = 0; k < 4; k++) expected ^= words[i * 4 + k];
    require(found[i] == expected, "loads that spare the cache", i);
  }
}

}  // namespace

void test_tensor_cores() {
  cudaDeviceProp properties;
  require_success(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  test_loads();
  test_mma();
  if (properties.major != 9) {
    printf("skipped: wgmma, which compute capability %d.%d does not have\n", properties.major,
           properties.minor);
    return;
  }
  test_wgmma<64>();
  test_wgmma<128>();
  test_wgmma<192>();
  test_wgmma<256>();
}

void time_emulation() {
  constexpr uint32_t depth = 64;
  constexpr uint32_t repeats = 20000;
  device_array<uint8_t> rows(16 * depth);
  device_array<uint8_t> columns(8 * depth);
  device_array<int32_t> sums(16 * 8);
  const mma_parameters p = {rows.data(), columns.data(), sums.data(), depth, repeats};
  require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  // CPU time of this process, independent of other processes.
  const auto seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  const double start = seconds();
  require_success(launch(multiply, dim3(1), 32, 0, nullptr, p), "mma");
  require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  printf("%.2f million mma per second\n", repeats * depth / 32 / (seconds() - start) * 1e-6);
  const double wide_start = seconds();
  for (int i = 0; i < 10; i++) test_wgmma<256>();
  printf("%.1f ms for a test of 64 wgmma of 256 columns, each by a warp\n",
         (seconds() - wide_start) * 1e3 / 10);
}

}  // namespace platform_test
