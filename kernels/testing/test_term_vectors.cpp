// Tests of vectors of texts: with all directions they have the cosines of the weights themselves; with
// fewer, the lightest directions are missing. Damaged files are rejected.

#include "test_term_vectors.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "../bench/term_vectors.h"

namespace check {
namespace {

constexpr uint32_t thread_count = 3;

bench::term_counts random_counts(random_source& random, uint32_t texts, uint32_t terms) {
  bench::term_counts counts;
  counts.term_count = terms;
  for (uint32_t text = 0; text < texts; text++) {
    for (uint32_t term = 0; term < terms; term++) {
      if (random.below(3) != 0 && term != text % terms) continue;
      counts.terms.push_back(term);
      counts.times.push_back(1 + random.below(3));
    }
    counts.offsets.push_back(counts.terms.size());
  }
  return counts;
}

/** Returns the weights, dense, by the formula in the header. */
std::vector<std::vector<double>> weights_of(const bench::term_counts& counts) {
  std::vector<double> texts_with(counts.term_count);
  for (const uint32_t term : counts.terms) texts_with[term]++;
  std::vector<std::vector<double>> weights;
  for (uint32_t text = 0; text < counts.text_count(); text++) {
    std::vector<double> row(counts.term_count);
    for (uint64_t i = counts.offsets[text]; i < counts.offsets[text + 1]; i++) {
      const uint32_t term = counts.terms[i];
      const double rarity = 1 + std::log((1.0 + counts.text_count()) / (1 + texts_with[term]));
      row[term] = (1 + std::log(counts.times[i])) * rarity;
    }
    weights.push_back(row);
  }
  return weights;
}

template <class Row>
double dot(const Row& left, const Row& right, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += static_cast<double>(left[i]) * static_cast<double>(right[i]);
  return sum;
}

void test_all_directions(random_source& random) {
  constexpr uint32_t texts = 90;
  constexpr uint32_t terms = 14;
  const bench::term_counts counts = random_counts(random, texts, terms);
  const auto weights = weights_of(counts);
  // As many directions as there are terms, and more than that.
  for (const uint32_t dimension : {terms, terms + 5}) {
    const std::vector<float> vectors = bench::project_terms(counts, dimension, thread_count);
    require(vectors.size() == size_t{texts} * dimension, "term vectors: a vector for each text");
    for (uint32_t a = 0; a < texts; a++) {
      for (uint32_t b = 0; b < texts; b++) {
        const double expected = dot(weights[a], weights[b], terms) /
                                std::sqrt(dot(weights[a], weights[a], terms) *
                                          dot(weights[b], weights[b], terms));
        const double found = dot(vectors.data() + size_t{a} * dimension,
                                 vectors.data() + size_t{b} * dimension, dimension);
        require(std::fabs(found - expected) < 1e-4, "term vectors: the cosine of " + std::to_string(a) +
                                                        " and " + std::to_string(b));
      }
    }
  }
}

/** Equal texts in groups without a common term: each group is a direction whose weight is its size. */
void test_heaviest_directions() {
  constexpr uint32_t sizes[] = {2, 400, 20};
  bench::term_counts counts;
  counts.term_count = 6;
  for (uint32_t group = 0; group < 3; group++) {
    for (uint32_t text = 0; text < sizes[group]; text++) {
      for (const uint32_t term : {2 * group, 2 * group + 1}) {
        counts.terms.push_back(term);
        counts.times.push_back(1);
      }
      counts.offsets.push_back(counts.terms.size());
    }
  }
  const std::vector<float> vectors = bench::project_terms(counts, 2, thread_count);
  require(vectors.size() == 2 * (400 + 20), "term vectors: the smallest group has no direction");
  for (uint32_t text = 0; text < 420; text++) {
    const uint32_t group = text < 400 ? 0 : 1;
    require(std::fabs(std::fabs(vectors[2 * text + group]) - 1) < 1e-3,
            "term vectors: the largest group comes first");
  }
}

std::string message_of(const std::string& bytes) {
  try {
    bench::read_terms(bytes);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

void test_files() {
  // Two texts: one with terms 1 (three times) and 200, one with term 0; 300 terms.
  const std::string file("sagitta terms 1\n\x02\xac\x02\x02\x01\x03\xc6\x01\x01\x01\x00\x01", 28);
  const bench::term_counts counts = bench::read_terms(file);
  require(counts.term_count == 300 && counts.text_count() == 2, "term vectors: counts");
  require(counts.terms == std::vector<uint32_t>({1, 200, 0}), "term vectors: terms");
  require(counts.times == std::vector<uint32_t>({3, 1, 1}), "term vectors: times");
  require(counts.offsets == std::vector<uint64_t>({0, 2, 3}), "term vectors: offsets");
  for (size_t length = 0; length < file.size(); length++) {
    require(!message_of(file.substr(0, length)).empty(), "term vectors: a file that is cut off");
  }
  std::string damaged = file;
  damaged[18] = 1;
  require(!message_of(damaged).empty(), "term vectors: a term out of range");
}

}  // namespace

void test_term_vectors(random_source& random) {
  test_files();
  test_all_directions(random);
  test_heaviest_directions();
}

}  // namespace check
