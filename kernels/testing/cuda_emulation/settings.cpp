// Reads the environment and keeps the state of the random numbers.
#include "settings.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "machine.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace sagitta::cuda::emulation {
namespace {

struct state {
  state() { apply(settings_of_environment()); }
  void apply(const settings& wanted) {
    in_force = wanted;
    random = wanted.seed;
#if defined(__SANITIZE_ADDRESS__)
    // Reports of ASan can be reproduced only with the seed.
    __sanitizer_set_death_callback([] {
      fprintf(stderr, "SAGITTA_TEST_EMULATION_SEED=%llu\n",
              static_cast<unsigned long long>(current_settings().seed));
    });
#endif
  }
  settings in_force;
  uint64_t random = 0;
};

state& now() {
  static state of_process;
  return of_process;
}

uint64_t number_of_environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == 0) return otherwise;
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (*end != 0) {
    fprintf(stderr, "%s is \"%s\"; expected an integer\n", name, text);
    std::abort();
  }
  return value;
}

fault fault_named(const std::string& name) {
  if (name == "lost") return fault::lost;
  if (name == "lost-in-kernel") return fault::lost_in_kernel;
  if (name == "lost-at-wgmma") return fault::lost_at_wgmma;
  if (name == "memory") return fault::memory;
  if (name == "hang") return fault::hang;
  if (name == "hang-in-kernel") return fault::hang_in_kernel;
  if (name == "killed") return fault::killed;
  fprintf(stderr, "\"%s\" is not the name of a fault\n", name.c_str());
  std::abort();
}

fault fault_of_environment() {
  const char* const text = std::getenv("SAGITTA_TEST_EMULATED_FAULT");
  return fault_named(text == nullptr ? "lost" : text);
}

}  // namespace

settings settings_of_environment() {
  settings wanted;
  wanted.device_count = static_cast<int>(number_of_environment("SAGITTA_TEST_EMULATED_DEVICES", 1));
  wanted.capability = static_cast<int>(number_of_environment("SAGITTA_TEST_EMULATED_CAPABILITY", 90));
  wanted.memory_bytes = number_of_environment("SAGITTA_TEST_EMULATED_MEMORY", wanted.memory_bytes);
  wanted.pinned_bytes = number_of_environment("SAGITTA_TEST_EMULATED_PINNED_MEMORY", wanted.pinned_bytes);
  wanted.kind = fault_of_environment();
  wanted.fault_at_call = number_of_environment("SAGITTA_TEST_EMULATED_FAULT_AT_CALL", 0);
  wanted.fault_after = number_of_environment("SAGITTA_TEST_EMULATED_FAULT_AFTER", 0);
  wanted.patience =
      static_cast<uint32_t>(number_of_environment("SAGITTA_TEST_EMULATED_PATIENCE", wanted.patience));
  wanted.resident_blocks_max = static_cast<uint32_t>(
      number_of_environment("SAGITTA_TEST_EMULATED_BLOCKS", wanted.resident_blocks_max));
  wanted.accesses_per_yield = static_cast<uint32_t>(
      number_of_environment("SAGITTA_TEST_EMULATED_ACCESSES", wanted.accesses_per_yield));
  wanted.has_whole_check = number_of_environment("SAGITTA_TEST_EMULATED_WHOLE_CHECK", 0) != 0;
  wanted.finds_races = number_of_environment("SAGITTA_TEST_EMULATED_RACES", 1) != 0;
  wanted.seed = number_of_environment("SAGITTA_TEST_EMULATION_SEED", std::random_device()());
  return wanted;
}

const settings& current_settings() { return now().in_force; }

void arm_fault(fault kind, uint64_t launch, uint64_t call) {
  const std::lock_guard guard(lock());
  machine_in_use().launch_count = 0;
  machine_in_use().call_count = 0;
  now().in_force.kind = kind;
  now().in_force.fault_after = launch;
  now().in_force.fault_at_call = call;
}

void limit_pinned(uint64_t bytes) {
  const std::lock_guard guard(lock());
  now().in_force.pinned_bytes = bytes;
}

void read_fault_file() {
  static const char* const path = std::getenv("SAGITTA_TEST_EMULATED_FAULT_FILE");
  if (path == nullptr || access(path, R_OK) != 0) return;
  std::ifstream file(path);
  std::string name;
  std::string at;
  uint64_t number = 0;
  if (!(file >> name >> at >> number)) return;
  unlink(path);
  arm_fault(fault_named(name), at == "launch" ? number : 0, at == "call" ? number : 0);
}

uint64_t launches_so_far() { return machine_in_use().launch_count; }
uint64_t calls_so_far() { return machine_in_use().call_count; }

void restart(const settings& wanted) {
  const std::lock_guard guard(lock());
  forget_machine();
  now().apply(wanted);
}

std::recursive_mutex& lock() {
  static std::recursive_mutex mutex;
  return mutex;
}

uint64_t draw() {
  uint64_t value = now().random += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "sagitta emulation: ");
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, "\nSAGITTA_TEST_EMULATION_SEED=%llu\n",
          static_cast<unsigned long long>(current_settings().seed));
  std::abort();
}

}  // namespace sagitta::cuda::emulation
