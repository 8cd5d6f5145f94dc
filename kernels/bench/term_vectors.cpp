#include "term_vectors.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "data.h"

namespace bench {
namespace {

constexpr char head[] = "sagitta terms 1\n";
/** More iterations separate neighbouring singular values better, which changes little for a search. */
constexpr uint32_t iteration_count = 6;
/** Rows that are combined in one pass over a [dimension, dimension] matrix, which exceeds the L2 cache. */
constexpr uint32_t rows_at_once = 4;
/** Rows that a thread takes at a time. */
constexpr uint32_t rows_per_piece = 64;
constexpr double length_min = 1e-3;

/** Sparse rows of weights. */
struct sparse_matrix {
  uint32_t row_count() const { return static_cast<uint32_t>(offsets.size() - 1); }
  std::vector<uint64_t> offsets;
  std::vector<uint32_t> columns;
  std::vector<float> weights;
};

/** Row-major [rows, columns] float32. */
struct dense_matrix {
  dense_matrix(uint32_t rows, uint32_t columns)
      : row_count(rows), column_count(columns), values(size_t{rows} * columns) {}
  float* row(uint32_t index) { return values.data() + size_t{index} * column_count; }
  const float* row(uint32_t index) const { return values.data() + size_t{index} * column_count; }
  uint32_t row_count;
  uint32_t column_count;
  std::vector<float> values;
};

/** Calls `work(from, to)` for pieces of the rows, on all threads. */
template <class Work>
void for_pieces(uint32_t row_count, uint32_t thread_count, const Work& work) {
  std::atomic<uint32_t> next = 0;
  on_threads(thread_count, [&](uint32_t) {
    for (;;) {
      const uint32_t from = next.fetch_add(rows_per_piece);
      if (from >= row_count) return;
      work(from, std::min(row_count, from + rows_per_piece));
    }
  });
}

sparse_matrix weigh(const term_counts& counts) {
  std::vector<uint32_t> texts_with(counts.term_count);
  for (const uint32_t term : counts.terms) texts_with[term]++;
  sparse_matrix weighed{counts.offsets, counts.terms, std::vector<float>(counts.terms.size())};
  const double texts = counts.text_count();
  for (uint32_t text = 0; text < counts.text_count(); text++) {
    double square = 0;
    for (uint64_t i = counts.offsets[text]; i < counts.offsets[text + 1]; i++) {
      const double rarity = 1 + std::log((1 + texts) / (1 + texts_with[counts.terms[i]]));
      const double weight = (1 + std::log(counts.times[i])) * rarity;
      weighed.weights[i] = static_cast<float>(weight);
      square += weight * weight;
    }
    const auto inverse = static_cast<float>(square > 0 ? 1 / std::sqrt(square) : 0);
    for (uint64_t i = counts.offsets[text]; i < counts.offsets[text + 1]; i++) {
      weighed.weights[i] *= inverse;
    }
  }
  return weighed;
}

sparse_matrix transpose(const sparse_matrix& from, uint32_t column_count) {
  sparse_matrix to{std::vector<uint64_t>(column_count + size_t{1}),
                   std::vector<uint32_t>(from.columns.size()),
                   std::vector<float>(from.columns.size())};
  for (const uint32_t column : from.columns) to.offsets[column + 1]++;
  for (uint32_t column = 0; column < column_count; column++) {
    to.offsets[column + 1] += to.offsets[column];
  }
  std::vector<uint64_t> next(to.offsets.begin(), to.offsets.end() - 1);
  for (uint32_t row = 0; row < from.row_count(); row++) {
    for (uint64_t i = from.offsets[row]; i < from.offsets[row + 1]; i++) {
      const uint64_t at = next[from.columns[i]]++;
      to.columns[at] = row;
      to.weights[at] = from.weights[i];
    }
  }
  return to;
}

dense_matrix multiply(const sparse_matrix& left, const dense_matrix& right, uint32_t thread_count) {
  const uint32_t width = right.column_count;
  dense_matrix product(left.row_count(), width);
  for_pieces(left.row_count(), thread_count, [&](uint32_t from, uint32_t to) {
    for (uint32_t row = from; row < to; row++) {
      float* const sums = product.row(row);
      for (uint64_t i = left.offsets[row]; i < left.offsets[row + 1]; i++) {
        const float weight = left.weights[i];
        const float* const other = right.row(left.columns[i]);
        for (uint32_t d = 0; d < width; d++) sums[d] += weight * other[d];
      }
    }
  });
  return product;
}

/** Returns the upper triangle of the products of all columns, [columns, columns]. */
std::vector<double> multiply_columns(const dense_matrix& matrix, uint32_t thread_count) {
  const uint32_t width = matrix.column_count;
  std::vector<std::vector<double>> parts(thread_count);
  std::atomic<uint32_t> next = 0;
  on_threads(thread_count, [&](uint32_t t) {
    std::vector<double>& sums = parts[t];
    sums.assign(size_t{width} * width, 0);
    std::vector<double> rows(size_t{rows_at_once} * width);
    for (;;) {
      const uint32_t from = next.fetch_add(rows_at_once);
      if (from >= matrix.row_count) return;
      const uint32_t count = std::min(rows_at_once, matrix.row_count - from);
      std::fill(rows.begin(), rows.end(), 0.0);
      std::copy_n(matrix.row(from), size_t{count} * width, rows.data());
      const double* const r0 = rows.data();
      const double* const r1 = r0 + width;
      const double* const r2 = r1 + width;
      const double* const r3 = r2 + width;
      for (uint32_t i = 0; i < width; i++) {
        double* const line = sums.data() + size_t{i} * width;
        const double a = r0[i], b = r1[i], c = r2[i], d = r3[i];
        for (uint32_t j = i; j < width; j++) {
          line[j] += (a * r0[j] + b * r1[j]) + (c * r2[j] + d * r3[j]);
        }
      }
    }
  });
  for (uint32_t t = 1; t < thread_count; t++) {
    for (size_t i = 0; i < parts[0].size(); i++) parts[0][i] += parts[t][i];
  }
  return std::move(parts[0]);
}

/**
 * Computes the upper triangular factor R of products = Rᵀ·R, in place. In data of lower rank, a direction
 * without weight gets an infinite diagonal, which makes its coordinates zero.
 */
void factorize(std::vector<double>& products, uint32_t width) {
  double largest = 0;
  for (uint32_t i = 0; i < width; i++) largest = std::max(largest, products[size_t{i} * width + i]);
  for (uint32_t i = 0; i < width; i++) {
    double* const line = products.data() + size_t{i} * width;
    const bool is_void = !(line[i] > 1e-12 * largest);
    const double diagonal = is_void ? INFINITY : std::sqrt(line[i]);
    line[i] = diagonal;
    for (uint32_t j = i + 1; j < width; j++) line[j] = is_void ? 0 : line[j] / diagonal;
    for (uint32_t k = i + 1; k < width; k++) {
      double* const below = products.data() + size_t{k} * width;
      for (uint32_t j = k; j < width; j++) below[j] -= line[k] * line[j];
    }
  }
}

/** Makes the columns orthonormal, each within the span of itself and those before it. */
void orthonormalize(dense_matrix& matrix, uint32_t thread_count) {
  const uint32_t width = matrix.column_count;
  std::vector<double> factor = multiply_columns(matrix, thread_count);
  factorize(factor, width);
  for_pieces(matrix.row_count, thread_count, [&](uint32_t from, uint32_t to) {
    std::vector<double> rest(width);
    for (uint32_t row = from; row < to; row++) {
      float* const at = matrix.row(row);
      std::copy_n(at, width, rest.data());
      for (uint32_t i = 0; i < width; i++) {
        const double* const line = factor.data() + size_t{i} * width;
        const double coordinate = rest[i] / line[i];
        at[i] = static_cast<float>(coordinate);
        if (coordinate == 0) continue;
        for (uint32_t j = i + 1; j < width; j++) rest[j] -= coordinate * line[j];
      }
    }
  });
}

/** Scales rows to unit length. Rows that are too short are left out; the others keep their order. */
std::vector<float> normalize(dense_matrix&& matrix) {
  const uint32_t width = matrix.column_count;
  uint32_t kept = 0;
  for (uint32_t row = 0; row < matrix.row_count; row++) {
    const float* const from = matrix.row(row);
    double square = 0;
    for (uint32_t d = 0; d < width; d++) square += double{from[d]} * double{from[d]};
    const double length = std::sqrt(square);
    if (!(length > length_min)) continue;
    float* const to = matrix.row(kept++);
    for (uint32_t d = 0; d < width; d++) to[d] = static_cast<float>(from[d] / length);
  }
  matrix.values.resize(size_t{kept} * width);
  return std::move(matrix.values);
}

}  // namespace

term_counts read_terms(const std::string& bytes) {
  size_t at = sizeof head - 1;
  if (bytes.compare(0, at, head) != 0) throw std::runtime_error("the file does not contain terms");
  const auto number = [&] {
    uint32_t value = 0;
    for (uint32_t shift = 0; shift < 32; shift += 7) {
      if (at >= bytes.size()) throw std::runtime_error("the file of terms is cut off");
      const auto byte = static_cast<uint8_t>(bytes[at++]);
      value |= uint32_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    throw std::runtime_error("a number in the file of terms is too large");
  };
  term_counts counts;
  const uint32_t text_count = number();
  counts.term_count = number();
  for (uint32_t text = 0; text < text_count; text++) {
    uint64_t term = 0;
    for (uint32_t left = number(); left > 0; left--) {
      term += number();
      if (term >= counts.term_count) throw std::runtime_error("a term in the file is out of range");
      counts.terms.push_back(static_cast<uint32_t>(term++));
      counts.times.push_back(std::max(1u, number()));
    }
    counts.offsets.push_back(counts.terms.size());
  }
  return counts;
}

std::vector<float> project_terms(const term_counts& counts, uint32_t dimension, uint32_t thread_count) {
  const sparse_matrix texts = weigh(counts);
  const sparse_matrix terms = transpose(texts, counts.term_count);
  dense_matrix basis(counts.term_count, dimension);
  check::random_source random(1);
  for (float& value : basis.values) value = random.normal();
  // Runs twice: after the first time, columns of very different lengths are not orthogonal to the last digits.
  const auto straighten = [&] {
    for (uint32_t i = 0; i < 2; i++) orthonormalize(basis, thread_count);
  };
  straighten();
  for (uint32_t i = 0; i < iteration_count; i++) {
    basis = multiply(terms, multiply(texts, basis, thread_count), thread_count);
    straighten();
  }
  return normalize(multiply(texts, basis, thread_count));
}

}  // namespace bench
