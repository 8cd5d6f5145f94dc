// Tests of a device in a process of its own: its answers, and its behaviour after faults.
#pragma once

#include <cstdint>

namespace check {

/** On a device this tests only answers; on the emulation also faults at every call. */
void test_remote_device(uint64_t seed);

}  // namespace check
