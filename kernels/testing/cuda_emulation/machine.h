// The emulated machine: devices with memory, and streams with pending operations. The lock of settings.h
// protects all of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "runtime.h"

namespace sagitta::cuda::emulation {

/** One cudaEventRecord. A wait for an event waits for its last marker at that time. */
struct marker {
  bool is_reached = false;
  std::chrono::steady_clock::time_point time;
};

struct operation {
  std::function<void()> run;
  /** The stream waits until this marker is reached; null for no wait. */
  std::shared_ptr<marker> needs = nullptr;
  /** Set by the operation, even on a lost device, so that waits for it end. */
  std::shared_ptr<marker> reaches = nullptr;
};

struct device;

inline constexpr int multiprocessor_count = 2;
/** Returns how many blocks of a launch a multiprocessor holds at a time. */
int blocks_per_multiprocessor(int threads, size_t shared_bytes);

}  // namespace sagitta::cuda::emulation

struct CUstream_st {
  sagitta::cuda::emulation::device* owner;
  std::deque<sagitta::cuda::emulation::operation> waiting;
  /** The preferred carve-out of the last kernel launched. */
  std::optional<int> carveout = std::nullopt;
};

struct CUevent_st {
  sagitta::cuda::emulation::device* owner;
  bool has_time;
  /** Null before the first record. */
  std::shared_ptr<sagitta::cuda::emulation::marker> last;
};

namespace sagitta::cuda::emulation {

struct device {
  /** The stream of calls that do not name one. */
  CUstream_st default_stream{this, {}};
  /** In order of creation, so that a seed gives the same random order. */
  std::vector<CUstream_st*> streams{&default_stream};
  uint64_t used_bytes = 0;
  bool is_lost = false;
  /** The limits of kernels that may use more than 48 KiB. */
  std::map<const void*, size_t> shared_bytes_max;
  /** The preferred carve-outs of kernels that do not leave them to the driver. */
  std::map<const void*, int> carveouts;
};

struct allocation {
  size_t bytes;
  device* owner;
};

struct machine {
  machine();
  std::vector<std::unique_ptr<device>> devices;
  std::map<const unsigned char*, allocation> memory;
  /** Bytes of each allocation of pinned host memory, and their sum. */
  std::map<const void*, size_t> pinned;
  uint64_t pinned_bytes = 0;
  std::set<CUevent_st*> events;
  uint64_t launch_count = 0;
  uint64_t call_count = 0;
  /** Set by a running kernel: its device is lost when it ends. */
  bool has_kernel_failed = false;
};

/** Never returns, like a call of a driver that hangs. */
[[noreturn]] void hang();
/** Applies the fault of the settings: loses the device, unless it hangs or ends the process. */
cudaError_t apply_fault(device& device);

machine& machine_in_use();
/** Discards the machine; the next use creates another one. */
void forget_machine();

/**
 * Executes operations of all streams in random order, as far as dependencies allow, until `is_done`
 * returns true. Operations of `first` are preferred if it is given.
 */
void run_until(const std::function<bool()>& is_done, CUstream_st* first);

/** Whether the bytes are inside one allocation of cudaMalloc. Also used to check loads of kernels. */
bool is_device_memory(const void* pointer, size_t bytes);

}  // namespace sagitta::cuda::emulation
