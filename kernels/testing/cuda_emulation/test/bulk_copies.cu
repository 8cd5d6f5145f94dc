// Passes arrays through a ring of stages in shared memory, by bulk copies and mbarriers, and compares sums.
#include <vector>

#include "../../../cuda/intrinsics.h"
#include "test.h"

namespace platform_test {
namespace {

using namespace sagitta::cuda;

constexpr uint32_t stage_words = 256;
constexpr uint32_t stage_count = 3;
constexpr uint32_t reader_warps = 2;
constexpr uint32_t readers = reader_warps * 32;
constexpr uint32_t ring_shared_bytes = 128 + stage_count * stage_words * sizeof(uint32_t);

struct ring_parameters {
  /** [part_count, stage_words] */
  const uint32_t* values;
  /** [blocks, readers]: reader i % readers adds word i of each part times the part's number. */
  uint32_t* sums;
  uint32_t part_count;
};

/** The last warp copies each part in two halves, the others read it. */
__global__ void __launch_bounds__(readers + 32) pass_through_ring(
    const __grid_constant__ ring_parameters p) {
  uint8_t* const shared = dynamic_shared<uint8_t>();
  auto* const full = reinterpret_cast<uint64_t*>(shared);
  uint64_t* const empty = full + stage_count;
  auto* const stages = reinterpret_cast<uint32_t*>(shared + 128);
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < stage_count; i++) {
      mbarrier_init(full + i, 1);
      mbarrier_init(empty + i, reader_warps);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  const bool is_reader = threadIdx.x < readers;
  uint32_t sum = 0;
  uint32_t round = 0;
  for (uint32_t part = blockIdx.x; part < p.part_count; part += gridDim.x, round++) {
    const uint32_t stage = round % stage_count;
    const uint32_t parity = round / stage_count % 2;
    uint32_t* const words = stages + stage * stage_words;
    if (is_reader) {
      mbarrier_wait(full + stage, parity);
      for (uint32_t i = threadIdx.x; i < stage_words; i += readers) {
        sum += load_shared(words + i) * (part + 1);
      }
      __syncwarp();
      if (threadIdx.x % 32 == 0) mbarrier_arrive(empty + stage);
    } else if (threadIdx.x == readers) {
      constexpr uint32_t half = stage_words / 2;
      constexpr uint32_t half_bytes = half * sizeof(uint32_t);
      const uint32_t* const from = p.values + size_t{part} * stage_words;
      mbarrier_wait(empty + stage, parity ^ 1);
      mbarrier_arrive_expect(full + stage, 2 * half_bytes);
      copy_to_shared(words, from, half_bytes, full + stage);
      copy_to_shared(words + half, from + half, half_bytes, full + stage);
    }
  }
  if (is_reader) p.sums[blockIdx.x * readers + threadIdx.x] = sum;
}

void test_ring(uint32_t part_count, uint32_t blocks) {
  std::vector<uint32_t> values(size_t{part_count} * stage_words);
  std::vector<uint32_t> expected(size_t{blocks} * readers);
  for (size_t i = 0; i < values.size(); i++) {
    const auto part = static_cast<uint32_t>(i / stage_words);
    values[i] = static_cast<uint32_t>(mixed(i));
    expected[part % blocks * readers + i % readers] += values[i] * (part + 1);
  }
  device_array<uint32_t> on_device(values.size());
  device_array<uint32_t> sums(expected.size());
  on_device.set(values.data());
  const ring_parameters p = {on_device.data(), sums.data(), part_count};
  require_success(launch(pass_through_ring, dim3(blocks), readers + 32, ring_shared_bytes, nullptr, p),
                  "a ring");
  std::vector<uint32_t> found(expected.size());
  sums.get(found.data());
  require(found == expected, "sums of what passed through a ring", part_count);
}

}  // namespace

void test_bulk_copies() {
  cudaDeviceProp properties;
  require_success(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  if (properties.major < 9) {
    printf("skipped: bulk copies, which compute capability %d.%d does not have\n", properties.major,
           properties.minor);
    return;
  }
  // Blocks without parts, with fewer parts than stages, and with many more.
  test_ring(2, 4);
  test_ring(9, 4);
  test_ring(200, 4);
}

}  // namespace platform_test
