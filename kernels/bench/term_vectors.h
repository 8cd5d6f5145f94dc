// Vectors of texts from the counts of their terms: TF-IDF, projected onto the directions of most weight.
// This way a file of some megabytes gives benches real text vectors of any dimension.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/** How often each term occurs in each text: sparse rows, terms ascending. */
struct term_counts {
  uint32_t text_count() const { return static_cast<uint32_t>(offsets.size() - 1); }
  uint32_t term_count = 0;
  /** [texts + 1]: where the entries of each text start. */
  std::vector<uint64_t> offsets = {0};
  /** [entries] */
  std::vector<uint32_t> terms;
  std::vector<uint32_t> times;
};

/** Reads the format of scripts/gpu/make-wordnet-terms.py, not compressed. Throws std::runtime_error. */
term_counts read_terms(const std::string& bytes);

/**
 * Computes unit vectors, row-major [texts, dimension], of the texts that have a component in the subspace;
 * the others are left out. Weights are (1 + ln times) · (1 + ln ((1 + texts) / (1 + texts with the term))),
 * with rows of unit length before the projection. The subspace is that of the greatest singular values,
 * found by subspace iteration from a fixed seed; early coordinates have the most weight, as after an SVD.
 */
std::vector<float> project_terms(const term_counts& counts, uint32_t dimension, uint32_t thread_count);

}  // namespace bench
