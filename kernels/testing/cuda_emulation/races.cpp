// Remembers accesses per word of four bytes and compares each new access with them.
#include "races.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <unordered_map>

#include "early_launch.h"
#include "machine.h"
#include "settings.h"

namespace sagitta::cuda::emulation {
namespace {

constexpr uint32_t word_bytes = 4;
constexpr size_t page_bytes = 4096;
/** If more pages of device memory are remembered, those of earlier grids are forgotten. */
constexpr size_t pages_max = 4096;

enum class access_kind : uint8_t { read, write, atomic, copy };

/** An access to a word by a thread or a copy; for a copy, the thread is an mbarrier and the time a phase. */
struct access {
  /** The number of its block since the start of the process; 0 if there is no access. */
  uint32_t block = 0;
  /** The number of barriers that the block had passed, and the thread's own time since the last one. */
  uint32_t barriers = 0;
  uint32_t time = 0;
  /** The address of the code, relative to the start of the program. */
  uint32_t code = 0;
  uint16_t thread = 0;
  /** One bit for each byte of the word. */
  uint8_t bytes = 0;
  access_kind kind = access_kind::read;
};

struct word {
  access write;
  access read;
};

using page = std::array<word, page_bytes / word_bytes>;

/** What a synchronisation orders: a thread's accesses until then, and its block's before the last barrier. */
struct horizon {
  uint32_t barriers;
  uint32_t time;
};
/** Horizons by block and thread. */
using horizons = std::map<std::pair<uint32_t, uint32_t>, horizon>;

/** What comes before, within a block: accesses of its threads, and phases of its mbarriers. */
struct clock {
  /** For each thread, the time until which its accesses come before. */
  std::vector<uint32_t> times;
  /** For each mbarrier, the number of phases that have ended. */
  std::vector<uint32_t> phases;

  void add(const clock& more) {
    add(times, more.times);
    add(phases, more.phases);
  }
  static void add(std::vector<uint32_t>& to, const std::vector<uint32_t>& more) {
    if (to.size() < more.size()) to.resize(more.size());
    for (size_t i = 0; i < more.size(); i++) to[i] = std::max(to[i], more[i]);
  }
};

/** A location in memory, for messages. */
struct place {
  const char* memory;
  size_t offset;
};

}  // namespace

struct race_state {
  uint32_t number;
  /**
   * times[thread][lane]: the times of the warp's lanes up to which the thread is ordered after them, and
   * its own time.
   */
  std::array<std::array<uint32_t, lane_count>, lane_count * warp_count_max> times;
  /** The fences of the asynchronous proxy by each thread, in order. */
  std::array<std::vector<horizon>, lane_count * warp_count_max> async_fences;
  /** Accesses that come before everything the block does from now on. */
  horizons known;
  /** Each thread's last __threadfence, and what it has since seen released by atomic operations. */
  std::map<uint32_t, horizon> fences;
  std::map<uint32_t, horizons> seen;
  /** For each thread, what it knows from mbarriers. Empty if the block has none. */
  std::vector<clock> by_mbarriers;
  /** For each mbarrier, what comes before the end of the current phase, and of the last one. */
  std::vector<clock> arriving;
  std::vector<clock> ended;
  std::vector<word> dynamic_words;
  std::vector<word> static_words;

  uint32_t& own_time(uint32_t thread) { return times[thread][thread % lane_count]; }
};

namespace {

bool has_hooks = false;
uint32_t last_block = 0;
/** The first block of the running grid; accesses of earlier blocks come before. */
uint32_t first_block = 1;
std::unordered_map<uintptr_t, std::unique_ptr<page>> pages;
/** What atomic operations of the running grid have released, by address. */
std::map<const void*, horizons> released;

race_state& state() { return *block_in_use().races; }

/** Whether the running thread knows that this access comes before. */
bool is_before(const access& earlier) {
  const block& here = block_in_use();
  const race_state& own = *here.races;
  if (earlier.block < first_block) return true;
  if (earlier.kind == access_kind::copy) {
    const std::vector<uint32_t>& phases = own.by_mbarriers[threadIdx.x].phases;
    return earlier.thread < phases.size() && earlier.time < phases[earlier.thread];
  }
  if (earlier.block == own.number) {
    if (!own.by_mbarriers.empty()) {
      const std::vector<uint32_t>& times = own.by_mbarriers[threadIdx.x].times;
      if (earlier.thread < times.size() && earlier.time <= times[earlier.thread]) return true;
    }
    if (earlier.barriers < here.barriers_passed || earlier.thread == threadIdx.x) return true;
    // All lanes know that a wgmma of their warp has ended.
    if (earlier.thread / lane_count == threadIdx.x / lane_count &&
        (earlier.code == 0 ||
         own.times[threadIdx.x][earlier.thread % lane_count] >= earlier.time)) {
      return true;
    }
  }
  for (auto at = own.known.lower_bound({earlier.block, 0});
       at != own.known.end() && at->first.first == earlier.block; ++at) {
    const horizon& until = at->second;
    if (earlier.barriers < until.barriers) return true;
    if (earlier.thread == at->first.second && earlier.barriers == until.barriers &&
        earlier.time <= until.time) {
      return true;
    }
  }
  return false;
}

/** Returns the source lines of code, from inlined functions outwards, if there is a tool that finds them. */
std::string lines_of(uint32_t code) {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&is_instrumented), &self) == 0) return "?";
  char command[512];
  snprintf(command, sizeof command, "addr2line -i -s -e '%s' 0x%x 2>&1", self.dli_fname, code - 1);
  FILE* const tool = popen(command, "r");
  if (tool == nullptr) return "?";
  std::string lines;
  for (char line[512]; fgets(line, sizeof line, tool) != nullptr;) {
    lines.append(lines.empty() ? "" : " < ").append(line, strcspn(line, " \n"));
  }
  pclose(tool);
  return lines;
}

std::string description_of(const access& access) {
  if (access.kind == access_kind::copy) return "writes by a bulk copy";
  if (access.code == 0) return "reads by wgmma";
  const char* const verb = access.kind == access_kind::read    ? "reads"
                           : access.kind == access_kind::write ? "writes"
                                                               : "changes atomically";
  return std::string(verb) + " at " + lines_of(access.code);
}

[[noreturn]] void report(const place& at, const access& earlier, const access& now) {
  if (earlier.kind == access_kind::copy) {
    fail("a race: %s %s what a bulk copy writes (%s, offset %zu), without a wait for its mbarrier",
         name_of_thread(threadIdx.x).c_str(), description_of(now).c_str(), at.memory, at.offset);
  }
  const bool is_own_block = earlier.block == now.block;
  fail("a race: %s %s what thread %u of %s block %s (%s, offset %zu), and nothing orders the two",
       name_of_thread(threadIdx.x).c_str(), description_of(now).c_str(), earlier.thread,
       is_own_block ? "the same" : "another", description_of(earlier).c_str(), at.memory, at.offset);
}

bool conflict(const access& earlier, const access& now) {
  // Reads do not race with each other, nor do atomic operations; plain writes do, and so do copies.
  const bool may_race = earlier.kind != now.kind || now.kind == access_kind::write ||
                        now.kind == access_kind::copy;
  return may_race && (earlier.bytes & now.bytes) != 0 && !is_before(earlier);
}

void record_word(word& word, const access& now, const place& at) {
  if (conflict(word.write, now)) report(at, word.write, now);
  if (now.kind != access_kind::read) {
    if (conflict(word.read, now)) report(at, word.read, now);
    word.write = now;
  } else if (is_before(word.read) || draw_below(2) == 0) {
    word.read = now;
  }
}

/** The remembered accesses to a word, and the word's location. */
struct word_found {
  word* kept;
  place at;
};

word_found word_of(std::vector<word>& words, const memory_range& range,
                     const unsigned char* address, const char* name) {
  if (words.empty()) words.resize(range.bytes / word_bytes + 1);
  const auto offset = static_cast<size_t>(address - range.start);
  return {&words[offset / word_bytes], {name, offset}};
}

word_found global_word(const unsigned char* address) {
  const auto number = reinterpret_cast<uintptr_t>(address) / page_bytes;
  const size_t offset = reinterpret_cast<uintptr_t>(address) % page_bytes;
  std::unique_ptr<page>& found = pages[number];
  if (found == nullptr) found = std::make_unique<page>();
  return {&(*found)[offset / word_bytes], {"global memory", reinterpret_cast<uintptr_t>(address)}};
}

memory_range dynamic_shared_range() {
  return {block_in_use().dynamic_shared, shared_bytes_max};
}

word_found word_at(const unsigned char* address) {
  const bool is_dynamic = dynamic_shared_range().contains(address);
  if (!is_dynamic && !static_shared_memory().contains(address)) return global_word(address);
  race_state& own = state();
  const word_found found =
      is_dynamic
          ? word_of(own.dynamic_words, dynamic_shared_range(), address, "dynamic shared memory")
          : word_of(own.static_words, static_shared_memory(), address, "shared memory");
  // Accesses of an earlier block in the same slot are to other memory.
  for (access* const each : {&found.kept->write, &found.kept->read}) {
    if (each->block != own.number) *each = {};
  }
  return found;
}

bool is_part_of(const unsigned char* address, const auto& object) {
  const auto* const start = reinterpret_cast<const unsigned char*>(&object);
  return static_cast<size_t>(address - start) < sizeof object;
}

/** Whether threads share the memory, so that it belongs neither to one thread nor to the emulation or the host. */
bool is_shared_or_global(const unsigned char* address) {
  const fiber& own = block_in_use().fibers[threadIdx.x];
  if (memory_range{own.stack, own.stack_bytes}.contains(address)) return false;
  if (is_part_of(address, threadIdx) || is_part_of(address, blockIdx) ||
      is_part_of(address, blockDim) || is_part_of(address, gridDim)) {
    return false;
  }
  return dynamic_shared_range().contains(address) || static_shared_memory().contains(address) ||
         is_device_memory(address, 1);
}

void note(const unsigned char* address, size_t bytes, access_kind kind, const void* code) {
  static const char* const program = [] {
    Dl_info self;
    return dladdr(reinterpret_cast<const void*>(&is_instrumented), &self) == 0
               ? nullptr
               : static_cast<const char*>(self.dli_fbase);
  }();
  access now;
  now.block = state().number;
  now.barriers = block_in_use().barriers_passed;
  now.time = state().own_time(threadIdx.x);
  now.code = static_cast<uint32_t>(static_cast<const char*>(code) - program);
  now.thread = static_cast<uint16_t>(threadIdx.x);
  now.kind = kind;
  while (bytes > 0) {
    const word_found found = word_at(address);
    const size_t within = reinterpret_cast<uintptr_t>(address) % word_bytes;
    const size_t here = std::min(bytes, word_bytes - within);
    now.bytes = static_cast<uint8_t>(((1u << here) - 1) << within);
    record_word(*found.kept, now, found.at);
    address += here;
    bytes -= here;
  }
}

/** Set because the compiler calls functions of the standard library that are instrumented in other files. */
bool is_inside_hook = false;

void on_access(const void* memory, size_t bytes, access_kind kind, const void* code) {
  if (is_inside_hook || !is_in_kernel()) return;
  is_inside_hook = true;
  const auto* const address = static_cast<const unsigned char*>(memory);
  if (is_shared_or_global(address)) {
    const uint32_t one_in = current_settings().accesses_per_yield;
    if (one_in > 0 && kind != access_kind::atomic) {
      is_inside_hook = false;
      yield_far(one_in);
      is_inside_hook = true;
    }
    if (is_device_memory(address, 1)) require_awaited("an access of device memory");
    if (block_in_use().races != nullptr) note(address, bytes, kind, code);
  }
  is_inside_hook = false;
}

horizon now_of(uint32_t thread) {
  return {block_in_use().barriers_passed, state().own_time(thread)};
}

void add(horizons& to, const horizons& more) {
  for (const auto& [by, until] : more) to[by] = until;
}

/** Releases what comes before the thread's last fence, and acquires what others have released. */
void record_order(const void* address) {
  race_state& own = state();
  const auto fence = own.fences.find(threadIdx.x);
  if (fence == own.fences.end() && released.empty()) return;
  add(own.seen[threadIdx.x], released[address]);
  if (fence == own.fences.end()) return;
  released[address][{own.number, threadIdx.x}] = fence->second;
  add(released[address], own.known);
}

}  // namespace

bool is_instrumented() { return has_hooks; }

void start_races_of_grid() {
  first_block = last_block + 1;
  released.clear();
  if (pages.size() > pages_max) pages.clear();
}

void start_races(block& block) {
  if (!has_hooks || !current_settings().finds_races) {
    block.races = nullptr;
    return;
  }
  // The words of earlier blocks stay; their block number distinguishes them from the block's own.
  if (block.races == nullptr) block.races = std::make_shared<race_state>();
  race_state& own = *block.races;
  own.number = ++last_block;
  own.times = {};
  for (uint32_t thread = 0; thread < block.thread_count; thread++) {
    own.own_time(thread) = 1;
    own.async_fences[thread].clear();
  }
  own.known.clear();
  own.fences.clear();
  own.seen.clear();
  own.by_mbarriers.clear();
  own.arriving.clear();
  own.ended.clear();
}

void order_lanes(uint32_t warp, unsigned mask) {
  const block& here = block_in_use();
  if (here.races == nullptr) return;
  auto* const times = &here.races->times[size_t{warp} * lane_count];
  std::array<uint32_t, lane_count> all{};
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    for (uint32_t other = 0; other < lane_count; other++) {
      all[other] = std::max(all[other], times[lane][other]);
    }
  }
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    times[lane] = all;
    times[lane][lane]++;
  }
  std::vector<clock>& known = here.races->by_mbarriers;
  if (known.empty()) return;
  clock together;
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    if ((mask >> lane & 1) != 0) together.add(known[warp * lane_count + lane]);
  }
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    if ((mask >> lane & 1) != 0) known[warp * lane_count + lane] = together;
  }
}

void order_block() {
  if (block_in_use().races == nullptr || state().by_mbarriers.empty()) return;
  // The number of barriers tells what threads of the block have accessed.
  std::vector<uint32_t> phases;
  for (const clock& known : state().by_mbarriers) clock::add(phases, known.phases);
  for (clock& known : state().by_mbarriers) known.phases = phases;
}

void add_mbarrier() {
  if (block_in_use().races == nullptr) return;
  race_state& own = state();
  own.by_mbarriers.resize(block_in_use().thread_count);
  own.arriving.emplace_back();
  own.ended.emplace_back();
}

void record_arrival(uint32_t mbarrier) {
  if (block_in_use().races == nullptr) return;
  race_state& own = state();
  clock& arriving = own.arriving[mbarrier];
  arriving.add(own.by_mbarriers[threadIdx.x]);
  arriving.times.resize(block_in_use().thread_count);
  const uint32_t first = threadIdx.x / lane_count * lane_count;
  const std::array<uint32_t, lane_count>& lanes = own.times[threadIdx.x];
  for (uint32_t lane = 0; lane < lane_count && first + lane < arriving.times.size(); lane++) {
    uint32_t& until = arriving.times[first + lane];
    until = std::max(until, lanes[lane]);
  }
  own.own_time(threadIdx.x)++;
}

void end_phase(uint32_t mbarrier, uint32_t ended) {
  if (block_in_use().races == nullptr) return;
  race_state& own = state();
  clock& now = own.ended[mbarrier] = std::move(own.arriving[mbarrier]);
  own.arriving[mbarrier] = {};
  if (now.phases.size() <= mbarrier) now.phases.resize(mbarrier + 1);
  now.phases[mbarrier] = ended;
}

void record_wait(uint32_t mbarrier) {
  if (block_in_use().races == nullptr) return;
  state().by_mbarriers[threadIdx.x].add(state().ended[mbarrier]);
}

void begin_atomic(const void* address, size_t bytes) {
  maybe_yield();
  if (block_in_use().races == nullptr) return;
  on_access(address, bytes, access_kind::atomic, __builtin_return_address(0));
  record_order(address);
}

void fence_memory() {
  maybe_yield();
  if (block_in_use().races == nullptr) return;
  race_state& own = state();
  add(own.known, own.seen[threadIdx.x]);
  own.seen.erase(threadIdx.x);
  own.fences[threadIdx.x] = now_of(threadIdx.x);
  own.own_time(threadIdx.x)++;
}

void fence_async_writes() {
  if (block_in_use().races == nullptr) return;
  state().async_fences[threadIdx.x].push_back(now_of(threadIdx.x));
  state().own_time(threadIdx.x)++;
}

void check_async_access(const char* what, const unsigned char* from, size_t bytes,
                        const location& where) {
  if (block_in_use().races == nullptr) return;
  for (size_t at = 0; at < bytes; at += word_bytes) {
    const word_found found = word_at(from + at);
    const access& write = found.kept->write;
    if (write.block != state().number) continue;
    if (write.kind == access_kind::copy) {
      if (is_before(write)) continue;
      fail("%s: %s at %s:%u accesses what a bulk copy writes (dynamic shared memory, offset %zu), "
           "without a wait for its mbarrier",
           name_of_thread(threadIdx.x).c_str(), what, where.file_name(), where.line(),
           found.at.offset);
    }
    const auto& fences = state().async_fences[write.thread];
    const auto fence = std::find_if(fences.begin(), fences.end(), [&](const horizon& each) {
      return each.barriers > write.barriers ||
             (each.barriers == write.barriers && each.time >= write.time);
    });
    const char* const mistake =
        fence == fences.end() ? "without fence_async_shared before the barrier"
                              : "with fence_async_shared, but no barrier after it";
    if (fence != fences.end()) {
      access fenced = write;
      fenced.barriers = fence->barriers;
      fenced.time = fence->time;
      if (is_before(fenced)) continue;
    }
    fail("%s: %s at %s:%u accesses what thread %u %s (dynamic shared memory, offset %zu), %s",
         name_of_thread(threadIdx.x).c_str(), what, where.file_name(), where.line(), write.thread,
         description_of(write).c_str(), found.at.offset, mistake);
  }
}

void record_async_read(const unsigned char* from, size_t bytes) {
  if (block_in_use().races == nullptr) return;
  access read;
  read.block = state().number;
  read.barriers = block_in_use().barriers_passed;
  read.time = state().own_time(threadIdx.x);
  read.thread = static_cast<uint16_t>(threadIdx.x);
  read.bytes = (1u << word_bytes) - 1;
  for (size_t at = 0; at < bytes; at += word_bytes) {
    const word_found found = word_at(from + at);
    record_word(*found.kept, read, found.at);
  }
}

void record_async_write(const unsigned char* to, size_t bytes, uint32_t mbarrier, uint32_t phase,
                      const location& where) {
  if (block_in_use().races == nullptr) return;
  check_async_access("a bulk copy", to, bytes, where);
  access write;
  write.block = state().number;
  write.time = phase;
  write.thread = static_cast<uint16_t>(mbarrier);
  write.bytes = (1u << word_bytes) - 1;
  write.kind = access_kind::copy;
  for (size_t at = 0; at < bytes; at += word_bytes) {
    const word_found found = word_at(to + at);
    record_word(*found.kept, write, found.at);
  }
}

}  // namespace sagitta::cuda::emulation

// The functions that the compiler calls. Names and parameters are those of ThreadSanitizer.
using sagitta::cuda::emulation::access_kind;
using sagitta::cuda::emulation::on_access;

#define SAGITTA_HOOK(name, bytes, kind) \
  extern "C" void name(void* address) { \
    on_access(address, bytes, access_kind::kind, __builtin_return_address(0)); \
  }
SAGITTA_HOOK(__tsan_read1, 1, read)
SAGITTA_HOOK(__tsan_read2, 2, read)
SAGITTA_HOOK(__tsan_read4, 4, read)
SAGITTA_HOOK(__tsan_read8, 8, read)
SAGITTA_HOOK(__tsan_read16, 16, read)
SAGITTA_HOOK(__tsan_write1, 1, write)
SAGITTA_HOOK(__tsan_write2, 2, write)
SAGITTA_HOOK(__tsan_write4, 4, write)
SAGITTA_HOOK(__tsan_write8, 8, write)
SAGITTA_HOOK(__tsan_write16, 16, write)
SAGITTA_HOOK(__tsan_unaligned_read2, 2, read)
SAGITTA_HOOK(__tsan_unaligned_read4, 4, read)
SAGITTA_HOOK(__tsan_unaligned_read8, 8, read)
SAGITTA_HOOK(__tsan_unaligned_read16, 16, read)
SAGITTA_HOOK(__tsan_unaligned_write2, 2, write)
SAGITTA_HOOK(__tsan_unaligned_write4, 4, write)
SAGITTA_HOOK(__tsan_unaligned_write8, 8, write)
SAGITTA_HOOK(__tsan_unaligned_write16, 16, write)
#undef SAGITTA_HOOK

extern "C" void __tsan_read_range(void* address, size_t bytes) {
  on_access(address, bytes, access_kind::read, __builtin_return_address(0));
}
extern "C" void __tsan_write_range(void* address, size_t bytes) {
  on_access(address, bytes, access_kind::write, __builtin_return_address(0));
}
// Tables of virtual functions belong to the host's code.
extern "C" void __tsan_vptr_update(void*, void*) {}
extern "C" void __tsan_vptr_read(void*) {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_init() { sagitta::cuda::emulation::has_hooks = true; }
