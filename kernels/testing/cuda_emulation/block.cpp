// Runs the blocks of a grid: every thread is a fiber, and at every synchronisation the next runnable
// thread is chosen at random.
#include "block.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "settings.h"
#include "tensor_cores.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#endif

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace sagitta::cuda::emulation {
namespace {

constexpr size_t shared_bytes_max = 227 << 10;
constexpr int fresh = 0xa5;
/** The average number of switches within a warp before another warp may run. */
constexpr uint32_t switches_per_warp = 8;

alignas(1024) unsigned char shared_memory[shared_bytes_max];

block running;
fiber threads[lane_count * warp_count_max];
fiber starter;

/** A set bit, chosen by a random number. */
uint32_t any_of(unsigned bits, uint32_t drawn) {
  const uint32_t start = drawn % 32;
  return (static_cast<uint32_t>(std::countr_zero(std::rotr(bits, static_cast<int>(start)))) +
          start) %
         32;
}

[[noreturn]] void report_deadlock() {
  std::string waiting;
  uint32_t shown = 0;
  for (uint32_t thread = 0; thread < running.thread_count; thread++) {
    const warp& warp = running.warps[thread / lane_count];
    const uint32_t lane = thread % lane_count;
    if ((warp.exited >> lane & 1) != 0) continue;
    // One line per group of neighbouring threads that wait at the same location.
    if (thread > 0 && lane > 0 && warp.waits_for[lane] == warp.waits_for[lane - 1] &&
        warp.locations[lane].line() == warp.locations[lane - 1].line()) {
      continue;
    }
    if (shown++ == 40) break;
    waiting += "\n  from thread " + std::to_string(thread) + " on: " + warp.waits_for[lane] + ", " +
               warp.locations[lane].file_name() + ":" + std::to_string(warp.locations[lane].line());
  }
  fail("%s is deadlocked; %u of %u threads have returned, the others wait for%s",
       name_of_thread(~0u).c_str(), running.exited_count, running.thread_count, waiting.c_str());
}

void go_on(uint32_t from, bool has_ended) {
  const uint32_t drawn = static_cast<uint32_t>(draw() >> 32);
  if (running.runnable_warps == 0) {
    if (running.exited_count != running.thread_count) report_deadlock();
    switch_fiber(threads[from], starter, has_ended);
    return;
  }
  uint32_t index = from / lane_count;
  if ((running.runnable_warps >> index & 1) == 0 || drawn % switches_per_warp == 0) {
    index = any_of(running.runnable_warps, drawn >> 8);
  }
  const uint32_t next = index * lane_count + any_of(running.warps[index].runnable, drawn >> 16);
  if (next == from) return;
  threadIdx.x = next;
  switch_fiber(threads[from], threads[next], has_ended);
}

void set_runnable(uint32_t index, unsigned lanes) {
  warp& warp = running.warps[index];
  warp.runnable |= lanes;
  if (lanes != 0) running.runnable_warps |= 1u << index;
}

void wait_here(uint32_t thread, const char* what, const location& where) {
  warp& warp = running.warps[thread / lane_count];
  const uint32_t lane = thread % lane_count;
  warp.runnable &= ~(1u << lane);
  if (warp.runnable == 0) running.runnable_warps &= ~(1u << thread / lane_count);
  warp.waits_for[lane] = what;
  warp.locations[lane] = where;
}

bool is_barrier_complete() {
  return running.barrier_arrived > 0 &&
         running.barrier_arrived + running.exited_count == running.thread_count;
}

void pass_barrier() {
  running.barrier_result = static_cast<int>(running.barrier_set);
  running.barrier_arrived = 0;
  running.barrier_set = 0;
  for (uint32_t i = 0; i * lane_count < running.thread_count; i++) {
    set_runnable(i, running.warps[i].at_barrier);
    running.warps[i].at_barrier = 0;
  }
}

void end_thread(uint32_t thread) {
  warp& warp = running.warps[thread / lane_count];
  const unsigned lane = 1u << thread % lane_count;
  for (const meeting& meeting : warp.meetings) {
    if ((meeting.mask & lane) == 0) continue;
    fail("%s has returned, but other lanes of its warp wait for it at %s (mask %08x)",
         name_of_thread(thread).c_str(), meeting.what->name, meeting.mask);
  }
  wait_here(thread, "the end", location());
  warp.exited |= lane;
  running.exited_count++;
  if (warp.exited == warp.present) end_warp(thread / lane_count);
  if (is_barrier_complete()) pass_barrier();
}

// It never returns: ASan would report its variables as still in use.
__attribute__((no_sanitize("address"))) void enter() {
  const uint32_t thread = threadIdx.x;
  entered(threads[thread], starter);
  running.launch->run();
  end_thread(thread);
  go_on(thread, true);
}

void start_block(const grid_launch& launch) {
  running.launch = &launch;
  running.thread_count = launch.threads;
  running.exited_count = 0;
  running.runnable_warps = 0;
  running.barrier_arrived = 0;
  running.barrier_set = 0;
  for (uint32_t i = 0; i * lane_count < launch.threads; i++) {
    warp& warp = running.warps[i];
    const uint32_t lanes = std::min(lane_count, launch.threads - i * lane_count);
    warp.present = lanes == lane_count ? ~0u : (1u << lanes) - 1;
    warp.exited = 0;
    warp.runnable = 0;
    warp.at_barrier = 0;
    warp.meetings.clear();
    set_runnable(i, warp.present);
  }
  for (uint32_t thread = 0; thread < launch.threads; thread++) {
    give_stack(threads[thread]);
    prepare(threads[thread], enter);
  }
  ASAN_UNPOISON_MEMORY_REGION(shared_memory, sizeof shared_memory);
  memset(shared_memory, fresh, launch.shared_bytes);
  ASAN_POISON_MEMORY_REGION(shared_memory + launch.shared_bytes,
                            sizeof shared_memory - launch.shared_bytes);
  start_tensor_cores();
}

}  // namespace

block& block_in_use() { return running; }
unsigned char* dynamic_shared_memory() { return shared_memory; }
size_t dynamic_shared_bytes() { return running.launch->shared_bytes; }

void run_grid(const grid_launch& launch) {
  blockDim = launch.threads;
  gridDim = launch.grid;
  // ASan needs this on every OS thread.
  starter = {};
  std::vector<uint64_t> order(uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; i--) {
    std::swap(order[i - 1], order[draw_below(static_cast<uint32_t>(i))]);
  }
  for (const uint64_t index : order) {
    blockIdx.x = static_cast<unsigned>(index % launch.grid.x);
    blockIdx.y = static_cast<unsigned>(index / launch.grid.x % launch.grid.y);
    blockIdx.z = static_cast<unsigned>(index / launch.grid.x / launch.grid.y);
    start_block(launch);
    threadIdx = {draw_below(launch.threads), 0, 0};
    switch_fiber(starter, threads[threadIdx.x]);
  }
}

void meet(const collective& collective, unsigned mask, void* operands, const location& where) {
  const uint32_t thread = threadIdx.x;
  const uint32_t index = thread / lane_count;
  const unsigned lane = 1u << thread % lane_count;
  warp& warp = running.warps[index];
  if ((mask & lane) == 0) {
    fail("%s calls %s at %s:%u with a mask without its own lane: %08x",
         name_of_thread(thread).c_str(), collective.name, where.file_name(), where.line(), mask);
  }
  // A full mask means all lanes that exist in the last warp.
  mask &= mask == ~0u ? warp.present : ~0u;
  if ((mask & (warp.exited | ~warp.present)) != 0) {
    fail("%s calls %s at %s:%u with a mask of lanes that have returned: %08x of %08x",
         name_of_thread(thread).c_str(), collective.name, where.file_name(), where.line(), mask,
         warp.present & ~warp.exited);
  }
  warp.operands[thread % lane_count] = operands;
  auto found = std::find_if(
      warp.meetings.begin(), warp.meetings.end(), [&](const meeting& meeting) {
        return meeting.what == &collective && meeting.mask == mask;
      });
  if (found == warp.meetings.end()) {
    warp.meetings.push_back({&collective, mask, 0});
    found = warp.meetings.end() - 1;
  }
  found->arrived |= lane;
  if (found->arrived == mask) {
    *found = warp.meetings.back();
    warp.meetings.pop_back();
    if (collective.run != nullptr) collective.run(mask, warp.operands);
    set_runnable(index, mask);
  } else {
    wait_here(thread, collective.name, where);
  }
  go_on(thread, false);
}

int meet_block(barrier kind, bool predicate, const location& where) {
  static constexpr const char* names[] = {"__syncthreads", "__syncthreads_or",
                                          "__syncthreads_count"};
  const uint32_t thread = threadIdx.x;
  if (running.barrier_arrived == 0) {
    running.barrier_kind = kind;
    running.barrier_location = where;
  } else if (running.barrier_kind != kind || running.barrier_location.line() != where.line() ||
             strcmp(running.barrier_location.file_name(), where.file_name()) != 0) {
    fail("%s calls %s at %s:%u, but other threads of its block wait at %s, %s:%u",
         name_of_thread(thread).c_str(), names[static_cast<int>(kind)], where.file_name(),
         where.line(), names[static_cast<int>(running.barrier_kind)],
         running.barrier_location.file_name(), running.barrier_location.line());
  }
  running.barrier_arrived++;
  running.barrier_set += predicate;
  running.warps[thread / lane_count].at_barrier |= 1u << thread % lane_count;
  wait_here(thread, names[static_cast<int>(kind)], where);
  if (is_barrier_complete()) pass_barrier();
  go_on(thread, false);
  return running.barrier_result;
}

void maybe_yield() {
  if (draw_below(switches_per_warp) == 0) go_on(threadIdx.x, false);
}

void trap(const location& where) {
  fail("%s traps at %s:%u", name_of_thread(threadIdx.x).c_str(), where.file_name(), where.line());
}

std::string name_of(const grid_launch& launch) {
  std::string name = "the kernel";
  Dl_info found;
  if (dladdr(launch.kernel, &found) != 0 && found.dli_sname != nullptr) {
    int status = 0;
    char* const plain = abi::__cxa_demangle(found.dli_sname, nullptr, nullptr, &status);
    name = status == 0 ? plain : found.dli_sname;
    free(plain);
#if defined(__SANITIZE_ADDRESS__)
  } else {
    char text[512];
    __sanitizer_symbolize_pc(const_cast<void*>(launch.kernel), "%f", text, sizeof text);
    name = text;
#endif
  }
  return name + " (launched at " + launch.location.file_name() + ":" +
         std::to_string(launch.location.line()) + ")";
}

std::string name_of_thread(uint32_t thread) {
  const std::string where = name_of(*running.launch) + ", block " + std::to_string(blockIdx.x) +
                            ", " + std::to_string(blockIdx.y);
  return thread == ~0u ? where : where + ", thread " + std::to_string(thread);
}

}  // namespace sagitta::cuda::emulation
