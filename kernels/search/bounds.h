// The proof that a scan over codes loses no row of the answer, and the bounds that follow from it.
//
// Notation: u = 2^-24 (float32) and v = 2^-53 (float64); D the dimension, at most 2^14; q and x the
// stored vectors, both of a length within 2^±30; q̂ = t·b and x̂ = s·c the vectors that their codes b
// and c represent, δq = q − q̂ and δx = x − x̂. I = Σ b·c is an integer below 2^28, computed exactly.
//
//   q·x − q̂·x̂ = δq·x + q̂·δx,   thus   |q·x − t·s·I| <= |δq| |x| + t |b| |δx|        (Cauchy-Schwarz)
//
// In units of t, with n = |x|, r >= |δx|, the stored norm and residual, w = |b| and d = |δq| / t:
//
//   |q·x / t − s·I| <= d·n + w·r
//
// Now d <= √D / 2 <= 64 (rounding moves a value by half a code) and w >= 127 (the largest value has the
// code ±127), so |q| / t <= w + d <= 2w; and r <= n, up to the same slack, since rounding never moves
// a value by more than itself: every product on the left and right is at most 4·w·n. The stored n is
// within u of |x|. The float32 steps of a test are at most eight roundings of terms that are at most
// 8·w·n together, so their error is below 64·u·w·n. The canonical q·x is within
// (D + 16)·v·|q| |x| < 2^-38 |q| |x| of the exact one. All this is below the slack of 2^-16·w·n that is
// added to every weight of the norm.
//
// Let L be a proven lower bound of the k-th best score. A row may be dropped iff its score is
// certainly below L:
//   dot        q·x / t < L / t
//   cosine     q·x / t − (L·|q| / t)·|x| < 0; |L| <= 1, so the term is within the slack's reach
//   euclidean  −(qq − 2 q·x + xx) < L, that is q·x / t − xx / (2t) < (L + qq) / (2t)
//   jaccard    q·x / (qq − q·x + xx) < L, that is q·x / t − λ·xx / t < λ·qq / t with λ = L / (1 + L), for L >= 0
// The euclidean test has xx, which may be much larger than w·n: the stored square is within u of it,
// the float32 steps add at most 8·u·xx, the canonical score (D + 16)·2v of qq + xx: its weight is
// widened by 2^-18, and what concerns qq and L by 2^-36 before the bound is rounded down to float32.
// Jaccard has q·x <= (qq + xx) / 2 = S / 2, so its divisor S − q·x is at least S / 2, and the canonical score is
// within 8·(D + 16)·v < 2^-36 of the exact one; a change of the score by that much is one of q·x by at most
// 2^-36·(3/2 S)² / S < 2^-34·S, for which the weights of xx and of qq have the same slacks, the latter four times.
// Below 0 the test would need the largest xx of a panel in place of the least, so a negative L drops no row.
//
// Coarse codes are codes of y ≈ R·x, with R orthogonal (rotation.h), and b, t, w and d then belong to
// p ≈ R·q. (R·q)·(R·x) = q·x, so only the rounding of R·x matters. A round of R multiplies by signs and
// 1 / √P (one rounding, and that of 1 / √P), adds in at most eight stages (one rounding each, of values
// whose length grows by √2 as does that of the error), and does the same again for the last block where
// blocks overlap: with 2·(10 + 10) roundings, |y − R·x| <= 40·u·|x|, and the same for p. Hence
//
//   |q·x − p·y| <= 2·41·u·|q| |x|, and in units of t, with |q| / t <= 2w, 164·u·w·n
//
// which with the 64·u·w·n above is below 2^-16·w·n = 256·u·w·n. The scale s of a coarse level is the one
// with the least residual, from y·y and the sums y·c and c·c: r² = y·y − 2s·(y·c) + s²·(c·c). c·c is exact;
// products for y·y and y·c are not negative and added in float32 four at a time, then in float64, so that
// their errors are below 5·u of them, and that of r² is below 15·u·y·y: before the root,
// 2^-19·y·y = 32·u·y·y is added. r <= (1 + 16·u)·n, since s = 0 has r = n. |c| <= 63.
//
// Head tiles (basis.h) are int8 codes of y ≈ H·x, where the rows of H [R, D] are nearly orthonormal:
// |H·Hᵀ − I| <= η <= 2^-9, measured in float64 when H was made and the only property of H that is used. Let P be the
// projection on the directions that are orthogonal to all rows of H. HᵀH and I − P have the same eigenvectors, and
// their eigenvalues differ by at most η, so
//
//   |q·x − (H·q)·(H·x) − (P·q)·(P·x)| <= η |q| |x|
//
// y is computed in float32, in sums of at most 66 + D / 64 roundings (target::project), so that
// |y − H·x| <= (66 + D / 64)·u·√R·(1 + 2^-8)·|x|. H·q is computed in float64 and rounded once, or on a device as y is,
// which is not more. Let ε be that plus 2η plus 2^-20. (2ε below covers the errors of both sides.) With y = s·c + e and H·q ≈ t·b + δ, and with |P·x|² = |x|² − |y|² up to 2ε x·x, and the
// same for q, the Cauchy-Schwarz inequality gives, for any λ at most 1,
//
//   |q·x − t·s·b·c| <= 2ε |q| |x| + |δ| |x| + t |b| |e| + |P·q| |P·x|
//                   <= t·(d·n + w·r) with d = (|δ| + 2ε |q|) / t, w² = |b|² + |P·q|² / (λt)², r² = |e|² + λ² |P·x|²
//
// where n = |x|, and the 2ε x·x and 2ε q·q are added to the squares of P·x and P·q. Here w >= |b| >= 127 and
// |q| / t <= |b| + |δ| / t + |P·q| / t <= 3w, and r <= n·(1 + 2^-10), so the terms of a test are at most 12·w·n together,
// which 2^-16·w·n covers as above. The same holds for the first half of the directions alone: if the value with the code
// ±127 is in the other half, it is a part of P·q, and so w >= 126. A query with |H·q| below 2^-20 |q| in every direction
// has no such codes.
//
// A query may be encoded in two steps (count_before.cpp): q ≈ t·b + t₂·b₂, where b₂ are the codes of
// q − t·b, rounded to float32. With I = Σ (b + (t₂/t)·b₂)·c, in float64, the same inequality holds for
// d = |q − t·b − t₂·b₂| / t and w = |q| / t + d >= |b + (t₂/t)·b₂|. Rounding q − t·b, at most √D / 2 <= 64
// in units of t, moves it by 2^-24·64 < u·w; the float64 steps of I are far below. So d shrinks to less than
// a hundredth, and what is left is w·r.
//
// Bounds are rounded away from the rows that they would drop. Lengths within 2^±30 keep every
// float32 within range: |b| >= 127, so t >= 2^-30 / 2^14, and xx / (2t) <= 2^104.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "../kernels.h"
#include "../layout.h"
#include "../target.h"

#if defined(__CUDACC__)
#define SAGITTA_HOST_DEVICE __host__ __device__
#else
#define SAGITTA_HOST_DEVICE
#endif

namespace sagitta {

/** The quantities of a query that its bounds depend on. */
struct bounded_query {
  sagitta_metric metric;
  bool has_after;
  double after_score;
  /** qq and √qq. */
  double square;
  double length;
  /** t, w and d. */
  double scale;
  double code_length;
  double residual;
};

/** Proven bounds of a score. */
struct score_bounds {
  double lower;
  double upper;
};

inline constexpr double unbounded = __builtin_huge_val();
/** The slacks of the proof: for the weight of the norm, the square, and terms without a row. */
inline constexpr double norm_slack = 0x1p-16;
inline constexpr double square_slack = 0x1p-18;
inline constexpr double constant_slack = 0x1p-36;

/** The largest float32 that is at most `value`. */
SAGITTA_HOST_DEVICE inline float round_down(double value) {
  if (value > double{FLT_MAX}) return FLT_MAX;
  if (value < -double{FLT_MAX}) return -__builtin_huge_valf();
  const auto nearest = static_cast<float>(value);
  return static_cast<double>(nearest) > value ? nextafterf(nearest, -FLT_MAX) : nearest;
}

SAGITTA_HOST_DEVICE inline float round_up(double value) { return -round_down(-value); }

/** Limits a bound to ±2, which no cosine reaches, to keep the terms within the range of the proof. */
SAGITTA_HOST_DEVICE inline double bounded_cosine(double bound) {
  return bound > 2 ? 2 : bound < -2 ? -2 : bound;
}

/** λ of the proof for a score that is not negative. */
SAGITTA_HOST_DEVICE inline double jaccard_share(double score) {
  const double bounded = score > 2 ? 2 : score;
  return bounded / (1 + bounded);
}

/** The largest distance between q·x / t and s·I per unit of the row's norm; see the proof. */
SAGITTA_HOST_DEVICE inline double norm_error(const bounded_query& query) {
  return query.residual + norm_slack * query.code_length;
}

/** The facts of one row; see layout.h. */
struct row_facts {
  float scale;
  float norm;
  float residual;
  float square;
};

SAGITTA_HOST_DEVICE inline row_facts facts_of(const panel_facts& facts, uint32_t row) {
  return {facts.scale[row], facts.norm[row], facts.residual[row], facts.square[row]};
}

/**
 * Returns the bounds of a row's score from the sum of the products of its codes with those of the query. The sum is
 * an integer unless the query has codes of two steps. The bounds of rows that are not scanned are infinite.
 */
SAGITTA_HOST_DEVICE inline score_bounds bounds_of(const bounded_query& query, double sum,
                                                  const row_facts& facts) {
  const double norm = static_cast<double>(facts.norm);
  if (facts.residual == unscannable_residual) return {-unbounded, unbounded};
  const double residual = static_cast<double>(facts.residual);
  const double center = query.scale * (static_cast<double>(facts.scale) * sum);
  const double error = query.scale * (norm_error(query) * norm + query.code_length * residual);
  switch (query.metric) {
    case SAGITTA_DOT:
      return {center - error, center + error};
    case SAGITTA_COSINE: {
      if (norm == 0) return {0, 0};
      const double lengths = query.length * norm;
      const double slack = norm_slack;
      return {(center - error) / lengths - slack, (center + error) / lengths + slack};
    }
    case SAGITTA_EUCLIDEAN: {
      const double square = static_cast<double>(facts.square);
      const double middle = 2 * center - square - query.square;
      const double width = 2 * error + square_slack * square + constant_slack * query.square;
      return {middle - width, middle + width};
    }
    case SAGITTA_JACCARD: {
      const double square = static_cast<double>(facts.square);
      const double sum_min = (query.square + square) * (1 - square_slack);
      const double sum_max = (query.square + square) * (1 + square_slack);
      if (sum_max == 0) return {0, 0};
      const double least = center - error < -sum_max / 2 ? -sum_max / 2 : center - error;
      const double most = center + error > sum_min / 2 ? sum_min / 2 : center + error;
      return {least / ((least < 0 ? sum_min : sum_max) - least) - norm_slack,
              most / ((most < 0 ? sum_max : sum_min) - most) + norm_slack};
    }
  }
  return {-unbounded, unbounded};
}

SAGITTA_HOST_DEVICE inline score_bounds bounds_of(const bounded_query& query, int32_t sum,
                                                  const panel_facts& facts, uint32_t row) {
  return bounds_of(query, sum, facts_of(facts, row));
}

/** Makes the test drop rows that are certainly below `threshold`, which is -INFINITY at first. */
SAGITTA_HOST_DEVICE inline void tighten(const bounded_query& query, double threshold,
                                        scan_weights& scan) {
  const double error = norm_error(query);
  scan.upper_norm = round_up(error);
  scan.upper_min = -__builtin_huge_valf();
  if (query.metric == SAGITTA_EUCLIDEAN) {
    scan.upper_square = round_up(-(1 - square_slack) / (2 * query.scale));
  }
  if (threshold == -unbounded) return;
  switch (query.metric) {
    case SAGITTA_DOT:
      scan.upper_min = round_down(threshold / query.scale);
      break;
    case SAGITTA_COSINE: {
      const double length = query.length / query.scale;
      scan.upper_norm = round_up(error - (bounded_cosine(threshold) - norm_slack) * length);
      scan.upper_min = 0;
      break;
    }
    case SAGITTA_EUCLIDEAN: {
      const double constant = threshold + query.square - constant_slack * (query.square - threshold);
      scan.upper_min = round_down(constant / (2 * query.scale));
      break;
    }
    case SAGITTA_JACCARD: {
      if (threshold < 0) break;
      const double share = jaccard_share(threshold);
      // Never positive, since panels are tested with their least square.
      const double weight = share > square_slack ? share - square_slack : 0;
      scan.upper_square = round_up(-weight / query.scale);
      scan.upper_min = round_down((share - 4 * constant_slack) * query.square / query.scale);
      break;
    }
  }
}

/** Creates the initial test of a query: the weights that never change, and the test of its rank key. */
SAGITTA_HOST_DEVICE inline scan_weights create_weights(const bounded_query& query) {
  scan_weights scan{};
  scan.upper_residual = round_up(query.code_length);
  const double error = norm_error(query);
  const double after = query.after_score;
  switch (query.metric) {
    case SAGITTA_DOT:
      scan.lower_norm = round_down(-error);
      scan.lower_max = round_up(after / query.scale);
      break;
    case SAGITTA_COSINE: {
      const double length = query.length / query.scale;
      scan.lower_norm = round_down(-error - (bounded_cosine(after) + norm_slack) * length);
      scan.lower_max = 0;
      break;
    }
    case SAGITTA_EUCLIDEAN: {
      scan.lower_norm = round_down(-error);
      scan.lower_square = round_down(-(1 + square_slack) / (2 * query.scale));
      const double constant = after + query.square + constant_slack * (query.square - after);
      scan.lower_max = round_up(constant / (2 * query.scale));
      break;
    }
    case SAGITTA_JACCARD: {
      scan.lower_norm = round_down(-error);
      scan.lower_max = __builtin_huge_valf();
      if (after < 0) break;
      const double share = jaccard_share(after);
      scan.lower_square = round_down(-(share + square_slack) / query.scale);
      scan.lower_max = round_up((share + 4 * constant_slack) * query.square / query.scale);
      break;
    }
  }
  tighten(query, -unbounded, scan);
  return scan;
}

}  // namespace sagitta
