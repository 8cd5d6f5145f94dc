// See file_holes.h.

#include "file_holes.h"

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace sagitta::files {

#if defined(__linux__)

bool has_file_holes() { return true; }

int make_file_hole(int descriptor, int64_t offset, int64_t byte_length) {
  constexpr int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  int result = 0;
  do {
    result = fallocate(descriptor, mode, offset, byte_length);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

int64_t file_data_from(int descriptor, int64_t offset) {
  const off_t found = lseek(descriptor, offset, SEEK_DATA);
  if (found >= 0) return found;
  return errno == ENXIO ? -1 : offset;
}

#else

bool has_file_holes() { return false; }
int make_file_hole(int, int64_t, int64_t) { return 0; }
int64_t file_data_from(int, int64_t offset) { return offset; }

#endif

}  // namespace sagitta::files
