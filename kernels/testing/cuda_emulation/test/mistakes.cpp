// Kernels with deliberate mistakes, each run in its own process, which must end with the right message.
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "../../../cuda/intrinsics.h"
#include "../settings.h"
#include "test.h"

namespace platform_test {
namespace {

using namespace sagitta::cuda;

struct mistake {
  uint32_t* values;
};

__global__ void miss_a_barrier(mistake p) {
  if (threadIdx.x < 32) __syncthreads();
  if (threadIdx.x >= 32) __syncwarp(threadIdx.x == 40 ? 0x300u : ~0u);
  p.values[0] = 1;
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
  p.values[0] = __ballot_sync(~0u, 1);
}
__global__ void forget_own_lane(mistake) { __syncwarp(1); }
__global__ void write_beyond_shared(mistake) { dynamic_shared<uint32_t>()[64] = 1; }
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
  if (which != 0) fence_async_shared();
  __syncthreads();
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

/** Runs the kernel in a process. Returns its output, and whether it ended normally. */
std::string last_words(void (*kernel)(mistake), uint64_t seed) {
  int ends[2];
  require(pipe(ends) == 0, "a pipe");
  fflush(stdout);
  const pid_t child = fork();
  require(child >= 0, "a process");
  if (child == 0) {
    dup2(ends[1], 2);
    emulation::settings wanted;
    wanted.seed = seed;
    emulation::restart(wanted);
    uint32_t* values = nullptr;
    require_success(cudaMalloc(&values, 1024), "cudaMalloc");
    require_success(launch(kernel, dim3(2), 128, kernel == write_beyond_shared ? 256 : 8192,
                           nullptr, mistake{values}),
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

void expect(void (*kernel)(mistake), const char* words) {
  for (uint64_t seed = 1; seed < 4; seed++) {
    const std::string said = last_words(kernel, seed);
    if (said.find(words) != std::string::npos &&
        said.find("SAGITTA_EMULATION_SEED=" + std::to_string(seed)) != std::string::npos) {
      continue;
    }
    fprintf(stderr, "expected \"%s\" and the seed, found: %s\n", words, said.c_str());
    std::exit(1);
  }
}

}  // namespace

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
  expect(misuse_wgmma<6>, "changed without fence_async_shared");
#if defined(__SANITIZE_ADDRESS__)
  expect(write_beyond_shared, "AddressSanitizer: use-after-poison");
  expect(write_beyond_global, "AddressSanitizer: heap-buffer-overflow");
#else
  printf("skipped: writes out of bounds, which only AddressSanitizer detects\n");
#endif
}

}  // namespace platform_test
