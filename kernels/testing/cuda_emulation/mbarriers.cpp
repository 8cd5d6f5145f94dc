// Phases of mbarriers, and the copies in flight.
#include "mbarriers.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "block.h"
#include "early_launch.h"
#include "machine.h"
#include "races.h"
#include "settings.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#endif

namespace sagitta::cuda::emulation {
namespace {

/** The content of an mbarrier's memory, by which other writes to it are detected. */
constexpr uint64_t content = 0x6d62617272696572u;
constexpr uint32_t copy_alignment = 16;
/** The average number of switches between threads until a copy in flight lands. */
constexpr uint32_t switches_per_landing = 6;
/** The limit of the PTX ISA for the bytes that a phase expects. */
constexpr uint64_t expected_bytes_max = (1u << 20) - 1;
constexpr uint32_t capability_min = 90;

struct mbarrier {
  /** In order of initialisation. */
  uint32_t number;
  uint32_t count;
  uint32_t arrivals_left;
  /** Phases that have ended; the current one has the parity of this number. */
  uint32_t phase = 0;
  /** Bytes in all phases: those expected, those of copies that were called, and those that have landed. */
  uint64_t expected_bytes = 0;
  uint64_t called_bytes = 0;
  uint64_t landed_bytes = 0;
  /** The phase up to which some thread knows that phases have ended. */
  uint32_t known_phase = 0;
  uint32_t first_thread;
  /** The number of barriers that the block had passed at the fence. */
  uint32_t barriers_at_fence = 0;
  bool is_fenced = false;
  /** The parity of each thread's last wait. */
  std::map<uint32_t, uint32_t> last_parity;
  std::vector<uint32_t> waiting;
};

struct copy {
  unsigned char* to;
  const unsigned char* from;
  uint32_t byte_count;
  mbarrier* barrier;
};

/** The last copy to some bytes. */
struct copied {
  unsigned char* to;
  uint32_t byte_count;
  const mbarrier* barrier;
  uint32_t phase;
  /** What the calling warp had waited for by then. */
  uint32_t warp;
  uint32_t waits;
};

}  // namespace

struct mbarrier_state {
  std::map<const uint64_t*, mbarrier> mbarriers;
  std::vector<copy> in_flight;
  std::vector<copied> places;
  /** How many times each warp has waited for an mbarrier. */
  uint32_t waits[warp_count_max] = {};
};

namespace {

mbarrier_state& state() { return *block_in_use().mbarriers; }

[[noreturn]] void wrong(const location& where, const std::string& what) {
  fail("%s: %s, at %s:%u", name_of_thread(threadIdx.x).c_str(), what.c_str(), where.file_name(),
       where.line());
}

void require_there(const char* what, const location& where) {
  require_awaited(what, where);
  if (static_cast<uint32_t>(current_settings().capability) >= capability_min) return;
  wrong(where, std::string(what) + " is not available with compute capability " +
                   std::to_string(current_settings().capability));
}

bool is_in_dynamic_shared(const void* start, size_t byte_count) {
  const memory_range all{dynamic_shared_memory(), dynamic_shared_bytes()};
  const auto* const first = static_cast<const unsigned char*>(start);
  return byte_count > 0 && all.contains(first) && all.contains(first + byte_count - 1);
}

/** Returns the mbarrier at this address, ready for use by the running thread. */
mbarrier& mbarrier_at(const uint64_t* address, const char* what, const location& where) {
  require_there(what, where);
  const auto found = state().mbarriers.find(address);
  if (found == state().mbarriers.end()) wrong(where, std::string(what) + " without mbarrier_init");
  mbarrier& barrier = found->second;
  if (*address != content) wrong(where, "an mbarrier was written to");
  if (!barrier.is_fenced) wrong(where, std::string(what) + " without fence_mbarrier_init before it");
  const bool has_barrier = barrier.barriers_at_fence < block_in_use().barriers_passed;
  if (barrier.first_thread != threadIdx.x && !has_barrier) {
    wrong(where, std::string(what) + " without a barrier after fence_mbarrier_init");
  }
  return barrier;
}

void end_phase_if_complete(mbarrier& barrier) {
  if (barrier.arrivals_left > 0 || barrier.landed_bytes < barrier.expected_bytes) return;
  barrier.phase++;
  barrier.arrivals_left = barrier.count;
  end_phase(barrier.number, barrier.phase);
  for (const uint32_t thread : barrier.waiting) resume(thread);
  barrier.waiting.clear();
}

void arrive(uint64_t* address, uint32_t byte_count, const char* what, const location& where) {
  mbarrier& barrier = mbarrier_at(address, what, where);
  maybe_yield();
  if (barrier.arrivals_left == 0) wrong(where, "more arrivals than a phase of the mbarrier counts");
  barrier.expected_bytes += byte_count;
  if (barrier.expected_bytes - barrier.landed_bytes > expected_bytes_max) {
    wrong(where, "a phase that expects more than 2^20 - 1 bytes");
  }
  barrier.arrivals_left--;
  record_arrival(barrier.number);
  end_phase_if_complete(barrier);
}

bool overlap(const copied& place, const unsigned char* to, uint32_t byte_count) {
  return place.to < to + byte_count && to < place.to + place.byte_count;
}

/** Returns what the running thread's warp has waited for. */
uint32_t waits_so_far() {
  return state().waits[threadIdx.x / lane_count] + block_in_use().barriers_passed;
}

/** Checks that what was there before can already have been read. */
void check_place(const unsigned char* to, uint32_t byte_count, const location& where) {
  for (const copied& place : state().places) {
    if (!overlap(place, to, byte_count)) continue;
    if (place.barrier->known_phase <= place.phase) {
      wrong(where, "a second bulk copy to the same place, without a wait for the first one");
    }
    if (place.warp == threadIdx.x / lane_count && place.waits == waits_so_far()) {
      wrong(where, "a second bulk copy to the same place, without a wait in between");
    }
  }
}

}  // namespace

void start_mbarriers(block& block) { block.mbarriers = std::make_shared<mbarrier_state>(); }

void end_mbarriers() {
  for (const auto& [address, barrier] : state().mbarriers) {
    const uint64_t missing = barrier.expected_bytes - barrier.called_bytes;
    if (missing > 0) {
      fail("%s has ended, but an mbarrier expects %llu bytes that were not copied",
           name_of_thread(~0u).c_str(), static_cast<unsigned long long>(missing));
    }
  }
  for (const copied& place : state().places) {
    if (place.barrier->known_phase > place.phase) continue;
    fail("%s has ended, but nothing has waited for a bulk copy of %u bytes, which may be in flight",
         name_of_thread(~0u).c_str(), place.byte_count);
  }
}

bool land_copy() {
  std::vector<copy>& copies = state().in_flight;
  if (copies.empty()) return false;
  std::swap(copies[draw_below(static_cast<uint32_t>(copies.size()))], copies.back());
  const copy done = copies.back();
  copies.pop_back();
  ASAN_UNPOISON_MEMORY_REGION(done.to, done.byte_count);
  memcpy(done.to, done.from, done.byte_count);
  ASAN_POISON_MEMORY_REGION(done.to, done.byte_count);
  done.barrier->landed_bytes += done.byte_count;
  end_phase_if_complete(*done.barrier);
  return true;
}

void maybe_land_copy() {
  if (!state().in_flight.empty() && draw_below(switches_per_landing) == 0) land_copy();
}

std::string missing_for_mbarriers() {
  std::string missing;
  for (const auto& [address, barrier] : state().mbarriers) {
    if (barrier.waiting.empty()) continue;
    const auto offset = reinterpret_cast<const unsigned char*>(address) - dynamic_shared_memory();
    missing += "\n  the mbarrier at " + std::to_string(offset) + " lacks " +
               std::to_string(barrier.arrivals_left) + " of " + std::to_string(barrier.count) +
               " arrivals and " + std::to_string(barrier.expected_bytes - barrier.landed_bytes) +
               " bytes in phase " + std::to_string(barrier.phase);
  }
  return missing;
}

void mbarrier_init(uint64_t* address, uint32_t count, const location& where) {
  require_there("mbarrier_init", where);
  if (reinterpret_cast<uintptr_t>(address) % sizeof *address != 0 ||
      !is_in_dynamic_shared(address, sizeof *address)) {
    wrong(where, "an mbarrier that is not 8 aligned bytes of dynamic shared memory");
  }
  if (count == 0 || count > expected_bytes_max) wrong(where, "an mbarrier with an invalid count");
  mbarrier made{};
  made.number = static_cast<uint32_t>(state().mbarriers.size());
  made.count = made.arrivals_left = count;
  made.first_thread = threadIdx.x;
  if (!state().mbarriers.emplace(address, made).second) {
    wrong(where, "a second mbarrier_init of an mbarrier");
  }
  *address = content;
  add_mbarrier();
}

void fence_mbarrier_init(const location& where) {
  require_there("fence_mbarrier_init", where);
  for (auto& [address, barrier] : state().mbarriers) {
    if (barrier.first_thread != threadIdx.x || barrier.is_fenced) continue;
    barrier.is_fenced = true;
    barrier.barriers_at_fence = block_in_use().barriers_passed;
  }
}

void mbarrier_arrive(uint64_t* address, const location& where) {
  arrive(address, 0, "mbarrier_arrive", where);
}

void mbarrier_arrive_expect(uint64_t* address, uint32_t byte_count, const location& where) {
  arrive(address, byte_count, "mbarrier_arrive_expect", where);
}

void mbarrier_wait(uint64_t* address, uint32_t parity, const location& where) {
  const uint32_t thread = threadIdx.x;
  mbarrier& barrier = mbarrier_at(address, "mbarrier_wait", where);
  if (parity > 1) wrong(where, "a parity other than 0 and 1");
  const auto [last, is_first] = barrier.last_parity.try_emplace(thread, parity);
  if (!is_first && last->second == parity) {
    wrong(where, "mbarrier_wait twice for the same parity, as if for one phase");
  }
  last->second = parity;
  maybe_yield();
  while (barrier.phase % 2 == parity) {
    barrier.waiting.push_back(thread);
    suspend("mbarrier_wait", where);
  }
  state().waits[thread / lane_count]++;
  record_wait(barrier.number);
  if (barrier.known_phase >= barrier.phase) return;
  barrier.known_phase = barrier.phase;
  for ([[maybe_unused]] const copied& place : state().places) {
    if (place.barrier != &barrier || place.phase >= barrier.phase) continue;
    ASAN_UNPOISON_MEMORY_REGION(place.to, place.byte_count);
  }
}

void copy_to_shared(void* shared, const void* from, uint32_t byte_count, uint64_t* address,
                    const location& where) {
  mbarrier& barrier = mbarrier_at(address, "copy_to_shared", where);
  maybe_yield();
  auto* const to = static_cast<unsigned char*>(shared);
  if (byte_count % copy_alignment != 0 || byte_count == 0) {
    wrong(where, "a bulk copy of " + std::to_string(byte_count) + " bytes, not a multiple of 16");
  }
  if (reinterpret_cast<uintptr_t>(to) % copy_alignment != 0 ||
      reinterpret_cast<uintptr_t>(from) % copy_alignment != 0) {
    wrong(where, "a bulk copy whose addresses are not multiples of 16");
  }
  if (!is_in_dynamic_shared(to, byte_count)) {
    wrong(where, "a bulk copy to memory that is not dynamic shared memory");
  }
  if (!is_device_memory(from, byte_count)) wrong(where, "a bulk copy from memory that is not device memory");
  if (barrier.called_bytes + byte_count > barrier.expected_bytes) {
    wrong(where, "a bulk copy of more bytes than mbarrier_arrive_expect announced");
  }
  check_place(to, byte_count, where);
  record_async_write(to, byte_count, barrier.number, barrier.phase, where);
  barrier.called_bytes += byte_count;
  std::erase_if(state().places,
                [&](const copied& place) { return overlap(place, to, byte_count); });
  state().places.push_back({to, byte_count, &barrier, barrier.phase, threadIdx.x / lane_count,
                            waits_so_far()});
  ASAN_POISON_MEMORY_REGION(to, byte_count);
  state().in_flight.push_back(
      {to, static_cast<const unsigned char*>(from), byte_count, &barrier});
}

}  // namespace sagitta::cuda::emulation
