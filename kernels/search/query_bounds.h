// The proof that a scan over codes loses nothing, and the numbers that follow from it.
//
// Notation: u = 2^-24 (float32) and v = 2^-53 (float64); D the dimension, at most 2^14; q and x the
// stored vectors, both of a length within 2^±30; q̂ = t·b and x̂ = s·c what their codes b and c stand
// for, δq = q − q̂ and δx = x − x̂. I = Σ b·c is an integer below 2^28, computed exactly.
//
//   q·x − q̂·x̂ = δq·x + q̂·δx,   thus   |q·x − t·s·I| <= |δq| |x| + t |b| |δx|        (Cauchy-Schwarz)
//
// In units of t, with n = |x|, r >= |δx|, the stored norm and residual, w = |b| and d = |δq| / t:
//
//   |q·x / t − s·I| <= d·n + w·r
//
// Now d <= √D / 2 <= 64 (rounding moves a value by half a code) and w >= 127 (the largest value has the
// code ±127), so |q| / t <= w + d <= 2w; and r <= n, up to the same slack, since rounding never moves
// a value by more than itself: every product on the left and right is at most 4·w·n. The stored n is within u of |x|. The float32
// steps of a test are at most eight roundings of terms that are at most 8·w·n together, so their
// error is below 64·u·w·n. The canonical q·x is within (D + 16)·v·|q| |x| < 2^-38 |q| |x| of the exact
// one. All this is below the slack of 2^-16·w·n that every weight of the norm gets on top.
//
// Let L be a proven lower bound of the k-th best score. A row may be dropped iff its score is below L
// for certain:
//   dot        q·x / t < L / t
//   cosine     q·x / t − (L·|q| / t)·|x| < 0; |L| <= 1, so the term is within the slack's reach
//   euclidean  −(qq − 2 q·x + xx) < L, that is q·x / t − xx / (2t) < (L + qq) / (2t)
// The euclidean test has xx, which may be much larger than w·n: the stored square is within u of it,
// the float32 steps add at most 8·u·xx, the canonical score (D + 16)·2v of qq + xx: its weight is
// widened by 2^-18, and what concerns qq and L by 2^-36 before the bound is rounded down to float32.
// Bounds are rounded away from the rows that they would drop. Lengths within 2^±30 keep every
// float32 within range: |b| >= 127, so t >= 2^-30 / 2^14, and xx / (2t) <= 2^104.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels.h"
#include "../target.h"

namespace sagitta {

/** A query as scans and canonical scores want it. Made once; shared by all threads. */
struct prepared_query {
  sagitta_metric metric;
  uint32_t k;
  double floor;
  bool has_after;
  double after_score;
  std::vector<uint8_t> after_id;
  /** [dimension], widened. */
  const double* values;
  /** qq and √qq. */
  double square;
  double length;
  /** Whether its length lets it be scanned; else every row is scored canonically. */
  bool is_scannable;
  /** The target's packed codes; t, w, d and −128·Σb. */
  const uint8_t* packed;
  double scale;
  double code_length;
  double residual;
  int32_t offset;
  /** Its parts are batch.parts[first_part .. first_part + part_count). */
  uint32_t first_part;
  uint32_t part_count;
};

/** A score lies between these for certain. */
struct score_bounds {
  double lower;
  double upper;
};

/** The bounds of a row's score from its integer sum; infinite for rows that are not scanned. */
score_bounds bounds_of(const prepared_query& query, int32_t sum, const struct panel_facts& facts,
                       uint32_t row);

/** The test for a new query: weights that do not change, and the test of its position. */
scan_query create_scan_query(const prepared_query& query);

/** Makes the test drop what is certainly below `threshold`, which is -INFINITY at first. */
void tighten(const prepared_query& query, double threshold, scan_query& scan);

}  // namespace sagitta
