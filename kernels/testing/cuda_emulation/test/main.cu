// Tests of the platform of the kernels: the emulation on the CPU, or CUDA on a device.
//
//   platform-test [--time | --least]    --least leaves out the tests that only apply to the emulation
//
// Exits with 77 without a device.
#include <cstring>

#include "test.h"

int main(int argument_count, char** arguments) {
  const bool is_timed = argument_count > 1 && strcmp(arguments[1], "--time") == 0;
  [[maybe_unused]] const bool is_least = argument_count > 1 && strcmp(arguments[1], "--least") == 0;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    printf("skipped: no device was found (%s)\n", cudaGetErrorString(error));
    return 77;
  }
  platform_test::test_threads();
  platform_test::test_tensor_cores();
  platform_test::test_bulk_copies();
  platform_test::test_published_layout();
  platform_test::test_block_select();
#if defined(SAGITTA_EMULATE_CUDA)
  if (!is_least) {
    platform_test::test_machine();
    platform_test::test_resident_blocks();
    platform_test::test_mistakes();
    platform_test::test_races();
  }
#endif
  if (is_timed) platform_test::time_emulation();
  printf("the platform behaves like CUDA\n");
}
