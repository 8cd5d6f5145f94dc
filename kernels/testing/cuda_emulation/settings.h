// The settings of the emulated machine, from the environment, and its random numbers. The names start with
// SAGITTA_TEST_, which the server does not take for its own settings.
//
//   SAGITTA_TEST_EMULATED_DEVICES         number of devices (1); 0 is a machine without a device
//   SAGITTA_TEST_EMULATED_CAPABILITY      90 for compute capability 9.0 (90)
//   SAGITTA_TEST_EMULATED_MEMORY          bytes of each device (512 MiB)
//   SAGITTA_TEST_EMULATED_PINNED_MEMORY   bytes that the host can pin at a time (all)
//   SAGITTA_TEST_EMULATED_FAULT           kind of fault: lost (default), lost-in-kernel, memory, hang,
//                                         hang-in-kernel, killed; or lost-at-wgmma: the device fails whenever
//                                         a kernel executes this instruction
//   SAGITTA_TEST_EMULATED_FAULT_AFTER     number of the launch at which it happens, from 1 (0: never)
//   SAGITTA_TEST_EMULATED_FAULT_AT_CALL   number of the runtime call at which it happens, from 1 (0: never); for
//                                         lost, hang and killed
//   SAGITTA_TEST_EMULATED_FAULT_FILE      a file that a test writes to cause a fault, such as
//                                         "hang launch 3" or "killed call 1", counted from then on; the
//                                         process of an open device that reads it removes it
//   SAGITTA_TEST_EMULATED_PATIENCE        factor on the time that a call of the addon may make no progress
//                                         (1): the emulation is slow on a busy machine
//   SAGITTA_TEST_EMULATED_BLOCKS          maximum number of resident blocks of a grid (4), within the room
//                                         of the multiprocessors; 1 runs one block after another
//   SAGITTA_TEST_EMULATED_ACCESSES        in programs whose kernels are instrumented (races.h): the average
//                                         number of memory accesses until another thread may run (24);
//                                         0: never
//   SAGITTA_TEST_EMULATED_WHOLE_CHECK     1: a device that is opened checks its kernels with every batch, as
//                                         a GPU does, rather than only with the first one per kernel (0)
//   SAGITTA_TEST_EMULATED_RACES           0: races are not detected in these programs (1)
//   SAGITTA_TEST_EMULATION_SEED           seed of every random order (random); failures print it
#pragma once

#include <cstdint>
#include <mutex>

namespace sagitta::cuda::emulation {

/** Kinds of faults; `lost`, `lost_in_kernel` and `lost_at_wgmma` make the device fail from then on. */
enum class fault { lost, lost_in_kernel, lost_at_wgmma, memory, hang, hang_in_kernel, killed };

struct settings {
  int device_count = 1;
  int capability = 90;
  uint64_t memory_bytes = uint64_t{512} << 20;
  uint64_t pinned_bytes = UINT64_MAX;
  fault kind = fault::lost;
  /** The numbers of the launch and of the call at which it happens; 0 for never. */
  uint64_t fault_after = 0;
  uint64_t fault_at_call = 0;
  uint32_t patience = 1;
  uint32_t resident_blocks_max = 4;
  uint32_t accesses_per_yield = 24;
  bool has_whole_check = false;
  bool finds_races = true;
  uint64_t seed = 0;
};

/** Reads the environment. Ends the process if a value is not a number. */
settings settings_of_environment();

/** The settings since the first call of the runtime or since the last restart. */
const settings& current_settings();

/** Makes the fault happen at this launch or call, counted from now on; 0 for never. */
void arm_fault(fault kind, uint64_t launch, uint64_t call);
/** Limits the bytes that can be pinned from now on. */
void limit_pinned(uint64_t bytes);
/** Arms the fault of the file, if there is one; called at each runtime call. */
void read_fault_file();
/** Launches and calls since the start or the last `arm_fault`. */
uint64_t launches_so_far();
uint64_t calls_so_far();

/** Replaces the machine, for tests. Nothing of the old one may be used afterwards. */
void restart(const settings& wanted);

/** The lock of the emulation: one thread at a time. */
std::recursive_mutex& lock();

/** The next random number: splitmix64 of the seed. */
uint64_t draw();
inline uint32_t draw_below(uint32_t bound) {
  return static_cast<uint32_t>(((draw() >> 32) * bound) >> 32);
}

/** Ends the process with a message and the seed. */
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...);

}  // namespace sagitta::cuda::emulation
