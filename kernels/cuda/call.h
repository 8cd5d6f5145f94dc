// Wraps every call of the C interface: exceptions become a status and the text of the last error.
#pragma once

#include <exception>
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
    last_error() = "out of host memory";
    return SAGITTA_OUT_OF_HOST_MEMORY;
  } catch (const std::exception& unexpected) {
    // The state that an unexpected exception left behind is unknown.
    last_error() = unexpected.what();
    return SAGITTA_DEVICE_LOST;
  } catch (...) {
    last_error() = "an unknown exception";
    return SAGITTA_DEVICE_LOST;
  }
}

/** Like `guarded`, with the device made current first: CUDA's current device belongs to the thread. */
template <class Work>
sagitta_status guarded_on(const sagitta_device& device, Work work) {
  return guarded([&] {
    check(cudaSetDevice(static_cast<int>(device.index)), "selecting the device");
    return work();
  });
}

}  // namespace sagitta::cuda
