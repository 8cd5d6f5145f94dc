// Reads arbitrary bytes as JSON text: the reader of vectors stays within them, its result is consistent,
// and each number has the bits that the C library gives it. The first byte chooses the options.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "../../json/number.h"
#include "../../json/vectors.h"
#include "require.h"

namespace {

using sagitta::json::cut_vectors;
using sagitta::json::options;
using sagitta::json::vectors;

/** Returns the length of the JSON number that the text begins with; 0 if there is none. */
size_t number_length(const std::string& text) {
  size_t at = 0;
  const auto is_digit = [&] { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  const auto skip_digits = [&] {
    const size_t from = at;
    while (is_digit()) at++;
    return at > from;
  };
  if (at < text.size() && text[at] == '-') at++;
  if (at < text.size() && text[at] == '0') {
    at++;
    if (is_digit()) return 0;
  } else if (!skip_digits()) {
    return 0;
  }
  if (at < text.size() && text[at] == '.') {
    at++;
    if (!skip_digits()) return 0;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    at++;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) at++;
    if (!skip_digits()) return 0;
  }
  return at;
}

void check_number(const char* begin, const char* end) {
  float value = 0;
  const char* const stop = sagitta::json::read_number(begin, end, value);
  const std::string text(begin, end);
  const size_t length = number_length(text);
  if (stop == nullptr) {
    if (length == 0) return;
    const double wide = std::strtod(text.substr(0, length).c_str(), nullptr);
    // Very large and very small numbers are left to the general parser.
    const bool is_extreme = std::abs(wide) > std::numeric_limits<float>::max() || std::abs(wide) < 1e-300;
    fuzz::require(is_extreme, "a number is refused");
    return;
  }
  fuzz::require(static_cast<size_t>(stop - begin) == length, "a number ends elsewhere");
  const auto expected = static_cast<float>(std::strtod(text.substr(0, length).c_str(), nullptr));
  fuzz::require(std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(expected),
                "a number has other bits");
}

void check_vectors(std::string_view text, uint8_t choice) {
  const options chosen{
      .where = {(choice & 1) != 0 ? "v" : "values", (choice & 2) != 0 ? "rows" : "vectors",
                (choice & 4) != 0 ? "" : "values"},
      .dimension_max = 1u + (choice >> 4),
      .is_lines = (choice & 8) != 0};
  vectors found;
  if (!cut_vectors(text, chosen, found)) return;
  size_t element_count = 0;
  for (const int32_t length : found.lengths) {
    fuzz::require(length >= 1 && static_cast<uint32_t>(length) <= chosen.dimension_max, "a vector has a wrong length");
    element_count += static_cast<size_t>(length);
  }
  fuzz::require(element_count == found.values.size(), "the lengths are wrong");
  for (const float value : found.values) fuzz::require(std::isfinite(value), "a value is not finite");
  // Each vector took up at least three bytes and left one.
  fuzz::require(found.rest.size() + 2 * found.lengths.size() <= text.size(), "too much is left");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t byte_length) {
  if (byte_length == 0) return 0;
  const auto* const text = reinterpret_cast<const char*>(data + 1);
  check_vectors({text, byte_length - 1}, data[0]);
  check_number(text, text + byte_length - 1);
  return 0;
}
