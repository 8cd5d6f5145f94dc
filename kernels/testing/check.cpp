#include "check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "../search/basis.h"

namespace check {

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: target %s, %s\n", sagitta_selected_target(), what.c_str());
  std::exit(1);
}

uint64_t random_source::next() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  return state_ * 2685821657736338717ull;
}

float random_source::normal() {
  double sum = -3;
  for (int i = 0; i < 6; i++) sum += uniform();
  return static_cast<float>(sum);
}

namespace {

constexpr kind few_kinds[] = {kind::clustered, kind::duplicates, kind::outlier};
std::span<const kind> kinds_in_use = all_kinds;

}  // namespace

std::span<const kind> tested_kinds() { return kinds_in_use; }

void test_few_kinds() { kinds_in_use = few_kinds; }

const char* name_of(kind kind) {
  switch (kind) {
    case kind::random: return "random";
    case kind::clustered: return "clustered";
    case kind::equal: return "equal";
    case kind::duplicates: return "duplicates";
    case kind::outlier: return "outlier";
    case kind::denormal: return "denormal";
    case kind::zeros: return "zeros";
    case kind::sorted: return "sorted";
    case kind::huge: return "huge";
    case kind::scattered: return "scattered";
  }
  return "";
}

namespace {

void fill_row(random_source& random, kind kind, uint32_t row, uint32_t row_count,
              uint32_t dimension, std::vector<float>& values) {
  float* const at = values.data() + size_t{row} * dimension;
  const auto fill = [&](float scale) {
    for (uint32_t i = 0; i < dimension; i++) at[i] = scale * random.normal();
  };
  const auto copy = [&](uint32_t from) {
    std::memcpy(at, values.data() + size_t{from} * dimension, dimension * sizeof(float));
  };
  switch (kind) {
    case kind::random: return fill(1);
    case kind::clustered:
      if (row < 7) return fill(1);
      copy(row % 7);
      for (uint32_t i = 0; i < dimension; i++) at[i] += 0.02f * random.normal();
      return;
    case kind::equal:
      if (row == 0) fill(1);
      else copy(0);
      return;
    case kind::duplicates:
      if (row < 5) fill(1);
      else copy(random.below(5));
      return;
    case kind::outlier:
      fill(1);
      if (row % 3 == 0) at[random.below(dimension)] = 1000;
      return;
    case kind::denormal: return fill(0x1p-140f);
    case kind::zeros:
      if (random.below(2) == 0) return fill(1);
      for (uint32_t i = 0; i < dimension; i++) at[i] = random.below(2) == 0 ? 0.0f : -0.0f;
      return;
    case kind::sorted:
      fill(0.001f);
      at[0] = static_cast<float>(row) / static_cast<float>(row_count);
      return;
    case kind::huge: return fill(1e37f);
    case kind::scattered:
      return fill(std::ldexp(1.0f, static_cast<int>(random.below(120)) - 60));
  }
}

/** Returns null for 0 bytes. The memory is filled with NaN: lanes past the last row must never be in an answer. */
uint8_t* allocate(std::vector<uint8_t>& storage, size_t bytes) {
  if (bytes == 0) return nullptr;
  storage.assign(bytes + SAGITTA_CODES_ALIGNMENT, 0xff);
  const auto address = reinterpret_cast<uintptr_t>(storage.data());
  return storage.data() + (SAGITTA_CODES_ALIGNMENT - address % SAGITTA_CODES_ALIGNMENT);
}

double sum_of_products(const float* left, const float* right, uint32_t dimension) {
  double lanes[8] = {};
  for (uint32_t i = 0; i < dimension; i++) {
    lanes[i % 8] += static_cast<double>(left[i]) * static_cast<double>(right[i]);
  }
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

int compare_ids(const uint8_t* left, size_t left_count, const uint8_t* right, size_t right_count) {
  const size_t shared = std::min(left_count, right_count);
  const int difference = shared == 0 ? 0 : std::memcmp(left, right, shared);
  if (difference != 0) return difference;
  return left_count < right_count ? -1 : left_count > right_count ? 1 : 0;
}

}  // namespace

rows::rows(random_source& random, kind kind, uint32_t count, uint32_t width)
    : row_count(count), dimension(width), values(size_t{count} * width) {
  for (uint32_t row = 0; row < count; row++) fill_row(random, kind, row, count, width, values);
  id_offsets.push_back(0);
  const uint64_t salt = random.next();
  for (uint32_t row = 0; row < count; row++) {
    // Distinct ids of different lengths, in random order.
    const uint64_t mixed = (row + 1) * 0x9e3779b97f4a7c15ull ^ salt;
    const std::string id = std::to_string(mixed % 1000) + "-" + std::to_string(row);
    id_bytes.insert(id_bytes.end(), id.begin(), id.end());
    id_offsets.push_back(static_cast<int32_t>(id_bytes.size()));
  }
  if (sagitta_basis_bytes(width) > 0 && count > 0 && random.below(4) != 0) {
    basis = random_basis(random, width, random.below(2) == 0 ? row(random.below(count)) : nullptr);
  }
  encode();
}

void rows::encode() {
  codes = allocate(code_storage, sagitta_codes_bytes(row_count, dimension));
  coarse = allocate(coarse_storage, sagitta_coarse_bytes(row_count, dimension));
  refinement = allocate(refinement_storage, sagitta_refinement_bytes(row_count, dimension));
  // Encodes in two steps, as when rows are appended.
  const uint32_t first = row_count / 3;
  require(sagitta_encode(values.data(), dimension, 0, first, codes) == SAGITTA_OK, "encode");
  require(sagitta_encode(values.data(), dimension, first, row_count, codes) == SAGITTA_OK,
          "encode");
  if (coarse == nullptr) return;
  for (const auto& [from, to] : {std::pair(0u, first), std::pair(first, row_count)}) {
    require(sagitta_encode_coarse(values.data(), dimension, from, to, coarse, refinement) ==
                SAGITTA_OK,
            "encode coarse codes");
  }
  head = basis.empty() ? nullptr : allocate(head_storage, sagitta_head_bytes(row_count, dimension));
  if (head == nullptr) return;
  // Single rows and few are projected in another way than many.
  const uint32_t steps[] = {0, first, std::min(first + 1, row_count), std::min(first + 6, row_count), row_count};
  for (uint32_t step = 0; step + 1 < std::size(steps); step++) {
    const uint32_t from = steps[step];
    const uint32_t to = steps[step + 1];
    require(sagitta_encode_head(values.data(), dimension, from, to, basis.data(), basis.size(), head,
                                sagitta_head_bytes(row_count, dimension)) == SAGITTA_OK,
            "encode head tiles");
  }
}

sagitta_block rows::block() const {
  return {values.data(), codes,
          id_offsets.data(), id_bytes.data(),
          row_count,     coarse,
          refinement,    head == nullptr ? nullptr : basis.data(),
          head,          basis.size(),
          sagitta_head_bytes(row_count, dimension)};
}

std::vector<uint8_t> random_basis(random_source& random, uint32_t dimension, const float* row) {
  sagitta::basis_header header{};
  header.dimension = dimension;
  const uint32_t directions = sagitta::head_directions(dimension);
  // Rounding makes the rows deviate by less than this.
  header.deviation = 1e-4;
  std::vector<uint8_t> bytes(sagitta::basis_bytes(dimension));
  // Axes, reflected twice at random vectors; a reflection first takes the first axis to the row.
  std::vector<std::vector<double>> mirrors(2, std::vector<double>(dimension));
  for (double& value : mirrors[0]) value = static_cast<double>(random.normal());
  for (double& value : mirrors[1]) value = static_cast<double>(random.normal());
  if (row != nullptr) {
    double square = 0;
    for (uint32_t i = 0; i < dimension; i++) square += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    if (square > 0 && square < 1e60) {
      mirrors.assign(1, std::vector<double>(dimension));
      for (uint32_t i = 0; i < dimension; i++) mirrors[0][i] = static_cast<double>(row[i]) / std::sqrt(square);
      mirrors[0][0] -= 1;
    }
  }
  auto* const matrix = reinterpret_cast<float*>(bytes.data() + sizeof header);
  std::vector<double> direction(dimension);
  for (uint32_t i = 0; i < directions; i++) {
    std::fill(direction.begin(), direction.end(), 0);
    direction[i] = 1;
    for (const std::vector<double>& mirror : mirrors) {
      double product = 0;
      double square = 0;
      for (uint32_t d = 0; d < dimension; d++) {
        product += direction[d] * mirror[d];
        square += mirror[d] * mirror[d];
      }
      if (square < 1e-12) continue;
      for (uint32_t d = 0; d < dimension; d++) direction[d] -= 2 * product / square * mirror[d];
    }
    for (uint32_t d = 0; d < dimension; d++) {
      matrix[size_t{i} * dimension + d] = static_cast<float>(direction[d]);
    }
  }
  const float shares[] = {static_cast<float>(random.uniform()), static_cast<float>(random.uniform())};
  for (sagitta::basis_shares& left : header.shares) {
    left = {{0.001f, 0.01f}, {std::min(shares[0], shares[1]), std::max(shares[0], shares[1])}};
  }
  for (float& weight : header.weights) weight = static_cast<float>(std::ldexp(1.0, -static_cast<int>(random.below(10))));
  require(sagitta::seal_basis(header, bytes.data()) == bytes.size(), "the length of a basis");
  require(sagitta_is_basis(bytes.data(), bytes.size(), dimension) == 1, "a random basis is one");
  return bytes;
}

void remove_directions(const std::vector<uint8_t>& basis, uint32_t dimension, std::vector<float>& vector) {
  sagitta::basis opened;
  require(sagitta::open_basis(basis.data(), basis.size(), dimension, opened), "open a basis");
  std::vector<double> left(vector.begin(), vector.end());
  for (uint32_t i = 0; i < opened.directions; i++) {
    const float* const direction = opened.matrix + size_t{i} * dimension;
    double product = 0;
    for (uint32_t d = 0; d < dimension; d++) product += left[d] * static_cast<double>(direction[d]);
    for (uint32_t d = 0; d < dimension; d++) left[d] -= product * static_cast<double>(direction[d]);
  }
  std::transform(left.begin(), left.end(), vector.begin(), [](double value) { return static_cast<float>(value); });
}

std::vector<float> query_like(random_source& random, const rows& rows) {
  std::vector<float> query(rows.dimension);
  if (rows.row_count > 0 && random.below(3) != 0) {
    std::memcpy(query.data(), rows.row(random.below(rows.row_count)),
                rows.dimension * sizeof(float));
    if (random.below(2) == 0) return query;
  }
  for (float& value : query) value += 0.1f * random.normal();
  return query;
}

std::vector<uint32_t> random_bitmap(random_source& random, uint32_t row_count, double probability) {
  std::vector<uint32_t> words((row_count + 31) / 32);
  for (uint32_t row = 0; row < row_count; row++) {
    if (random.uniform() < probability) words[row / 32] |= 1u << (row % 32);
  }
  return words;
}

double canonical(sagitta_metric metric, const float* query, const float* row, uint32_t dimension) {
  const double product = sum_of_products(query, row, dimension);
  if (metric == SAGITTA_DOT) return product;
  const double query_square = sum_of_products(query, query, dimension);
  const double row_square = sum_of_products(row, row, dimension);
  if (metric == SAGITTA_EUCLIDEAN) {
    const double squared_distance = query_square - 2 * product + row_square;
    return squared_distance > 0 ? 0 - squared_distance : 0;
  }
  if (metric == SAGITTA_JACCARD) {
    const double either = query_square - product + row_square;
    return either > 0 ? product / either : 0;
  }
  if (query_square == 0 || row_square == 0) return 0;
  const double cosine = product / (std::sqrt(query_square) * std::sqrt(row_square));
  return std::min(1.0, std::max(-1.0, cosine));
}

std::vector<hit> brute_force(const sagitta_batch& batch, uint32_t index) {
  const sagitta_query& query = batch.queries[index];
  std::vector<hit> hits;
  const auto id_start = [&](const hit& at) {
    const sagitta_block& block = batch.blocks[batch.views[query.first_view + at.view].block];
    return block.id_bytes + block.id_offsets[at.row];
  };
  const auto id_count = [&](const hit& at) {
    const sagitta_block& block = batch.blocks[batch.views[query.first_view + at.view].block];
    return static_cast<size_t>(block.id_offsets[at.row + 1] - block.id_offsets[at.row]);
  };
  for (uint32_t p = 0; p < query.view_count; p++) {
    const sagitta_block_view& view = batch.views[query.first_view + p];
    const sagitta_block& block = batch.blocks[view.block];
    for (uint32_t row = 0; row < view.row_count; row++) {
      if (view.rows != nullptr && (view.rows[row / 32] >> (row % 32) & 1) == 0) continue;
      const float* const values = block.values + size_t{row} * batch.dimension;
      const hit found{p, row, canonical(query.metric, query.vector, values, batch.dimension)};
      if (found.score < query.floor) continue;
      if (query.after_id != nullptr) {
        if (found.score > query.after_score) continue;
        if (found.score == query.after_score &&
            compare_ids(id_start(found), id_count(found), query.after_id, query.after_id_bytes) <=
                0) {
          continue;
        }
      }
      hits.push_back(found);
    }
  }
  std::sort(hits.begin(), hits.end(), [&](const hit& left, const hit& right) {
    if (left.score != right.score) return left.score > right.score;
    const int ids = compare_ids(id_start(left), id_count(left), id_start(right), id_count(right));
    if (ids != 0) return ids < 0;
    return left.view != right.view ? left.view < right.view : left.row < right.row;
  });
  if (hits.size() > query.k) hits.resize(query.k);
  return hits;
}

void require_true(const sagitta_batch& batch, uint32_t query, const sagitta_hits& hits,
                  const std::string& what) {
  const std::vector<hit> expected = brute_force(batch, query);
  const std::string where = what + ", query " + std::to_string(query);
  require(hits.count == expected.size(), where + ": " + std::to_string(hits.count) + " hits of " +
                                             std::to_string(expected.size()));
  for (uint32_t i = 0; i < hits.count; i++) {
    const bool is_same = hits.views[i] == expected[i].view && hits.rows[i] == expected[i].row &&
                         std::memcmp(&hits.scores[i], &expected[i].score, sizeof(double)) == 0;
    require(is_same, where + ", hit " + std::to_string(i) + ": row " +
                         std::to_string(hits.rows[i]) + " with " + std::to_string(hits.scores[i]) +
                         " for row " + std::to_string(expected[i].row) + " with " +
                         std::to_string(expected[i].score));
  }
}

void require_exact(const sagitta_batch& batch, uint32_t thread_count, const std::string& what) {
  sagitta_search* search = nullptr;
  require(sagitta_search_create(&batch, &search) == SAGITTA_OK, "create, " + what);
  std::vector<std::thread> threads;
  std::vector<int> is_done(thread_count);
  for (uint32_t t = 0; t < thread_count; t++) {
    threads.emplace_back([&, t] {
      require(sagitta_search_work(search, &is_done[t]) == SAGITTA_OK, "work, " + what);
    });
  }
  for (std::thread& thread : threads) thread.join();
  int done_count = 0;
  for (const int done : is_done) done_count += done;
  require(done_count == 1, "one thread completes the search, " + what);
  for (uint32_t q = 0; q < batch.query_count; q++) {
    sagitta_hits hits{};
    require(sagitta_search_hits(search, q, &hits) == SAGITTA_OK, "hits, " + what);
    require_true(batch, q, hits, what);
  }
  sagitta_search_destroy(search);
}

}  // namespace check
