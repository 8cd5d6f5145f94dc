// See lmdb_writes.h. A library calls functions of others through a table of addresses, which the loader has
// filled; its relocations say which entry belongs to which name. Nothing but lmdb's own table is changed.

#include "lmdb_writes.h"

#if defined(__linux__) && defined(__LP64__)
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_set>
#endif

namespace sagitta::files {

#if defined(__linux__) && defined(__LP64__)

namespace {

/** Of the buffers that lmdb makes for its messages; the longest message has 20 characters more. */
constexpr size_t message_bytes_max = 100;
/** lmdb writes at most 64 pages in one call. */
constexpr int parts_max = 64;

int print_bounded(char* out, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(out, message_bytes_max, format, arguments);
  va_end(arguments);
  return length;
}

ssize_t write_all_at(int file, const void* bytes, size_t length, off64_t offset) {
  size_t done = 0;
  while (done < length) {
    const auto* const rest = static_cast<const char*>(bytes) + done;
    const ssize_t written = pwrite64(file, rest, length - done, offset + static_cast<off64_t>(done));
    if (written > 0) done += static_cast<size_t>(written);
    else if (written == 0 || done == 0 || errno != EINTR) return written == 0 ? static_cast<ssize_t>(done) : -1;
  }
  return static_cast<ssize_t>(done);
}

/** Removes the first bytes from the parts. Returns the index of the first part that is left. */
int skip_bytes(iovec* parts, int count, size_t byte_length) {
  int first = 0;
  while (first < count && byte_length >= parts[first].iov_len) byte_length -= parts[first++].iov_len;
  if (first < count) {
    parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + byte_length;
    parts[first].iov_len -= byte_length;
  }
  return first;
}

ssize_t write_all_parts(int file, const iovec* parts, int count) {
  if (count > parts_max) return writev(file, parts, count);
  iovec rest[parts_max];
  std::memcpy(rest, parts, sizeof(iovec) * static_cast<size_t>(count));
  ssize_t done = 0;
  int first = 0;
  while (first < count) {
    const ssize_t written = writev(file, rest + first, count - first);
    if (written > 0) {
      done += written;
      first += skip_bytes(rest + first, count - first, static_cast<size_t>(written));
    } else if (written == 0 || done == 0 || errno != EINTR) {
      return written == 0 ? done : -1;
    }
  }
  return done;
}

/** What lmdb has deleted on this thread while it opens a file; null when it may free at once. */
thread_local std::unordered_set<void*>* deferred = nullptr;

void delete_or_defer(void* pointer) {
  if (deferred == nullptr) ::operator delete(pointer);
  else if (pointer != nullptr) deferred->insert(pointer);
}

void delete_sized(void* pointer, size_t) { delete_or_defer(pointer); }

struct replacement {
  const char* name;
  void* function;
};

const replacement replacements[] = {
    {"pwrite64", reinterpret_cast<void*>(write_all_at)},
    {"pwrite", reinterpret_cast<void*>(write_all_at)},
    {"writev", reinterpret_cast<void*>(write_all_parts)},
    {"sprintf", reinterpret_cast<void*>(print_bounded)},
    // operator delete(void*), and with a size.
    {"_ZdlPv", reinterpret_cast<void*>(delete_or_defer)},
    {"_ZdlPvm", reinterpret_cast<void*>(delete_sized)},
};
/** One of the first two, and all of the others. */
constexpr int replaced_count_expected = 5;

struct library {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* relocations = nullptr;
  size_t relocation_bytes = 0;
  const char* own_name = nullptr;
};

library read_library(const dl_phdr_info& info) {
  library found;
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < info.dlpi_phnum; i++) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
  }
  if (entry == nullptr) return found;
  // glibc has added the base already, musl has not.
  const auto at = [&](ElfW(Addr) address) { return address < info.dlpi_addr ? address + info.dlpi_addr : address; };
  size_t own_name = 0;
  for (; entry->d_tag != DT_NULL; entry++) {
    const auto& value = entry->d_un;
    if (entry->d_tag == DT_SYMTAB) found.symbols = reinterpret_cast<const ElfW(Sym)*>(at(value.d_ptr));
    if (entry->d_tag == DT_STRTAB) found.names = reinterpret_cast<const char*>(at(value.d_ptr));
    if (entry->d_tag == DT_JMPREL) found.relocations = reinterpret_cast<const ElfW(Rela)*>(at(value.d_ptr));
    if (entry->d_tag == DT_PLTRELSZ) found.relocation_bytes = value.d_val;
    if (entry->d_tag == DT_SONAME) own_name = value.d_val;
  }
  if (found.names != nullptr && own_name != 0) found.own_name = found.names + own_name;
  return found;
}

/** Entries may be in memory that the loader has made read-only. */
bool put(void** place, void* function) {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t page = reinterpret_cast<uintptr_t>(place) & ~(page_bytes - 1);
  if (mprotect(reinterpret_cast<void*>(page), page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(place, function, __ATOMIC_RELEASE);
  return true;
}

int replace_in(const library& found, ElfW(Addr) base) {
  int count = 0;
  const size_t relocation_count = found.relocation_bytes / sizeof(ElfW(Rela));
  for (size_t i = 0; i < relocation_count; i++) {
    const auto& relocation = found.relocations[i];
    const char* const name = found.names + found.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
    for (const auto& [replaced, function] : replacements) {
      if (std::strcmp(name, replaced) != 0) continue;
      if (put(reinterpret_cast<void**>(base + relocation.r_offset), function)) count++;
    }
  }
  return count;
}

int visit(dl_phdr_info* info, size_t, void* result) {
  const library found = read_library(*info);
  const bool is_lmdb = found.own_name != nullptr && std::strcmp(found.own_name, "lmdb.node") == 0;
  if (!is_lmdb || found.symbols == nullptr || found.relocations == nullptr) return 0;
  *static_cast<bool*>(result) = replace_in(found, info->dlpi_addr) == replaced_count_expected;
  return 1;
}

}  // namespace

bool complete_lmdb_writes() {
  bool is_done = false;
  dl_iterate_phdr(visit, &is_done);
  return is_done;
}

void defer_lmdb_frees(bool is_deferred) {
  if (is_deferred == (deferred != nullptr)) return;
  if (is_deferred) {
    deferred = new std::unordered_set<void*>;
    return;
  }
  const std::unique_ptr<std::unordered_set<void*>> pointers(deferred);
  deferred = nullptr;
  for (void* const pointer : *pointers) ::operator delete(pointer);
}

#else

bool complete_lmdb_writes() { return false; }
void defer_lmdb_frees(bool) {}

#endif

}  // namespace sagitta::files
