// What the emulated machine is like, from the environment, and the numbers that shuffle it.
//
//   SAGITTA_EMULATED_DEVICES      how many (1); 0 is a machine without any
//   SAGITTA_EMULATED_CAPABILITY   90 for compute capability 9.0 (90)
//   SAGITTA_EMULATED_MEMORY       bytes of each device (256 MiB)
//   SAGITTA_EMULATED_FAULT_AFTER  the launch, counted from 1, at which its device is lost (0: none)
//   SAGITTA_EMULATION_SEED        of every random order (drawn); failures print it
#pragma once

#include <cstdint>
#include <mutex>

namespace sagitta::cuda::emulation {

struct settings {
  int device_count = 1;
  int capability = 90;
  uint64_t memory_bytes = uint64_t{256} << 20;
  /** 0 for never. */
  uint64_t fault_after = 0;
  uint64_t seed = 0;
};

/** As the environment has it; ends the process at a value that is not a number. */
settings settings_of_environment();

/** In force since the first call of the runtime, or the last restart. */
const settings& current_settings();

/** Another machine, for tests. Nothing of the old one may be used any more, nor be waited for. */
void restart(const settings& wanted);

/** One at a time is in the emulation, on whatever thread. */
std::recursive_mutex& lock();

/** splitmix64 of the seed, since the start. */
uint64_t draw();
inline uint32_t draw_below(uint32_t bound) {
  return static_cast<uint32_t>(((draw() >> 32) * bound) >> 32);
}

/** Ends the process with a message and the seed. */
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...);

}  // namespace sagitta::cuda::emulation
