#include "resources.h"

#include <cstdlib>

namespace sagitta::cuda {
namespace {

/** Pageable buffers start at a page boundary, as pinned ones do. */
constexpr size_t page_bytes = 4096;

void* allocate_pageable(size_t byte_count) {
  void* const fresh = std::aligned_alloc(page_bytes, (byte_count + page_bytes - 1) / page_bytes * page_bytes);
  if (fresh == nullptr) throw failure{SAGITTA_OUT_OF_HOST_MEMORY, "host memory: out of memory"};
  return fresh;
}

}  // namespace

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  const bool is_memory = error == cudaErrorMemoryAllocation;
  throw failure{is_memory ? SAGITTA_OUT_OF_MEMORY : SAGITTA_DEVICE_LOST,
                std::string(what) + ": " + cudaGetErrorString(error) + " (" +
                    cudaGetErrorName(error) + ")"};
}

template <memory_kind kind>
void memory<kind>::require(size_t byte_count) {
  if (byte_count <= byte_count_) return;
  release();
  void* fresh = nullptr;
  if constexpr (kind == memory_kind::device) {
    check(cudaMalloc(&fresh, byte_count), "device memory");
  } else {
    const cudaError_t error = cudaMallocHost(&fresh, byte_count);
    if (error == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      fresh = allocate_pageable(byte_count);
      is_pageable_ = true;
    } else {
      check(error, "pinned memory");
    }
  }
  data_ = static_cast<uint8_t*>(fresh);
  byte_count_ = byte_count;
}

template <memory_kind kind>
void memory<kind>::release() {
  // An error here means that the device is lost, and its memory with it.
  if constexpr (kind == memory_kind::device) (void)cudaFree(data_);
  else if (is_pageable_) std::free(data_);
  else (void)cudaFreeHost(data_);
  data_ = nullptr;
  byte_count_ = 0;
  is_pageable_ = false;
}

template class memory<memory_kind::device>;
template class memory<memory_kind::pinned>;

stream::~stream() {
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

void stream::open() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }

event::~event() {
  if (event_ != nullptr) (void)cudaEventDestroy(event_);
}

void event::open() { check(cudaEventCreate(&event_), "event"); }

}  // namespace sagitta::cuda
