// The orthogonal matrix by which rows and queries are multiplied before they get coarse codes. It spreads
// the length of a vector evenly over its dimensions, so that one scale fits all of them. Products do not
// change, and the proof in bounds.h needs nothing but that the matrix is orthogonal.
//
// There are two rounds. In each, values get signs, and blocks of them are multiplied by normalised Hadamard
// matrices; between the rounds the values are permuted, so that each block of the second round has values
// of all blocks of the first. Blocks have P values, the largest power of two within the dimension, at most
// 256. If P does not divide the dimension, one more block has the last P values.
#pragma once

#include <cstdint>
#include <vector>

namespace sagitta {

struct rotation {
  uint32_t dimension;
  /** P. */
  uint32_t block;
  /** 1 / √P. */
  float unit;
  /** Value i of the second round is value i · stride mod dimension of the first: value source[i]. */
  uint32_t stride;
  std::vector<uint32_t> source;
  /** The sign of each value times 1 / √P, for both rounds. */
  std::vector<float> first;
  std::vector<float> second;
};

rotation create_rotation(uint32_t dimension);

}  // namespace sagitta
