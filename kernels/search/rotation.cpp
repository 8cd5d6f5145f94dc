#include "rotation.h"

#include <cmath>
#include <numeric>

namespace sagitta {
namespace {

constexpr uint32_t block_max = 256;

/** The finalizer of SplitMix64. */
uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ value >> 27) * 0x94d049bb133111ebull;
  return value ^ value >> 31;
}

}  // namespace

rotation create_rotation(uint32_t dimension) {
  rotation made{};
  made.dimension = dimension;
  made.block = 1;
  while (made.block * 2 <= dimension && made.block < block_max) made.block *= 2;
  made.unit = static_cast<float>(1 / std::sqrt(static_cast<double>(made.block)));
  // With a stride near the golden ratio, neighbours in the second round are far apart in the first.
  made.stride = static_cast<uint32_t>(dimension * 0.618) | 1;
  while (std::gcd(made.stride, dimension) != 1) made.stride += 2;
  made.stride %= dimension;
  made.source.resize(dimension);
  made.first.resize(dimension);
  made.second.resize(dimension);
  for (uint32_t i = 0; i < dimension; i++) {
    made.source[i] = static_cast<uint32_t>(uint64_t{i} * made.stride % dimension);
    const uint64_t bits = mix((uint64_t{i} + 1) * 0x9e3779b97f4a7c15ull);
    made.first[i] = (bits & 1) != 0 ? made.unit : -made.unit;
    made.second[i] = (bits & 2) != 0 ? made.unit : -made.unit;
  }
  return made;
}

}  // namespace sagitta
