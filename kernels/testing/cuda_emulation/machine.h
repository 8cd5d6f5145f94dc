// The emulated machine: devices with their memory, and streams with what waits in them. All of it is
// behind the lock of settings.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime.h"

namespace sagitta::cuda::emulation {

/** One cudaEventRecord. Who waits for an event waits for the last of these at that time. */
struct marker {
  bool is_reached = false;
  std::chrono::steady_clock::time_point time;
};

struct operation {
  std::function<void()> run;
  /** Before this is reached, the stream stands still; null for none. */
  std::shared_ptr<marker> needs = nullptr;
  /** Reached even on a lost device, or whoever waits for it would never know. */
  std::shared_ptr<marker> reaches = nullptr;
};

struct device;

}  // namespace sagitta::cuda::emulation

struct CUstream_st {
  sagitta::cuda::emulation::device* owner;
  std::deque<sagitta::cuda::emulation::operation> waiting;
};

struct CUevent_st {
  sagitta::cuda::emulation::device* owner;
  bool has_time;
  /** Null before the first record. */
  std::shared_ptr<sagitta::cuda::emulation::marker> last;
};

namespace sagitta::cuda::emulation {

struct device {
  /** Whoever gives no stream, uses this one. */
  CUstream_st default_stream{this, {}};
  /** In the order they were made, so that a seed draws the same again. */
  std::vector<CUstream_st*> streams{&default_stream};
  uint64_t used_bytes = 0;
  bool is_lost = false;
  /** Of kernels that asked for more than 48 KiB. */
  std::map<const void*, size_t> shared_bytes_max;
};

struct allocation {
  size_t bytes;
  device* owner;
};

struct machine {
  machine();
  std::vector<std::unique_ptr<device>> devices;
  std::map<const unsigned char*, allocation> memory;
  std::set<CUevent_st*> events;
  uint64_t launch_count = 0;
};

machine& machine_in_use();
/** A fresh one is made at the next use. */
void forget_machine();

/**
 * Executes operations of all streams, in an order that is drawn among those that may run, until
 * `is_done` holds, which some of them must bring about: those of `first`, if there is a choice.
 */
void run_until(const std::function<bool()>& is_done, CUstream_st* first);

/** Whether all the bytes are of one cudaMalloc. Kernels ask this too, before they load. */
bool is_device_memory(const void* pointer, size_t bytes);

}  // namespace sagitta::cuda::emulation
