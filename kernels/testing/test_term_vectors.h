// Tests of the vectors of texts that benches use.
#pragma once

#include "check.h"

namespace check {

void test_term_vectors(random_source& random);

}  // namespace check
