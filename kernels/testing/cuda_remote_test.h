// Tests of a device in a process of its own: answers, and what becomes of faults.
#pragma once

#include <cstdint>

namespace check {

/** On a device, answers only; on the emulation also faults at every call. */
void test_remote_device(uint64_t seed);

}  // namespace check
