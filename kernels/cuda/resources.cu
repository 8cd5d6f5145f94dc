#include "resources.h"

namespace sagitta::cuda {

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
    check(cudaMallocHost(&fresh, byte_count), "pinned memory");
  }
  data_ = static_cast<uint8_t*>(fresh);
  byte_count_ = byte_count;
}

template <memory_kind kind>
void memory<kind>::release() {
  // An error here means that the device is lost, and its memory with it.
  if constexpr (kind == memory_kind::device) (void)cudaFree(data_);
  else (void)cudaFreeHost(data_);
  data_ = nullptr;
  byte_count_ = 0;
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
