// Runs the blocks of a grid, several at a time. Every thread is a fiber, and at every synchronisation the
// next runnable thread is chosen at random, mostly from the same warp, sometimes from another block.
#include "block.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "early_launch.h"
#include "machine.h"
#include "mbarriers.h"
#include "races.h"
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

constexpr int fresh = 0xa5;
/** The average number of switches within a warp before another warp may run. */
constexpr uint32_t switches_per_warp = 8;
/** The average number of switches within a block before another block may run. */
constexpr uint32_t switches_per_block = 256;
constexpr uint32_t far_switches_per_block = 16;

/** The slots of resident blocks, which are never freed; those in `resident` hold a block. */
auto& slots = *new std::vector<block*>;
std::vector<block*> resident;
/** The block whose thread runs; null outside of kernels. */
block* running = nullptr;
/** The OS thread that runs kernels, one at a time. */
pthread_t runner;
fiber starter;

/** Returns a set bit, chosen by a random number. */
uint32_t any_of(unsigned bits, uint32_t drawn) {
  const uint32_t start = drawn % 32;
  return (static_cast<uint32_t>(std::countr_zero(std::rotr(bits, static_cast<int>(start)))) +
          start) %
         32;
}

[[noreturn]] void report_deadlock() {
  std::string waiting;
  uint32_t shown = 0;
  for (uint32_t thread = 0; thread < running->thread_count; thread++) {
    const warp& warp = running->warps[thread / lane_count];
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
  waiting += missing_for_mbarriers();
  fail("%s is deadlocked; %u of %u threads have returned, the others wait for%s",
       name_of_thread(~0u).c_str(), running->exited_count, running->thread_count, waiting.c_str());
}

uint32_t runnable_thread(const block& of, uint32_t warp, uint32_t drawn) {
  return warp * lane_count + any_of(of.warps[warp].runnable, drawn);
}

/** Replaces the variables of the running block by those of another one. */
void enter_block(block& next) {
  if (&next == running) return;
  const memory_range& shared = static_shared_memory();
  if (running != nullptr) memcpy(running->static_shared.data(), shared.start, shared.bytes);
  memcpy(shared.start, next.static_shared.data(), shared.bytes);
  running = &next;
  blockIdx = next.index;
}

/** Which thread continues: one of the same warp, which is fast, or any. */
enum class choice { near, far };

void switch_thread(uint32_t from, bool has_ended, choice wanted = choice::near) {
  block& own = *running;
  maybe_land_copy();
  while (own.runnable_warps == 0 && land_copy()) {
  }
  if (own.runnable_warps == 0) {
    if (own.exited_count != own.thread_count) report_deadlock();
    switch_fiber(own.fibers[from], starter, has_ended);
    return;
  }
  const uint64_t drawn = draw();
  uint32_t index = from / lane_count;
  const uint32_t per_block = wanted == choice::near ? switches_per_block : far_switches_per_block;
  if (resident.size() > 1 && (drawn >> 32) % per_block == 0) {
    enter_block(*resident[draw_below(static_cast<uint32_t>(resident.size()))]);
  }
  if (running != &own || (own.runnable_warps >> index & 1) == 0 ||
      wanted == choice::far || drawn % switches_per_warp == 0) {
    index = any_of(running->runnable_warps, static_cast<uint32_t>(drawn >> 8));
  }
  const uint32_t next = runnable_thread(*running, index, static_cast<uint32_t>(drawn >> 16));
  if (next == from && running == &own) return;
  threadIdx.x = next;
  switch_fiber(own.fibers[from], running->fibers[next], has_ended);
}

void set_runnable(uint32_t index, unsigned lanes) {
  warp& warp = running->warps[index];
  warp.runnable |= lanes;
  if (lanes != 0) running->runnable_warps |= 1u << index;
}

void wait_here(uint32_t thread, const char* what, const location& where) {
  warp& warp = running->warps[thread / lane_count];
  const uint32_t lane = thread % lane_count;
  warp.runnable &= ~(1u << lane);
  if (warp.runnable == 0) running->runnable_warps &= ~(1u << thread / lane_count);
  warp.waits_for[lane] = what;
  warp.locations[lane] = where;
}

bool is_same(const location& left, const location& right) {
  return left.line() == right.line() && (left.file_name() == right.file_name() ||
                                         strcmp(left.file_name(), right.file_name()) == 0);
}

bool is_barrier_complete() {
  return running->barrier_arrived > 0 &&
         running->barrier_arrived + running->exited_count == running->thread_count;
}

void pass_barrier() {
  running->barriers_passed++;
  order_block();
  running->barrier_result = static_cast<int>(running->barrier_set);
  running->barrier_arrived = 0;
  running->barrier_set = 0;
  for (uint32_t i = 0; i * lane_count < running->thread_count; i++) {
    set_runnable(i, running->warps[i].at_barrier);
    running->warps[i].at_barrier = 0;
  }
}

void end_thread(uint32_t thread) {
  require_awaited("its end");
  warp& warp = running->warps[thread / lane_count];
  const unsigned lane = 1u << thread % lane_count;
  for (const meeting& meeting : warp.meetings) {
    if ((meeting.mask & lane) == 0) continue;
    fail("%s has returned, but other lanes of its warp wait for it at %s (mask %08x)",
         name_of_thread(thread).c_str(), meeting.what->name, meeting.mask);
  }
  wait_here(thread, "the end", location());
  warp.exited |= lane;
  running->exited_count++;
  if (warp.exited == warp.present) end_warp(thread / lane_count);
  if (is_barrier_complete()) pass_barrier();
  if (running->exited_count == running->thread_count) end_mbarriers();
}

// It never returns, so ASan would report its variables as still in use.
__attribute__((no_sanitize("address"))) void enter() {
  const uint32_t thread = threadIdx.x;
  entered(running->fibers[thread], starter);
  begin_early_thread(thread);
  running->launch->run();
  end_thread(thread);
  switch_thread(thread, true);
}

/** Creates a slot for one more resident block. */
block* create_slot() {
  auto* const slot = new block;
  slot->fibers.resize(lane_count * warp_count_max);
  static_assert(shared_bytes_max % 1024 == 0);
  slot->dynamic_shared =
      static_cast<unsigned char*>(std::aligned_alloc(1024, shared_bytes_max));
  if (slot->dynamic_shared == nullptr) fail("out of memory for the shared memory of a block");
  return slot;
}

void start_block(block& slot, const grid_launch& launch, uint64_t index) {
  slot.launch = &launch;
  slot.index = {static_cast<unsigned>(index % launch.grid.x),
                 static_cast<unsigned>(index / launch.grid.x % launch.grid.y),
                 static_cast<unsigned>(index / launch.grid.x / launch.grid.y)};
  slot.thread_count = launch.threads;
  slot.exited_count = 0;
  slot.runnable_warps = 0;
  slot.barrier_arrived = 0;
  slot.barrier_set = 0;
  slot.barriers_passed = 0;
  for (uint32_t i = 0; i * lane_count < launch.threads; i++) {
    warp& warp = slot.warps[i];
    const uint32_t lanes = std::min(lane_count, launch.threads - i * lane_count);
    warp.present = lanes == lane_count ? ~0u : (1u << lanes) - 1;
    warp.exited = 0;
    warp.runnable = warp.present;
    warp.at_barrier = 0;
    warp.meetings.clear();
    slot.runnable_warps |= 1u << i;
  }
  for (uint32_t thread = 0; thread < launch.threads; thread++) {
    allocate_stack(slot.fibers[thread]);
    prepare(slot.fibers[thread], enter);
  }
  ASAN_UNPOISON_MEMORY_REGION(slot.dynamic_shared, shared_bytes_max);
  memset(slot.dynamic_shared, fresh, launch.shared_bytes);
  ASAN_POISON_MEMORY_REGION(slot.dynamic_shared + launch.shared_bytes,
                            shared_bytes_max - launch.shared_bytes);
  const memory_range& shared = static_shared_memory();
  slot.static_shared.resize(shared.bytes);
  memcpy(slot.static_shared.data(), shared.start, shared.bytes);
  slot.has_awaited.reset();
  start_tensor_cores(slot);
  start_mbarriers(slot);
  start_races(slot);
}

/** Returns how many blocks of the launch are resident at a time. */
size_t resident_count(const grid_launch& launch) {
  const auto fitting = static_cast<uint32_t>(
      multiprocessor_count *
      blocks_per_multiprocessor(static_cast<int>(launch.threads), launch.shared_bytes));
  return std::max(1u, std::min(fitting, current_settings().resident_blocks_max));
}

/** Returns the blocks of the launch in random order. */
std::vector<uint64_t> shuffled_blocks(const grid_launch& launch) {
  std::vector<uint64_t> order(uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; i--) {
    std::swap(order[i - 1], order[draw_below(static_cast<uint32_t>(i))]);
  }
  return order;
}

/** Runs threads of resident blocks until a block has ended. */
void run_resident_blocks() {
  block& first = *resident[draw_below(static_cast<uint32_t>(resident.size()))];
  enter_block(first);
  const uint32_t index = any_of(first.runnable_warps, draw_below(lane_count));
  threadIdx = {runnable_thread(first, index, draw_below(lane_count)), 0, 0};
  switch_fiber(starter, first.fibers[threadIdx.x]);
  std::erase(resident, running);
}

/** Finds the variables of OS threads of the program or library that contains this function. */
int find_static_shared(dl_phdr_info* info, size_t, void* found) {
  const auto own = reinterpret_cast<uintptr_t>(&find_static_shared);
  bool is_here = false;
  const ElfW(Phdr)* variables = nullptr;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type == PT_TLS) variables = &part;
    is_here |= part.p_type == PT_LOAD && own - info->dlpi_addr - part.p_vaddr < part.p_memsz;
  }
  if (!is_here || variables == nullptr) return 0;
  *static_cast<memory_range*>(found) = {static_cast<unsigned char*>(info->dlpi_tls_data),
                                        variables->p_memsz};
  return 1;
}

}  // namespace

block& block_in_use() { return *running; }
bool is_in_kernel() { return running != nullptr && pthread_equal(runner, pthread_self()) != 0; }
unsigned char* dynamic_shared_memory() { return running->dynamic_shared; }
size_t dynamic_shared_bytes() { return running->launch->shared_bytes; }

const memory_range& static_shared_memory() {
  static thread_local memory_range found{};
  // A library's variables exist once one of them has been used, as has happened here.
  if (found.start == nullptr) dl_iterate_phdr(find_static_shared, &found);
  return found;
}

void run_grid(const grid_launch& launch) {
  runner = pthread_self();
  blockDim = launch.threads;
  gridDim = launch.grid;
  // ASan needs this on every OS thread.
  starter = {};
  start_races_of_grid();
  begin_early_grid(launch);
  const std::vector<uint64_t> order = shuffled_blocks(launch);
  const size_t count = std::min(resident_count(launch), order.size());
  while (slots.size() < count) slots.push_back(create_slot());
  std::vector<block*> unused;
  for (size_t i = 0; i < count; i++) unused.push_back(slots[i]);
  for (size_t next = 0; next < order.size() || !resident.empty();) {
    for (; next < order.size() && !unused.empty(); next++) {
      start_block(*unused.back(), launch, order[next]);
      resident.push_back(unused.back());
      unused.pop_back();
    }
    run_resident_blocks();
    unused.push_back(running);
    running = nullptr;
  }
}

void meet(const collective& collective, unsigned mask, void* operands, const location& where) {
  require_awaited(collective.name, where);
  const uint32_t thread = threadIdx.x;
  const uint32_t index = thread / lane_count;
  const unsigned lane = 1u << thread % lane_count;
  warp& warp = running->warps[index];
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
    if (&collective == &warp_barrier) order_lanes(index, mask);
    set_runnable(index, mask);
  } else {
    wait_here(thread, collective.name, where);
  }
  switch_thread(thread, false);
}

int meet_block(barrier kind, bool predicate, const location& where) {
  static constexpr const char* names[] = {"__syncthreads", "__syncthreads_or",
                                          "__syncthreads_count"};
  const uint32_t thread = threadIdx.x;
  require_awaited(names[static_cast<int>(kind)], where);
  if (running->barrier_arrived == 0) {
    running->barrier_kind = kind;
    running->barrier_location = where;
  } else if (running->barrier_kind != kind || !is_same(running->barrier_location, where)) {
    fail("%s calls %s at %s:%u, but other threads of its block wait at %s, %s:%u",
         name_of_thread(thread).c_str(), names[static_cast<int>(kind)], where.file_name(),
         where.line(), names[static_cast<int>(running->barrier_kind)],
         running->barrier_location.file_name(), running->barrier_location.line());
  }
  running->barrier_arrived++;
  running->barrier_set += predicate;
  running->warps[thread / lane_count].at_barrier |= 1u << thread % lane_count;
  wait_here(thread, names[static_cast<int>(kind)], where);
  if (is_barrier_complete()) pass_barrier();
  switch_thread(thread, false);
  return running->barrier_result;
}

void maybe_yield() {
  require_awaited("an atomic operation");
  if (draw_below(switches_per_warp) == 0) switch_thread(threadIdx.x, false);
}

void yield_far(uint32_t one_in) {
  if (draw_below(one_in) == 0) switch_thread(threadIdx.x, false, choice::far);
}

void suspend(const char* what, const location& where) {
  wait_here(threadIdx.x, what, where);
  switch_thread(threadIdx.x, false);
}

void resume(uint32_t thread) { set_runnable(thread / lane_count, 1u << thread % lane_count); }

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
  const std::string where = name_of(*running->launch) + ", block " + std::to_string(blockIdx.x) +
                            ", " + std::to_string(blockIdx.y);
  return thread == ~0u ? where : where + ", thread " + std::to_string(thread);
}

}  // namespace sagitta::cuda::emulation
