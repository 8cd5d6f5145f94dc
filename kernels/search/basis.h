// A basis: orthonormal directions H in which the rows of a segment have most of their length, learned from a
// sample. Head codes are codes of H·x with four or two bits per direction and none for the rest of x, whose
// length bounds what the rest can add to a product. Neural embeddings have most of their length in few
// directions; then head codes exclude more rows than coarse codes with half the bytes.
//
// A basis is one array of bytes, which is stored with the codes: basis_header, then float32 units [R],
// weights [R] and matrix [R, D].
#pragma once

#include <cstddef>
#include <cstdint>

#include "../layout.h"

namespace sagitta {

/** The smallest and largest dimension for which bases are learned. */
inline constexpr uint32_t basis_dimension_min = 128;
inline constexpr uint32_t basis_dimension_max = 2048;

/**
 * The least distance between codes of four and of two bits, halved, for a normal distribution of spread 1: what
 * gives the least squared error.
 */
inline constexpr float fine_unit = 0.1675f;
inline constexpr float coarse_unit = 0.498f;

/** A query is encoded as integers of two limbs: 256 · high + low, at most this. */
inline constexpr int32_t head_code_max = 127 * 256;
/** The least scale of an encoded query of length 1, which keeps quotients within the range of float32. */
inline constexpr double least_head_scale = 0x1p-24;

/** The shares of sampled rows that codes left to be refined where the answer is such fractions of the rows. */
struct basis_shares {
  float fractions[2];
  float left[2];
};

struct basis_header {
  char magic[8];
  /** Of all bytes after it. */
  uint64_t digest;
  /** D, R and the number of leading rows with four bits; the others have two. */
  uint32_t dimension;
  uint32_t row_count;
  uint32_t fine_count;
  /** λ of the part of a row that is not coded. */
  float rest_weight;
  /** At least the Frobenius norm of H·Hᵀ − I. */
  double deviation;
  basis_shares shares;
  /** For head tiles: the shares of panels that are left, and λ of what all directions and the first half leave out. */
  basis_shares tile_shares;
  float tile_weights[head_tile_levels];
};
static_assert(sizeof(basis_header) == 80);

/** A basis as read from its bytes, and the constants of its bounds. */
struct basis {
  const basis_header* header = nullptr;
  /** u and λ of each direction, at most 1; see bounds.h. */
  const float* units = nullptr;
  const float* weights = nullptr;
  const float* matrix = nullptr;
  uint32_t dimension = 0;
  uint32_t row_count = 0;
  uint32_t fine_count = 0;
  /** The number of two-bit codes of a row: a direction with four bits has two. A multiple of 64. */
  uint32_t code_count = 0;
  /** ρ: what the rounding of a query adds to the residual of a row, per unit of s·|c|. */
  double rounding = 0;
  /** The share of |q| |x| by which products may differ because of the rounding of H·x and of H. */
  double error = 0;
  /** The same for head tiles. */
  double tile_error = 0;
};

constexpr bool has_basis(uint32_t dimension) {
  return dimension >= basis_dimension_min && dimension <= basis_dimension_max;
}

/** Returns the number of two-bit codes of a row's head: on average one bit per dimension. */
constexpr uint32_t head_code_count(uint32_t dimension) {
  const uint32_t half = dimension / 2 / coarse_chunk_dimensions * coarse_chunk_dimensions;
  return half < 64 ? 64 : half > 768 ? 768 : half;
}

/** Returns the number of directions of head tiles, a multiple of 32; a basis has at least as many. */
constexpr uint32_t head_tile_directions(uint32_t dimension) { return head_code_count(dimension) / 2; }

/** Returns the directions that a level of head tiles has: all, or the first half. */
constexpr uint32_t directions_of_level(uint32_t dimension, uint32_t level) {
  return level == 0 ? head_tile_directions(dimension) : head_tile_directions(dimension) / 2;
}

/** Returns the bytes that a panel of rows takes in both parts of a head. */
constexpr size_t head_panel_bytes(uint32_t dimension) {
  return coarse_panel_bytes(head_code_count(dimension)) + head_tile_panel_bytes(head_tile_directions(dimension));
}

/** Returns where head tiles begin in a head of this length: after the head codes of all its panels. */
constexpr size_t head_tiles_offset(size_t head_bytes, uint32_t dimension) {
  const size_t panels = (head_bytes - coarse_padding) / head_panel_bytes(dimension);
  return panels * coarse_panel_bytes(head_code_count(dimension));
}

/**
 * The orthogonal matrix, row-major [count, count], by which each half of the directions of head tiles is multiplied, so
 * that one scale fits all values: that of the discrete cosine transform of type IV.
 */
const float* mixing_of(uint32_t count);

constexpr size_t basis_bytes(uint32_t dimension, uint32_t row_count) {
  return sizeof(basis_header) + size_t{row_count} * (dimension + 2) * sizeof(float);
}

/**
 * Reads a basis in place. Returns false unless sizes and constants are as the bounds require. Does not check
 * the digest.
 */
bool open_basis(const uint8_t* bytes, size_t byte_count, uint32_t dimension, basis& opened);

/** Writes the header of a basis, whose other bytes are in place, with magic and digest. Returns the length of the basis. */
size_t seal_basis(basis_header header, uint8_t* bytes);

/** Whether two bases, which `open_basis` accepts, have equal digests. */
bool has_same_digest(const uint8_t* left, const uint8_t* right);

/** Returns the share of rows that codes are expected to leave where the answer is this fraction of the rows. */
double expected_left(const basis_shares& shares, double fraction);

/** Whether the bytes are those that were written. */
bool has_true_digest(const uint8_t* bytes, size_t byte_count);

}  // namespace sagitta
