// Multiplies fragments: collects them from the lanes, multiplies them and returns the sums.
#include "tensor_cores.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "block.h"
#include "early_launch.h"
#include "fragments.h"
#include "machine.h"
#include "races.h"
#include "settings.h"

namespace sagitta::cuda::emulation {
namespace {

/** The value of sums in flight. */
constexpr int32_t poison = static_cast<int32_t>(0xa5a5a5a5u);
constexpr uint32_t swizzled_row_bytes = 128;
constexpr uint32_t atom_bytes = 1024;

struct mma_operands {
  int32_t* sums;
  const uint32_t (*rows)[4];
  uint2 queries;
};

void run_mma(unsigned, void* const* operands) {
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    const auto& own = *static_cast<const mma_operands*>(operands[lane]);
    place_rows(lane, *own.rows);
    const uint32_t queries[] = {own.queries.x, own.queries.y};
    for (uint32_t k = 0; k < 8; k++) {
      const uint32_t at = lane % 4 * 4 + k / 4 * 16 + k % 4;
      columns_now.pairs[at / 2][lane / 4][at % 2] =
          static_cast<int8_t>(queries[k / 4] >> k % 4 * 8);
    }
    for (uint32_t i = 0; i < 4; i++) sum_of(lane, i) = own.sums[i];
  }
  multiply(8);
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    const auto& own = *static_cast<const mma_operands*>(operands[lane]);
    for (uint32_t i = 0; i < 4; i++) own.sums[i] = sum_of(lane, i);
  }
}

/** The sums of a warp that are in flight. */
struct accumulators {
  int32_t* sums[lane_count];
  uint32_t column_count;
  uint32_t uses = 0;
  /** [lane, column_count / 2]: the real sums, which the kernel sees after the wait. */
  std::vector<int32_t> hidden;
};

struct issued {
  std::shared_ptr<accumulators> sums;
  uint32_t rows[lane_count][4];
  uint64_t descriptor;
  bool keep;
  /** The columns if they were read at the call; otherwise they are read at the wait. */
  std::optional<std::vector<int8_t>> columns;
  /** The number of its commit group, from 1; 0 before the commit. */
  uint64_t group = 0;
};

struct warp_state {
  std::list<issued> queue;
  uint64_t committed = 0;
  bool is_fenced = false;
  /** The number of wgmma called by this warp, which must be equal for the warps of a warpgroup. */
  uint64_t begun = 0;
};

struct call_signature {
  uint32_t column_count;
  uint64_t descriptor;
  bool keep;
};

struct last_read {
  uint64_t hash;
  uint32_t fence_count;
};

}  // namespace

/** The pending work of a block's tensor cores. */
struct tensor_core_state {
  warp_state warps[warp_count_max];
  /** The calls of the first warp of each warpgroup. */
  std::vector<call_signature> sequences[warp_count_max / 4];
  /** What the last wgmma read by each descriptor, and the fences before the barrier that preceded it. */
  std::map<uint64_t, last_read> last_reads;
  /** The number of fences so far, and of those before the barrier that preceded the last barrier. */
  uint32_t fence_count = 0;
  uint32_t barriers_of_last_fence = 0;
  uint32_t fence_count_before = 0;
};

namespace {

tensor_core_state& state() { return *block_in_use().tensor_cores; }

/** Returns the number of fences that were followed by a barrier. */
uint32_t fences_before_barrier() {
  const bool has_barrier = state().barriers_of_last_fence < block_in_use().barriers_passed;
  return has_barrier ? state().fence_count : state().fence_count_before;
}

struct wgmma_operands {
  int32_t* sums;
  uint32_t column_count;
  const uint32_t (*rows)[4];
  uint64_t descriptor;
  bool keep;
  const location* where;
};

[[noreturn]] void wrong(const location& where, const char* what) {
  fail("%s: %s, at %s:%u", name_of_thread(threadIdx.x).c_str(), what, where.file_name(),
       where.line());
}

/**
 * Calls `visit(column, k, offset)` for each 16 bytes of columns [columns, depth]: K-major with the 128-byte
 * swizzle.
 */
template <class Visit>
void visit_columns(uint64_t descriptor, uint32_t column_count, const location& where, Visit visit) {
  const uint32_t start = static_cast<uint32_t>(descriptor & 0x3fff) << 4;
  const uint32_t stride = static_cast<uint32_t>(descriptor >> 32 & 0x3fff) << 4;
  if (descriptor >> 62 != 1) wrong(where, "a descriptor without the 128-byte swizzle");
  if ((descriptor >> 49 & 7) != 0) wrong(where, "a descriptor with a base offset");
  if (stride % atom_bytes != 0) wrong(where, "a stride that is not a multiple of 1024 bytes");
  if (start % atom_bytes >= swizzled_row_bytes || start % depth != 0) {
    wrong(where, "columns do not start at a multiple of 1024 bytes plus 0, 32, 64 or 96");
  }
  for (uint32_t column = 0; column < column_count; column++) {
    const uint32_t row_start = start + column / 8 * stride + column % 8 * swizzled_row_bytes;
    for (uint32_t k = 0; k < depth; k += 16) {
      const uint32_t offset = (row_start + k) ^ ((row_start + k) >> 7 & 7) << 4;
      if (offset + 16 > dynamic_shared_bytes()) wrong(where, "columns end beyond shared memory");
      visit(column, k, offset);
    }
  }
}

std::vector<int8_t> read_columns(uint64_t descriptor, uint32_t column_count, const location& where) {
  std::vector<int8_t> columns(size_t{column_count} * depth);
  const unsigned char* const memory = dynamic_shared_memory();
  visit_columns(descriptor, column_count, where, [&](uint32_t column, uint32_t k, uint32_t offset) {
    memcpy(&columns[size_t{column} * depth + k], memory + offset, 16);
  });
  return columns;
}

/**
 * Detects data that was written without a fence before it is read, which may be stale on a device. Where kernels are
 * instrumented, each thread is checked; elsewhere, whether any thread has called the fence before the last barrier.
 */
void check_fences(uint64_t descriptor, const std::vector<int8_t>& columns, const location& where) {
  visit_columns(descriptor, static_cast<uint32_t>(columns.size() / depth), where,
                [&](uint32_t, uint32_t, uint32_t offset) {
                  check_async_access("wgmma", dynamic_shared_memory() + offset, 16, where);
                });
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < columns.size(); i += 8) {
    uint64_t word;
    memcpy(&word, &columns[i], 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  if (state().fence_count == 0) wrong(where, "wgmma without fence_async_shared before it");
  const uint32_t fences = fences_before_barrier();
  if (fences == 0) wrong(where, "wgmma without a barrier after fence_async_shared");
  const last_read now = {hash, fences};
  const auto [found, is_first] = state().last_reads.try_emplace(descriptor, now);
  if (!is_first && found->second.hash != hash && found->second.fence_count == fences) {
    wrong(where, "shared memory was changed without fence_async_shared before the barrier");
  }
  found->second = now;
}

void check_poison(const accumulators& sums, const location& where) {
  for (const int32_t* const of_lane : sums.sums) {
    if (std::all_of(of_lane, of_lane + sums.column_count / 2,
                    [](int32_t sum) { return sum == poison; })) {
      continue;
    }
    wrong(where, "sums were written to while wgmma added to them: call wgmma_wait before");
  }
}

/** Checks that the warps of a warpgroup make the same calls in the same order. */
void check_equal_calls(uint32_t warp, const wgmma_operands& own) {
  std::vector<call_signature>& sequence = state().sequences[warp / 4];
  const uint64_t number = state().warps[warp].begun++;
  if (number == sequence.size()) {
    sequence.push_back({own.column_count, own.descriptor, own.keep});
    return;
  }
  const call_signature& first = sequence[number];
  if (first.column_count != own.column_count || first.descriptor != own.descriptor ||
      first.keep != own.keep) {
    wrong(*own.where, "the warps of a warpgroup call wgmma with different operands");
  }
}

std::shared_ptr<accumulators> accumulators_of(warp_state& warp, void* const* operands) {
  const auto& first = *static_cast<const wgmma_operands*>(operands[0]);
  for (const issued& other : warp.queue) {
    if (other.sums->sums[0] != first.sums) continue;
    if (other.sums->column_count != first.column_count) {
      wrong(*first.where, "sums in flight are used again with another number of columns");
    }
    check_poison(*other.sums, *first.where);
    return other.sums;
  }
  auto sums = std::make_shared<accumulators>();
  sums->column_count = first.column_count;
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    int32_t* const own = static_cast<const wgmma_operands*>(operands[lane])->sums;
    sums->sums[lane] = own;
    sums->hidden.insert(sums->hidden.end(), own, own + first.column_count / 2);
    std::fill_n(own, first.column_count / 2, poison);
  }
  return sums;
}

void run_wgmma(unsigned, void* const* operands) {
  const uint32_t index = threadIdx.x / lane_count;
  const auto& first = *static_cast<const wgmma_operands*>(operands[0]);
  warp_state& warp = state().warps[index];
  if (current_settings().kind == fault::lost_at_wgmma) machine_in_use().has_kernel_failed = true;
  if (!warp.is_fenced) wrong(*first.where, "wgmma without wgmma_fence before it");
  for (uint32_t lane = 1; lane < lane_count; lane++) {
    const auto& own = *static_cast<const wgmma_operands*>(operands[lane]);
    if (own.descriptor != first.descriptor || own.keep != first.keep ||
        own.column_count != first.column_count) {
      wrong(*first.where, "the lanes of a warp call wgmma with different operands");
    }
  }
  check_equal_calls(index, first);
  std::vector<int8_t> columns = read_columns(first.descriptor, first.column_count, *first.where);
  check_fences(first.descriptor, columns, *first.where);
  issued& next = warp.queue.emplace_back();
  // Its own entry in the queue does not have sums yet.
  warp.queue.back().sums = std::make_shared<accumulators>();
  next.sums->sums[0] = nullptr;
  next.sums = accumulators_of(warp, operands);
  next.sums->uses++;
  next.descriptor = first.descriptor;
  next.keep = first.keep;
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    memcpy(next.rows[lane], static_cast<const wgmma_operands*>(operands[lane])->rows,
           sizeof next.rows[lane]);
  }
  if (draw_below(2) == 0) next.columns = std::move(columns);
}

void complete(issued& done, const location& where) {
  accumulators& sums = *done.sums;
  const uint32_t sum_count = sums.column_count / 2;
  if (!done.columns) done.columns = read_columns(done.descriptor, sums.column_count, where);
  visit_columns(done.descriptor, sums.column_count, where, [](uint32_t, uint32_t, uint32_t offset) {
    record_async_read(dynamic_shared_memory() + offset, 16);
  });
  for (uint32_t column = 0; column < sums.column_count; column++) {
    for (uint32_t k = 0; k < depth; k++) {
      columns_now.pairs[k / 2][column][k % 2] = (*done.columns)[size_t{column} * depth + k];
    }
  }
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    place_rows(lane, done.rows[lane]);
    for (uint32_t i = 0; i < sum_count; i++) {
      sum_of(lane, i) = done.keep ? sums.hidden[lane * sum_count + i] : 0;
    }
  }
  multiply(sums.column_count);
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    for (uint32_t i = 0; i < sum_count; i++) sums.hidden[lane * sum_count + i] = sum_of(lane, i);
  }
  if (--sums.uses > 0) return;
  check_poison(sums, where);
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    std::copy_n(&sums.hidden[lane * sum_count], sum_count, sums.sums[lane]);
  }
}

void run_fence(unsigned, void* const*) {
  state().warps[threadIdx.x / lane_count].is_fenced = true;
}

void run_commit(unsigned, void* const*) {
  warp_state& warp = state().warps[threadIdx.x / lane_count];
  warp.committed++;
  for (issued& each : warp.queue) {
    if (each.group == 0) each.group = warp.committed;
  }
}

struct wait_operands {
  uint32_t groups_left;
  const location* where;
};

void run_wait(unsigned, void* const* operands) {
  warp_state& warp = state().warps[threadIdx.x / lane_count];
  const auto& first = *static_cast<const wait_operands*>(operands[0]);
  while (!warp.queue.empty() && warp.queue.front().group != 0 &&
         warp.queue.front().group + first.groups_left <= warp.committed) {
    complete(warp.queue.front(), *first.where);
    warp.queue.pop_front();
  }
  warp.is_fenced = false;
}

constexpr collective mma_collective = {"mma", run_mma};
constexpr collective wgmma_collective = {"wgmma", run_wgmma};
constexpr collective fence_collective = {"wgmma_fence", run_fence};
constexpr collective commit_collective = {"wgmma_commit", run_commit};
constexpr collective wait_collective = {"wgmma_wait", run_wait};

/** Checks that the block consists of whole warps (or warpgroups) and the device has the instruction. */
void require_warps(const char* what, uint32_t threads, bool is_there, const location& where) {
  if (blockDim.x % threads != 0) {
    fail("%s: %s requires blocks of a multiple of %u threads, at %s:%u",
         name_of_thread(threadIdx.x).c_str(), what, threads, where.file_name(), where.line());
  }
  if (!is_there) {
    fail("%s: %s is not available with compute capability %d, at %s:%u",
         name_of_thread(threadIdx.x).c_str(), what, current_settings().capability,
         where.file_name(), where.line());
  }
}

}  // namespace

void start_tensor_cores(block& block) {
  block.tensor_cores = std::make_shared<tensor_core_state>();
}

void end_warp(uint32_t warp) {
  if (!state().warps[warp].queue.empty()) {
    fail("%s: its warp has returned without waiting for its wgmma",
         name_of_thread(threadIdx.x).c_str());
  }
}

void mma_u8s8(int32_t (&sums)[4], const uint32_t (&rows)[4], uint2 queries, const location& where) {
  require_warps("mma", 32, current_settings().capability >= 80, where);
  mma_operands operands = {sums, &rows, queries};
  meet(mma_collective, ~0u, &operands, where);
}

void wgmma_u8s8(int32_t* sums, uint32_t column_count, const uint32_t (&rows)[4],
                uint64_t descriptor, bool keep, const location& where) {
  require_warps("wgmma", 128, current_settings().capability == 90, where);
  wgmma_operands operands = {sums, column_count, &rows, descriptor, keep, &where};
  meet(wgmma_collective, ~0u, &operands, where);
}

void wgmma_fence(const location& where) { meet(fence_collective, ~0u, nullptr, where); }
void wgmma_commit(const location& where) { meet(commit_collective, ~0u, nullptr, where); }

void wgmma_wait(uint32_t groups_left, const location& where) {
  wait_operands operands = {groups_left, &where};
  meet(wait_collective, ~0u, &operands, where);
}

uint64_t wgmma_descriptor(const void* shared) {
  const auto* const start = static_cast<const unsigned char*>(shared);
  const ptrdiff_t address = start - dynamic_shared_memory();
  if (address < 0 || static_cast<size_t>(address) >= dynamic_shared_bytes()) {
    fail("%s: a descriptor of memory that is not dynamic shared memory",
         name_of_thread(threadIdx.x).c_str());
  }
  return (static_cast<uint64_t>(address) & 0x3ffff) >> 4 | uint64_t{1} << 16 |
         uint64_t{atom_bytes >> 4} << 32 | uint64_t{1} << 62;
}

void fence_async_shared() {
  tensor_core_state& own = state();
  if (own.barriers_of_last_fence != block_in_use().barriers_passed) {
    own.fence_count_before = own.fence_count;
    own.barriers_of_last_fence = block_in_use().barriers_passed;
  }
  own.fence_count++;
  fence_async_writes();
}

void check_global(const void* pointer, size_t bytes, const location& where) {
  require_awaited("a load", where);
  if (reinterpret_cast<uintptr_t>(pointer) % bytes == 0 && is_device_memory(pointer, bytes)) return;
  fail("%s loads %zu bytes at %p, which is not aligned or not device memory, at %s:%u",
       name_of_thread(threadIdx.x).c_str(), bytes, pointer, where.file_name(), where.line());
}

}  // namespace sagitta::cuda::emulation
