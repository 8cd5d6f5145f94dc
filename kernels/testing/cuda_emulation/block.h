// The running block: its warps, which lanes are runnable, and what the others wait for.
#pragma once

#include <cstdint>
#include <vector>

#include "fiber.h"
#include "launch.h"
#include "threads.h"

namespace sagitta::cuda::emulation {

inline constexpr uint32_t lane_count = 32;
inline constexpr uint32_t warp_count_max = 32;

/** A collective in progress: the lanes it needs, and those that have arrived. */
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
  /** What a blocked lane waits for, and where; for messages. */
  const char* waits_for[lane_count] = {};
  location locations[lane_count];
};

struct block {
  const grid_launch* launch = nullptr;
  uint32_t thread_count = 0;
  uint32_t exited_count = 0;
  warp warps[warp_count_max];
  /** A bit for each warp that has a runnable lane. */
  unsigned runnable_warps = 0;

  uint32_t barrier_arrived = 0;
  uint32_t barrier_set = 0;
  barrier barrier_kind = barrier::plain;
  location barrier_location;
  /** The result of the last barrier. */
  int barrier_result = 0;
};

block& block_in_use();

/** Describes a thread of the running block: kernel, block and thread; without the thread for ~0u. */
std::string name_of_thread(uint32_t thread);

}  // namespace sagitta::cuda::emulation
