#include "learned_shares.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace sagitta {
namespace {

/** The average share over data of several kinds. */
constexpr float unobserved_share = 0.3f;
/** The weight of one observation. It is low because single queries may differ. */
constexpr float observed_part = 0.2f;
/**
 * The factor applied at each call of `expect_scored_share`, which a batch makes once per query: after some
 * thousand calls, a high share has faded and is observed again.
 */
constexpr float remembered_part = 0.9999f;

/** One observation. Another block with the same slot replaces it. */
struct slot {
  uint32_t key = 0;
  float share = unobserved_share;
};
static_assert(sizeof(slot) == 8 && std::atomic<slot>::is_always_lock_free);

constexpr size_t slot_count = 1024;
std::atomic<slot> slots[slot_count];

uint32_t key_of(const uint8_t* coarse, uint64_t rows_per_k) {
  const auto address = reinterpret_cast<uintptr_t>(coarse);
  const uint64_t mixed = (address + std::bit_width(rows_per_k)) * 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>(mixed >> 32);
}

}  // namespace

double expect_scored_share(const uint8_t* coarse, uint64_t rows_per_k) {
  const uint32_t key = key_of(coarse, rows_per_k);
  std::atomic<slot>& place = slots[key % slot_count];
  slot known = place.load(std::memory_order_relaxed);
  if (known.key != key) return unobserved_share;
  const float share = known.share;
  known.share = unobserved_share + (share - unobserved_share) * remembered_part;
  place.store(known, std::memory_order_relaxed);
  return share;
}

void observe_scored_share(const uint8_t* coarse, uint64_t rows_per_k, double share) {
  const uint32_t key = key_of(coarse, rows_per_k);
  std::atomic<slot>& place = slots[key % slot_count];
  const slot known = place.load(std::memory_order_relaxed);
  const float before = known.key == key ? known.share : unobserved_share;
  const float observed = before + (static_cast<float>(share) - before) * observed_part;
  place.store({key, observed}, std::memory_order_relaxed);
}

}  // namespace sagitta
