// Texts are at the end of a memory block of their own, so that a sanitizer detects reads beyond them.

#include "test_json.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include "../json/vectors.h"

namespace check {

namespace {

using sagitta::json::cut_vectors;
using sagitta::json::vectors;

constexpr int number_count = 200'000;
constexpr int damaged_count = 50'000;

bool cut(const std::string& text, bool is_lines, vectors& found) {
  const auto copy = std::make_unique<char[]>(text.size());
  text.copy(copy.get(), text.size());
  const sagitta::json::options options{
      .where = {"v", "rows", "v"}, .dimension_max = 8, .is_lines = is_lines};
  return cut_vectors({copy.get(), text.size()}, options, found);
}

std::string digits(random_source& random, uint32_t count_max) {
  std::string text(1 + random.below(count_max), '0');
  for (char& digit : text) digit = static_cast<char>('0' + random.below(random.below(3) == 0 ? 1 : 10));
  return text;
}

/** Returns a number in any of the spellings that JSON allows. */
std::string random_number(random_source& random) {
  std::string text(random.below(2), '-');
  const std::string whole = digits(random, random.below(4) == 0 ? 25 : 2);
  text += whole.find_first_not_of('0') == std::string::npos
              ? "0"
              : whole.substr(whole.find_first_not_of('0'));
  if (random.below(4) != 0) {
    text.append(1, '.').append(digits(random, random.below(3) == 0 ? 30 : 10));
  }
  if (random.below(4) == 0) {
    const char* const letters[] = {"e", "E", "e-", "E+"};
    text.append(letters[random.below(4)]).append(digits(random, 2));
  }
  return text;
}

/** Returns a number half-way between two neighbours of float32, or very near to it. */
std::string random_midpoint(random_source& random) {
  const auto bits = static_cast<uint32_t>(random.next());
  const auto value = std::bit_cast<float>(bits & 0x7fffffff);
  if (!std::isfinite(value)) return "1";
  const double next = std::nextafter(value, std::numeric_limits<float>::infinity());
  const double middle = (static_cast<double>(value) + next) / 2;
  if (!std::isfinite(middle)) return "1";
  char text[1'200];
  const int length = std::snprintf(text, sizeof text, "%.*e", static_cast<int>(random.below(40)), middle);
  return {text, static_cast<size_t>(length)};
}

void test_numbers(random_source& random) {
  vectors found;
  for (int i = 0; i < number_count; i++) {
    const std::string number = i % 4 == 0 ? random_midpoint(random) : random_number(random);
    const auto expected = static_cast<float>(std::strtod(number.c_str(), nullptr));
    const bool is_found = cut(std::string("{\"v\":[").append(number).append("]}"), false, found);
    if (!std::isfinite(expected)) {
      require(!is_found, "json: " + number + " is infinite");
      continue;
    }
    require(is_found || std::abs(expected) < 1e-37F, "json: " + number + " is refused");
    if (!is_found) continue;
    require(std::bit_cast<uint32_t>(found.values[0]) == std::bit_cast<uint32_t>(expected),
            "json: " + number + " has other bits");
  }
}

void test_damage(random_source& random) {
  const std::string alphabet = "{}[]\":,\\ \n0123.5eE-+v\x01\xff";
  for (int i = 0; i < damaged_count; i++) {
    std::string text("{\"rows\":[");
    for (uint32_t row = 0; row < 3; row++) {
      text.append(row == 0 ? "" : ", ").append("{\"id\":\"a\\\"").append(digits(random, 9));
      text.append("\",\"v\":[").append(random_number(random)).append(" ,");
      text.append(random_number(random)).append("],\"m\":{\"v\":[1,{}]}}");
    }
    text += "]}\n";
    for (uint32_t damage = random.below(4); damage > 0; damage--) {
      const size_t at = random.below(static_cast<uint32_t>(text.size()));
      const char byte = alphabet[random.below(static_cast<uint32_t>(alphabet.size()))];
      if (random.below(3) == 0) text.erase(at, 1 + random.below(4));
      else if (random.below(2) == 0) text.insert(at, 1, byte);
      else text[at] = byte;
      if (text.empty()) text.append(1, '{');
    }
    vectors found;
    if (!cut(text, random.below(2) == 0, found)) continue;
    size_t element_count = 0;
    for (const int32_t length : found.lengths) element_count += static_cast<size_t>(length);
    require(element_count == found.values.size(), "json: " + text + " has other lengths");
    require(found.rest.size() < text.size(), "json: nothing was cut out of " + text);
  }
}

}  // namespace

void test_json(random_source& random) {
  test_numbers(random);
  test_damage(random);
}

}  // namespace check
