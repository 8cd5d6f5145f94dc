// Handles on the host for device resources (memory, streams, events).
#pragma once

#include <utility>

#include "failure.h"
#include "platform.h"

namespace sagitta::cuda {

/** Throws `failure` unless the call succeeded. */
void check(cudaError_t error, const char* what);

enum class memory_kind { device, pinned };

/**
 * A buffer that only grows. The system may refuse to pin memory although it has enough (because of a limit
 * on locked memory, or fragmentation); then the buffer is pageable, which makes its copies slower. A call
 * fails only if the host has no memory at all, and never as if the device had none.
 */
template <memory_kind kind>
class memory {
 public:
  memory() = default;
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() { release(); }
  uint8_t* data() const { return data_; }
  size_t byte_count() const { return byte_count_; }
  /** Bytes that should be pinned but are pageable. */
  size_t unpinned_bytes() const { return is_pageable_ ? byte_count_ : 0; }
  /**
   * Ensures a capacity. Loses the contents when the buffer has to grow. Throws OUT_OF_MEMORY or, for host
   * memory, OUT_OF_HOST_MEMORY.
   */
  void require(size_t byte_count);
  void release();
  void swap(memory& other) {
    std::swap(data_, other.data_);
    std::swap(byte_count_, other.byte_count_);
    std::swap(is_pageable_, other.is_pageable_);
  }

 private:
  uint8_t* data_ = nullptr;
  size_t byte_count_ = 0;
  bool is_pageable_ = false;
};
using device_memory = memory<memory_kind::device>;
using pinned_memory = memory<memory_kind::pinned>;

class stream {
 public:
  stream() = default;
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream();
  void open();
  operator cudaStream_t() const { return stream_; }
  void synchronize(const char* what) const { check(cudaStreamSynchronize(stream_), what); }

 private:
  cudaStream_t stream_ = nullptr;
};

class event {
 public:
  event() = default;
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  ~event();
  void open();
  operator cudaEvent_t() const { return event_; }
  void record(cudaStream_t on) const { check(cudaEventRecord(event_, on), "event"); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace sagitta::cuda
