// A basis: orthonormal directions H in which the rows of a segment have most of their length, learned from a sample.
// Head tiles are int8 codes of H·x; the length of the rest of x bounds what the rest can add to a product. Neural
// embeddings have most of their length in few directions: then a quarter of the dimensions excludes nearly all rows.
//
// The directions are mixed within each half, so that one scale fits all codes of a row. The first half has the most
// important directions and can be scanned alone.
//
// A basis is one array of bytes, which is stored with the codes: basis_header, then the float32 matrix [R, D].
#pragma once

#include <cstddef>
#include <cstdint>

#include "../layout.h"
#include "../target.h"

namespace sagitta {

/** The smallest and largest dimension for which bases are learned. */
inline constexpr uint32_t basis_dimension_min = 128;
inline constexpr uint32_t basis_dimension_max = 2048;

/** The shares of sampled rows that codes left to be scored where the answer is such fractions of the rows. */
struct basis_shares {
  float fractions[2];
  float left[2];
};

struct basis_header {
  char magic[8];
  /** Of all bytes after it. */
  uint64_t digest;
  /** At least the Frobenius norm of H·Hᵀ − I. */
  double deviation;
  uint32_t dimension;
  /** λ of what all directions and what the first half of them leave out; see bounds.h. */
  float weights[head_levels];
  /** Of all directions, and of the first half of them alone. */
  basis_shares shares[head_levels];
  uint32_t reserved;
};
static_assert(sizeof(basis_header) == 72);

/** A basis as read from its bytes. */
struct basis {
  const basis_header* header = nullptr;
  /** [directions, dimension] */
  const float* matrix = nullptr;
  uint32_t dimension = 0;
  uint32_t directions = 0;
  /** ε in bounds.h: the share of |x| by which codes may differ because of the rounding of H·x and of H. */
  double error = 0;
};

constexpr bool has_basis(uint32_t dimension) {
  return dimension >= basis_dimension_min && dimension <= basis_dimension_max;
}

/** Returns the number of directions of a basis, a multiple of 32. */
constexpr uint32_t head_directions(uint32_t dimension) {
  const uint32_t quarter = dimension / 128 * 32;
  return quarter < 32 ? 32 : quarter > 384 ? 384 : quarter;
}

/** Returns the directions that a level of head tiles has: all, or the first half. */
constexpr uint32_t directions_of_level(uint32_t dimension, uint32_t level) {
  return level == 0 ? head_directions(dimension) : head_directions(dimension) / 2;
}

/** Returns the bytes of a panel in either array of head tiles: facts, and the codes of half of the directions. */
constexpr size_t half_panel_bytes(uint32_t dimension) { return panel_bytes(head_directions(dimension) / 2); }

/** Returns the bytes that a panel of head tiles takes in both arrays. */
constexpr size_t head_panel_bytes(uint32_t dimension) { return 2 * half_panel_bytes(dimension); }

/** Returns the arrays of head tiles of so many bytes. */
head_arrays head_arrays_of(uint8_t* head, size_t byte_count);

/** What a scan of a level reads: the array with the facts of this level, and the codes of the first panel. */
struct head_scan {
  const uint8_t* panels;
  panel_codes codes;
};

/** Returns what a scan reads of head tiles of so many bytes. */
head_scan head_scan_of(const uint8_t* head, size_t byte_count, uint32_t level);

/**
 * Writes panels of head tiles as devices hold them, each in one piece: facts of all directions, facts of the first half,
 * codes.
 */
void join_head_panels(const uint8_t* head, size_t byte_count, uint32_t dimension, uint32_t first_panel,
                      uint32_t count, uint8_t* to);

constexpr size_t basis_bytes(uint32_t dimension) {
  return sizeof(basis_header) + size_t{head_directions(dimension)} * dimension * sizeof(float);
}

/**
 * Reads a basis in place. Returns false unless sizes and constants are as the bounds require. Does not check
 * the digest.
 */
bool open_basis(const uint8_t* bytes, size_t byte_count, uint32_t dimension, basis& opened);

/** Writes the header of a basis, whose matrix is in place, with magic and digest. Returns the length of the basis. */
size_t seal_basis(basis_header header, uint8_t* bytes);

/** Whether two bases, which `open_basis` accepts, have equal digests. */
bool has_same_digest(const uint8_t* left, const uint8_t* right);

/** Returns the share of rows that codes are expected to leave where the answer is this fraction of the rows. */
double expected_left(const basis_shares& shares, double fraction);

/** Whether the bytes are those that were written. */
bool has_true_digest(const uint8_t* bytes, size_t byte_count);

}  // namespace sagitta
