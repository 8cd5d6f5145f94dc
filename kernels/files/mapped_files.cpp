// See mapped_files.h.

#include "mapped_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "partial_files.h"

namespace sagitta::files {

std::atomic<int32_t> damage_flags[mapping_count_max];
static_assert(std::atomic<int32_t>::is_always_lock_free && std::atomic<uintptr_t>::is_always_lock_free,
              "the signal handler takes no locks");
static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t), "JavaScript reads the flags as an Int32Array");

namespace {

/** The addresses of a mapping; `end` is 0 for a free index. */
struct range {
  std::atomic<uintptr_t> begin;
  std::atomic<uintptr_t> end;
  /** Null where all of the file is on this disk. */
  std::atomic<partial_file*> partial;
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

/**
 * The index of the mapping with this address, or mapping_count_max. An index may get another mapping meanwhile, which
 * stores `begin` before `end`: with the same end before and after it, a begin belongs to that end.
 */
uint32_t find_index(uintptr_t address) {
  const uint32_t count = used_count.load();
  for (uint32_t i = 0; i < count; i++) {
    const uintptr_t end = ranges[i].end.load();
    if (address >= end || address < ranges[i].begin.load()) continue;
    if (ranges[i].end.load() == end) return i;
  }
  return mapping_count_max;
}

/** Returns false if nothing could be put at the address. */
bool handle(uintptr_t address) {
  const uint32_t index = find_index(address);
  if (index == mapping_count_max) return false;
  partial_file* const partial = ranges[index].partial.load();
  if (partial != nullptr) return handle_partial(*partial, address);
  damage_flags[index].store(flag_damaged);
  // Up to the end: after a truncation all that follows is missing too, and a mapping per page could
  // exceed the limit.
  const uintptr_t page = address / page_bytes * page_bytes;
  return put_zeros(page, ranges[index].end.load());
}

/** Does only what is safe in a signal handler: loads and stores of atomics, and system calls. */
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool is_handled = handle(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved_errno;
  if (!is_handled) pass_on(signal, info, context);
}

}  // namespace

bool put_zeros(uintptr_t begin, uintptr_t end) {
  void* const zeros = mmap(reinterpret_cast<void*>(begin), end - begin, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return zeros != MAP_FAILED;
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

uint32_t take_index(uintptr_t begin, uintptr_t end, partial_file* partial) {
  const std::lock_guard lock(index_mutex);
  uint32_t index = 0;
  while (index < mapping_count_max && ranges[index].end.load() != 0) index++;
  if (index == mapping_count_max) return index;
  damage_flags[index].store(0);
  ranges[index].partial.store(partial);
  ranges[index].begin.store(begin);
  ranges[index].end.store(end);
  if (index >= used_count.load()) used_count.store(index + 1);
  return index;
}

void free_index(uint32_t index) {
  const std::lock_guard lock(index_mutex);
  ranges[index].end.store(0);
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

namespace {

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
  mapped = {data, byte_length, take_index(begin, begin + byte_length, nullptr)};
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
  free_index(mapped.index);
  // Must come last, since another mapping may get the same addresses at once.
  munmap(mapped.data, mapped.byte_length);
}

}  // namespace sagitta::files
