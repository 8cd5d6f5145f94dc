// See mapped_files.h.

#include "mapped_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

namespace sagitta::files {

std::atomic<int32_t> damage_flags[mapping_count_max];
static_assert(std::atomic<int32_t>::is_always_lock_free && std::atomic<uintptr_t>::is_always_lock_free,
              "the signal handler takes no locks");
static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t), "JavaScript reads the flags as an Int32Array");

namespace {

/** The addresses of a mapping; both are 0 for a free index. */
struct range {
  std::atomic<uintptr_t> begin;
  std::atomic<uintptr_t> end;
};

range ranges[mapping_count_max];
/** Indexes from here on have never been used. */
std::atomic<uint32_t> used_count;
/** Guards the choice of an index, but not the ranges, which the handler reads at any time. */
std::mutex index_mutex;

struct sigaction previous_action;
uintptr_t page_bytes;

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    // The instruction runs again when this returns, and ends the process as it would without this handler.
    sigaction(SIGBUS, &previous_action, nullptr);
  }
}

/** Does only what is safe in a signal handler: loads and stores of atomics, and mmap as a system call. */
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const uint32_t count = used_count.load();
  for (uint32_t i = 0; i < count; i++) {
    const uintptr_t end = ranges[i].end.load();
    if (address < ranges[i].begin.load() || address >= end) continue;
    damage_flags[i].store(1);
    // Up to the end: after a truncation all that follows is missing too, and a mapping per page could
    // exceed the limit.
    const uintptr_t page = address / page_bytes * page_bytes;
    void* const zeros = mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) break;
    errno = saved_errno;
    return;
  }
  errno = saved_errno;
  pass_on(signal, info, context);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous_action);
  });
}

/** Returns a free index, or mapping_count_max. */
uint32_t take_index(uintptr_t begin, uintptr_t end) {
  const std::lock_guard lock(index_mutex);
  uint32_t index = 0;
  while (index < mapping_count_max && ranges[index].end.load() != 0) index++;
  if (index == mapping_count_max) return index;
  damage_flags[index].store(0);
  ranges[index].begin.store(begin);
  ranges[index].end.store(end);
  if (index >= used_count.load()) used_count.store(index + 1);
  return index;
}

bool is_trusted(const struct stat& status, size_t byte_length, failure& failed) {
  if (!S_ISREG(status.st_mode)) {
    failed.what = "it is not a regular file";
  } else if (static_cast<uint64_t>(status.st_size) != byte_length) {
    failed.what = "it does not have the expected length";
  } else if (status.st_uid != geteuid() && status.st_uid != 0) {
    failed.what = "it belongs to another user";
  } else {
    return true;
  }
  return false;
}

bool map_descriptor(int descriptor, size_t byte_length, mapping& mapped, failure& failed) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) {
    failed = {"fstat", errno};
    return false;
  }
  if (!is_trusted(status, byte_length, failed)) return false;
  void* const data = mmap(nullptr, byte_length, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    failed = {"mmap", errno};
    return false;
  }
  const auto begin = reinterpret_cast<uintptr_t>(data);
  mapped = {data, byte_length, take_index(begin, begin + byte_length)};
  if (mapped.index < mapping_count_max) return true;
  munmap(data, byte_length);
  failed.what = "too many files are mapped";
  return false;
}

}  // namespace

bool map_file(const char* path, size_t byte_length, mapping& mapped, failure& failed) {
  failed = {"", 0};
  if (byte_length == 0) {
    failed.what = "it is empty";
    return false;
  }
  install_handler();
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    failed = {"open", errno};
    return false;
  }
  const bool is_mapped = map_descriptor(descriptor, byte_length, mapped, failed);
  close(descriptor);
  return is_mapped;
}

void unmap_file(const mapping& mapped) {
  {
    const std::lock_guard lock(index_mutex);
    ranges[mapped.index].begin.store(0);
    ranges[mapped.index].end.store(0);
  }
  // Must come last, since another mapping may get the same addresses at once.
  munmap(mapped.data, mapped.byte_length);
}

}  // namespace sagitta::files
