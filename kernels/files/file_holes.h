// Gives parts of a file back to the file system. They read as zeros afterwards, and the file keeps its length.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta::files {

/** Whether this system can make holes; the file system of a file may still refuse. */
bool has_file_holes();

/** Returns 0, or the error number of the system. The descriptor must be writable. */
int make_file_hole(int descriptor, int64_t offset, int64_t byte_length);

/**
 * The first offset from this one on that is not in a hole; -1 when the rest of the file is one. Where the file
 * system does not know its holes, the offset itself. Moves the position of the descriptor.
 */
int64_t file_data_from(int descriptor, int64_t offset);

}  // namespace sagitta::files
