// Devices, streams, events and launches of the emulated runtime; memory is in memory.cpp.
#include "runtime.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "errors.h"
#include "launch.h"
#include "machine.h"
#include "settings.h"

using namespace sagitta::cuda::emulation;

namespace {

constexpr size_t shared_bytes_plain = 48 << 10;
constexpr size_t shared_bytes_optin = 227 << 10;
constexpr size_t shared_bytes_multiprocessor = 228 << 10;
constexpr int multiprocessor_threads = 2048;

/** Never freed, so that leak checkers see its contents as reachable. */
machine* machine_of_process = nullptr;
thread_local int device_index = 0;
thread_local cudaError_t last_error = cudaSuccess;

bool exists(const CUevent_st* event) {
  return machine_in_use().events.contains(const_cast<CUevent_st*>(event));
}

}  // namespace

namespace sagitta::cuda::emulation {

machine::machine() {
  for (int i = 0; i < current_settings().device_count; i++) {
    devices.push_back(std::make_unique<device>());
  }
}

machine& machine_in_use() {
  if (machine_of_process == nullptr) machine_of_process = new machine;
  return *machine_of_process;
}

void forget_machine() {
  if (machine_of_process == nullptr) return;
  for (const auto& [pointer, found] : machine_of_process->memory) {
    free(const_cast<unsigned char*>(pointer));
  }
  for (CUevent_st* const event : machine_of_process->events) delete event;
  for (const auto& device : machine_of_process->devices) {
    for (CUstream_st* const stream : device->streams) {
      if (stream != &device->default_stream) delete stream;
    }
  }
  delete machine_of_process;
  machine_of_process = nullptr;
  device_index = 0;
  last_error = cudaSuccess;
}

int& device_of_thread() { return device_index; }

int blocks_per_multiprocessor(int threads, size_t shared_bytes) {
  constexpr size_t reserved_bytes = 1 << 10;
  return std::min(multiprocessor_threads / threads,
                  static_cast<int>(shared_bytes_multiprocessor / (shared_bytes + reserved_bytes)));
}

void hang() {
  for (;;) pause();
}

cudaError_t apply_fault(device& device) {
  if (current_settings().kind == fault::hang) hang();
  if (current_settings().kind == fault::killed) raise(SIGKILL);
  device.is_lost = true;
  return cudaErrorIllegalAddress;
}

call::call() : guard_(lock()) { begin(); }

call::call(cudaStream_t stream) : guard_(lock()) {
  begin();
  if (device_ == nullptr) return;
  stream_ = stream == nullptr ? &device_->default_stream : stream;
  if (stream == nullptr) return;
  for (const auto& owner : machine_in_use().devices) {
    if (std::find(owner->streams.begin(), owner->streams.end(), stream) == owner->streams.end()) {
      continue;
    }
    device_ = owner.get();
    error_ = device_->is_lost ? fails(cudaErrorIllegalAddress) : cudaSuccess;
    return;
  }
  error_ = fails(cudaErrorInvalidResourceHandle);
}

void call::begin() {
  auto& devices = machine_in_use().devices;
  if (devices.empty()) {
    error_ = fails(cudaErrorNoDevice);
    return;
  }
  device_ = devices[static_cast<size_t>(device_index)].get();
  // Not in a process that only lists devices.
  if (device_->streams.size() > 1) read_fault_file();
  if (++machine_in_use().call_count == current_settings().fault_at_call) (void)apply_fault(*device_);
  if (device_->is_lost) error_ = fails(cudaErrorIllegalAddress);
}

cudaError_t call::outcome() const {
  return device_->is_lost ? fails(cudaErrorIllegalAddress) : cudaSuccess;
}

cudaError_t call::fails(cudaError_t error) const {
  last_error = error;
  return error;
}

void call::put(operation operation) { stream_->waiting.push_back(std::move(operation)); }

void call::finish(emulation::device& device) {
  for (CUstream_st* const stream : device.streams) finish(*stream);
}

void call::finish(CUstream_st& stream) {
  run_until([&] { return stream.waiting.empty(); }, &stream);
}

/** Applies the fault of the settings at a launch. */
static cudaError_t apply_launch_fault(call& here, device& device) {
  switch (current_settings().kind) {
    case fault::memory: return cudaErrorMemoryAllocation;
    case fault::lost_in_kernel: here.put({[&device] { device.is_lost = true; }}); return cudaSuccess;
    case fault::hang_in_kernel: here.put({[] { hang(); }}); return cudaSuccess;
    default: return apply_fault(device);
  }
}

/** A multiprocessor changes the share of shared memory only when it is empty, so nothing could start early. */
static void require_same_carveout(const grid_launch& launch, const device& device,
                                  CUstream_st& stream) {
  const auto preferred = device.carveouts.find(launch.kernel);
  const int carveout = preferred == device.carveouts.end() ? int{cudaSharedmemCarveoutDefault}
                                                           : preferred->second;
  if (launch.is_early && carveout != stream.carveout.value_or(carveout)) {
    fail("%s prefers a carve-out of %d, the kernel before it %d: it could not be launched early",
         name_of(launch).c_str(), carveout, *stream.carveout);
  }
  stream.carveout = carveout;
}

cudaError_t put_launch(grid_launch launch, cudaStream_t stream) {
  call here(stream);
  if (here.error() != cudaSuccess) return here.error();
  device& device = *here.device();
  if (&device != machine_in_use().devices[static_cast<size_t>(device_index)].get()) {
    return here.fails(cudaErrorInvalidResourceHandle);
  }
  if (launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0 || launch.threads == 0 ||
      launch.threads > 1024 || launch.grid.y > 65535 || launch.grid.z > 65535 ||
      launch.grid.x > 0x7fffffffu) {
    return here.fails(cudaErrorInvalidConfiguration);
  }
  const auto asked = device.shared_bytes_max.find(launch.kernel);
  const size_t may_have =
      asked == device.shared_bytes_max.end() ? shared_bytes_plain : asked->second;
  if (launch.shared_bytes > may_have) return here.fails(cudaErrorInvalidValue);
  if (++machine_in_use().launch_count == current_settings().fault_after) {
    const cudaError_t error = apply_launch_fault(here, device);
    return error == cudaSuccess ? error : here.fails(error);
  }
  require_same_carveout(launch, device, *here.stream());
  here.put({[launch = std::move(launch), &device] {
    run_grid(launch);
    if (std::exchange(machine_in_use().has_kernel_failed, false)) device.is_lost = true;
  }});
  return cudaSuccess;
}

}  // namespace sagitta::cuda::emulation

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  *count = current_settings().device_count;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const std::lock_guard guard(lock());
  const auto& devices = machine_in_use().devices;
  if (device < 0 || static_cast<size_t>(device) >= devices.size()) {
    return last_error = devices.empty() ? cudaErrorNoDevice : cudaErrorInvalidDevice;
  }
  device_index = device;
  return devices[static_cast<size_t>(device)]->is_lost ? last_error = cudaErrorIllegalAddress
                                                       : cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = device_index;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  const settings& settings = current_settings();
  if (device < 0 || device >= settings.device_count) return here.fails(cudaErrorInvalidDevice);
  *properties = {};
  snprintf(properties->name, sizeof properties->name, "emulated device %d", device);
  properties->totalGlobalMem = settings.memory_bytes;
  properties->sharedMemPerBlock = shared_bytes_plain;
  properties->sharedMemPerBlockOptin = shared_bytes_optin;
  properties->sharedMemPerMultiprocessor = shared_bytes_multiprocessor;
  properties->regsPerBlock = 65536;
  properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = multiprocessor_threads;
  properties->major = settings.capability / 10;
  properties->minor = settings.capability % 10;
  properties->multiProcessorCount = multiprocessor_count;
  properties->l2CacheSize = 1 << 20;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  call here;
  if (here.error() != cudaSuccess) return here.error();
  here.finish(*here.device());
  return here.outcome();
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  *stream = new CUstream_st{here.device(), {}};
  here.device()->streams.push_back(*stream);
  return cudaSuccess;
}

// Pending operations of the stream are still executed, as on a device.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  call here(stream);
  if (here.error() != cudaSuccess && here.error() != cudaErrorIllegalAddress) return here.error();
  if (stream == nullptr) return here.fails(cudaErrorInvalidResourceHandle);
  here.finish(*stream);
  std::erase(here.device()->streams, stream);
  delete stream;
  return here.error();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  call here(stream);
  if (here.error() != cudaSuccess) return here.error();
  here.finish(*here.stream());
  return here.outcome();
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const call here(stream);
  if (here.error() != cudaSuccess) return here.error();
  if (here.stream()->waiting.empty()) return cudaSuccess;
  run_until([&, steps = 0]() mutable { return steps++ == 1; }, here.stream());
  return here.stream()->waiting.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  call here(stream);
  if (here.error() != cudaSuccess) return here.error();
  if (!exists(event)) return here.fails(cudaErrorInvalidResourceHandle);
  if (event->last != nullptr) here.put({{}, event->last});
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  *event = new CUevent_st{here.device(), (flags & cudaEventDisableTiming) == 0, nullptr};
  machine_in_use().events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const call here;
  if (!exists(event)) return here.fails(cudaErrorInvalidResourceHandle);
  machine_in_use().events.erase(event);
  delete event;
  return here.error();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  call here(stream);
  if (here.error() != cudaSuccess) return here.error();
  if (!exists(event) || event->owner != here.device()) {
    return here.fails(cudaErrorInvalidResourceHandle);
  }
  event->last = std::make_shared<marker>();
  here.put({{}, nullptr, event->last});
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  if (!exists(event)) return here.fails(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<marker> last = event->last;
  if (last != nullptr) run_until([&] { return last->is_reached; }, nullptr);
  return here.outcome();
}

// Each query executes one operation, so that polling makes progress.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  if (!exists(event)) return here.fails(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<marker> last = event->last;
  if (last == nullptr || last->is_reached) return cudaSuccess;
  run_until([&, steps = 0]() mutable { return steps++ == 1; }, nullptr);
  return last->is_reached ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  if (!exists(start) || !exists(end) || !start->has_time || !end->has_time ||
      start->last == nullptr || end->last == nullptr) {
    return here.fails(cudaErrorInvalidResourceHandle);
  }
  if (!start->last->is_reached || !end->last->is_reached) return here.fails(cudaErrorNotReady);
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->last->time - start->last->time).count();
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  *attributes = {shared_bytes_plain, 1024, 64};
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
    if (value < cudaSharedmemCarveoutDefault || value > cudaSharedmemCarveoutMaxShared) {
      return here.fails(cudaErrorInvalidValue);
    }
    here.device()->carveouts[kernel] = value;
    return cudaSuccess;
  }
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<size_t>(value) > shared_bytes_optin) {
    return here.fails(cudaErrorInvalidValue);
  }
  here.device()->shared_bytes_max[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* block_count, const void*, int threads,
                                                          size_t shared_bytes) {
  const call here;
  if (here.error() != cudaSuccess) return here.error();
  if (threads < 1 || threads > 1024) return here.fails(cudaErrorInvalidValue);
  *block_count = blocks_per_multiprocessor(threads, shared_bytes);
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  const std::lock_guard guard(lock());
  const auto& devices = machine_in_use().devices;
  if (!devices.empty() && devices[static_cast<size_t>(device_index)]->is_lost) {
    return cudaErrorIllegalAddress;
  }
  return last_error;
}
