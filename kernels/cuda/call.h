// Around every call of the C interface: exceptions become statuses and the text of the last error.
#pragma once

#include <new>
#include <string>

#include "device_state.h"

namespace sagitta::cuda {

inline std::string& last_error() {
  thread_local std::string text;
  return text;
}

template <class Work>
sagitta_status guarded(Work work) {
  try {
    const sagitta_status status = work();
    if (status == SAGITTA_INVALID_ARGUMENT) last_error() = "an argument is out of range";
    return status;
  } catch (const failure& failed) {
    last_error() = failed.what;
    return failed.status;
  } catch (const std::bad_alloc&) {
    last_error() = "no memory on the host";
    return SAGITTA_OUT_OF_MEMORY;
  }
}

/** The same, for work on a device: CUDA keeps the current one by thread. */
template <class Work>
sagitta_status guarded_on(const sagitta_device& device, Work work) {
  return guarded([&] {
    check(cudaSetDevice(static_cast<int>(device.index)), "choosing the device");
    return work();
  });
}

}  // namespace sagitta::cuda
