// Gives parts of a file back to the file system. They read as zeros afterwards, and the file keeps its length.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta::files {

/** Whether this system can make holes; the file system of a file may still refuse. */
bool has_file_holes();

/** Returns 0, or the error number of the system. The descriptor must be writable. */
int make_file_hole(int descriptor, int64_t offset, int64_t byte_length);

}  // namespace sagitta::files
