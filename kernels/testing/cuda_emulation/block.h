// The block that runs: its warps, which lanes of them may go on, and what the others wait for.
#pragma once

#include <cstdint>
#include <vector>

#include "fiber.h"
#include "launch.h"
#include "threads.h"

namespace sagitta::cuda::emulation {

inline constexpr uint32_t lane_count = 32;
inline constexpr uint32_t warp_count_max = 32;

/** Lanes that have come to one collective, and that it waits for. */
struct meeting {
  const collective* what;
  unsigned mask;
  unsigned arrived;
};

struct warp {
  /** Lanes that there are, those that have returned, and those that may go on. */
  unsigned present = 0;
  unsigned exited = 0;
  unsigned runnable = 0;
  unsigned at_barrier = 0;
  std::vector<meeting> meetings;
  void* operands[lane_count] = {};
  /** What a lane that may not go on waits for, and where; for messages. */
  const char* waits_for[lane_count] = {};
  place places[lane_count];
};

struct block {
  const grid_launch* launch = nullptr;
  uint32_t thread_count = 0;
  uint32_t exited_count = 0;
  warp warps[warp_count_max];
  /** A bit for each warp that has a lane that may go on. */
  unsigned runnable_warps = 0;

  uint32_t barrier_arrived = 0;
  uint32_t barrier_set = 0;
  barrier barrier_kind = barrier::plain;
  place barrier_place;
  /** Of the last barrier that was passed. */
  int barrier_result = 0;
};

block& block_in_use();

/** The kernel, the block and the thread that runs, or `thread` of its block. */
std::string name_of_thread(uint32_t thread);

}  // namespace sagitta::cuda::emulation
