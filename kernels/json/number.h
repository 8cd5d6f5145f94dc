// Reads a JSON number as float32, with the bits of `Math.fround(Number(text))`: rounded to float64 first
// and to float32 after that.
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>

namespace sagitta::json {

/** The largest number of digits that always fit into 64 bits. */
constexpr int64_t exact_digits_max = 19;
/** The powers of ten that embeddings need, each rounded to float64, starting with the least exponent. */
constexpr int64_t power_min = -32;
constexpr int64_t power_max = 22;
inline constexpr double powers_of_ten[] = {
    1e-32, 1e-31, 1e-30, 1e-29, 1e-28, 1e-27, 1e-26, 1e-25, 1e-24, 1e-23, 1e-22,
    1e-21, 1e-20, 1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11,
    1e-10, 1e-9,  1e-8,  1e-7,  1e-6,  1e-5,  1e-4,  1e-3,  1e-2,  1e-1,  1e0,
    1e1,   1e2,   1e3,   1e4,   1e5,   1e6,   1e7,   1e8,   1e9,   1e10,  1e11,
    1e12,  1e13,  1e14,  1e15,  1e16,  1e17,  1e18,  1e19,  1e20,  1e21,  1e22};
static_assert(std::size(powers_of_ten) == power_max - power_min + 1);
/** Larger exponents are not distinguished: neither float64 nor the digits of a text reach this one. */
constexpr int64_t exponent_max = 1'000'000'000;

inline bool is_digit(char character) { return character >= '0' && character <= '9'; }

/** Returns how many of eight bytes, from the lowest on, are digits before the first one that is not. */
inline int count_digits(uint64_t bytes) {
  // A digit leaves 3, and still 3 when 6 is added. A carry changes only what follows a byte that is no digit.
  const uint64_t high_halves = 0xf0f0f0f0f0f0f0f0;
  const uint64_t halves =
      (bytes & high_halves) | (((bytes + 0x0606060606060606) & high_halves) >> 4);
  return std::countr_zero(halves ^ 0x3333333333333333) / 8;
}

/** Returns the number spelled by eight digits, the first of which is in the lowest byte. A zero byte counts as 0. */
inline uint64_t eight_digits(uint64_t bytes) {
  // Neighbours are joined three times: into pairs, into fours, and into the whole.
  bytes &= 0x0f0f0f0f0f0f0f0f;
  bytes = (bytes * 10 + (bytes >> 8)) & 0x00ff00ff00ff00ff;
  bytes = (bytes * 100 + (bytes >> 16)) & 0x0000ffff0000ffff;
  return (bytes * 10'000 + (bytes >> 32)) & 0xffffffff;
}

/** Appends the digits from `at` on to the number, modulo 2^64. Returns where they end. */
inline const char* read_digits(const char* at, const char* end, uint64_t& number) {
  if constexpr (std::endian::native == std::endian::little) {
    static constexpr uint64_t powers[] = {1,       10,        100,        1'000,      10'000,
                                          100'000, 1'000'000, 10'000'000, 100'000'000};
    for (uint64_t bytes; end - at >= 8;) {
      std::memcpy(&bytes, at, sizeof bytes);
      const int count = count_digits(bytes);
      if (count == 0) return at;
      number = number * powers[count] + eight_digits(bytes << (64 - 8 * count));
      at += count;
      if (count < 8) return at;
    }
  }
  for (; at < end && is_digit(*at); at++) number = number * 10 + static_cast<uint64_t>(*at - '0');
  return at;
}

/** Reads what follows the letter of an exponent. Returns where it ends, or null. */
inline const char* read_exponent(const char* at, const char* end, int64_t& exponent) {
  const bool is_negative = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) at++;
  const char* const first = at;
  int64_t magnitude = 0;
  for (; at < end && is_digit(*at); at++) {
    if (magnitude < exponent_max) magnitude = magnitude * 10 + (*at - '0');
  }
  exponent += is_negative ? -magnitude : magnitude;
  return at == first ? nullptr : at;
}

/** The text is a JSON number. Returns false if the library has no correct conversion or the number overflows. */
inline bool round_twice(const char* start, const char* end, float& value) {
#ifdef __cpp_lib_to_chars
  double wide = 0;
  const auto [stop, error] = std::from_chars(start, end, wide);
  value = static_cast<float>(wide);
  return error == std::errc() && stop == end;
#else
  (void)start, (void)end, (void)value;
  return false;
#endif
}

/**
 * Computes digits * 10^exponent, rounded twice; returns false if this method cannot tell the result.
 *
 * With digits < 2^64, three roundings lead to `near`: of the digits, of the power, and of the product. One
 * leads from the exact number to the float64 that `Number` returns. So the two differ by less than 2^-50.9
 * of either. Both bounds are further away, by 2^-50 and one more rounding, and rounding to float32 is
 * monotonic: where the bounds agree, so does every number between them.
 */
inline bool round_near(uint64_t digits, int64_t exponent, float& value) {
  if (exponent < power_min || exponent > power_max) return false;
  const double near = static_cast<double>(digits) * powers_of_ten[exponent - power_min];
  value = static_cast<float>(near * (1 - 0x1p-50));
  return value == static_cast<float>(near * (1 + 0x1p-50));
}

/**
 * Reads the number at `at`. Returns where it ends, or null if there is no JSON number, if it is infinite as
 * float32, or if the library cannot convert it.
 */
inline const char* read_number(const char* at, const char* end, float& value) {
  const char* const start = at;
  // Signs are random, so nothing branches on them.
  const bool is_negative = at < end && *at == '-';
  at += is_negative;
  const char* const first = at;
  uint64_t digits = 0;
  int64_t exponent = 0;
  while (at < end && is_digit(*at)) digits = digits * 10 + static_cast<uint64_t>(*at++ - '0');
  int64_t digit_count = at - first;
  if (digit_count == 0 || (digit_count > 1 && *first == '0')) return nullptr;
  if (at < end && *at == '.') {
    const char* const fraction = ++at;
    at = read_digits(at, end, digits);
    if (at == fraction) return nullptr;
    exponent = fraction - at;
    digit_count -= exponent;
  }
  if (at < end && (*at | 0x20) == 'e') {
    at = read_exponent(at + 1, end, exponent);
    if (at == nullptr) return nullptr;
  }
  if (digit_count > exact_digits_max) {
    // Leading zeros do not count.
    for (const char* zero = first; zero < at && (*zero == '0' || *zero == '.'); zero++) {
      if (*zero == '0') digit_count--;
    }
  }
  const bool is_near = digit_count <= exact_digits_max && round_near(digits, exponent, value);
  if (is_near) {
    value *= is_negative ? -1.0F : 1.0F;
  } else if (!round_twice(start, at, value)) {
    return nullptr;
  }
  return std::abs(value) <= std::numeric_limits<float>::max() ? at : nullptr;
}

}  // namespace sagitta::json
