// Walks over the text once. The objects on the way to the vectors are read member by member; other values
// are skipped by looking only at their brackets and strings.

#include "vectors.h"

#include <cstring>
#include <utility>

#include "number.h"

namespace sagitta::json {

namespace {

constexpr uint64_t every_byte = 0x0101010101010101;

/** Marks the zeros among the bytes, in the highest bit of each, up to and including the first one. */
uint64_t find_zero(uint64_t bytes) { return (bytes - every_byte) & ~bytes & (every_byte << 7); }

/** Whether one of the bytes ends the plain part of a string: a quote, a backslash, a control character. */
bool has_special(uint64_t bytes) {
  const uint64_t controls = (bytes - every_byte * 0x20) & ~bytes & (every_byte << 7);
  return (controls | find_zero(bytes ^ every_byte * '"') | find_zero(bytes ^ every_byte * '\\')) != 0;
}

/** Reads at a position in the text. Its functions return false for text that they do not accept. */
class cutter {
 public:
  cutter(std::string_view text, const options& options, vectors& found)
      : at_(text.data()),
        end_(text.data() + text.size()),
        kept_(text.data()),
        options_(options),
        found_(found) {}

  bool cut() {
    skip_blanks();
    do {
      if (!read_root()) return false;
      skip_blanks();
    } while (options_.is_lines && at_ < end_);
    if (found_.lengths.empty()) return false;
    keep(end_);
    return true;
  }

 private:
  bool is_at(char character) const { return at_ < end_ && *at_ == character; }

  bool take(char character) {
    const bool is_there = is_at(character);
    if (is_there) at_++;
    return is_there;
  }

  /** Skips blanks between values, including line breaks. */
  void skip_blanks() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) at_++;
  }

  /** Skips blanks inside a value. A line break is a blank only if the text is not made of lines. */
  void skip_space() { at_ = after_space(at_); }

  const char* after_space(const char* at) const {
    while (at < end_ && *at <= ' ' &&
           (*at == ' ' || *at == '\r' || *at == '\t' || (*at == '\n' && !options_.is_lines))) {
      at++;
    }
    return at;
  }

  /** A second occurrence would change the order in which vectors are expected, or replace the first. */
  bool read_root() {
    const places& where = options_.where;
    bool has_place = false;
    return read_object([&](std::string_view name) {
      const bool is_vector = !where.member.empty() && name == where.member;
      const bool is_list = !where.list.empty() && name == where.list;
      if (!is_vector && !is_list) return skip_value();
      if (std::exchange(has_place, true)) return false;
      return is_vector ? read_vector() : read_list();
    });
  }

  bool read_list() {
    return read_elements('[', ']', [&] {
      if (options_.where.list_member.empty()) return read_vector();
      bool has_vector = false;
      return read_object([&](std::string_view name) {
        if (name != options_.where.list_member) return skip_value();
        return !std::exchange(has_vector, true) && read_vector();
      });
    });
  }

  /** Calls `read_value` for each member with its name; names with escapes are not accepted. */
  template <class Read>
  bool read_object(Read read_value) {
    return read_elements('{', '}', [&] {
      const char* const start = at_ + 1;
      bool has_escapes = false;
      if (!skip_string(has_escapes) || has_escapes) return false;
      const std::string_view name(start, static_cast<size_t>(at_ - 1 - start));
      skip_space();
      if (!take(':')) return false;
      skip_space();
      return read_value(name);
    });
  }

  /** Calls `read` at the start of each element between the brackets. */
  template <class Read>
  bool read_elements(char open, char close, Read read) {
    if (!take(open)) return false;
    skip_space();
    if (take(close)) return true;
    for (;;) {
      if (!read()) return false;
      skip_space();
      if (take(close)) return true;
      if (!take(',')) return false;
      skip_space();
    }
  }

  /** Cuts out an array of numbers. Leaves a string in place, which may be a vector in base64. */
  bool read_vector() {
    bool has_escapes = false;
    if (is_at('"')) return skip_string(has_escapes);
    const size_t first = found_.values.size();
    const char* const end = is_at('[') ? read_numbers(at_ + 1, first + options_.dimension_max) : nullptr;
    if (end == nullptr) return false;
    found_.lengths.push_back(static_cast<int32_t>(found_.values.size() - first));
    keep(at_);
    found_.rest.push_back('0');
    at_ = end;
    kept_ = end;
    return true;
  }

  /** Reads one or more numbers and the bracket after them. Returns where they end, or null. */
  const char* read_numbers(const char* at, size_t count_max) {
    while (found_.values.size() < count_max) {
      float value = 0;
      at = read_number(after_space(at), end_, value);
      if (at == nullptr) return nullptr;
      found_.values.push_back(value);
      at = after_space(at);
      if (at == end_) return nullptr;
      if (*at == ']') return at + 1;
      if (*at++ != ',') return nullptr;
    }
    return nullptr;
  }

  /** Appends what was read since the last vector. */
  void keep(const char* to) { found_.rest.insert(found_.rest.end(), kept_, to); }

  bool skip_string(bool& has_escapes) {
    if (!take('"')) return false;
    for (;;) {
      for (uint64_t bytes; end_ - at_ >= 8; at_ += 8) {
        std::memcpy(&bytes, at_, sizeof bytes);
        if (has_special(bytes)) break;
      }
      if (at_ == end_) return false;
      const auto byte = static_cast<unsigned char>(*at_++);
      if (byte == '"') return true;
      if (byte < ' ') return false;
      if (byte != '\\') continue;
      has_escapes = true;
      if (at_ == end_) return false;
      at_++;
    }
  }

  bool skip_value() {
    size_t depth = 0;
    do {
      if (at_ == end_) return false;
      const char character = *at_;
      bool has_escapes = false;
      if (character == '"') {
        if (!skip_string(has_escapes)) return false;
      } else if (character == '[' || character == '{') {
        depth++;
        at_++;
      } else if (character == ']' || character == '}') {
        if (depth == 0) return false;
        depth--;
        at_++;
      } else if (character == '\n' && options_.is_lines) {
        return false;
      } else if (depth > 0) {
        at_++;
      } else {
        return skip_literal();
      }
    } while (depth > 0);
    return true;
  }

  bool skip_literal() {
    const char* const start = at_;
    while (at_ < end_ && *at_ != ',' && *at_ != ']' && *at_ != '}' && *at_ != '"' &&
           static_cast<unsigned char>(*at_) > ' ') {
      at_++;
    }
    return at_ > start;
  }

  const char* at_;
  const char* const end_;
  /** Everything before this is already in `rest`, with its vectors cut out. */
  const char* kept_;
  const options& options_;
  vectors& found_;
};

}  // namespace

bool cut_vectors(std::string_view text, const options& options, vectors& found) {
  found.rest.clear();
  found.values.clear();
  found.lengths.clear();
  return cutter(text, options, found).cut();
}

}  // namespace sagitta::json
