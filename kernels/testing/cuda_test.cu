// Compares searches on a device with brute force, to the bit: adversarial rows, bitmaps, rank keys and
// score limits over several blocks, lists that overflow, rows whose values stay on the host, growing
// blocks, missing memory. Runs on a GPU or on its emulation.
//
//   test [--seed N] [--kernels mma|wgmma|wgmma-ring] [--large | --quick | --least | --process]
//
// --quick runs a small part, --least one search with each kind of kernels, --process only the tests of a
// device in a process of its own, which are left out with kernels other than mma. Exits with 1 at the first
// wrong answer, with 77 without a device, and with 2 for wrong usage.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "check.h"
#include "cuda_remote_test.h"
#include "test_batch.h"
#include "../cuda/device.h"
#include "../cuda/device_state.h"
#include "../cuda/plan.h"
#include "../cuda/remote.h"
#include "../cuda/tile.h"
#include "../layout.h"
#if defined(SAGITTA_EMULATE_CUDA)
#include "../cuda/block_select.h"
#include "cuda_emulation/settings.h"
#endif

namespace {

using check::kind;
using check::random_source;
using check::require;
using check::rows;
using check::test_batch;

constexpr sagitta_metric metrics[] = {SAGITTA_COSINE, SAGITTA_DOT, SAGITTA_EUCLIDEAN,
                                      SAGITTA_JACCARD};

void require_ok(sagitta_status status, const std::string& what) {
  require(status == SAGITTA_OK, what + ": status " + std::to_string(status) + ", " +
                                    sagitta_device_error());
}

/** A resident copy of rows, uploaded in two steps. */
class resident {
 public:
  resident(sagitta_device* device, const rows& from, bool has_values, bool has_codes) {
    require_ok(sagitta_device_block_create(device, from.dimension, &block_), "create");
    const bool has_head = has_values && has_codes && from.head != nullptr;
    require_ok(sagitta_device_block_reserve(block_, from.row_count, has_values ? 1 : 0, has_head ? 1 : 0), "reserve");
    sagitta_block data = from.block();
    if (!has_codes) data.codes = data.coarse = nullptr;
    require_ok(sagitta_device_block_extend(block_, &data, from.row_count / 3), "extend");
    require_ok(sagitta_device_block_extend(block_, &data, from.row_count), "extend");
  }
  resident(const resident&) = delete;
  ~resident() { sagitta_device_block_destroy(block_); }
  sagitta_device_block* get() const { return block_; }

 private:
  sagitta_device_block* block_ = nullptr;
};

struct outcome {
  sagitta_device_times times{};
  uint32_t decided = 0;
  uint32_t undecided = 0;
  uint64_t rescored = 0;
};

/** Requires the answer to be true, and destroys it. */
outcome require_answer(const sagitta_batch& view, sagitta_device_answer* answer, const std::string& what) {
  outcome seen;
  require_ok(sagitta_device_answer_times(answer, &seen.times), "times");
  for (uint32_t q = 0; q < view.query_count; q++) {
    sagitta_hits hits{};
    const sagitta_status status = sagitta_device_answer_hits(answer, q, &hits);
    if (status == SAGITTA_NOT_DONE) {
      seen.undecided++;
      continue;
    }
    require_ok(status, "hits, " + what);
    check::require_true(view, q, hits, what);
    require(hits.rescored_count <= hits.scanned_count, what + ": more rescored than scanned");
    seen.decided++;
    seen.rescored += hits.rescored_count;
  }
  sagitta_device_answer_destroy(answer);
  return seen;
}

outcome require_search(sagitta_device* device, const test_batch& batch,
                       const std::vector<sagitta_device_block*>& residents,
                       const std::string& what) {
  const sagitta_batch view = batch.view(1);
  sagitta_device_answer* answer = nullptr;
  require_ok(sagitta_device_search(device, &view, residents.data(), &answer), "search, " + what);
  return require_answer(view, answer, what);
}

/** Two searches are in progress at a time, of several slices each, whose answers come in the order of their beginnings. */
void test_searches_in_progress(sagitta_device* device, random_source& random) {
  constexpr uint32_t rounds = 6;
  const sagitta::cuda::tuning usual = device->tuning;
  device->tuning.spare_rows = 64;
  device->tuning.rows_per_k = 2;
  device->tuning.dense_rows = 64;
  const rows data(random, kind::random, 1500, 48);
  const resident on_device(device, data, true, true);
  sagitta_device_block* const block = on_device.get();
  std::vector<test_batch> batches(rounds);
  std::vector<sagitta_batch> views;
  for (test_batch& batch : batches) {
    batch.add_block(data);
    const uint32_t query_count = 1 + random.below(12);
    for (uint32_t q = 0; q < query_count; q++) batch.add_random_query(random);
    views.push_back(batch.view(1));
  }
  sagitta_device_answer* answer = nullptr;
  require(sagitta_device_search_end(device, views.data(), &answer) == SAGITTA_INVALID_ARGUMENT,
          "a search ended before it began");
  const auto end = [&](uint32_t round) {
    const std::string what = "searches in progress, round " + std::to_string(round);
    require_ok(sagitta_device_search_end(device, &views[round], &answer), what);
    require_answer(views[round], answer, what);
  };
  for (uint32_t round = 0; round < rounds; round++) {
    require_ok(sagitta_device_search_begin(device, &views[round], &block), "beginning a search");
    if (round == 0) continue;
    require(sagitta_device_search_begin(device, &views[round], &block) == SAGITTA_INVALID_ARGUMENT,
            "a third search began");
    end(round - 1);
  }
  end(rounds - 1);
  device->tuning = usual;
}

void test_random(sagitta_device* device, random_source& random, kind kind, uint32_t dimension,
                 uint32_t row_count, uint32_t query_count) {
  const rows first(random, kind, row_count, dimension);
  const rows second(random, kind, row_count / 2 + 1, dimension);
  const rows third(random, kind, random.below(2) * 17, dimension);
  test_batch batch;
  for (const rows* block : {&first, &second, &third}) batch.add_block(*block);
  for (uint32_t q = 0; q < query_count; q++) batch.add_random_query(random);
  // Sometimes all queries search the same rows, so that groups are not mixed.
  if (random.below(3) == 0) {
    for (sagitta_block_view& view : batch.views) {
      view.rows = nullptr;
      view.row_count = batch.block_table[view.block].row_count;
    }
  }
  const resident on_device[] = {{device, first, random.below(4) != 0, random.below(2) == 0},
                                {device, second, random.below(4) != 0, random.below(2) == 0},
                                {device, third, true, true}};
  require_search(device, batch, {on_device[0].get(), on_device[1].get(), on_device[2].get()},
                 std::string(check::name_of(kind)) + ", dimension " + std::to_string(dimension) +
                     ", rows " + std::to_string(row_count) + ", queries " +
                     std::to_string(query_count));
}

/** The device decides queries over ordinary rows, and few of these are rescored. */
void test_pruning(sagitta_device* device, random_source& random, uint32_t query_count) {
  const rows data(random, kind::random, 3000, 96);
  const resident on_device(device, data, true, true);
  test_batch batch;
  batch.add_block(data);
  for (uint32_t q = 0; q < query_count; q++) {
    batch.add_query(check::query_like(random, data), metrics[q % 4], 5);
    batch.add_view(0, data.row_count);
  }
  const std::string what = "pruning, queries " + std::to_string(query_count);
  const outcome seen = require_search(device, batch, {on_device.get()}, what);
  require(seen.undecided == 0, what + ": " + std::to_string(seen.undecided) + " undecided");
  require(seen.rescored < 100ull * query_count,
          what + ": " + std::to_string(seen.rescored) + " rows rescored");
}

/** Counts the queries that are scanned: those whose lengths are within the limits of the codes. */
uint64_t count_scannable(const test_batch& batch) {
  uint64_t count = 0;
  for (const std::vector<float>& vector : batch.vectors) {
    double square = 0;
    for (const float value : vector) square += static_cast<double>(value) * static_cast<double>(value);
    const double length = std::sqrt(square);
    count += length >= sagitta::length_min && length <= sagitta::length_max;
  }
  return count;
}

/**
 * Small batches over coarse codes: data of every kind, several blocks, filters, rank keys and score limits.
 * Coarse codes answer all queries, or none if they are used only when they leave few rows.
 */
void test_coarse(sagitta_device* device, random_source& random) {
  const sagitta::cuda::tuning usual = device->tuning;
  device->tuning.dense_rows = 128;
  struct shape {
    kind rows;
    uint32_t dimension;
    uint32_t row_count;
    uint32_t query_count;
    uint32_t growth;
    uint32_t k_max;
  };
  // Parts of a chunk, parts of a quad, and more of both; groups of 8 to 64; one part (growth 3) and two;
  // lists that hold every row.
  constexpr shape shapes[] = {
      {kind::clustered, 64, 1500, 1, 4, 1},   {kind::random, 100, 900, 5, 32, 10},
      {kind::random, 256, 700, 12, 4, 100},   {kind::clustered, 260, 1200, 20, 16, 100},
      {kind::duplicates, 65, 800, 9, 4, 10},  {kind::equal, 129, 600, 3, 4, 5},
      {kind::outlier, 200, 900, 40, 8, 10},   {kind::denormal, 70, 500, 4, 4, 10},
      {kind::zeros, 128, 500, 4, 3, 10},      {kind::sorted, 96, 1300, 64, 4, 10},
      {kind::huge, 90, 700, 6, 4, 10},        {kind::scattered, 384, 600, 7, 3, 20},
      {kind::clustered, 768, 700, 2, 4, 50},
      {kind::random, 64, 1400, 3, 4, 128},
  };
  for (const shape& one : shapes) {
    const rows first(random, one.rows, one.row_count, one.dimension);
    const rows second(random, one.rows, one.row_count / 3 + 1, one.dimension);
    const resident on_device[] = {{device, first, true, random.below(2) == 0},
                                  {device, second, true, random.below(2) == 0}};
    for (const bool is_random : {false, true}) {
      test_batch batch;
      batch.method = SAGITTA_METHOD_COARSE;
      batch.add_block(first);
      batch.add_block(second);
      batch.bitmaps.push_back(check::random_bitmap(random, first.row_count, 0.8));
      for (uint32_t q = 0; q < one.query_count; q++) {
        if (is_random) {
          batch.add_random_query(random);
          batch.queries.back().k = 1 + random.below(one.k_max);
          continue;
        }
        batch.add_query(check::query_like(random, first), metrics[q % 4], one.k_max);
        batch.add_view(0, first.row_count, q % 3 == 1 ? &batch.bitmaps.front() : nullptr);
        batch.add_view(1, second.row_count);
      }
      const std::string what = std::string("coarse codes, ") + check::name_of(one.rows) +
                               ", dimension " + std::to_string(one.dimension) +
                               (is_random ? ", random queries" : "");
      device->tuning.growth_of_few = one.growth;
      for (const uint32_t list_rows : {4096u, 200u}) {
        device->tuning.sieve_list_rows = list_rows;
        const outcome seen =
            require_search(device, batch, {on_device[0].get(), on_device[1].get()}, what);
        const uint64_t planned = seen.times.coarse_queries + seen.times.abandoned_queries;
        require(is_random || planned == count_scannable(batch), what + ": they were not used");
        require(is_random || list_rows < 4096 || seen.times.abandoned_queries == 0,
                what + ": the search went on without them");
      }
    }
  }
  device->tuning = usual;
}

/**
 * Head tiles: both levels, few and many queries, one pass and several; blocks of the same basis, of another one and
 * without any; filters, rank keys and score limits. Random bases exclude few rows, and lists may be too short.
 */
void test_head(sagitta_device* device, random_source& random) {
  const sagitta::cuda::tuning usual = device->tuning;
  struct shape {
    kind rows;
    uint32_t dimension;
    uint32_t row_count;
    uint32_t query_count;
    uint32_t k_max;
  };
  // Parts of a pair and of a chunk, and whole ones; groups of 8 to 64.
  constexpr shape shapes[] = {
      {kind::clustered, 128, 1500, 1, 10}, {kind::random, 136, 900, 5, 100}, {kind::duplicates, 260, 800, 9, 10},
      {kind::equal, 129, 500, 3, 5},       {kind::outlier, 384, 700, 40, 1}, {kind::denormal, 200, 400, 4, 10},
      {kind::zeros, 128, 400, 4, 10},      {kind::sorted, 256, 900, 70, 10}, {kind::huge, 150, 500, 6, 10},
      {kind::clustered, 768, 600, 20, 20}, {kind::clustered, 2048, 300, 2, 3},
  };
  uint64_t taken = 0;
  uint64_t abandoned = 0;
  for (const shape& one : shapes) {
    rows first(random, one.rows, one.row_count, one.dimension);
    rows second(random, one.rows, one.row_count / 2, one.dimension);
    rows third(random, one.rows, one.row_count / 3, one.dimension);
    first.basis = check::random_basis(random, one.dimension, random.below(2) == 0 ? nullptr : first.row(5));
    second.basis = random.below(3) == 0 ? check::random_basis(random, one.dimension, nullptr) : first.basis;
    third.basis = {};
    for (rows* const each : {&first, &second, &third}) each->encode();
    const resident on_device[] = {{device, first, true, true}, {device, second, true, true}, {device, third, true, true}};
    test_batch batch;
    batch.method = SAGITTA_METHOD_HEAD_TILES;
    for (const rows* const each : {&first, &second, &third}) batch.add_block(*each);
    for (uint32_t q = 0; q < one.query_count; q++) {
      batch.add_random_query(random);
      batch.queries.back().k = 1 + random.below(one.k_max);
    }
    // A query without a part along the directions of the basis.
    if (random.below(4) == 0 && one.query_count > 2) {
      check::remove_directions(first.basis, one.dimension, batch.vectors[1]);
    }
    for (const uint32_t level : {0u, 1u}) {
      for (const uint32_t list_rows : {4096u, 200u}) {
        device->tuning.head_level = level;
        device->tuning.dense_rows = 128;
        device->tuning.growth_of_few = 4;
        device->tuning.growth_of_many = 3;
        device->tuning.few = random.below(2) == 0 ? 128 : 0;
        device->tuning.sieve_list_rows = list_rows;
        device->tuning.part_rows_min = 40;
        const std::string what = std::string("head tiles, ") + check::name_of(one.rows) + ", dimension " +
                                 std::to_string(one.dimension) + ", level " + std::to_string(level);
        const outcome seen = require_search(
            device, batch, {on_device[0].get(), on_device[1].get(), on_device[2].get()}, what);
        taken += seen.times.head_queries;
        abandoned += seen.times.abandoned_queries;
      }
    }
  }
  require(taken > 0 && abandoned > 0, "head tiles: " + std::to_string(taken) + " queries were answered by them, " +
                                          std::to_string(abandoned) + " not after a sample");
  device->tuning = usual;
}

/** Sixty clusters of rows that are near each other, but not as near as a coarse code is to its row. */
void form_clusters(random_source& random, rows& data) {
  constexpr uint32_t cluster_count = 60;
  const size_t dimension = data.dimension;
  for (size_t row = cluster_count; row < data.row_count; row++) {
    const float* const center = data.row(static_cast<uint32_t>(row % cluster_count));
    for (size_t i = 0; i < dimension; i++) {
      data.values[row * dimension + i] = center[i] + 0.3f * random.normal();
    }
  }
  data.encode();
}

/** Whether coarse codes are used depends on what a sample of the rows shows. */
void test_coarse_choice(sagitta_device* device, random_source& random) {
  const sagitta::cuda::tuning usual = device->tuning;
  device->tuning = {};
  device->tuning.dense_rows = 128;
  device->tuning.growth_of_few = 4;
  device->tuning.coarse_rows_per_k = 100;
  device->tuning.coarse_bytes_min = 100000;
  // Groups of 256 queries for wgmma would take up the memory of the lists.
  const sagitta::cuda::scan_kind kind_in_use = device->kind;
  device->kind = sagitta::cuda::scan_kind::best;
  const auto search = [&](const rows& data, uint32_t k, uint32_t query_count, sagitta_method method) {
    const resident on_device(device, data, true, true);
    test_batch batch;
    batch.method = method;
    batch.add_block(data);
    for (uint32_t q = 0; q < query_count; q++) {
      const float* const row = data.row(100 + q);
      batch.add_query({row, row + data.dimension}, metrics[q % 4], k);
      batch.add_view(0, data.row_count);
    }
    const outcome seen = require_search(device, batch, {on_device.get()}, "choice of coarse codes");
    require(seen.undecided == 0, "choice of coarse codes: queries undecided");
    return seen;
  };
  const auto is_taken = [](const outcome& seen, uint64_t coarse, uint64_t uncoarse) {
    return seen.times.coarse_queries == coarse && seen.times.abandoned_queries == uncoarse;
  };
  rows clustered(random, kind::random, 6000, 128);
  form_clusters(random, clustered);
  const rows noise(random, kind::random, 6000, 64);
  const outcome few = search(clustered, 5, 4, SAGITTA_METHOD_AUTO);
  require(is_taken(few, 4, 0), "coarse codes were not used for clustered data");
  require(is_taken(search(noise, 50, 8, SAGITTA_METHOD_AUTO), 0, 8),
          "coarse codes were used for data that they do not exclude");
  require(is_taken(search(clustered, 100, 4, SAGITTA_METHOD_AUTO), 0, 0),
          "coarse codes were tried for a large k");
  require(is_taken(search(clustered, 5, 65, SAGITTA_METHOD_AUTO), 0, 0),
          "coarse codes were tried for a large batch");
  require(is_taken(search(clustered, 5, 4, SAGITTA_METHOD_TILES), 0, 0),
          "coarse codes were tried though they were excluded");
  device->tuning.coarse_bytes_min = 10000000;
  require(is_taken(search(clustered, 5, 4, SAGITTA_METHOD_AUTO), 0, 0),
          "coarse codes were tried for few rows");
  device->kind = kind_in_use;
  device->tuning = usual;
}

/** Whether head tiles are used depends on the rows that they are expected to leave and on how much there is to save. */
void test_head_choice(sagitta_device* device, random_source& random) {
  const sagitta::cuda::tuning usual = device->tuning;
  rows data(random, kind::random, 6000, 256);
  form_clusters(random, data);
  // Along a few axes only, as embeddings that have most of their length in few directions.
  for (uint32_t row = 0; row < data.row_count; row++) {
    for (uint32_t i = 32; i < data.dimension; i++) data.values[size_t{row} * data.dimension + i] *= 0.05f;
  }
  data.basis.resize(sagitta_basis_bytes(data.dimension));
  size_t byte_count = 0;
  require(sagitta_learn_basis(data.values.data(), data.row_count, data.dimension, nullptr, 0, data.basis.data(),
                              &byte_count) == SAGITTA_OK,
          "learn a basis");
  require(byte_count > 0, "no basis pays for rows along a few axes");
  data.encode();
  const resident on_device(device, data, true, true);
  const auto head_queries = [&](uint32_t k, uint32_t query_count, sagitta_method method) {
    test_batch batch;
    batch.method = method;
    batch.add_block(data);
    for (uint32_t q = 0; q < query_count; q++) {
      batch.add_query(check::query_like(random, data), metrics[q % 4], k);
      batch.add_view(0, data.row_count);
    }
    const outcome seen = require_search(device, batch, {on_device.get()}, "choice of head tiles");
    require(seen.undecided == 0, "choice of head tiles: queries undecided");
    return seen.times.head_queries;
  };
  device->tuning = {};
  device->tuning.dense_rows = 128;
  device->tuning.growth_of_few = 8;
  device->tuning.head_bytes_min = 100000;
  require(head_queries(1, 3, SAGITTA_METHOD_AUTO) == 3, "head tiles were not used where they leave few rows");
  require(head_queries(200, 3, SAGITTA_METHOD_AUTO) == 0, "head tiles were used for a large k");
  require(head_queries(1, 3, SAGITTA_METHOD_TILES) == 0, "head tiles were used though they were excluded");
  device->tuning.head_bytes_min = 10000000;
  require(head_queries(1, 3, SAGITTA_METHOD_AUTO) == 0, "head tiles were used for few rows");
  device->tuning = usual;
}

/** Adds queries of every k, some with a filter, a rank key or a score limit. */
void add_varied_queries(random_source& random, test_batch& batch, const rows& data, uint32_t count) {
  constexpr uint32_t ks[] = {1, 10, 100};
  batch.bitmaps.push_back(check::random_bitmap(random, data.row_count, 0.3));
  for (uint32_t q = 0; q < count; q++) {
    batch.add_query(check::query_like(random, data), metrics[q % 4], ks[(q + count) % 3]);
    batch.add_view(0, data.row_count, q % 4 == 2 ? &batch.bitmaps.front() : nullptr);
    sagitta_query& query = batch.queries.back();
    const uint32_t row = random.below(data.row_count);
    const double score = check::canonical(query.metric, query.vector, data.row(row), data.dimension);
    if (q % 4 == 3) query.floor = score;
    if (q % 4 != 1) continue;
    query.after_score = score;
    query.after_id = data.id_bytes.data() + data.id_offsets[row];
    query.after_id_bytes =
        static_cast<uint32_t>(data.id_offsets[row + 1] - data.id_offsets[row]);
  }
}

/**
 * Thread blocks that share a list leave the same rows as one block would. Parts may have no entries, fewer
 * than k, or k that are no candidates, and rows may tie; this holds in each of several searches.
 */
void test_shared_lists(sagitta_device* device, random_source& random) {
  const sagitta::cuda::tuning usual = device->tuning;
  device->tuning = {};
  device->tuning.dense_rows = 1024;
  device->tuning.part_rows_min = 64;
  for (const kind kind : {kind::clustered, kind::random, kind::sorted, kind::duplicates, kind::equal}) {
    const rows data(random, kind, 2500, 72);
    const resident on_device(device, data, true, true);
    for (const uint32_t query_count : {1u, 4u, 9u}) {
      for (const sagitta_method method : {SAGITTA_METHOD_TILES, SAGITTA_METHOD_COARSE}) {
        test_batch batch;
        batch.method = method;
        batch.add_block(data);
        add_varied_queries(random, batch, data, query_count);
        const std::string what = std::string("shared lists, ") + check::name_of(kind) +
                                 ", queries " + std::to_string(query_count) +
                                 (method == SAGITTA_METHOD_COARSE ? ", coarse" : "");
        device->tuning.list_blocks_per_multiprocessor = 0;
        const outcome alone = require_search(device, batch, {on_device.get()}, what);
        device->tuning.list_blocks_per_multiprocessor = 8;
        const outcome shared = require_search(device, batch, {on_device.get()}, what);
        require(alone.undecided == 0 && shared.undecided == 0, what + ": queries undecided");
        require(shared.rescored == alone.rescored,
                what + ": " + std::to_string(shared.rescored) + " rows rescored, " +
                    std::to_string(alone.rescored) + " with one block per list");
      }
    }
  }
  device->tuning = usual;
}

/** Rows are gathered if few of them pass, including for queries that cannot be scanned. */
void test_gathering(sagitta_device* device, random_source& random) {
  const rows data(random, kind::random, 2500, 40);
  const resident on_device(device, data, true, true);
  test_batch batch;
  batch.add_block(data);
  batch.bitmaps.push_back(check::random_bitmap(random, data.row_count, 0.01));
  for (uint32_t q = 0; q < 12; q++) {
    // A zero vector cannot be scanned.
    std::vector<float> vector = check::query_like(random, data);
    if (q % 3 == 0) vector.assign(vector.size(), 0);
    batch.add_query(vector, metrics[q % 4], 1 + 7 * q);
    const bool is_few = q % 3 == 0 || q % 2 == 0;
    batch.add_view(0, data.row_count, is_few ? &batch.bitmaps.front() : nullptr);
  }
  const outcome seen = require_search(device, batch, {on_device.get()}, "gathering");
  require(seen.undecided == 0, "gathering: queries undecided");
}

/** The warps of one thread block take all tiles, several each, even if some queries do not search all of them. */
void test_tiles(sagitta_device* device, random_source& random) {
  const sagitta::cuda::tuning usual = device->tuning;
  device->tuning = {};
  device->tuning.dense_rows = 64;
  device->tuning.growth_of_few = 32;
  device->tuning.scan_blocks_max = 1;
  device->tuning.spare_rows = 500;
  const rows data(random, kind::clustered, 2000, 70);
  const resident on_device(device, data, true, true);
  for (const sagitta_method method : {SAGITTA_METHOD_TILES, SAGITTA_METHOD_COARSE}) {
    for (const uint32_t query_count : {1u, 30u, 60u}) {
      test_batch batch;
      batch.method = method;
      batch.add_block(data);
      batch.bitmaps.push_back(check::random_bitmap(random, data.row_count, 0.5));
      // No query searches these tiles.
      std::fill_n(batch.bitmaps.back().begin() + 20, 4, 0u);
      for (uint32_t q = 0; q < query_count; q++) {
        batch.add_query(check::query_like(random, data), metrics[q % 4], 40);
        batch.add_view(0, data.row_count, query_count > 30 ? nullptr : &batch.bitmaps.front());
      }
      require_search(device, batch, {on_device.get()}, "tiles");
    }
  }
  device->tuning = usual;
}

/**
 * Queries with equal views share a scope, wherever their views are. Neither their order nor queries with
 * other views between them change their answers.
 */
void test_scopes(sagitta_device* device, random_source& random) {
  const rows first(random, kind::clustered, 700, 40);
  const rows second(random, kind::random, 300, 40);
  const resident on_device[] = {{device, first, true, true}, {device, second, true, true}};
  test_batch batch;
  batch.add_block(first);
  batch.add_block(second);
  for (const uint32_t row_count : {first.row_count, first.row_count}) {
    batch.bitmaps.push_back(check::random_bitmap(random, row_count, 0.5));
  }
  const uint32_t few = first.row_count - 100;
  for (uint32_t q = 0; q < 70; q++) {
    batch.add_query(check::query_like(random, first), metrics[q % 4], 1 + q % 9);
    // All rows; one filter; another one; fewer rows; the same blocks in another order; no rows at all.
    const uint32_t which = q % 7;
    if (which == 5) batch.add_view(1, second.row_count);
    const std::vector<uint32_t>* const filter = which == 1   ? &batch.bitmaps[0]
                                                : which == 2 ? &batch.bitmaps[1]
                                                             : nullptr;
    if (which != 6) batch.add_view(0, which == 4 ? few : first.row_count, filter);
    if (which < 3) batch.add_view(1, second.row_count);
  }
  const sagitta_batch view = batch.view(1);
  const sagitta::cuda::batch_scopes scopes(view);
  require(scopes.all().size() == 7, "scopes: there are " + std::to_string(scopes.all().size()));
  for (uint32_t q = 0; q < 70; q++) {
    require(scopes.number_of(q) == q % 7, "scopes: query " + std::to_string(q) + " has another one");
  }
  require_search(device, batch, {on_device[0].get(), on_device[1].get()}, "scopes");
  // All queries have the very views of the first one, as requests for one collection have.
  for (sagitta_query& query : batch.queries) {
    query.first_view = batch.queries.front().first_view;
    query.view_count = batch.queries.front().view_count;
  }
  require(sagitta::cuda::batch_scopes(batch.view(1)).all().size() == 1, "scopes: equal ranges differ");
  require_search(device, batch, {on_device[0].get(), on_device[1].get()}, "one scope");
}

/**
 * Queries are reported as undecided, and never answered wrongly, if more rows are close together than lists
 * have room for; the queries beside them are answered.
 */
void test_overflow(sagitta_device* device, random_source& random) {
  const sagitta::cuda::tuning usual = device->tuning;
  device->tuning.spare_rows = 64;
  device->tuning.rows_per_k = 4;
  device->tuning.dense_rows = 128;
  device->tuning.repeats_max = 0;
  const rows equal(random, kind::equal, 2000, 33);
  const rows mixed(random, kind::clustered, 900, 33);
  const resident on_device[] = {{device, equal, true, true}, {device, mixed, true, true}};
  test_batch batch;
  batch.add_block(equal);
  batch.add_block(mixed);
  for (uint32_t q = 0; q < 12; q++) {
    const bool is_equal = q % 2 == 0;
    batch.add_query(check::query_like(random, is_equal ? equal : mixed), metrics[q % 4], 10);
    if (q == 11) batch.vectors.back().assign(33, 0);
    const uint32_t row_count = is_equal ? equal.row_count : mixed.row_count;
    batch.bitmaps.push_back(check::random_bitmap(random, row_count, 0.9));
    batch.add_view(is_equal ? 0 : 1, row_count, q % 4 < 2 ? nullptr : &batch.bitmaps.back());
    if (q < 6) continue;
    const rows& its_rows = is_equal ? equal : mixed;
    sagitta_query& query = batch.queries.back();
    query.after_score = check::canonical(query.metric, query.vector, its_rows.row(70), 33);
    query.after_id = its_rows.id_bytes.data() + its_rows.id_offsets[70];
    query.after_id_bytes = static_cast<uint32_t>(its_rows.id_offsets[71] - its_rows.id_offsets[70]);
  }
  const outcome seen =
      require_search(device, batch, {on_device[0].get(), on_device[1].get()}, "overflow");
  require(seen.undecided >= 6, "overflow: ties without room were decided");
  require(seen.undecided < 12, "overflow: no query was decided");
  device->tuning = usual;
}

/**
 * Rows without structure, whose scores are close together, fill lists before the threshold is high. The
 * affected queries are scanned again, and most rows are not scored.
 */
void test_repeats(sagitta_device* device, random_source& random) {
  const sagitta::cuda::tuning usual = device->tuning;
  device->tuning = {};
  device->tuning.spare_rows = 64;
  device->tuning.rows_per_k = 1;
  device->tuning.dense_rows = 128;
  device->tuning.growth_of_few = device->tuning.growth_of_many = 32;
  device->tuning.few = 0;
  const rows data(random, kind::random, 3000, 64);
  for (const bool has_values : {true, false}) {
    const resident on_device(device, data, has_values, true);
    test_batch batch;
    batch.add_block(data);
    batch.bitmaps.push_back(check::random_bitmap(random, data.row_count, 0.9));
    for (uint32_t q = 0; q < 12; q++) {
      batch.add_query(check::query_like(random, data), metrics[q % 4], 25);
      batch.add_view(0, data.row_count, q % 4 == 0 ? &batch.bitmaps.front() : nullptr);
    }
    const outcome seen = require_search(device, batch, {on_device.get()}, "repeats");
    require(seen.undecided == 0, "repeats: queries undecided");
    require(seen.times.repeated_queries > 0, "repeats: no list was too short");
    require(!has_values || seen.rescored < 12 * data.row_count / 2, "repeats: most rows were scored");
  }
  device->tuning = usual;
}

/**
 * Dimensions so large that shared memory has room for few queries: groups of 128 and 64 for wgmma, with and
 * without room for rings, and of 32 and 8 for mma. Some queries of each group search other rows.
 */
void test_widths(sagitta_device* device, random_source& random) {
  for (const uint32_t dimension : {1000u, 1500u, 1900u, 4000u, 16384u}) {
    const rows data(random, kind::clustered, dimension < 4000 ? 150 : 70, dimension);
    const resident on_device(device, data, true, true);
    for (const bool is_mixed : {false, true}) {
      test_batch batch;
      batch.add_block(data);
      batch.bitmaps.push_back(check::random_bitmap(random, data.row_count, 0.7));
      for (uint32_t q = 0; q < (dimension < 4000 ? 70u : 10u); q++) {
        batch.add_query(check::query_like(random, data), metrics[q % 4], 3);
        const bool is_all = !is_mixed || q % 5 != 1;
        batch.add_view(0, data.row_count, is_all ? nullptr : &batch.bitmaps.front());
      }
      const std::string what = "width " + std::to_string(dimension);
      const outcome seen = require_search(device, batch, {on_device.get()}, what);
      require(seen.undecided == 0, what + ": queries undecided");
    }
  }
}

/** Rows are appended to a block; views with fewer rows give the same hits. */
void test_growth(sagitta_device* device, random_source& random) {
  const rows data(random, kind::clustered, 1000, 72);
  const sagitta_block all = data.block();
  sagitta_device_block* block = nullptr;
  require_ok(sagitta_device_block_create(device, data.dimension, &block), "create");
  uint32_t capacity = 0;
  for (const uint32_t to : {1u, 15u, 16u, 17u, 100u, 101u, 640u, 1000u}) {
    if (to > capacity) {
      capacity = to + to / 2;
      require_ok(sagitta_device_block_reserve(block, capacity, 1, 0), "reserve");
    }
    require_ok(sagitta_device_block_extend(block, &all, to), "extend");
    require(sagitta_device_block_rows(block) == to, "growth: rows");
    if (to == 640) require_ok(sagitta_device_block_reserve(block, capacity, 0, 0), "without values");
    if (to == 640) capacity = 1000;
    if (to == 640) require_ok(sagitta_device_block_reserve(block, capacity, 0, 0), "more room");
    test_batch batch;
    batch.add_block(data);
    for (uint32_t q = 0; q < 4; q++) {
      batch.add_query(check::query_like(random, data), metrics[q % 4], 20);
      batch.add_view(0, q == 0 ? to / 2 : to);
    }
    require_search(device, batch, {block}, "growth to " + std::to_string(to));
  }
  require(sagitta_device_block_extend(block, &all, 2000) == SAGITTA_INVALID_ARGUMENT,
          "growth: rows beyond the capacity were taken");
  require(sagitta_device_block_reserve(block, 10, 0, 0) == SAGITTA_INVALID_ARGUMENT,
          "growth: a capacity below the rows was taken");
  sagitta_device_block_destroy(block);
}

/** A block that does not fit is reported and does not affect other blocks. */
void test_memory(sagitta_device* device, random_source& random) {
  const rows data(random, kind::random, 500, 64);
  const resident on_device(device, data, true, true);
  sagitta_device_facts facts{};
  require_ok(sagitta_device_describe(device, &facts), "describe");
  const uint64_t row_bytes = sagitta_device_block_bytes(64, 65536, 1, 0) / 65536;
  const auto too_many = static_cast<uint32_t>(
      std::min<uint64_t>(2 * facts.memory_bytes / row_bytes + 1, 0xfffffff0u));
  sagitta_device_block* block = nullptr;
  require_ok(sagitta_device_block_create(device, 64, &block), "create");
  const sagitta_status status = sagitta_device_block_reserve(block, too_many, 1, 0);
  require(status == SAGITTA_OUT_OF_MEMORY, "memory: status " + std::to_string(status));
  require(std::strlen(sagitta_device_error()) > 0, "memory: no reason");
  sagitta_device_block_destroy(block);
  test_batch batch;
  batch.add_block(data);
  batch.add_query(check::query_like(random, data), SAGITTA_DOT, 10);
  batch.add_view(0, data.row_count);
  require_search(device, batch, {on_device.get()}, "after running out of memory");
}

#if defined(SAGITTA_EMULATE_CUDA)
/** If no memory can be pinned, searches and uploads use pageable memory and report how much. */
void test_unpinned_memory(sagitta_device* device, random_source& random) {
  const rows data(random, kind::random, 300, 32);
  test_batch batch;
  batch.add_block(data);
  for (uint32_t q = 0; q < 5; q++) {
    batch.add_query(check::query_like(random, data), metrics[q % 4], 5);
    batch.add_view(0, data.row_count);
  }
  for (const bool may_pin : {false, true}) {
    sagitta::cuda::emulation::limit_pinned(may_pin ? UINT64_MAX : 0);
    size_t byte_count = 0;
    for (auto* const buffer : {&device->staging[0], &device->staging[1], &device->slots[0].input,
                               &device->slots[0].output, &device->slots[1].input, &device->slots[1].output}) {
      const size_t wanted = buffer->byte_count();
      buffer->release();
      buffer->require(wanted);
      byte_count += wanted;
    }
    const resident on_device(device, data, true, true);
    const outcome seen = require_search(device, batch, {on_device.get()}, "unpinned memory");
    const uint64_t unpinned = seen.times.unpinned_bytes;
    require(may_pin ? unpinned == 0 : unpinned >= byte_count && byte_count > 0,
            "unpinned memory: " + std::to_string(unpinned) + " bytes");
  }
}

/**
 * What a row needs of a query matches the exact test: it is never more, except for roundings that the proof
 * allows, and hardly less. Tested for rows and queries of all lengths and thresholds at which rows pass.
 */
void test_needs(random_source& random) {
  using namespace sagitta;
  const auto any_length = [&] {
    return std::ldexp(0.5 + random.uniform(), static_cast<int>(random.below(50)) - 25);
  };
  for (uint32_t round = 0; round < 20000; round++) {
    const std::string what = "needs, round " + std::to_string(round);
    const double dimension = 1 + random.below(round % 2 == 0 ? 64 : SAGITTA_DIMENSION_MAX);
    const double spread = std::sqrt(dimension);
    const auto scale = static_cast<float>(any_length());
    const float norm = scale * static_cast<float>(127 * (1 + random.uniform() * (spread - 1)));
    const float residual = scale * static_cast<float>(random.uniform() * spread / 2);
    bounded_query query{};
    query.metric = metrics[round % 4];
    query.scale = any_length();
    query.code_length = 127 * (1 + random.uniform() * (spread - 1));
    query.residual = random.uniform() * spread / 2;
    query.length = query.scale * query.code_length;
    query.square = query.length * query.length;
    // The score of a row with an arbitrary product.
    const double cosine = 2 * random.uniform() - 1;
    const double product = cosine * query.length * double{norm};
    const double square = double{norm} * double{norm};
    const double score = query.metric == SAGITTA_COSINE      ? cosine
                         : query.metric == SAGITTA_DOT       ? product
                         : query.metric == SAGITTA_EUCLIDEAN ? 2 * product - square - query.square
                                                             : product / (query.square - product + square);
    scan_weights weights = create_weights(query);
    tighten(query, score, weights);
    const float4 upper = make_float4(weights.upper_min, weights.upper_residual, weights.upper_norm,
                                     weights.upper_square);
    const auto row = cuda::needs_of(scale, norm, residual, static_cast<float>(square));
    const double found =
        static_cast<int32_t>(cuda::needed(upper, row) - cuda::needed_origin);
    const double terms[] = {double{upper.x}, -double{upper.y} * double{residual},
                            -double{upper.z} * double{norm},
                            -double{upper.w} * double{static_cast<float>(square)}};
    double exact = 0;
    double all = 0;
    for (const double term : terms) {
      exact += term / double{scale};
      all += std::fabs(term) / double{scale};
    }
    const double roundings = 7 * 0x1p-24 * all;
    require(found <= std::max(exact, -0x1p28) + roundings, what + ": more than the test asks for");
    require(found >= std::min(exact, 0x1p28) - roundings - 512, what + ": much less");
  }
  const auto none = cuda::needs_of_none();
  const float4 low = make_float4(-1e30f, 1e5f, -1e5f, -1e5f);
  require(cuda::needed(low, none) - cuda::needed_origin == 1u << 28,
          "needs of a row that is not searched");
}

/**
 * The number of launches and runtime calls for a small batch, which bound its latency, so that an increase
 * of either is noticed. Counted in the second search, since the first one allocates memory.
 */
void test_launch_counts(sagitta_device* device, random_source& random) {
  using namespace sagitta::cuda::emulation;
  const sagitta::cuda::tuning usual = device->tuning;
  device->tuning = {};
  device->tuning.dense_rows = 64;
  const rows data(random, kind::clustered, 3000, 48);
  const resident on_device(device, data, true, true);
  test_batch batch;
  batch.add_block(data);
  batch.bitmaps.push_back(check::random_bitmap(random, data.row_count, 0.005));
  for (uint32_t q = 0; q < 12; q++) {
    batch.add_query(check::query_like(random, data), metrics[q % 4], 5);
    batch.add_view(0, data.row_count);
  }
  const auto count = [&](const char* what) {
    require_search(device, batch, {on_device.get()}, what);
    arm_fault(fault::lost, 0, 0);
    require_search(device, batch, {on_device.get()}, what);
  };
  // Encoding, two passes with pruning after each, rescoring and selection.
  count("launches of a scan");
  require(launches_so_far() == 7, "a scan has " + std::to_string(launches_so_far()) + " launches");
  // The device, two copies, four events, the wait for the answer, three times; the rows were waited for earlier.
  const uint64_t calls = calls_so_far();
  require(calls <= 7 + 1 + 2 + 4 + 1 + 3 - 1, "a scan has " + std::to_string(calls) + " calls");
  for (sagitta_block_view& view : batch.views) view.rows = batch.bitmaps.front().data();
  // Encoding, gathering, rescoring and selection.
  count("launches of gathering");
  require(launches_so_far() == 4,
          "gathering has " + std::to_string(launches_so_far()) + " launches");
  device->tuning = usual;
}

/** Tests the kernels that work on lists with both numbers of threads that devices use for them. */
void test_select_threads(sagitta_device* device, random_source& random) {
  for (const uint32_t threads : {256u, sagitta::cuda::select_threads_max}) {
    sagitta::cuda::select_threads_of_test = threads;
    const rows data(random, kind::duplicates, 1500, 24);
    const resident on_device(device, data, true, true);
    test_batch batch;
    batch.add_block(data);
    batch.bitmaps.push_back(check::random_bitmap(random, data.row_count, 0.05));
    for (uint32_t q = 0; q < 3; q++) {
      batch.add_query(check::query_like(random, data), metrics[q], 1 + 30 * q);
      batch.add_view(0, data.row_count, q == 1 ? &batch.bitmaps.front() : nullptr);
    }
    require_search(device, batch, {on_device.get()}, std::to_string(threads) + " threads of a list");
  }
  sagitta::cuda::select_threads_of_test = 0;
}

/**
 * Any launch of a search may run out of memory after others were already launched. The search reports it,
 * and the next one, which writes to the same buffers, is correct.
 */
void test_failed_launches(sagitta_device* device, random_source& random) {
  using namespace sagitta::cuda::emulation;
  const rows data(random, kind::random, 600, 48);
  const resident on_device(device, data, true, true);
  for (uint64_t launch = 1, is_struck = 1; is_struck != 0; launch++) {
    test_batch batch;
    batch.add_block(data);
    for (uint32_t q = 0; q < 70; q++) {
      batch.add_query(check::query_like(random, data), metrics[q % 4], 5);
      batch.add_view(0, data.row_count);
    }
    const sagitta_batch view = batch.view(1);
    sagitta_device_block* const block = on_device.get();
    sagitta_device_answer* answer = nullptr;
    arm_fault(fault::memory, launch, 0);
    const sagitta_status status = sagitta_device_search(device, &view, &block, &answer);
    is_struck = launches_so_far() >= launch ? 1 : 0;
    require(status == (is_struck != 0 ? SAGITTA_OUT_OF_MEMORY : SAGITTA_OK),
            "launch " + std::to_string(launch) + ": status " + std::to_string(status));
    if (is_struck == 0) sagitta_device_answer_destroy(answer);
    arm_fault(fault::memory, 0, 0);
    std::swap(batch.vectors.front(), batch.vectors.back());
    batch.queries.front().vector = batch.vectors.front().data();
    batch.queries.back().vector = batch.vectors.back().data();
    require_search(device, batch, {block}, "after launch " + std::to_string(launch) + " failed");
  }
}
#endif

/** Passes take every tile once, are as few as growth permits, and begin within the room of the lists. */
void test_passes() {
  using namespace sagitta::cuda;
  for (const uint32_t tile_count : {1u, 2u, 63u, 64u, 65u, 1000u, 15625u, 156250u}) {
    for (const uint32_t dense_tiles : {1u, 32u, 244u}) {
      for (const uint32_t growth : {2u, 3u, 8u, 64u}) {
        const std::string what = "passes over " + std::to_string(tile_count) + " tiles, " +
                                 std::to_string(dense_tiles) + " at first, growth " +
                                 std::to_string(growth);
        const std::vector<scan_pass> passes = passes_over(tile_count, dense_tiles, growth);
        std::vector<uint8_t> is_seen(tile_count);
        uint32_t seen = 0;
        for (const scan_pass& pass : passes) {
          const uint64_t limit = seen == 0 ? dense_tiles : uint64_t{seen} * growth;
          for (uint32_t i = 0; i < pass.tile_count; i++, seen++) {
            const uint32_t tile = tile_at(pass, i);
            require(tile < tile_count && is_seen[tile] == 0, what + ": a tile is wrong");
            is_seen[tile] = 1;
          }
          require(seen <= limit, what + ": a pass is too long");
        }
        require(seen == tile_count, what + ": a tile is missing");
        uint64_t reach = dense_tiles;
        for (size_t i = 2; i < passes.size(); i++) reach *= growth;
        require(passes.size() == 1 || reach < tile_count, what + ": there are more than needed");
      }
    }
  }
  require(passes_over(15625, 245, 64).size() == 2, "a million rows have more than two passes");
}

/**
 * A ring has as many stages as there is room for beside the queries, and the same group as the scan without
 * a ring. With 227 KiB of shared memory, as on compute capability 9.0.
 */
void test_rings() {
  using namespace sagitta::cuda;
  struct expectation {
    uint32_t queries, dimension, group, stages;
  };
  constexpr expectation expectations[] = {
      {1, 768, 64, 8},     {64, 1536, 64, 6},   {65, 128, 128, 8},
      {128, 768, 128, 6},  {128, 1024, 128, 4}, {128, 1536, 128, 0},
      {300, 512, 256, 4},  {300, 768, 256, 0},  {300, 4000, 32, 0},
  };
  constexpr size_t shared_bytes = 227 << 10;
  for (const expectation& one : expectations) {
    const std::string what = "a ring for " + std::to_string(one.queries) + " queries of " +
                             std::to_string(one.dimension) + " dimensions";
    const scan_shape shape = choose_shape(one.queries, one.dimension, shared_bytes, {1, 256, 8});
    const scan_shape plain = choose_shape(one.queries, one.dimension, shared_bytes, {1, 256, 0});
    require(shape.group == one.group, what + ": a group of " + std::to_string(shape.group));
    require(plain.group == one.group && plain.ring_stages == 0, what + ": the scan without one");
    require(shape.ring_stages == one.stages,
            what + " has " + std::to_string(shape.ring_stages) + " stages");
    require(shape.shared_bytes <= shared_bytes, what + ": too many bytes");
    require(shape.shared_bytes > plain.shared_bytes || one.stages == 0, what + ": too few bytes");
  }
}

void test_arguments(sagitta_device* device, random_source& random) {
  const rows data(random, kind::random, 50, 8);
  const rows wider(random, kind::random, 50, 9);
  const resident on_device(device, data, true, true);
  const resident other(device, wider, true, true);
  test_batch batch;
  batch.add_block(data);
  batch.add_query(check::query_like(random, data), SAGITTA_DOT, 10);
  batch.add_view(0, 50);
  const sagitta_batch view = batch.view(1);
  sagitta_device_answer* answer = nullptr;
  sagitta_device_block* wrong = other.get();
  require(sagitta_device_search(device, &view, &wrong, &answer) == SAGITTA_INVALID_ARGUMENT,
          "a block of another dimension was searched");
  wrong = nullptr;
  require(sagitta_device_search(device, &view, &wrong, &answer) == SAGITTA_INVALID_ARGUMENT,
          "no block was searched");
  sagitta_device_block* none = nullptr;
  require(sagitta_device_block_create(device, 0, &none) == SAGITTA_INVALID_ARGUMENT,
          "a block of no dimension was made");
}

void test_all(sagitta_device* device, random_source& random, bool is_large, bool with_coarse) {
  constexpr uint32_t dimensions[] = {1, 3, 16, 64, 100, 129, 256, 768};
  for (const kind kind : check::all_kinds) {
    for (uint32_t round = 0; round < (is_large ? 12u : 2u); round++) {
      const uint32_t dimension = dimensions[random.below(is_large ? 8 : 6)];
      const uint32_t row_count = 1 + random.below(is_large ? 20000 : 700);
      constexpr uint32_t query_counts[] = {1, 2, 9, 20, 40, 70, 140, 300};
      const uint32_t query_count = query_counts[random.below(is_large ? 8 : 5)];
      test_random(device, random, kind, dimension, row_count, query_count);
    }
  }
  for (const uint32_t query_count : {1u, 12u, 30u, 50u, 100u, 200u}) {
    test_pruning(device, random, query_count);
  }
  test_gathering(device, random);
  test_searches_in_progress(device, random);
  if (with_coarse) {
    test_coarse(device, random);
    test_coarse_choice(device, random);
    test_head(device, random);
    test_head_choice(device, random);
    test_tiles(device, random);
    test_shared_lists(device, random);
  }
  test_scopes(device, random);
  test_overflow(device, random);
  test_repeats(device, random);
  test_growth(device, random);
  test_memory(device, random);
  test_arguments(device, random);
  test_passes();
  test_rings();
#if defined(SAGITTA_EMULATE_CUDA)
  test_unpinned_memory(device, random);
  test_select_threads(device, random);
  test_failed_launches(device, random);
  test_launch_counts(device, random);
  test_needs(random);
#endif
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count == 4 && std::strcmp(arguments[1], "--serve") == 0) {
    sagitta::cuda::serve_device(std::atoi(arguments[2]), std::atoi(arguments[3]));
    return 0;
  }
  uint64_t seed = 1;
  bool is_large = false;
  bool is_quick = false;
  bool is_least = false;
  bool is_process = false;
  const char* only = nullptr;
  constexpr const char* all_kernels[] = {"mma", "wgmma", "wgmma-ring"};
  for (int i = 1; i < argument_count; i++) {
    const std::string name = arguments[i];
    const char* const value = i + 1 < argument_count ? arguments[i + 1] : "";
    const auto is_value = [&](const char* each) { return std::strcmp(value, each) == 0; };
    if (name == "--large") is_large = true;
    else if (name == "--quick") is_quick = true;
    else if (name == "--least") is_least = true;
    else if (name == "--process") is_process = true;
    else if (name == "--seed" && i + 1 < argument_count) seed = std::strtoull(arguments[++i], nullptr, 10);
    else if (name == "--kernels" && std::any_of(std::begin(all_kernels), std::end(all_kernels), is_value)) {
      only = arguments[++i];
    } else {
      std::fprintf(stderr, "cuda-test: \"%s %s\" is not a valid option; see cuda_test.cu\n", name.c_str(), value);
      return 2;
    }
  }
  uint32_t device_count = 0;
  const sagitta_status status = sagitta_device_count(&device_count);
  if (status != SAGITTA_OK || device_count == 0) {
    std::printf("skipped: no device (%s)\n", status == SAGITTA_OK ? "none found" : sagitta_device_error());
    return 77;
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (const char* const kernels : all_kernels) {
    if (is_process) break;
    if (only != nullptr && std::strcmp(only, kernels) != 0) continue;
    sagitta_device* device = nullptr;
    const sagitta_status opened = sagitta_device_open(0, kernels, &device);
    if (opened == SAGITTA_UNSUPPORTED_TARGET) {
      // A device may lack kernels, but those that it has must not be wrong.
      const std::string reason = sagitta_device_error();
      require(reason.find("other answers than the CPU") == std::string::npos, reason);
      std::printf("%s: skipped, %s\n", kernels, reason.c_str());
      continue;
    }
    require_ok(opened, "open");
    sagitta_device_facts facts{};
    require_ok(sagitta_device_describe(device, &facts), "describe");
    if (is_least) {
      random_source random(seed);
      test_gathering(device, random);
      sagitta_device_close(device);
      continue;
    }
    // With default tuning, and with passes and lists so small that little data runs through all of them.
    for (const bool is_small : {true, false}) {
#if defined(SAGITTA_EMULATE_CUDA)
      // The emulation is slow, and large passes differ from those of wgmma only in how codes get to the registers.
      const bool is_mma = std::strcmp(kernels, "mma") == 0;
      const bool is_ring = std::strcmp(kernels, "wgmma-ring") == 0;
      if (!is_small && (is_ring || (is_quick && !is_mma))) continue;
#endif
      random_source random(seed);
      if (is_small) {
        device->tuning.dense_rows = 64;
        device->tuning.growth_of_few = 3;
        device->tuning.growth_of_many = 2;
        device->tuning.spare_rows = 500;
        device->tuning.few = 16;
        device->tuning.part_rows_min = 40;
        device->tuning.list_blocks_per_multiprocessor = 6;
        device->tuning.head_bytes_min = 0;
        // Blocks take several tiles and go through short rings several times.
        device->tuning.scan_blocks_max = 4;
        device->tuning.ring_stages_max = 3;
      } else {
        device->tuning = {};
      }
      bool with_coarse = is_small || !is_quick;
#if defined(SAGITTA_EMULATE_CUDA)
      // Only once, since the emulation is slow: the kernels of coarse codes and their tuning are the same each time.
      with_coarse = is_small && is_mma;
#endif
      if (is_quick) {
#if defined(SAGITTA_EMULATE_CUDA)
        test_select_threads(device, random);
#endif
        test_gathering(device, random);
        test_searches_in_progress(device, random);
        test_scopes(device, random);
        if (with_coarse) test_coarse(device, random);
        if (with_coarse) test_head(device, random);
        if (with_coarse) test_tiles(device, random);
        if (with_coarse) test_shared_lists(device, random);
        test_repeats(device, random);
        test_arguments(device, random);
        test_rings();
#if defined(SAGITTA_EMULATE_CUDA)
        test_unpinned_memory(device, random);
#endif
        continue;
      }
      test_all(device, random, is_large, with_coarse);
      if (!is_small) test_widths(device, random);
      std::printf("%s on %s, %s passes: ok\n", kernels, facts.name, is_small ? "many" : "few");
      std::fflush(stdout);
    }
    sagitta_device_close(device);
  }
  // A device in a process of its own is tested once, with any kernels.
  const bool is_remote = only == nullptr || std::strcmp(only, "mma") == 0;
  if (!is_quick && !is_least && is_remote) check::test_remote_device(seed);
  return 0;
}
