// Tests that several blocks of a grid are resident at a time, each with shared memory of its own.
#include <algorithm>
#include <vector>

#include "../settings.h"
#include "test.h"

namespace platform_test {
namespace {

using namespace sagitta::cuda;

constexpr uint32_t threads = 64;
constexpr uint32_t blocks = 12;

struct resident_parameters {
  /** The number of blocks that have begun and not ended, its maximum, and the number of values not a block's own. */
  uint32_t* counters;
};

/** A kind of variable that the linker treats differently from that of a kernel. */
template <class T>
T* variable_of_template() {
  __shared__ T value[4];
  return value;
}

__global__ void watch(resident_parameters p) {
  __shared__ uint32_t own;
  uint32_t* const dynamic = dynamic_shared<uint32_t>();
  uint64_t* const of_template = variable_of_template<uint64_t>();
  if (threadIdx.x == 0) {
    own = blockIdx.x;
    dynamic[0] = blockIdx.x;
    of_template[3] = blockIdx.x;
    atomicMax(&p.counters[1], atomicAdd(&p.counters[0], 1) + 1);
  }
  __syncthreads();
  for (uint32_t step = 0; step < 20; step++) {
    if (own != blockIdx.x || dynamic[0] != blockIdx.x || of_template[3] != blockIdx.x) {
      atomicAdd(&p.counters[2], 1);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(&p.counters[0], ~0u);
}

/** Returns the largest number of blocks resident at a time. */
uint32_t most_resident(uint64_t seed, uint32_t limit, int shared_bytes) {
  emulation::settings wanted;
  wanted.seed = seed;
  wanted.resident_blocks_max = limit;
  emulation::restart(wanted);
  device_array<uint32_t> counters(3);
  require_success(
      cudaFuncSetAttribute(watch, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
      "cudaFuncSetAttribute");
  require_success(launch(watch, dim3(blocks), threads, static_cast<size_t>(shared_bytes), nullptr,
                         resident_parameters{counters.data()}),
                  "watch");
  uint32_t found[3];
  counters.get(found);
  require(found[0] == 0, "blocks that have not ended", found[0]);
  require(found[2] == 0, "a block sees the shared memory of another one", seed);
  return found[1];
}

}  // namespace

void test_resident_blocks() {
  uint32_t most[3] = {};
  for (uint64_t seed = 1; seed <= 8; seed++) {
    most[0] = std::max(most[0], most_resident(seed, 1, 1024));
    most[1] = std::max(most[1], most_resident(seed, 6, 1024));
    // A multiprocessor has room for one block with this much shared memory.
    most[2] = std::max(most[2], most_resident(seed, 6, 200 << 10));
  }
  require(most[0] == 1, "blocks run one after another", most[0]);
  require(most[1] == 6, "as many blocks as allowed are resident", most[1]);
  require(most[2] == 2, "no more blocks are resident than there is shared memory for", most[2]);
  emulation::restart(emulation::settings_of_environment());
}

}  // namespace platform_test
