// The settings of the emulated machine, from the environment, and its random numbers.
//
//   SAGITTA_EMULATED_DEVICES      number of devices (1); 0 is a machine without a device
//   SAGITTA_EMULATED_CAPABILITY   90 for compute capability 9.0 (90)
//   SAGITTA_EMULATED_MEMORY       bytes of each device (256 MiB)
//   SAGITTA_EMULATED_FAULT_AFTER  the launch, counted from 1, at which its device is lost (0: none)
//   SAGITTA_EMULATION_SEED        seed of every random order (random); failures print it
#pragma once

#include <cstdint>
#include <mutex>

namespace sagitta::cuda::emulation {

struct settings {
  int device_count = 1;
  int capability = 90;
  uint64_t memory_bytes = uint64_t{256} << 20;
  /** The number of the launch at which its device is lost; 0 for never. */
  uint64_t fault_after = 0;
  uint64_t seed = 0;
};

/** Reads the environment. Ends the process if a value is not a number. */
settings settings_of_environment();

/** The settings since the first call of the runtime or the last restart. */
const settings& current_settings();

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
