// The collectives of a warp: shuffles, votes and reductions.
#include "block.h"
#include "settings.h"
#include "threads.h"

namespace sagitta::cuda::emulation {
namespace {

template <class F>
void fold(unsigned mask, void* const* operands, uint64_t start, F combine) {
  uint64_t folded = start;
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    folded = combine(folded, static_cast<exchange*>(operands[lane])->value, lane);
  }
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    if ((mask >> lane & 1) != 0) static_cast<exchange*>(operands[lane])->value = folded;
  }
}

void run_shuffle(unsigned mask, void* const* operands) {
  uint64_t given[lane_count] = {};
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    if ((mask >> lane & 1) != 0) given[lane] = static_cast<exchange*>(operands[lane])->value;
  }
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    auto& own = *static_cast<exchange*>(operands[lane]);
    // Undefined on a device, so this returns a value that is certainly wrong.
    own.value = (mask >> own.source & 1) != 0 ? given[own.source] : 0xa5a5a5a5a5a5a5a5u;
  }
}

void run_ballot(unsigned mask, void* const* operands) {
  fold(mask, operands, 0, [](uint64_t all, uint64_t own, uint32_t lane) {
    return all | own << lane;
  });
}

void run_add(unsigned mask, void* const* operands) {
  fold(mask, operands, 0, [](uint64_t all, uint64_t own, uint32_t) { return all + own; });
}

void run_min(unsigned mask, void* const* operands) {
  fold(mask, operands, ~0u,
       [](uint64_t all, uint64_t own, uint32_t) { return own < all ? own : all; });
}

void run_max(unsigned mask, void* const* operands) {
  fold(mask, operands, 0,
       [](uint64_t all, uint64_t own, uint32_t) { return own > all ? own : all; });
}

void run_and(unsigned mask, void* const* operands) {
  fold(mask, operands, ~0u, [](uint64_t all, uint64_t own, uint32_t) { return all & own; });
}

void run_or(unsigned mask, void* const* operands) {
  fold(mask, operands, 0, [](uint64_t all, uint64_t own, uint32_t) { return all | own; });
}

}  // namespace

const collective shuffle = {"__shfl_sync", run_shuffle};
const collective ballot = {"__ballot_sync", run_ballot};
const collective reduce_add = {"__reduce_add_sync", run_add};
const collective reduce_min = {"__reduce_min_sync", run_min};
const collective reduce_max = {"__reduce_max_sync", run_max};
const collective reduce_and = {"__reduce_and_sync", run_and};
const collective reduce_or = {"__reduce_or_sync", run_or};
const collective warp_barrier = {"__syncwarp", nullptr};

}  // namespace sagitta::cuda::emulation
