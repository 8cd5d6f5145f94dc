// Read-only mappings of files of which only some blocks are on this disk. The others are fetched when a thread reads
// them: absent blocks are mapped from an empty file, so reading one raises SIGBUS; the handler writes a request into the
// pipe of a queue and waits on a futex until a thread that reads the pipe has written the block into the (sparse) file
// and called `map_block`, or has given up. The instruction then runs again. The kernel does not wait: system calls that
// read an absent block fail with EFAULT.
//
// Every function may be called from any thread, except that one thread serves a queue. On systems other than Linux,
// `has_partial_files` is false and nothing else may be called.
#pragma once

#include <cstdint>
#include <vector>

#include "mapped_files.h"

namespace sagitta::files {

/** What the pipe of a queue carries, in the order of this machine's bytes. */
struct block_request {
  uint32_t index;
  /** Tells mappings with the same index apart. */
  uint32_t generation;
  /** `unmapped` says that the mapping ended. */
  uint32_t block;

  static constexpr uint32_t unmapped = UINT32_MAX;
};

/** The number of `first` and the blocks after it. */
struct block_run {
  uint32_t first;
  uint32_t count;
};

/**
 * Blocks that are in memory beside those that are kept, of all mappings. Each takes up to two of the 65 530 mappings that
 * the kernel allows a process by default.
 */
inline constexpr uint32_t mapped_block_count_max = 8'192;

bool has_partial_files();

/** Returns the number of a new queue and the reading end of its pipe, which the caller closes; false on failure. */
bool open_queue(uint32_t& queue, int& descriptor, failure& failed);

/** Marks all mappings of the queue as unavailable and ends all waiting for their blocks. May be repeated. */
void close_queue(uint32_t queue);

/**
 * Maps a file of exactly `byte_length` bytes. Blocks outside the `kept` runs are absent. `block_bytes` is a multiple of
 * the page size. The descriptor, which is open for reading, is duplicated.
 */
struct partial_options {
  int descriptor;
  size_t byte_length;
  size_t block_bytes;
  std::vector<block_run> kept;
  uint32_t queue;
};
bool map_partial_file(const partial_options& options, mapping& mapped, uint32_t& generation, failure& failed);

/** Unmaps the file and tells the queue. Nothing may read the mapping any more. */
void unmap_partial_file(const mapping& mapped);

// For the thread that serves the queue. A mapping that has ended is ignored: the functions return true.

/** Maps a block that is in the file. Returns false if mapped_block_count_max is reached. */
bool map_block(uint32_t index, uint32_t generation, uint32_t block);

/** Takes a block out of the mapping. It stays in the file, and the handler itself maps it again when it is read. */
void rest_block(uint32_t index, uint32_t generation, uint32_t block);

/**
 * Makes a block absent, so that it may be removed from the file. Returns false if it is mapped, as when it was read after
 * `rest_block`.
 */
bool drop_block(uint32_t index, uint32_t generation, uint32_t block);

/** Marks the mapping as unavailable. Waiting threads and all later readers of absent blocks get zeros. */
void fail_mapping(uint32_t index, uint32_t generation);

/** Frees the space of a part of a file. Returns false if the file system cannot. */
bool punch(int descriptor, size_t offset, size_t byte_length);

/** Makes an absent block ready to be read, or maps a block in the signal handler. Returns false if it cannot. */
bool handle_partial(partial_file& file, uintptr_t address);

}  // namespace sagitta::files
