// Work that any number of threads share, and how it is cancelled, fails and ends.
#pragma once

#include <atomic>
#include <new>

#include "../kernels.h"

namespace sagitta {

class shared_work {
 public:
  virtual ~shared_work() = default;
  /** Returns true for exactly one caller: the one that completes the work or sees that it has failed. */
  virtual bool work() = 0;
  void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }
  sagitta_status status() const {
    if (has_failed_.load()) return SAGITTA_OUT_OF_MEMORY;
    return is_cancelled_.load() ? SAGITTA_CANCELLED : SAGITTA_OK;
  }
  bool is_done() const { return is_done_.load(); }
  /** The estimated work in nanoseconds on one thread. */
  double cost() const { return cost_; }

 protected:
  /** Calls `run` unless the work has been cancelled or has failed. Running out of memory fails it. */
  template <class Run>
  void guard(const Run& run) {
    if (is_cancelled_.load(std::memory_order_relaxed) || has_failed_.load()) return;
    try {
      run();
    } catch (const std::bad_alloc&) {
      has_failed_ = true;
    }
  }

  double cost_ = 0;
  std::atomic<uint32_t> next_worker_{0};
  std::atomic<bool> is_done_{false};
  std::atomic<bool> is_cancelled_{false};
  std::atomic<bool> has_failed_{false};
};

}  // namespace sagitta
