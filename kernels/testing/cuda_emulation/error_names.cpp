// Names and descriptions of the runtime's errors.
#include "runtime.h"

namespace {

struct words {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define SAGITTA_ERROR(name, text) {name, #name, text}
constexpr words all_words[] = {
    SAGITTA_ERROR(cudaSuccess, "no error"),
    SAGITTA_ERROR(cudaErrorInvalidValue, "invalid argument"),
    SAGITTA_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    SAGITTA_ERROR(cudaErrorInitializationError, "initialization error"),
    SAGITTA_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    SAGITTA_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    SAGITTA_ERROR(cudaErrorInsufficientDriver, "the driver is too old for the runtime"),
    SAGITTA_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    SAGITTA_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    SAGITTA_ERROR(cudaErrorNoKernelImageForDevice, "no kernel image for the device"),
    SAGITTA_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    SAGITTA_ERROR(cudaErrorNotReady, "device not ready"),
    SAGITTA_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    SAGITTA_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    SAGITTA_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
};
#undef SAGITTA_ERROR

const words& words_of(cudaError_t error) {
  static constexpr words unknown = {cudaSuccess, "cudaErrorUnknown", "unknown error"};
  for (const words& found : all_words) {
    if (found.error == error) return found;
  }
  return unknown;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) { return words_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return words_of(error).text; }
