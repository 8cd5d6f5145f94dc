// See partial_files.h.
//
// Each block has a word that says what is at its addresses. Only the thread that changes the word to `busy` changes the
// mapping of the block, and then stores what is there. Waiting threads sleep on the word. The count in the upper bits
// grows whenever a block is mapped: if it is the same before and after a failed read of a mapped block, the block was
// mapped all the time, so the failure is damage and not the race between a fault and the handling of another.

#include "partial_files.h"

#ifdef __linux__

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace sagitta::files {

namespace {

enum kind : uint32_t {
  /** Not in the file. A read raises SIGBUS. */
  absent = 0,
  /** As before, and the queue was told. */
  requested = 1,
  /** A thread changes what is mapped. */
  busy = 2,
  /** The block of the file is mapped. */
  present = 3,
  /** In the file but not mapped. */
  resting = 4,
  /** Zeros are mapped; the mapping is flagged. */
  failed_block = 5,
};
constexpr uint32_t kind_mask = 7;
constexpr uint32_t count_step = 8;

using word = std::atomic<uint32_t>;

kind kind_of(uint32_t value) { return static_cast<kind>(value & kind_mask); }
uint32_t with_kind(uint32_t value, kind next) { return (value & ~kind_mask) | next; }

struct queue {
  ~queue() { close(write_end); }

  int write_end = -1;
  std::atomic<bool> is_closed = false;
};

/** Both map no memory that could be read: one has no bytes, the other is only written to. */
int empty_file = -1;
int scratch_file = -1;

std::atomic<uint32_t> mapped_block_count;

}  // namespace

struct partial_file {
  ~partial_file() { close(descriptor); }

  uintptr_t begin = 0;
  size_t byte_length = 0;
  size_t block_bytes = 0;
  uint32_t block_count = 0;
  uint32_t index = 0;
  uint32_t generation = 0;
  int descriptor = -1;
  uint32_t queue_number = 0;
  std::shared_ptr<queue> requests;
  std::unique_ptr<word[]> words;
  std::unique_ptr<bool[]> is_kept;
  /** Held by all that changes mappings outside the handler, whose thread itself keeps the file mapped. */
  std::mutex mutex;
  bool is_unmapped = false;
};

namespace {

/** Guards the tables below. Nothing is destroyed at the exit, when threads may still unmap files. */
std::mutex& table_mutex = *new std::mutex;
auto& queues = *new std::unordered_map<uint32_t, std::shared_ptr<queue>>;
auto& files = *new std::unordered_map<uint32_t, std::shared_ptr<partial_file>>;
uint32_t next_queue;
uint32_t next_generation;

void wait_while(word& at, uint32_t value) {
  syscall(SYS_futex, &at, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void publish(word& at, uint32_t value) {
  at.store(value);
  syscall(SYS_futex, &at, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

uintptr_t begin_of(const partial_file& file, uint32_t block) { return file.begin + block * file.block_bytes; }

size_t bytes_of(const partial_file& file, uint32_t block) {
  return std::min(file.block_bytes, file.byte_length - block * file.block_bytes);
}

/** Maps a run of blocks from a file at their offsets, so that the kernel joins neighbours to one mapping. */
bool map_from(const partial_file& file, int descriptor, block_run run) {
  const size_t offset = run.first * file.block_bytes;
  const size_t length = std::min(run.count * file.block_bytes, file.byte_length - offset);
  void* const at = reinterpret_cast<void*>(file.begin + offset);
  return mmap(at, length, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, static_cast<off_t>(offset)) != MAP_FAILED;
}

bool take_mapped() {
  if (mapped_block_count.fetch_add(1) < mapped_block_count_max) return true;
  mapped_block_count.fetch_sub(1);
  return false;
}

/** For a block that this thread made busy from `before`. */
bool fail_busy(partial_file& file, uint32_t block, uint32_t before) {
  const uintptr_t begin = begin_of(file, block);
  const bool has_zeros = put_zeros(begin, begin + bytes_of(file, block));
  publish(file.words[block], with_kind(before, failed_block));
  return has_zeros;
}

void flag(const partial_file& file, int32_t value) {
  int32_t none = 0;
  damage_flags[file.index].compare_exchange_strong(none, value);
}

bool is_given_up(const partial_file& file) {
  return damage_flags[file.index].load() != 0 || file.requests->is_closed.load();
}

bool send(const partial_file& file, uint32_t block) {
  const block_request request{file.index, file.generation, block};
  ssize_t written = 0;
  do written = write(file.requests->write_end, &request, sizeof request);
  while (written < 0 && errno == EINTR);
  return written == sizeof request;
}

/** Asks the queue for a block that is absent or resting. */
bool request(partial_file& file, uint32_t block, uint32_t value) {
  word& at = file.words[block];
  const uint32_t waiting = with_kind(value, requested);
  if (!at.compare_exchange_strong(value, waiting)) return true;
  // Who gives a mapping up sets the flag before it looks for requests, so one of the two sees the other.
  if (!is_given_up(file) && send(file, block)) return true;
  uint32_t expected = waiting;
  if (!at.compare_exchange_strong(expected, with_kind(waiting, busy))) return true;
  flag(file, flag_unavailable);
  return fail_busy(file, block, waiting);
}

/** Maps a block of the file again; asks the queue if too many are mapped. */
bool wake_resting(partial_file& file, uint32_t block, uint32_t value) {
  if (!take_mapped()) return request(file, block, value);
  word& at = file.words[block];
  if (!at.compare_exchange_strong(value, with_kind(value, busy))) {
    mapped_block_count.fetch_sub(1);
    return true;
  }
  if (map_from(file, file.descriptor, {block, 1})) {
    publish(at, with_kind(value + count_step, present));
    return true;
  }
  mapped_block_count.fetch_sub(1);
  flag(file, flag_unavailable);
  return fail_busy(file, block, value);
}

/** Whether the byte can be read. The kernel reads it, which raises no signal. */
bool is_readable(uintptr_t address) {
  ssize_t written = 0;
  do written = pwrite(scratch_file, reinterpret_cast<const void*>(address), 1, 0);
  while (written < 0 && errno == EINTR);
  return written == 1;
}

/** A mapped block could not be read. */
bool damage(partial_file& file, uint32_t block, uintptr_t address, uint32_t value) {
  word& at = file.words[block];
  if (!at.compare_exchange_strong(value, with_kind(value, busy))) return true;
  // The first flag stays: after a block was unavailable nothing is known about others.
  flag(file, flag_damaged);
  if (!file.is_kept[block]) mapped_block_count.fetch_sub(1);
  const auto page_bytes = static_cast<uintptr_t>(getpagesize());
  const uintptr_t page = address / page_bytes * page_bytes;
  const bool has_zeros = put_zeros(page, begin_of(file, block) + bytes_of(file, block));
  publish(at, with_kind(value, failed_block));
  return has_zeros;
}

/** Makes the word `busy` and stores its value from before; false if it is none of the given kinds. */
bool make_busy(word& at, uint32_t& before, std::initializer_list<kind> from) {
  for (;;) {
    before = at.load();
    if (kind_of(before) == busy) {
      wait_while(at, before);
      continue;
    }
    if (std::find(from.begin(), from.end(), kind_of(before)) == from.end()) return false;
    if (at.compare_exchange_strong(before, with_kind(before, busy))) return true;
  }
}

std::shared_ptr<partial_file> find_file(uint32_t index, uint32_t generation) {
  const std::lock_guard lock(table_mutex);
  const auto found = files.find(index);
  return found != files.end() && found->second->generation == generation ? found->second : nullptr;
}

void give_up(partial_file& file) {
  const std::lock_guard lock(file.mutex);
  if (file.is_unmapped) return;
  flag(file, flag_unavailable);
  for (uint32_t block = 0; block < file.block_count; block++) {
    uint32_t before = 0;
    if (kind_of(file.words[block].load()) != requested) continue;
    if (make_busy(file.words[block], before, {requested})) fail_busy(file, block, before);
  }
}

bool make_files() {
  static const bool is_made = [] {
    empty_file = memfd_create("sagitta-empty", MFD_CLOEXEC);
    scratch_file = memfd_create("sagitta-scratch", MFD_CLOEXEC);
    return empty_file >= 0 && scratch_file >= 0;
  }();
  return is_made;
}

std::shared_ptr<partial_file> describe(const partial_options& options, failure& failed) {
  auto file = std::make_shared<partial_file>();
  file->byte_length = options.byte_length;
  file->block_bytes = options.block_bytes;
  file->block_count = static_cast<uint32_t>((options.byte_length + options.block_bytes - 1) / options.block_bytes);
  file->words = std::make_unique<word[]>(file->block_count);
  file->is_kept = std::make_unique<bool[]>(file->block_count);
  file->queue_number = options.queue;
  {
    const std::lock_guard lock(table_mutex);
    const auto found = queues.find(options.queue);
    if (found != queues.end()) file->requests = found->second;
    file->generation = next_generation++;
  }
  if (file->requests == nullptr || file->requests->is_closed.load()) {
    failed.what = "its blocks are not fetched any more";
    return nullptr;
  }
  for (const block_run& run : options.kept) {
    if (run.first > file->block_count || run.count > file->block_count - run.first) {
      failed.what = "it has fewer blocks";
      return nullptr;
    }
    for (uint32_t block = run.first; block < run.first + run.count; block++) {
      file->is_kept[block] = true;
      file->words[block].store(present);
    }
  }
  file->descriptor = fcntl(options.descriptor, F_DUPFD_CLOEXEC, 0);
  if (file->descriptor >= 0) return file;
  failed = {"fcntl", errno};
  return nullptr;
}

bool map_blocks(partial_file& file, const std::vector<block_run>& kept) {
  void* const data = mmap(nullptr, file.byte_length, PROT_READ, MAP_SHARED, empty_file, 0);
  if (data == MAP_FAILED) return false;
  file.begin = reinterpret_cast<uintptr_t>(data);
  for (const block_run& run : kept) {
    if (run.count == 0 || map_from(file, file.descriptor, run)) continue;
    const int error = errno;
    munmap(data, file.byte_length);
    errno = error;
    return false;
  }
  return true;
}

}  // namespace

bool has_partial_files() { return make_files(); }

bool open_queue(uint32_t& number, int& descriptor, failure& failed) {
  int ends[2];
  if (!make_files() || pipe2(ends, O_CLOEXEC) != 0) {
    failed = {"pipe", errno};
    return false;
  }
  auto made = std::make_shared<queue>();
  made->write_end = ends[1];
  const std::lock_guard lock(table_mutex);
  number = next_queue++;
  queues.emplace(number, std::move(made));
  descriptor = ends[0];
  return true;
}

void close_queue(uint32_t number) {
  std::vector<std::shared_ptr<partial_file>> served;
  {
    const std::lock_guard lock(table_mutex);
    const auto found = queues.find(number);
    if (found == queues.end()) return;
    found->second->is_closed.store(true);
    queues.erase(found);
    for (const auto& [index, file] : files) {
      if (file->queue_number == number) served.push_back(file);
    }
  }
  for (const auto& file : served) give_up(*file);
}

bool map_partial_file(const partial_options& options, mapping& mapped, uint32_t& generation, failure& failed) {
  failed = {"", 0};
  struct stat status {};
  if (fstat(options.descriptor, &status) != 0) {
    failed = {"fstat", errno};
    return false;
  }
  if (!make_files() || !is_trusted(status, options.byte_length, failed)) return false;
  install_handler();
  const auto file = describe(options, failed);
  if (file == nullptr) return false;
  if (!map_blocks(*file, options.kept)) {
    failed = {"mmap", errno};
    return false;
  }
  void* const data = reinterpret_cast<void*>(file->begin);
  file->index = take_index(file->begin, file->begin + file->byte_length, file.get());
  if (file->index == mapping_count_max) {
    munmap(data, file->byte_length);
    failed.what = "too many files are mapped";
    return false;
  }
  {
    const std::lock_guard lock(table_mutex);
    files[file->index] = file;
  }
  // The queue may have been closed before it could see the file.
  if (file->requests->is_closed.load()) give_up(*file);
  mapped = {data, file->byte_length, file->index};
  generation = file->generation;
  return true;
}

void unmap_partial_file(const mapping& mapped) {
  std::shared_ptr<partial_file> file;
  {
    const std::lock_guard lock(table_mutex);
    const auto found = files.find(mapped.index);
    file = found->second;
    files.erase(found);
  }
  {
    const std::lock_guard lock(file->mutex);
    file->is_unmapped = true;
    for (uint32_t block = 0; block < file->block_count; block++) {
      const bool is_counted = kind_of(file->words[block].load()) == present && !file->is_kept[block];
      if (is_counted) mapped_block_count.fetch_sub(1);
    }
    free_index(mapped.index);
    munmap(mapped.data, mapped.byte_length);
  }
  if (!file->requests->is_closed.load()) send(*file, block_request::unmapped);
}

bool map_block(uint32_t index, uint32_t generation, uint32_t block) {
  const auto file = find_file(index, generation);
  if (file == nullptr || block >= file->block_count) return true;
  const std::lock_guard lock(file->mutex);
  if (file->is_unmapped) return true;
  if (!take_mapped()) return false;
  uint32_t before = 0;
  if (!make_busy(file->words[block], before, {absent, requested, resting})) {
    mapped_block_count.fetch_sub(1);
    return true;
  }
  if (map_from(*file, file->descriptor, {block, 1})) {
    publish(file->words[block], with_kind(before + count_step, present));
    return true;
  }
  mapped_block_count.fetch_sub(1);
  flag(*file, flag_unavailable);
  fail_busy(*file, block, before);
  return true;
}

void rest_block(uint32_t index, uint32_t generation, uint32_t block) {
  const auto file = find_file(index, generation);
  if (file == nullptr || block >= file->block_count || file->is_kept[block]) return;
  const std::lock_guard lock(file->mutex);
  uint32_t before = 0;
  if (file->is_unmapped || !make_busy(file->words[block], before, {present, absent})) return;
  const bool was_present = kind_of(before) == present;
  const bool is_removed = !was_present || map_from(*file, empty_file, {block, 1});
  if (was_present && is_removed) mapped_block_count.fetch_sub(1);
  publish(file->words[block], with_kind(before, is_removed ? resting : present));
}

bool drop_block(uint32_t index, uint32_t generation, uint32_t block) {
  const auto file = find_file(index, generation);
  if (file == nullptr || block >= file->block_count) return true;
  word& at = file->words[block];
  for (;;) {
    uint32_t value = at.load();
    if (kind_of(value) == busy) {
      wait_while(at, value);
      continue;
    }
    if (kind_of(value) == present) return false;
    if (kind_of(value) != resting || at.compare_exchange_strong(value, with_kind(value, absent))) return true;
  }
}

void fail_mapping(uint32_t index, uint32_t generation) {
  const auto file = find_file(index, generation);
  if (file != nullptr) give_up(*file);
}

bool punch(int descriptor, size_t offset, size_t byte_length) {
  const auto start = static_cast<off_t>(offset);
  const auto length = static_cast<off_t>(byte_length);
  int result = 0;
  do result = fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, length);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

bool handle_partial(partial_file& file, uintptr_t address) {
  const auto block = static_cast<uint32_t>((address - file.begin) / file.block_bytes);
  word& at = file.words[block];
  for (;;) {
    const uint32_t value = at.load();
    switch (kind_of(value)) {
      case absent:
        if (!request(file, block, value)) return false;
        break;
      case resting:
        if (!wake_resting(file, block, value)) return false;
        break;
      case requested:
      case busy:
        wait_while(at, value);
        break;
      case present:
        if (is_readable(address)) return true;
        if (at.load() == value && !damage(file, block, address, value)) return false;
        break;
      case failed_block:
        return is_readable(address);
    }
  }
}

}  // namespace sagitta::files

#else

namespace sagitta::files {

bool has_partial_files() { return false; }
bool open_queue(uint32_t&, int&, failure&) { return false; }
void close_queue(uint32_t) {}
bool map_partial_file(const partial_options&, mapping&, uint32_t&, failure&) { return false; }
void unmap_partial_file(const mapping&) {}
bool map_block(uint32_t, uint32_t, uint32_t) { return true; }
void rest_block(uint32_t, uint32_t, uint32_t) {}
bool drop_block(uint32_t, uint32_t, uint32_t) { return true; }
void fail_mapping(uint32_t, uint32_t) {}
bool punch(int, size_t, size_t) { return false; }
bool handle_partial(partial_file&, uintptr_t) { return false; }

}  // namespace sagitta::files

#endif
