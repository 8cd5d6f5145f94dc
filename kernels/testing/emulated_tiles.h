// Emulates the tile registers of AMX for tests: palette 1, which has eight tiles of at most 16 rows of 64 bytes. What a
// processor would refuse by an exception ends the process with a message.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta::emulated_tiles {

/** LDTILECFG, with an operand of 64 bytes. Every thread has its own tiles. */
void load_config(const void* config);
/** TILERELEASE. */
void release();
/** TILELOADD and TILESTORED: rows that are `stride` bytes apart. */
void load(uint32_t tile, const void* rows, size_t stride);
void store(uint32_t tile, void* rows, size_t stride);
/** TDPBSUD: adds products of signed bytes of `left` and unsigned bytes of `right`. */
void add_products(uint32_t sums, uint32_t left, uint32_t right);

/** Replaces the end of the process: `refuse` is called with the message and must not return. Null restores it. */
void on_refusal(void (*refuse)(const char* message));
/** Whether this thread has tiles in use, which the system would save when it suspends the thread. */
bool in_use();

}  // namespace sagitta::emulated_tiles
