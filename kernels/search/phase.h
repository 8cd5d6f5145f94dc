// A phase of a search: items that its threads take one by one, and the wait for the last of them.
#pragma once

#include <atomic>
#include <cstdint>

namespace sagitta {

class phase {
 public:
  /**
   * Calls `run(item)` for the items 0…count − 1 that no other thread has taken, then `leave()` if there
   * were any. Returns true in the thread that completes the last item.
   */
  template <class Run, class Leave>
  bool take(uint32_t count, const Run& run, const Leave& leave) {
    uint32_t taken = 0;
    for (uint32_t item; (item = next_.fetch_add(1)) < count; taken++) run(item);
    if (taken == 0) return false;
    leave();
    if (done_.fetch_add(taken) + taken < count) return false;
    done_.notify_all();
    return true;
  }

  template <class Run>
  bool take(uint32_t count, const Run& run) {
    return take(count, run, [] {});
  }

  /** Waits until all items are done, no matter by which threads. */
  void wait(uint32_t count) const {
    for (uint32_t done; (done = done_.load()) < count;) done_.wait(done);
  }

 private:
  std::atomic<uint32_t> next_{0};
  std::atomic<uint32_t> done_{0};
};

}  // namespace sagitta
