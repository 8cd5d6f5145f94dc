// Device memory: host memory within a budget, filled with poison, with bounds checked by ASan.
#include <cstdlib>
#include <cstring>

#include "errors.h"
#include "machine.h"
#include "settings.h"

using namespace sagitta::cuda::emulation;

namespace {

constexpr size_t alignment = 256;
/** The value of uninitialised bytes. */
constexpr int fresh = 0xcd;

size_t counted_bytes(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

bool takes_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}
bool gives_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

}  // namespace

bool sagitta::cuda::emulation::is_device_memory(const void* pointer, size_t bytes) {
  const auto* const start = static_cast<const unsigned char*>(pointer);
  const auto& memory = machine_in_use().memory;
  auto after = memory.upper_bound(start);
  if (after == memory.begin()) return false;
  const auto& [base, found] = *--after;
  return start - base <= static_cast<ptrdiff_t>(found.bytes) &&
         bytes <= found.bytes - static_cast<size_t>(start - base);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  *total_bytes = current_settings().memory_bytes;
  *free_bytes = *total_bytes - here.device()->used_bytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  call here;
  if (here.error() != cudaSuccess) return here.error();
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  device& owner = *here.device();
  const size_t counted = counted_bytes(bytes);
  if (counted < bytes || counted > current_settings().memory_bytes - owner.used_bytes) {
    return here.fails(cudaErrorMemoryAllocation);
  }
  if (posix_memalign(pointer, alignment, bytes) != 0) {
    return here.fails(cudaErrorMemoryAllocation);
  }
  memset(*pointer, fresh, bytes);
  owner.used_bytes += counted;
  machine_in_use().memory[static_cast<unsigned char*>(*pointer)] = {bytes, &owner};
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  call here;
  if (here.error() != cudaSuccess) return here.error();
  if (pointer == nullptr) return cudaSuccess;
  auto& memory = machine_in_use().memory;
  const auto found = memory.find(static_cast<unsigned char*>(pointer));
  if (found == memory.end()) return here.fails(cudaErrorInvalidValue);
  device& owner = *found->second.owner;
  here.finish(owner);
  owner.used_bytes -= counted_bytes(found->second.bytes);
  memory.erase(found);
  free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  call here;
  if (here.error() != cudaSuccess) return here.error();
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  machine& machine = machine_in_use();
  const uint64_t limit = current_settings().pinned_bytes;
  if (machine.pinned_bytes > limit || bytes > limit - machine.pinned_bytes ||
      posix_memalign(pointer, 4096, bytes) != 0) {
    return here.fails(cudaErrorMemoryAllocation);
  }
  memset(*pointer, fresh, bytes);
  machine.pinned[*pointer] = bytes;
  machine.pinned_bytes += bytes;
  return cudaSuccess;
}

// Does not wait for copies: ASan reports a copy to or from freed memory.
cudaError_t cudaFreeHost(void* pointer) {
  call here;
  if (pointer == nullptr) return here.error();
  machine& machine = machine_in_use();
  const auto found = machine.pinned.find(pointer);
  if (found == machine.pinned.end()) return here.fails(cudaErrorInvalidValue);
  machine.pinned_bytes -= found->second;
  machine.pinned.erase(found);
  free(pointer);
  return here.error();
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  call here(stream);
  if (here.error() != cudaSuccess) return here.error();
  if (bytes == 0) return cudaSuccess;
  const bool is_from_device = is_device_memory(from, bytes);
  const bool is_to_device = is_device_memory(to, bytes);
  if (kind != cudaMemcpyDefault &&
      (takes_device(kind) != is_from_device || gives_device(kind) != is_to_device)) {
    return here.fails(cudaErrorInvalidValue);
  }
  here.put({[=] { memmove(to, from, bytes); }});
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  call here(stream);
  if (here.error() != cudaSuccess) return here.error();
  if (bytes == 0) return cudaSuccess;
  if (!is_device_memory(to, bytes)) return here.fails(cudaErrorInvalidValue);
  here.put({[=] { memset(to, value, bytes); }});
  return cudaSuccess;
}
