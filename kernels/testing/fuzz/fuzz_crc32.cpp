// The checksum of arbitrary bytes, computed in two parts, equals the definition, computed bit by bit.

#include <cstdint>

#include "../../files/crc32.h"
#include "require.h"

namespace {

uint32_t by_definition(const uint8_t* bytes, size_t byte_length) {
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < byte_length; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

}  // namespace

/** The first two bytes determine where the parts meet. */
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t byte_length) {
  if (byte_length < 2 || !sagitta::files::has_crc32()) return 0;
  const uint8_t* const bytes = data + 2;
  const size_t count = byte_length - 2;
  const size_t cut = count == 0 ? 0 : (size_t{data[0]} | size_t{data[1]} << 8) % (count + 1);
  const uint32_t head = sagitta::files::crc32(bytes, cut, 0);
  const uint32_t whole = sagitta::files::crc32(bytes + cut, count - cut, head);
  fuzz::require(whole == by_definition(bytes, count), "another checksum");
  return 0;
}
