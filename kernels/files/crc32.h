// CRC-32 as in zlib (polynomial 0x04C11DB7, reflected), at the speed of memory, for processors with
// carry-less multiplication.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sagitta::files {

/** Whether this processor can run `crc32`. */
bool has_crc32();

/** Continues from `crc`, the CRC-32 of the bytes before these; 0 at the start. */
uint32_t crc32(const uint8_t* bytes, size_t byte_length, uint32_t crc);

}  // namespace sagitta::files
