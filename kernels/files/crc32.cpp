// See crc32.h. A message is a polynomial whose CRC is its remainder modulo P. The remainder stays the same
// when 128 bits are replaced by their product with x^d mod P, added d bits further on. Four such folds side
// by side shorten the message by 64 bytes per step, until the last 16 bytes are divided with a table.

#include "crc32.h"

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sagitta::files {

#if defined(__x86_64__)

namespace {

/** P without its highest term. */
constexpr uint32_t polynomial = 0x04C11DB7;

constexpr uint32_t reflect(uint32_t bits) {
  uint32_t reflected = 0;
  for (int i = 0; i < 32; i++) reflected |= ((bits >> i) & 1) << (31 - i);
  return reflected;
}

/** x^exponent mod P, reflected, and shifted because the product of reflected factors is one bit short. */
constexpr uint64_t fold_factor(int exponent) {
  uint32_t power = 1;
  for (int i = 0; i < exponent; i++) power = (power << 1) ^ ((power >> 31) * polynomial);
  return uint64_t{reflect(power)} << 1;
}

/** The CRC of each byte. */
constexpr std::array<uint32_t, 256> byte_table = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int i = 0; i < 8; i++) crc = (crc >> 1) ^ ((crc & 1) * reflect(polynomial));
    table[byte] = crc;
  }
  return table;
}();

uint32_t divide(const uint8_t* bytes, size_t byte_length, uint32_t state) {
  for (size_t i = 0; i < byte_length; i++) state = (state >> 8) ^ byte_table[(state ^ bytes[i]) & 0xff];
  return state;
}

constexpr size_t lane_bytes = 16;
constexpr size_t step_bytes = 4 * lane_bytes;

#define SAGITTA_CLMUL __attribute__((target("pclmul,sse2")))

SAGITTA_CLMUL inline __m128i load(const uint8_t* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

/** The factors of a fold for the two halves of a lane; the low half is 64 bits further from the end. */
SAGITTA_CLMUL inline __m128i factors(uint64_t low, uint64_t high) {
  return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}

SAGITTA_CLMUL inline __m128i fold(__m128i lane, __m128i by, __m128i onto) {
  const __m128i low = _mm_clmulepi64_si128(lane, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(lane, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

/** Returns the state after whole lanes, of which there are at least four. */
SAGITTA_CLMUL uint32_t fold_lanes(const uint8_t* bytes, size_t byte_length, uint32_t state) {
  constexpr int step_bits = 8 * step_bytes;
  constexpr int lane_bits = 8 * lane_bytes;
  const __m128i by_step = factors(fold_factor(step_bits + 32), fold_factor(step_bits - 32));
  const __m128i by_lane = factors(fold_factor(lane_bits + 32), fold_factor(lane_bits - 32));
  __m128i a = _mm_xor_si128(load(bytes), _mm_cvtsi32_si128(static_cast<int32_t>(state)));
  __m128i b = load(bytes + lane_bytes);
  __m128i c = load(bytes + 2 * lane_bytes);
  __m128i d = load(bytes + 3 * lane_bytes);
  size_t at = step_bytes;
  for (; at + step_bytes <= byte_length; at += step_bytes) {
    a = fold(a, by_step, load(bytes + at));
    b = fold(b, by_step, load(bytes + at + lane_bytes));
    c = fold(c, by_step, load(bytes + at + 2 * lane_bytes));
    d = fold(d, by_step, load(bytes + at + 3 * lane_bytes));
  }
  d = fold(fold(fold(a, by_lane, b), by_lane, c), by_lane, d);
  for (; at < byte_length; at += lane_bytes) d = fold(d, by_lane, load(bytes + at));
  uint8_t last[lane_bytes];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last), d);
  return divide(last, lane_bytes, 0);
}

}  // namespace

bool has_crc32() { return __builtin_cpu_supports("pclmul"); }

uint32_t crc32(const uint8_t* bytes, size_t byte_length, uint32_t crc) {
  uint32_t state = ~crc;
  size_t folded = 0;
  if (byte_length >= step_bytes) {
    folded = byte_length / lane_bytes * lane_bytes;
    state = fold_lanes(bytes, folded, state);
  }
  return ~divide(bytes + folded, byte_length - folded, state);
}

#else

bool has_crc32() { return false; }
uint32_t crc32(const uint8_t*, size_t, uint32_t) { return 0; }

#endif

}  // namespace sagitta::files
