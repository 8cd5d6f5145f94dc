// Kernels with deliberate mistakes, each run in its own process, which must end with the right message.
#include <sys/wait.h>
#include <unistd.h>

#include "../../../cuda/intrinsics.h"
#include "mistakes.h"

namespace platform_test {
namespace {

using namespace sagitta::cuda;

__global__ void miss_a_barrier(mistake p) {
  if (threadIdx.x < 32) __syncthreads();
  if (threadIdx.x >= 32) __syncwarp(threadIdx.x == 40 ? 0x300u : ~0u);
  p.values[blockIdx.x * 128 + threadIdx.x] = 1;
}
__global__ void meet_at_other_barriers(mistake) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void leave_a_warp(mistake p) {
  if (threadIdx.x == 5) return;
  p.values[blockIdx.x * 128 + threadIdx.x] = __ballot_sync(~0u, 1);
}
__global__ void forget_own_lane(mistake) { __syncwarp(1); }
[[maybe_unused]] __global__ void write_beyond_shared(mistake) { dynamic_shared<uint32_t>()[64] = 1; }
[[maybe_unused]] __global__ void write_beyond_global(mistake p) { p.values[256] = 1; }
__global__ void load_from_host(mistake) {
  static uint2 of_host;
  const uint2 loaded = load_cached(&of_host);
  of_host = loaded;
}
__global__ void give_up(mistake) { __trap(); }

/** A correct sequence, except for the step that `which` leaves out. */
template <int which>
__global__ void misuse_wgmma(mistake) {
  int32_t sums[32] = {};
  const uint32_t rows[4] = {};
  uint8_t* const shared = dynamic_shared<uint8_t>();
  if (which != 0 && which != 7) fence_async_shared();
  __syncthreads();
  if (which == 7) fence_async_shared();
  if (which != 1) wgmma_fence();
  wgmma_u8s8<64>(sums, rows, wgmma_descriptor(shared) + (which == 2 ? 1 : 0), true);
  if (which == 3) sums[3]++;
  if (which == 4) wgmma_u8s8<64>(sums, rows, wgmma_descriptor(shared) + threadIdx.x / 32 * 2, true);
  if (which == 5) return;
  wgmma_commit();
  wgmma_wait<0>();
  __syncthreads();
  shared[threadIdx.x] = 1;
  __syncthreads();
  wgmma_fence();
  if (which == 6) wgmma_u8s8<64>(sums, rows, wgmma_descriptor(shared), true);
}

enum class copy_mistake {
  none,
  no_init,
  no_fence,
  no_barrier,
  odd_length,
  odd_source,
  odd_target,
  from_host,
  beyond_shared,
  more_bytes,
  fewer_bytes,
  same_place,
  same_parity,
  many_arrivals,
  no_end,
  overwritten,
};

/** Thread 0 copies three times and the others read, correctly except for one mistake. */
template <copy_mistake made>
__global__ void misuse_copies(mistake p) {
  alignas(16) static uint32_t of_host[64];
  uint8_t* const shared = dynamic_shared<uint8_t>();
  auto* const full = reinterpret_cast<uint64_t*>(shared);
  uint64_t* const empty = full + 1;
  constexpr uint32_t byte_count = made == copy_mistake::odd_length ? 248 : 256;
  const uint32_t at = made == copy_mistake::beyond_shared ? usual_shared_bytes - 16 : 128;
  auto* const to = reinterpret_cast<uint32_t*>(shared + at) + (made == copy_mistake::odd_target ? 2 : 0);
  const uint32_t* const from = made == copy_mistake::from_host
                                   ? of_host
                                   : p.values + (made == copy_mistake::odd_source ? 1 : 0);
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    if (made != copy_mistake::no_init) mbarrier_init(empty, 127);
    if (made != copy_mistake::no_fence) fence_mbarrier_init();
  }
  if (made != copy_mistake::no_barrier) __syncthreads();
  else __syncwarp();
  // Other warps would reach the mbarrier before it is there.
  if (made == copy_mistake::no_barrier && threadIdx.x >= 32) return;
  for (uint32_t round = 0; round < 3; round++) {
    if (threadIdx.x == 0) {
      if (made == copy_mistake::overwritten && round == 1) *full = 0;
      mbarrier_wait(empty, round % 2 ^ 1);
      const uint32_t expected = made == copy_mistake::more_bytes    ? byte_count - 16
                                : made == copy_mistake::fewer_bytes ? byte_count + 16
                                : made == copy_mistake::same_place  ? byte_count * 2
                                                                    : byte_count;
      mbarrier_arrive_expect(full, expected);
      if (made == copy_mistake::many_arrivals) mbarrier_arrive_expect(full, 0);
      copy_to_shared(to, from, byte_count, full);
      if (made == copy_mistake::same_place) copy_to_shared(to, from, byte_count, full);
    } else if (made != copy_mistake::no_end || round < 2) {
      mbarrier_wait(full, made == copy_mistake::same_parity ? 0 : round % 2);
      atomicAdd(&p.values[128], load_shared(to + threadIdx.x % 60));
      mbarrier_arrive(empty);
    }
  }
}

/** No thread waits for the copy. */
[[maybe_unused]] __global__ void read_without_wait(mistake p) {
  uint8_t* const shared = dynamic_shared<uint8_t>();
  auto* const full = reinterpret_cast<uint64_t*>(shared);
  auto* const words = reinterpret_cast<uint32_t*>(shared + 128);
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(full, 256);
    copy_to_shared(words, p.values, 256, full);
  }
  __syncthreads();
  atomicAdd(&p.values[128], load_shared(words + threadIdx.x % 64));
}

void test_copy_mistakes() {
  if (emulation::settings_of_environment().capability < 90) return;
  using enum copy_mistake;
  emulation::settings wanted;
  for (wanted.seed = 1; wanted.seed < 4; wanted.seed++) {
    const std::string said = last_words(misuse_copies<none>, wanted);
    require(said.starts_with("nothing was found"), said.c_str(), wanted.seed);
  }
  expect(misuse_copies<no_init>, "without mbarrier_init");
  expect(misuse_copies<no_fence>, "without fence_mbarrier_init before it");
  expect(misuse_copies<no_barrier>, "without a barrier after fence_mbarrier_init");
  expect(misuse_copies<odd_length>, "a bulk copy of 248 bytes");
  expect(misuse_copies<odd_source>, "a bulk copy whose addresses are not multiples of 16");
  expect(misuse_copies<odd_target>, "a bulk copy whose addresses are not multiples of 16");
  expect(misuse_copies<from_host>, "a bulk copy from memory that is not device memory");
  expect(misuse_copies<beyond_shared>, "a bulk copy to memory that is not dynamic shared memory");
  expect(misuse_copies<more_bytes>, "a bulk copy of more bytes than mbarrier_arrive_expect announced");
  expect(misuse_copies<fewer_bytes>, "lacks 0 of 1 arrivals and 16 bytes in phase 0");
  expect(misuse_copies<same_place>, "a second bulk copy to the same place");
  expect(misuse_copies<same_parity>, "twice for the same parity");
  expect(misuse_copies<many_arrivals>, "more arrivals than a phase of the mbarrier counts");
  expect(misuse_copies<no_end>, "nothing has waited for a bulk copy of 256 bytes");
  expect(misuse_copies<overwritten>, "an mbarrier was written to");
#if defined(__SANITIZE_ADDRESS__)
  expect(read_without_wait, "AddressSanitizer: use-after-poison");
#endif
}

/** Launched early: without a wait, with a wait behind a barrier, and with a wait behind a write. */
template <int which>
__global__ void wait_late(mistake p) {
  if (which == 1) __syncthreads();
  if (which == 2) p.values[0] = 1;
  if (which > 0) await_earlier_kernels();
}
__global__ void begin(mistake) {}

}  // namespace

std::string last_words(void (*kernel)(mistake), const emulation::settings& wanted,
                       size_t shared_bytes, launch_kind kind) {
  int ends[2];
  require(pipe(ends) == 0, "a pipe");
  fflush(stdout);
  const pid_t child = fork();
  require(child >= 0, "a process");
  if (child == 0) {
    dup2(ends[1], 2);
    emulation::restart(wanted);
    uint32_t* values = nullptr;
    require_success(cudaMalloc(&values, 1024), "cudaMalloc");
    require_success(cudaMemsetAsync(values, 0, 1024), "cudaMemsetAsync");
    const bool is_early = kind != launch_kind::ordinary;
    if (is_early) {
      require_success(preload(begin), "preload");
      require_success(launch(begin, dim3(1), 32, 0, nullptr, mistake{values}), "launch");
    }
    if (kind == launch_kind::early) require_success(preload(kernel), "preload");
    require_success(launch(kernel, dim3(2), 128, shared_bytes, {nullptr, is_early}, mistake{values}),
                    "launch");
    cudaDeviceSynchronize();
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t bytes; (bytes = read(ends[0], buffer, sizeof buffer)) > 0;) {
    said.append(buffer, static_cast<size_t>(bytes));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? "nothing was found\n" + said : said;
}

void expect(void (*kernel)(mistake), const char* words, size_t shared_bytes, launch_kind kind) {
  for (uint64_t seed = 1; seed < 4; seed++) {
    emulation::settings wanted;
    wanted.seed = seed;
    const std::string said = last_words(kernel, wanted, shared_bytes, kind);
    if (said.find(words) != std::string::npos &&
        said.find("SAGITTA_TEST_EMULATION_SEED=" + std::to_string(seed)) != std::string::npos) {
      continue;
    }
    fprintf(stderr, "expected \"%s\" and the seed, found: %s\n", words, said.c_str());
    std::exit(1);
  }
}

void test_mistakes() {
  expect(miss_a_barrier, "is deadlocked");
  expect(meet_at_other_barriers, "other threads of its block wait at __syncthreads");
  expect(leave_a_warp, "return");
  expect(forget_own_lane, "a mask without its own lane");
  expect(load_from_host, "not device memory");
  expect(give_up, "traps at");
  expect(misuse_wgmma<0>, "wgmma without fence_async_shared before it");
  expect(misuse_wgmma<1>, "wgmma without wgmma_fence before it");
  expect(misuse_wgmma<2>, "columns do not start at");
  expect(misuse_wgmma<3>, "sums were written to while wgmma added to them");
  expect(misuse_wgmma<4>, "wgmma with different operands");
  expect(misuse_wgmma<5>, "returned without waiting for its wgmma");
  expect(misuse_wgmma<6>, "without fence_async_shared before the barrier");
  expect(misuse_wgmma<7>, "without a barrier after fence_async_shared");
  test_copy_mistakes();
  expect(wait_late<0>, "comes to its end", usual_shared_bytes, launch_kind::early);
  expect(wait_late<1>, "comes to __syncthreads", usual_shared_bytes, launch_kind::early);
  expect(wait_late<3>, "prefers a carve-out of -1, the kernel before it 100", usual_shared_bytes,
         launch_kind::early_unprepared);
#if defined(__SANITIZE_ADDRESS__)
  expect(wait_late<2>, "AddressSanitizer: use-after-poison", usual_shared_bytes, launch_kind::early);
  expect(write_beyond_shared, "AddressSanitizer: use-after-poison", 256);
  expect(write_beyond_global, "AddressSanitizer: heap-buffer-overflow");
#else
  printf("skipped: writes out of bounds, which only AddressSanitizer detects\n");
#endif
}

}  // namespace platform_test
