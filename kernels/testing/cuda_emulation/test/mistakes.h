// Runs kernels with deliberate mistakes, each in a process of its own, which must end with a message.
#pragma once

#include <string>

#include "../settings.h"
#include "test.h"

namespace platform_test {

struct mistake {
  /** [256], and nothing else. */
  uint32_t* values;
};

inline constexpr size_t usual_shared_bytes = 8192;

/** An early launch follows a preloaded kernel; the launched kernel is preloaded, too, unless it is unprepared. */
enum class launch_kind { ordinary, early, early_unprepared };

/**
 * Runs two blocks of 128 threads in a process. Returns what the process wrote, preceded by "nothing was
 * found" if it ended normally.
 */
std::string last_words(void (*kernel)(mistake), const sagitta::cuda::emulation::settings& wanted,
                       size_t shared_bytes = usual_shared_bytes,
                       launch_kind kind = launch_kind::ordinary);

/** Requires the last words to contain these words and the seed, for several seeds. */
void expect(void (*kernel)(mistake), const char* words, size_t shared_bytes = usual_shared_bytes,
            launch_kind kind = launch_kind::ordinary);

}  // namespace platform_test
