// Cuts vectors that are arrays of numbers out of JSON text, so that no object is ever created for a number.
// The rest is JSON with a 0 in place of each vector, which any parser can read.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sagitta::json {

/** Where vectors are, by the names of members; an empty name means that there is no such place. */
struct places {
  /** A member of the outermost object that is a vector. */
  std::string_view member;
  /** A member of the outermost object that is an array. */
  std::string_view list;
  /** The member of the elements of `list` that is a vector; if empty, the elements themselves are vectors. */
  std::string_view list_member;
};

struct vectors {
  /** The text, with a 0 for each vector. */
  std::vector<char> rest;
  /** The elements of all vectors, in the order of the text, all finite. */
  std::vector<float> values;
  /** The number of elements of each vector. */
  std::vector<int32_t> lengths;
};

struct options {
  places where;
  /** Vectors have 1 to this many elements. */
  uint32_t dimension_max;
  /** Whether the text consists of lines, each of them empty or an object. */
  bool is_lines;
};

/**
 * Fills `found`; the memory of its arrays is reused. If `rest` is JSON, the text is JSON with the same
 * members: nothing else in it is checked.
 *
 * Returns false if the text is not what a client usually sends; then a general parser has to read it or say
 * what is wrong. This is so if a place has no vector of finite numbers and no string, if it is in the text
 * twice, if its name is spelled with escapes, or if there is no vector at all.
 */
bool cut_vectors(std::string_view text, const options& options, vectors& found);

}  // namespace sagitta::json
