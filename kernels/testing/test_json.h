// Tests of reading JSON: numbers against the C library, and texts with random damage.
#pragma once

#include "check.h"

namespace check {

void test_json(random_source& random);

}  // namespace check
