// Replaces functions that lmdb's library calls, since it handles two cases badly: a write that is shorter than asked
// is taken for a failure of the disk, and the message about one that failed overflows its buffer.
#pragma once

namespace sagitta::files {

/**
 * From now on, lmdb's short writes are continued until all is written or the system says why it cannot be, and
 * its messages are cut. The library must be loaded. Returns whether this was possible: on Linux with 64 bits.
 */
bool complete_lmdb_writes();

}  // namespace sagitta::files
