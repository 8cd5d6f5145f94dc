// Resident blocks: their warps, which lanes are runnable, and what the other lanes wait for.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <vector>

#include "fiber.h"
#include "launch.h"
#include "threads.h"

namespace sagitta::cuda::emulation {

inline constexpr uint32_t lane_count = 32;
inline constexpr uint32_t warp_count_max = 32;

/** A collective in progress: the lanes it needs and those that have arrived. */
struct meeting {
  const collective* what;
  unsigned mask;
  unsigned arrived;
};

struct warp {
  /** The lanes that exist, those that have returned, and those that are runnable. */
  unsigned present = 0;
  unsigned exited = 0;
  unsigned runnable = 0;
  unsigned at_barrier = 0;
  std::vector<meeting> meetings;
  void* operands[lane_count] = {};
  /** What each blocked lane waits for, and where; for messages. */
  const char* waits_for[lane_count] = {};
  location locations[lane_count];
};

struct mbarrier_state;
struct tensor_core_state;
struct race_state;

inline constexpr size_t shared_bytes_max = 227 << 10;

/** A resident block. The object is reused for later blocks. */
struct block {
  const grid_launch* launch = nullptr;
  uint3 index;
  uint32_t thread_count = 0;
  uint32_t exited_count = 0;
  warp warps[warp_count_max];
  /** One bit for each warp that has a runnable lane. */
  unsigned runnable_warps = 0;

  uint32_t barrier_arrived = 0;
  uint32_t barrier_set = 0;
  barrier barrier_kind = barrier::plain;
  location barrier_location;
  /** The result of the last barrier. */
  int barrier_result = 0;
  /** The number of barriers that the block has passed. */
  uint32_t barriers_passed = 0;

  /** [lane_count * warp_count_max] */
  std::vector<fiber> fibers;
  /** Dynamic shared memory, [shared_bytes_max]; never freed. */
  unsigned char* dynamic_shared = nullptr;
  /** The `__shared__` variables while other blocks run; see types.h. */
  std::vector<unsigned char> static_shared;
  /** Which threads have waited for the kernels before an early launch; see early_launch.h. */
  std::bitset<lane_count * warp_count_max> has_awaited;
  std::shared_ptr<tensor_core_state> tensor_cores;
  std::shared_ptr<mbarrier_state> mbarriers;
  /** Null unless races are detected. */
  std::shared_ptr<race_state> races;
};

/** The block whose thread runs. */
block& block_in_use();
/** Whether the calling OS thread runs a thread of a block. */
bool is_in_kernel();
/** Lets any other thread or block run first, on average once in `one_in` calls. */
void yield_far(uint32_t one_in);
/** Blocks the running thread until another thread of the block resumes it. */
void suspend(const char* what, const location& where);
void resume(uint32_t thread);

struct memory_range {
  unsigned char* start;
  size_t bytes;
  bool contains(const void* address) const {
    return static_cast<size_t>(static_cast<const unsigned char*>(address) - start) < bytes;
  }
};
/** The memory of all `__shared__` variables and of other variables that belong to the OS thread. */
const memory_range& static_shared_memory();

/** Describes a thread of the running block: kernel, block and thread; ~0u leaves out the thread. */
std::string name_of_thread(uint32_t thread);

}  // namespace sagitta::cuda::emulation
