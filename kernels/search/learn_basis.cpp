#include "learn_basis.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numbers>
#include <numeric>
#include <vector>

#include "basis.h"
#include "costs.h"
#include "project_query.h"

namespace sagitta {
namespace {

/** Rows of the sample that tells whether codes can pay, and of the one that is learned from: about so many values. */
constexpr uint32_t sample_rows_min = 2048;
constexpr uint32_t sample_rows_max = 8192;
constexpr uint32_t sample_values = 4u << 20;
/** Every so many rows of a sample are enough to weigh what codes leave out. */
constexpr uint32_t weighed_part = 8;
/** Rows whose moments are added up together, so that they stay in a cache, and dimensions of a block of moments. */
constexpr uint32_t moment_rows = 256;
constexpr uint32_t moment_block = 128;
/** Rows of the sample that its codes are tried with as queries. */
constexpr uint32_t tried_queries = 48;
constexpr uint32_t tried_ks[2] = {10, 100};
/**
 * A previous basis is good enough if it leaves at most this much more than of the rows that it was learned from.
 * Samples of equally distributed rows differ by a third, and a basis of other such rows leaves a twentieth more than one
 * of their own.
 */
constexpr double more_left = 1.5;
constexpr double left_spare = 0.003;
/** Rounds of the iteration, first and again: directions of nearly equal length need not be told apart. */
constexpr uint32_t first_rounds = 2;
constexpr uint32_t more_rounds = 3;
/** Head tiles have to be estimated to take at most this share of the time of the other methods. */
constexpr double worthwhile = 0.8;

using matrix = std::vector<float>;

/** Cache lines, to which panels are aligned. */
struct alignas(64) line {
  uint8_t bytes[64];
};

class panels {
 public:
  explicit panels(size_t byte_count) : byte_count_(byte_count), lines_(byte_count / sizeof(line) + 2) {}
  size_t size() const { return byte_count_; }
  uint8_t* data() { return lines_.front().bytes; }
  const uint8_t* data() const { return lines_.front().bytes; }

 private:
  size_t byte_count_;
  std::vector<line> lines_;
};

/** Uniform numbers from −1 to 1, for directions to begin with. */
class numbers {
 public:
  float next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<int32_t>(state_ >> 32)) * 0x1p-31f;
  }

 private:
  uint64_t state_ = 0x853c49e6748fea9bu;
};

float length_of(const float* values, uint32_t count) {
  double square = 0;
  for (uint32_t i = 0; i < count; i++) {
    square += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return static_cast<float>(std::sqrt(square));
}

/** So many evenly spaced rows, of length 1; rows that are not scanned are left out. */
matrix sample_of(const learned_rows& rows, uint32_t wanted) {
  const uint32_t dimension = rows.dimension;
  const uint32_t count = std::min(wanted, rows.row_count);
  matrix sample;
  sample.reserve(size_t{count} * dimension);
  for (uint32_t i = 0; i < count; i++) {
    const auto row = static_cast<size_t>(uint64_t{i} * rows.row_count / count);
    const float* const values = rows.values + row * dimension;
    const float length = length_of(values, dimension);
    if (!(static_cast<double>(length) >= length_min && static_cast<double>(length) <= length_max)) continue;
    for (uint32_t d = 0; d < dimension; d++) sample.push_back(values[d] / length);
  }
  return sample;
}

/** The directions of most length of a sample: orthogonal iteration with its second moments. */
class direction_search {
 public:
  direction_search(const target& functions, const matrix& sample, uint32_t dimension)
      : functions_(functions),
        dimension_(dimension),
        sample_count_(static_cast<uint32_t>(sample.size() / dimension)),
        moments_(size_t{dimension} * dimension) {
    matrix columns(size_t{moment_rows} * dimension);
    matrix part(moments_.size());
    for (uint32_t from = 0; from < sample_count_; from += moment_rows) {
      const uint32_t count = std::min(moment_rows, sample_count_ - from);
      for (uint32_t i = 0; i < count; i++) {
        for (uint32_t d = 0; d < dimension; d++) {
          columns[size_t{d} * count + i] = sample[size_t{from + i} * dimension + d];
        }
      }
      for (uint32_t first = 0; first < dimension; first += moment_block) {
        const float* const block = columns.data() + size_t{first} * count;
        const size_t at = size_t{first} * dimension + first;
        const uint32_t width = std::min(moment_block, dimension - first);
        functions.project({block, count}, dimension - first, {block, count, 1}, width, count, part.data() + at, dimension);
      }
      for (size_t i = 0; i < part.size(); i++) moments_[i] += part[i];
    }
    for (uint32_t i = 0; i < dimension; i++) {
      // The blocks on the diagonal are whole, and those below it.
      for (uint32_t j = (i / moment_block + 1) * moment_block; j < dimension; j++) {
        moments_[size_t{i} * dimension + j] = moments_[size_t{j} * dimension + i];
      }
    }
  }

  /** @param first directions to begin with [≤ count, dimension]. */
  matrix find(uint32_t count, const float* first, uint32_t first_count, uint32_t rounds) {
    matrix found(size_t{count} * dimension_);
    for (float& value : found) value = numbers_.next();
    std::copy(first, first + size_t{std::min(count, first_count)} * dimension_, found.begin());
    matrix next(found.size());
    for (uint32_t round = 0; round < rounds; round++) {
      functions_.project({found.data(), dimension_}, count, {moments_.data(), dimension_, 1}, dimension_,
                         dimension_, next.data(), dimension_);
      orthonormalise(next, count);
      found.swap(next);
    }
    // Once more, because the first time leaves rounding errors of nearly parallel directions.
    orthonormalise(found, count);
    return found;
  }

 private:
  void orthonormalise(matrix& rows, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
      float* const row = rows.data() + size_t{i} * dimension_;
      float length = length_of(row, dimension_);
      for (uint32_t attempt = 0; !(length > 1e-12f) && attempt < 3; attempt++) {
        // The rows have fewer directions than this: any other one will do.
        for (uint32_t d = 0; d < dimension_; d++) row[d] = numbers_.next();
        for (uint32_t pass = 0; pass < 2; pass++) {
          for (uint32_t j = 0; j < i; j++) {
            functions_.subtract_parts(rows.data() + size_t{j} * dimension_, row, 1, dimension_);
          }
        }
        length = length_of(row, dimension_);
      }
      for (uint32_t d = 0; d < dimension_; d++) row[d] /= length;
      functions_.subtract_parts(row, row + dimension_, count - i - 1, dimension_);
    }
  }

  const target& functions_;
  uint32_t dimension_;
  uint32_t sample_count_;
  matrix moments_;
  numbers numbers_;
};

/** Bounds ‖H·Hᵀ − I‖. */
double deviation_of(const target& functions, const float* directions, uint32_t count, uint32_t dimension) {
  double square = 0;
  for (uint32_t i = 0; i < count; i++) {
    const float* const row = directions + size_t{i} * dimension;
    const std::vector<double> wide(row, row + dimension);
    for (uint32_t j = 0; j <= i; j++) {
      const float* const other = directions + size_t{j} * dimension;
      double product = 0;
      functions.products(wide.data(), dimension, &other, 1, &product, nullptr);
      const double error = i == j ? product - 1 : product;
      square += i == j ? error * error : 2 * error * error;
    }
  }
  return std::sqrt(square) * (1 + 0x1p-20) + 0x1p-40;
}

class sample_trial {
 public:
  sample_trial(const target& functions, const matrix& sample, uint32_t dimension, uint32_t row_count)
      : functions_(functions),
        sample_(sample),
        dimension_(dimension),
        count_(static_cast<uint32_t>(sample.size() / dimension)),
        scores_(size_t{tried_queries} * count_) {
    matrix queries;
    queries.reserve(size_t{tried_queries} * dimension);
    for (uint32_t i = 0; i < tried_queries; i++) {
      const float* const query = sample.data() + size_t{query_row(i)} * dimension;
      queries.insert(queries.end(), query, query + dimension);
    }
    // All at once, because each query alone would read the whole sample from memory.
    functions.project({sample.data(), dimension}, count_, {queries.data(), dimension, 1}, tried_queries, dimension,
                      scores_.data(), tried_queries);
    for (uint32_t i = 0; i < 2; i++) {
      const double share = tried_ks[i] / static_cast<double>(std::max(row_count, 1u));
      ranks_[i] = std::clamp(static_cast<uint32_t>(std::lround(share * count_)), 1u, count_ / 4);
      fractions_[i] = static_cast<float>(ranks_[i]) / static_cast<float>(count_);
    }
  }

  const matrix& sample() const { return sample_; }
  uint32_t dimension() const { return dimension_; }
  const float* fractions() const { return fractions_; }

  panels encode_head(const basis& basis) const {
    panels head(panel_count(count_) * head_panel_bytes(dimension_));
    functions_.encode_head(basis, sample_.data(), 0, count_, head_arrays_of(head.data(), head.size()));
    return head;
  }

  /** The share of rows that a level of these head tiles leaves at each fraction, averaged over queries. */
  void left_of_head(const basis& basis, const panels& head, uint32_t level, float (&left)[2]) const {
    average(left, [&](const sample_query& query, double (&sums)[2]) {
      add_left_of_head(basis, head_scan_of(head.data(), head.size(), level), level, query, sums);
    });
  }

  /** The same of coarse codes. */
  void left_of_coarse(float (&left)[2]) const {
    const rotation rotation = create_rotation(dimension_);
    panels coarse(panel_count(count_) * coarse_panel_bytes(dimension_) + coarse_padding);
    panels refinement(panel_count(count_) * refinement_panel_bytes(dimension_) + coarse_padding);
    functions_.encode_coarse(rotation, sample_.data(), 0, count_, coarse.data(), refinement.data());
    average(left, [&](const sample_query& query, double (&sums)[2]) {
      add_left_of_coarse(rotation, coarse.data(), query, sums);
    });
  }

 private:
  /** The row of the sample that is the query with this number. */
  uint32_t query_row(uint32_t number) const {
    return static_cast<uint32_t>(uint64_t{number} * count_ / tried_queries);
  }

  struct sample_query {
    const float* vector;
    std::vector<double> values;
    bounded_query bounds;
    /** The last score of the answer at each fraction. */
    double thresholds[2];
  };

  sample_query query_of(uint32_t number) const {
    const uint32_t chosen = query_row(number);
    sample_query query{};
    query.vector = sample_.data() + size_t{chosen} * dimension_;
    query.values.assign(query.vector, query.vector + dimension_);
    query.bounds.metric = SAGITTA_DOT;
    double product = 0;
    functions_.products(query.values.data(), dimension_, &query.vector, 1, &product, &query.bounds.square);
    query.bounds.length = std::sqrt(query.bounds.square);
    std::vector<float> scores(count_);
    for (uint32_t i = 0; i < count_; i++) scores[i] = scores_[size_t{i} * tried_queries + number];
    scores[chosen] = -2;
    for (uint32_t i = 0; i < 2; i++) {
      const auto last = scores.begin() + ranks_[i] - 1;
      std::nth_element(scores.begin(), last, scores.end(), std::greater<>());
      query.thresholds[i] = static_cast<double>(*last);
    }
    return query;
  }

  template <class AddLeft>
  void average(float (&left)[2], const AddLeft& add_left) const {
    double sums[2] = {};
    for (uint32_t i = 0; i < tried_queries; i++) add_left(query_of(i), sums);
    // Each query is a row itself, which is always left.
    for (uint32_t i = 0; i < 2; i++) {
      left[i] = static_cast<float>(std::max(0.0, sums[i] / tried_queries - 1) / count_);
    }
  }

  void add_left_of_head(const basis& basis, const head_scan& scanned, uint32_t level, const sample_query& query,
                        double (&sums)[2]) const {
    panels packed(head_query_bytes(functions_, dimension_));
    const head_query projected = project_query(functions_, basis, {query.bounds, query.values.data()}, packed.data());
    for (uint32_t i = 0; i < 2; i++) {
      if (projected.packed == nullptr) {
        sums[i] += count_;
        continue;
      }
      const bounded_query& bounds = projected.bounds[level];
      scan_query scan{create_weights(bounds), projected.packed, projected.offsets[level], false};
      tighten(bounds, query.thresholds[i], scan);
      scan_query* const scans = &scan;
      scan_task task{};
      task.panels = scanned.panels;
      task.codes = scanned.codes;
      task.panel_count = panel_count(count_);
      task.dimension = directions_of_level(dimension_, level);
      task.stride = half_panel_bytes(dimension_);
      task.limits = functions_.limit_rows(task.panels, task.stride, count_);
      task.queries = &scans;
      task.query_count = 1;
      task.context = &sums[i];
      task.emit = [](void* sum, uint32_t, uint32_t, uint32_t survivors, const int32_t*) {
        *static_cast<double*>(sum) += __builtin_popcount(survivors);
      };
      functions_.head.scan(task);
    }
  }

  void add_left_of_coarse(const rotation& rotation, const uint8_t* coarse, const sample_query& query,
                          double (&sums)[2]) const {
    panels packed(coarse_query_bytes(dimension_));
    const projected_query rotated =
        rotate_query(functions_, rotation, {query.bounds, query.values.data()}, packed.data());
    const size_t stride = coarse_panel_bytes(dimension_);
    const uint32_t row_bytes = coarse_row_bytes(dimension_);
    for (uint32_t from = 0; from < count_; from += panel_rows) {
      const uint8_t* const panel = coarse + from / panel_rows * stride;
      const uint32_t together = std::min(panel_rows, count_ - from);
      const uint8_t* rows[panel_rows];
      for (uint32_t i = 0; i < together; i++) rows[i] = panel + fact_bytes + i * row_bytes;
      int32_t products[panel_rows];
      functions_.coarse_sums({rotated.packed, rotated.first_offset, dimension_}, rows, together, products);
      const auto& facts = *reinterpret_cast<const panel_facts*>(panel);
      for (uint32_t i = 0; i < together; i++) {
        const double upper = bounds_of(rotated.bounds, products[i], facts, i).upper;
        for (uint32_t f = 0; f < 2; f++) sums[f] += upper >= query.thresholds[f];
      }
    }
  }

  const target& functions_;
  const matrix& sample_;
  uint32_t dimension_;
  uint32_t count_;
  /** [count, tried_queries] */
  std::vector<float> scores_;
  uint32_t ranks_[2];
  float fractions_[2];
};

/** Chooses the λ that makes the products of w and r in bounds.h least for queries that are like rows. */
void choose_weights(const target& functions, const matrix& sample, uint32_t dimension, const float* directions,
                    float (&weights)[head_levels]) {
  const uint32_t width = head_directions(dimension);
  const size_t stride = size_t{dimension} * weighed_part;
  const auto count = static_cast<uint32_t>((sample.size() + stride - dimension) / stride);
  std::vector<float> projected(size_t{count} * width);
  functions.project({sample.data(), stride}, count, {directions, dimension, 1}, width, dimension, projected.data(),
                    width);
  double errors[head_levels] = {};
  double lengths[head_levels] = {};
  for (uint32_t row = 0; row < count; row++) {
    const float* const values = projected.data() + size_t{row} * width;
    double largest = 1e-9;
    for (uint32_t i = 0; i < width; i++) largest = std::max(largest, std::fabs(static_cast<double>(values[i])));
    for (uint32_t level = 0; level < head_levels; level++) {
      double error = 0;
      double square = 0;
      for (uint32_t i = 0; i < directions_of_level(dimension, level); i++) {
        const double value = static_cast<double>(values[i]);
        const double missed = value - largest / head_code_max * std::nearbyint(value * head_code_max / largest);
        error += missed * missed;
        square += value * value;
      }
      errors[level] += std::sqrt(error);
      lengths[level] += std::sqrt(square);
    }
  }
  for (uint32_t level = 0; level < head_levels; level++) {
    const double weight = std::sqrt(errors[level] / std::max(lengths[level], 1e-9));
    weights[level] = static_cast<float>(std::clamp(weight, 0x1p-10, 1.0));
  }
}

/** The rows of the orthogonal matrix of the discrete cosine transform of type IV [count, count]. */
matrix mixing_of(uint32_t count) {
  matrix made(size_t{count} * count);
  const double unit = std::sqrt(2.0 / count);
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t j = 0; j < count; j++) {
      made[size_t{i} * count + j] =
          static_cast<float>(unit * std::cos(std::numbers::pi / count * (i + 0.5) * (j + 0.5)));
    }
  }
  return made;
}

/** Returns directions in the order of the length that rows have in them, mixed within each half. */
matrix arrange(const target& functions, const matrix& sample, uint32_t dimension, const matrix& found) {
  const uint32_t count = head_directions(dimension);
  const auto sample_count = static_cast<uint32_t>(sample.size() / dimension);
  matrix projected(size_t{sample_count} * count);
  functions.project({sample.data(), dimension}, sample_count, {found.data(), dimension, 1}, count, dimension,
                    projected.data(), count);
  std::vector<double> squares(count);
  for (size_t i = 0; i < projected.size(); i++) {
    squares[i % count] += static_cast<double>(projected[i]) * static_cast<double>(projected[i]);
  }
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return squares[a] > squares[b]; });
  const uint32_t half = count / 2;
  const matrix mixing = mixing_of(half);
  matrix columns(size_t{dimension} * half);
  matrix arranged(found.size());
  for (uint32_t first = 0; first < count; first += half) {
    for (uint32_t d = 0; d < dimension; d++) {
      for (uint32_t i = 0; i < half; i++) {
        columns[size_t{d} * half + i] = found[size_t{order[first + i]} * dimension + d];
      }
    }
    functions.project({mixing.data(), half}, half, {columns.data(), half, 1}, dimension, half,
                      arranged.data() + size_t{first} * dimension, dimension);
  }
  return arranged;
}

/** Whether the codes of a known basis leave about as much of other rows as of those that it was learned from. */
bool is_like(const sample_trial& trial, const basis& known) {
  float left[2];
  trial.left_of_head(known, trial.encode_head(known), 0, left);
  for (uint32_t i = 0; i < 2; i++) {
    const double expected = expected_left(known.header->shares[0], static_cast<double>(trial.fractions()[i]));
    if (static_cast<double>(left[i]) > more_left * expected + left_spare) return false;
  }
  return true;
}

/**
 * The fraction for which codes have to be worth it, relative to k = 10 of the rows of one segment: collections have
 * several segments, and each search still chooses by its own fraction.
 */
constexpr double usual_fraction = 0.125;

/** Whether head tiles make searches faster than coarse codes or tiles do, where these shares are left. */
bool is_worthwhile(const target& functions, uint32_t dimension, double left, double left_by_coarse) {
  const row_costs costs = row_costs_of(functions, dimension, 1);
  const double head = head_search_ns(costs, left);
  // The refinement of coarse codes leaves about a quarter of the rows to be scored.
  const double coarse = costs.coarse + left_by_coarse * (costs.refined + costs.canonical / 4);
  return head < worthwhile * std::min(costs.tiles, coarse);
}

/** Learns a basis from a sample, beginning with a known one, if any. Returns its length, or 0 if it is not worth it. */
size_t learn_from(const target& functions, const sample_trial& trial, const basis& known, uint32_t rounds,
                  uint8_t* written) {
  const matrix& sample = trial.sample();
  const uint32_t dimension = trial.dimension();
  const uint32_t count = head_directions(dimension);
  direction_search search(functions, sample, dimension);
  const matrix found = search.find(count, known.matrix, known.directions, rounds);
  const matrix directions = arrange(functions, sample, dimension, found);
  std::memcpy(written + sizeof(basis_header), directions.data(), directions.size() * sizeof(float));
  basis_header header{};
  header.dimension = dimension;
  header.deviation = deviation_of(functions, directions.data(), count, dimension);
  choose_weights(functions, sample, dimension, directions.data(), header.weights);
  const size_t byte_count = seal_basis(header, written);
  basis made;
  if (!open_basis(written, byte_count, dimension, made)) return 0;
  basis_shares coarse{};
  std::copy(trial.fractions(), trial.fractions() + 2, coarse.fractions);
  trial.left_of_coarse(coarse.left);
  const panels head = trial.encode_head(made);
  for (uint32_t level = 0; level < head_levels; level++) {
    header.shares[level] = coarse;
    trial.left_of_head(made, head, level, header.shares[level].left);
  }
  const double fraction = usual_fraction * static_cast<double>(coarse.fractions[0]);
  const double left = expected_left(header.shares[0], fraction);
  if (!is_worthwhile(functions, dimension, left, expected_left(coarse, fraction))) return 0;
  return seal_basis(header, written);
}

}  // namespace

size_t learn_basis(const target& functions, const learned_rows& rows, const stored_basis& previous,
                   uint8_t* written) {
  const uint32_t dimension = rows.dimension;
  if (rows.row_count < sample_rows_min) return 0;
  const uint32_t wanted =
      std::min(std::clamp(sample_values / dimension, sample_rows_min, sample_rows_max), rows.row_count);
  const bool is_small = wanted < 2 * sample_rows_min;
  const matrix part = sample_of(rows, is_small ? wanted : sample_rows_min);
  if (part.size() < size_t{sample_rows_min} / 2 * dimension) return 0;
  const sample_trial trial(functions, part, dimension, rows.row_count);
  basis known;
  if (open_basis(previous.bytes, previous.byte_count, dimension, known) && is_like(trial, known)) {
    std::memcpy(written, previous.bytes, previous.byte_count);
    return previous.byte_count;
  }
  if (is_small) return learn_from(functions, trial, known, first_rounds + more_rounds, written);
  // A basis fits the rows of a small sample better than others. If it is not worth it for these, none is.
  const size_t byte_count = learn_from(functions, trial, known, first_rounds, written);
  if (byte_count == 0 || !open_basis(written, byte_count, dimension, known)) return 0;
  const matrix sample = sample_of(rows, wanted);
  return learn_from(functions, {functions, sample, dimension, rows.row_count}, known, more_rounds, written);
}

}  // namespace sagitta
