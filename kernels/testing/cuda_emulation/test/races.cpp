// Kernels with races that give correct results as long as threads switch only at synchronisations, and the
// means that find these races where accesses are instrumented: switches at accesses, and the race detector.
#include "../races.h"

#include <vector>

#include "../../../cuda/intrinsics.h"
#include "mistakes.h"

namespace platform_test {
namespace {

using namespace sagitta::cuda;

/** Both blocks count their threads. */
template <bool is_correct>
__global__ void count_threads(mistake p) {
  if (is_correct) {
    atomicAdd(&p.values[0], 1);
  } else {
    p.values[0] = p.values[0] + 1;
  }
}

/** The warps of a block take turns adding. */
template <bool is_correct>
__global__ void add_by_warps(mistake p) {
  __shared__ uint32_t total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  for (uint32_t turn = 0; turn < 4; turn++) {
    if (threadIdx.x == turn * 32) total = total + 64;
    if (is_correct) __syncthreads();
  }
  __syncthreads();
  if (threadIdx.x == 0 && blockIdx.x == 0) p.values[0] = total;
}

/** The lanes of a warp take turns adding. */
template <bool is_correct>
__global__ void add_by_lanes(mistake p) {
  uint32_t* const total = dynamic_shared<uint32_t>() + threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) *total = 0;
  __syncwarp();
  for (uint32_t turn = 0; turn < 32; turn++) {
    if (threadIdx.x % 32 == turn) *total = *total + 8;
    if (is_correct) __syncwarp();
  }
  __syncwarp();
  if (threadIdx.x == 0 && blockIdx.x == 0) p.values[0] = *total;
}

/** The last block to arrive adds up what both have written. */
template <bool is_correct>
__global__ void add_in_last_block(mistake p) {
  __shared__ bool is_last;
  if (threadIdx.x == 0 && blockIdx.x == 0) p.values[0] = 0;
  if (threadIdx.x < 100) p.values[32 + blockIdx.x * 100 + threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    if (is_correct) __threadfence();
    is_last = atomicAdd(&p.values[1], 1) % 2 == 1;
    if (is_correct) __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  if (threadIdx.x < 100) atomicAdd(&p.values[2], p.values[32 + threadIdx.x] + p.values[132 + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) p.values[0] = p.values[2] + 56;
}

/** A shuffle makes lanes wait for each other but does not order their memory accesses. */
__global__ void read_behind_shuffle(mistake p) {
  uint32_t* const shared = dynamic_shared<uint32_t>();
  shared[threadIdx.x] = 1;
  __shfl_sync(~0u, 0, 0);
  atomicAdd(&p.values[0], shared[threadIdx.x ^ 1]);
}

uint32_t value_after(void (*kernel)(mistake), const emulation::settings& wanted) {
  emulation::restart(wanted);
  device_array<uint32_t> values(256);
  require_success(launch(kernel, dim3(2), 128, 8192, nullptr, mistake{values.data()}), "launch");
  std::vector<uint32_t> found(256);
  values.get(found.data());
  return found[0];
}

/** Whether many seeds give 256 without race detection. */
bool is_always_correct(void (*kernel)(mistake)) {
  for (uint64_t seed = 1; seed <= 64; seed++) {
    emulation::settings wanted;
    wanted.seed = seed;
    wanted.finds_races = false;
    wanted.accesses_per_yield = 4;
    if (value_after(kernel, wanted) != 256) return false;
  }
  return true;
}

void test_race(void (*right)(mistake), void (*wrong)(mistake), const char* what) {
  require(is_always_correct(right), what);
  if (!emulation::is_instrumented()) {
    // This is why instrumented tests exist.
    require(is_always_correct(wrong), what, 1);
    return;
  }
  require(!is_always_correct(wrong), what, 2);
  emulation::settings wanted;
  for (wanted.seed = 1; wanted.seed < 4; wanted.seed++) {
    const std::string said = last_words(right, wanted);
    require(said.starts_with("nothing was found"), said.c_str(), wanted.seed);
  }
  expect(wrong, "a race: ");
}

/** A wgmma of shared memory that threads have written, without mistakes if `which` is 0. */
template <int which>
__global__ void read_by_wgmma(mistake) {
  uint32_t* const shared = dynamic_shared<uint32_t>();
  const bool writes = which != 3 || threadIdx.x < 64;
  for (uint32_t i = threadIdx.x; writes && i < 2048; i += blockDim.x) shared[i] = i;
  const bool fences = writes && (which != 1 || threadIdx.x != 77);
  if (which == 2) __syncthreads();
  if (fences) fence_async_shared();
  if (which != 2) __syncthreads();
  int32_t sums[32] = {};
  const uint32_t rows[4] = {};
  wgmma_fence();
  wgmma_u8s8<64>(sums, rows, wgmma_descriptor(shared), true);
  wgmma_commit();
  wgmma_wait<0>();
  if (which != 4) __syncthreads();
  shared[threadIdx.x] = 1;
}

void test_async_reads() {
  emulation::settings wanted;
  wanted.seed = 1;
  require(last_words(read_by_wgmma<0>, wanted).starts_with("nothing was found"), "a right wgmma");
  // A thread that has not written needs no fence.
  require(last_words(read_by_wgmma<3>, wanted).starts_with("nothing was found"), "few threads write");
  if (!emulation::is_instrumented()) return;
  expect(read_by_wgmma<1>, "accesses what thread 77 writes");
  expect(read_by_wgmma<1>, "without fence_async_shared before the barrier");
  expect(read_by_wgmma<2>, "with fence_async_shared, but no barrier after it");
  expect(read_by_wgmma<4>, "writes at races.cpp");
}

enum class order_mistake { none, no_wait, no_release, own_wait, no_fence };

/** Thread 0 copies to memory that all threads have written, and three times more; the others read. */
template <order_mistake made>
__global__ void read_by_copies(mistake p) {
  uint8_t* const shared = dynamic_shared<uint8_t>();
  auto* const full = reinterpret_cast<uint64_t*>(shared);
  uint64_t* const empty = full + 1;
  auto* const words = reinterpret_cast<uint32_t*>(shared + 128);
  if (threadIdx.x < 64) words[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    mbarrier_init(empty, 3);
    fence_mbarrier_init();
  }
  if (made != order_mistake::no_fence || threadIdx.x != 7) fence_async_shared();
  __syncthreads();
  for (uint32_t round = 0; round < 4; round++) {
    const uint32_t parity = round % 2;
    if (threadIdx.x == 0) {
      // The end of its own copy does not show that the others have read it.
      if (made != order_mistake::own_wait) mbarrier_wait(empty, parity ^ 1);
      else if (round > 0) mbarrier_wait(full, parity ^ 1);
      mbarrier_arrive_expect(full, 256);
      copy_to_shared(words, p.values, 256, full);
    } else if (threadIdx.x >= 32) {
      if (made != order_mistake::no_wait || threadIdx.x != 77) mbarrier_wait(full, parity);
      if (made == order_mistake::no_release && threadIdx.x % 32 == 0) mbarrier_arrive(empty);
      atomicAdd(&p.values[128], load_shared(words + threadIdx.x % 64));
      __syncwarp();
      if (made != order_mistake::no_release && threadIdx.x % 32 == 0) mbarrier_arrive(empty);
    }
  }
}

void test_async_writes() {
  emulation::settings wanted;
  for (wanted.seed = 1; wanted.seed < 4; wanted.seed++) {
    const std::string said = last_words(read_by_copies<order_mistake::none>, wanted);
    require(said.starts_with("nothing was found"), said.c_str(), wanted.seed);
  }
  if (!emulation::is_instrumented()) return;
  expect(read_by_copies<order_mistake::no_wait>, "a race: ");
  expect(read_by_copies<order_mistake::no_release>, "a race: ");
  expect(read_by_copies<order_mistake::own_wait>, "a race: ");
  expect(read_by_copies<order_mistake::no_fence>, "accesses what thread 7 writes");
}

}  // namespace

void test_races() {
  test_race(count_threads<true>, count_threads<false>, "counters of two blocks");
  test_race(add_by_warps<true>, add_by_warps<false>, "a missing __syncthreads");
  test_race(add_by_lanes<true>, add_by_lanes<false>, "a missing __syncwarp");
  require(is_always_correct(add_in_last_block<true>), "what a block writes before a fence");
  require(is_always_correct(read_behind_shuffle), "lanes wait for each other at a shuffle");
  if (emulation::is_instrumented()) {
    emulation::settings wanted;
    for (wanted.seed = 1; wanted.seed < 4; wanted.seed++) {
      require(last_words(add_in_last_block<true>, wanted).starts_with("nothing was found"), "fences");
    }
    expect(add_in_last_block<false>, "a race: ");
    expect(read_behind_shuffle, "a race: ");
  } else {
    printf("skipped: races, which only emulation-test-slow detects\n");
  }
  if (emulation::settings_of_environment().capability == 90) test_async_reads();
  if (emulation::settings_of_environment().capability >= 90) test_async_writes();
  emulation::restart(emulation::settings_of_environment());
}

}  // namespace platform_test
