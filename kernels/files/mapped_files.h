// Read-only mappings of files that may be damaged while they are mapped. Access to a page that cannot be
// read, because the file was truncated or the disk failed, raises SIGBUS. The handler here puts zeros there
// and marks the mapping as damaged, so that the process can refuse the answer instead of ending.
//
// Every function may be called from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

struct stat;

namespace sagitta::files {

/** By default the kernel allows 65 530 mappings per process, and malloc and V8 need some of them. */
inline constexpr uint32_t mapping_count_max = 16'384;

/** A page of the file could not be read. */
inline constexpr int32_t flag_damaged = 1;
/** A block of a partial file could not be fetched. */
inline constexpr int32_t flag_unavailable = 2;

/** Indexed by mapping: not 0 after a part of the mapping could not be read. */
extern std::atomic<int32_t> damage_flags[mapping_count_max];

struct mapping {
  void* data;
  size_t byte_length;
  uint32_t index;
};

/** The reason why a mapping failed; `error_number` is 0 unless the system reported one. */
struct failure {
  const char* what;
  int error_number;
};

/**
 * Maps a regular file of exactly `byte_length` bytes, more than 0, that belongs to this user or to root.
 * Returns false and the reason for any other file.
 */
bool map_file(const char* path, size_t byte_length, mapping& mapped, failure& failed);

/** Unmaps the file. Nothing may read the mapping any more. */
void unmap_file(const mapping& mapped);

// For partial_files.cpp.

struct partial_file;

void install_handler();

/** Makes the addresses of a mapping known to the handler. Returns its index, or mapping_count_max if there is none. */
uint32_t take_index(uintptr_t begin, uintptr_t end, partial_file* partial);

/** Must come before munmap, since another mapping may get the same addresses at once. */
void free_index(uint32_t index);

/** Whether the file is a regular one of this length that belongs to this user or to root. */
bool is_trusted(const struct stat& status, size_t byte_length, failure& failed);

/** Replaces pages by zeros; safe in a signal handler. */
bool put_zeros(uintptr_t begin, uintptr_t end);

}  // namespace sagitta::files
