// A phase of a search: items that its threads take one by one, and the wait for the last of them.
#pragma once

#include <atomic>
#include <cstdint>

namespace sagitta {

class phase {
 public:
  /**
   * Calls `run(item)` for items that no other thread has taken, then `leave()` if there were any, and
   * returns when all items 0…count − 1 are done, by whichever threads. True for the thread that was
   * the last.
   */
  template <class Run, class Leave>
  bool work(uint32_t count, const Run& run, const Leave& leave) {
    uint32_t taken = 0;
    for (uint32_t item; (item = next_.fetch_add(1)) < count; taken++) run(item);
    bool is_last = false;
    if (taken > 0) {
      leave();
      is_last = done_.fetch_add(taken) + taken == count;
      if (is_last) done_.notify_all();
    }
    for (uint32_t done; (done = done_.load()) < count;) done_.wait(done);
    return is_last;
  }

  template <class Run>
  bool work(uint32_t count, const Run& run) {
    return work(count, run, [] {});
  }

 private:
  std::atomic<uint32_t> next_{0};
  std::atomic<uint32_t> done_{0};
};

}  // namespace sagitta
