// Tests of mapped files whose blocks are fetched when they are read.
#pragma once

#include "check.h"

namespace check {

/** Does nothing on systems without such mappings. */
void test_partial_files(random_source& random, bool is_quick);

}  // namespace check
