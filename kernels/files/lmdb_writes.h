// Replaces functions that lmdb's library calls, since it handles three cases badly: a write that is shorter than asked
// is taken for a failure of the disk, the message about one that failed overflows its buffer, and when a file cannot
// be opened, an object is deleted twice.
#pragma once

namespace sagitta::files {

/**
 * From now on, lmdb's short writes are continued until all is written or the system says why it cannot be, and
 * its messages are cut. The library must be loaded. Returns whether this was possible: on Linux with 64 bits.
 */
bool complete_lmdb_writes();

/**
 * While this holds, what lmdb deletes on this thread stays valid; afterwards it is freed, each object once. For the
 * opening of a file, after `complete_lmdb_writes`.
 */
void defer_lmdb_frees(bool is_deferred);

}  // namespace sagitta::files
