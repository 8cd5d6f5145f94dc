// Compares searches on a device with brute force, to the bit: adversarial rows, bitmaps, positions and score
// limits over several blocks, lists that overflow, rows whose values stay on the host, growing blocks,
// missing memory. Runs on a GPU, or on its emulation.
//
//   test [--seed N] [--large | --quick | --process]
//
// --quick runs little, --process only the tests of a device in a process of its own. Exits with 1 at the
// first wrong answer, with 77 without a device.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "check.h"
#include "cuda_remote_test.h"
#include "test_batch.h"
#include "../cuda/device.h"
#include "../cuda/device_state.h"
#include "../cuda/remote.h"
#if defined(SAGITTA_EMULATE_CUDA)
#include "cuda_emulation/settings.h"
#endif

namespace {

using check::kind;
using check::random_source;
using check::require;
using check::rows;
using check::test_batch;

constexpr sagitta_metric metrics[] = {SAGITTA_COSINE, SAGITTA_DOT, SAGITTA_EUCLIDEAN};

void require_ok(sagitta_status status, const std::string& what) {
  require(status == SAGITTA_OK, what + ": status " + std::to_string(status) + ", " +
                                    sagitta_device_error());
}

/** A resident copy of rows, uploaded in two steps. */
class resident {
 public:
  resident(sagitta_device* device, const rows& from, bool has_values, bool has_codes) {
    require_ok(sagitta_device_block_create(device, from.dimension, &block_), "create");
    require_ok(sagitta_device_block_reserve(block_, from.row_count, has_values ? 1 : 0), "reserve");
    const uint8_t* const codes = has_codes ? from.codes : nullptr;
    require_ok(sagitta_device_block_extend(block_, from.values.data(), codes, from.row_count / 3),
               "extend");
    require_ok(sagitta_device_block_extend(block_, from.values.data(), codes, from.row_count),
               "extend");
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

outcome require_search(sagitta_device* device, const test_batch& batch,
                       const std::vector<sagitta_device_block*>& residents,
                       const std::string& what) {
  const sagitta_batch view = batch.view(1);
  sagitta_device_answer* answer = nullptr;
  require_ok(sagitta_device_search(device, &view, residents.data(), &answer), "search, " + what);
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

/** Queries over ordinary rows are decided on the device, with few rows rescored. */
void test_pruning(sagitta_device* device, random_source& random, uint32_t query_count) {
  const rows data(random, kind::random, 3000, 96);
  const resident on_device(device, data, true, true);
  test_batch batch;
  batch.add_block(data);
  for (uint32_t q = 0; q < query_count; q++) {
    batch.add_query(check::query_like(random, data), metrics[q % 3], 5);
    batch.add_view(0, data.row_count);
  }
  const std::string what = "pruning, queries " + std::to_string(query_count);
  const outcome seen = require_search(device, batch, {on_device.get()}, what);
  require(seen.undecided == 0, what + ": " + std::to_string(seen.undecided) + " undecided");
  require(seen.rescored < 100ull * query_count,
          what + ": " + std::to_string(seen.rescored) + " rows rescored");
}

/** Few passing rows are gathered, also for queries that cannot be scanned. */
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
    batch.add_query(vector, metrics[q % 3], 1 + 7 * q);
    const bool is_few = q % 3 == 0 || q % 2 == 0;
    batch.add_view(0, data.row_count, is_few ? &batch.bitmaps.front() : nullptr);
  }
  const outcome seen = require_search(device, batch, {on_device.get()}, "gathering");
  require(seen.undecided == 0, "gathering: queries undecided");
}

/**
 * If more rows are close together than lists have room for, all are scored, some at a time. If even more
 * tie, queries are reported as undecided and never wrong.
 */
void test_overflow(sagitta_device* device, random_source& random) {
  const sagitta::cuda::tuning usual = device->tuning;
  device->tuning.spare_rows = 64;
  device->tuning.rows_per_k = 4;
  device->tuning.dense_rows = 128;
  device->tuning.exhaustive_rows = 320;
  const rows equal(random, kind::equal, 2000, 33);
  const rows mixed(random, kind::clustered, 900, 33);
  const resident on_device[] = {{device, equal, true, true}, {device, mixed, true, true}};
  for (const bool has_room : {true, false}) {
    device->tuning.exhaustive_ties = has_room ? 2000 : 64;
    device->tuning.repeats_max = 0;
    test_batch batch;
    batch.add_block(equal);
    batch.add_block(mixed);
    for (uint32_t q = 0; q < 12; q++) {
      const bool is_equal = q % 2 == 0;
      batch.add_query(check::query_like(random, is_equal ? equal : mixed), metrics[q % 3], 10);
      if (q == 11) batch.vectors.back().assign(33, 0);
      const uint32_t row_count = is_equal ? equal.row_count : mixed.row_count;
      batch.bitmaps.push_back(check::random_bitmap(random, row_count, 0.9));
      batch.add_view(is_equal ? 0 : 1, row_count, q % 4 < 2 ? nullptr : &batch.bitmaps.back());
      if (q < 6) continue;
      const rows& its_rows = is_equal ? equal : mixed;
      sagitta_query& query = batch.queries.back();
      query.after_score = check::canonical(query.metric, query.vector, its_rows.row(70), 33);
      query.after_id = its_rows.id_bytes.data() + its_rows.id_offsets[70];
      query.after_id_bytes =
          static_cast<uint32_t>(its_rows.id_offsets[71] - its_rows.id_offsets[70]);
    }
    const std::string what = has_room ? "overflow with room" : "overflow";
    const outcome seen =
        require_search(device, batch, {on_device[0].get(), on_device[1].get()}, what);
    if (has_room) require(seen.undecided == 0, what + ": queries undecided");
    else require(seen.undecided >= 6, what + ": ties without room were decided");
  }
  device->tuning = usual;
}

/**
 * Rows without structure, whose scores are close together, fill lists before the threshold is high: the
 * queries concerned are scanned again, and not all rows are scored.
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
      batch.add_query(check::query_like(random, data), metrics[q % 3], 25);
      batch.add_view(0, data.row_count, q % 4 == 0 ? &batch.bitmaps.front() : nullptr);
    }
    const outcome seen = require_search(device, batch, {on_device.get()}, "repeats");
    require(seen.undecided == 0, "repeats: queries undecided");
    require(seen.times.repeated_queries > 0, "repeats: no list was too short");
    require(seen.times.exhaustive_queries == 0, "repeats: all rows were scored");
    require(!has_values || seen.rescored < 12 * data.row_count / 2, "repeats: most rows were scored");
  }
  device->tuning = usual;
}

/**
 * Dimensions so large that shared memory has room for few queries: groups of 128 and 64 for wgmma, of 32
 * and 8 for mma. Some queries of each group search other rows.
 */
void test_widths(sagitta_device* device, random_source& random) {
  for (const uint32_t dimension : {1000u, 1900u, 4000u, 16384u}) {
    const rows data(random, kind::clustered, dimension < 4000 ? 150 : 70, dimension);
    const resident on_device(device, data, true, true);
    for (const bool is_mixed : {false, true}) {
      test_batch batch;
      batch.add_block(data);
      batch.bitmaps.push_back(check::random_bitmap(random, data.row_count, 0.7));
      for (uint32_t q = 0; q < (dimension < 4000 ? 70u : 10u); q++) {
        batch.add_query(check::query_like(random, data), metrics[q % 3], 3);
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
  sagitta_device_block* block = nullptr;
  require_ok(sagitta_device_block_create(device, data.dimension, &block), "create");
  uint32_t capacity = 0;
  for (const uint32_t to : {1u, 15u, 16u, 17u, 100u, 101u, 640u, 1000u}) {
    if (to > capacity) {
      capacity = to + to / 2;
      require_ok(sagitta_device_block_reserve(block, capacity, 1), "reserve");
    }
    require_ok(sagitta_device_block_extend(block, data.values.data(), data.codes, to), "extend");
    require(sagitta_device_block_rows(block) == to, "growth: rows");
    if (to == 640) require_ok(sagitta_device_block_reserve(block, capacity, 0), "without values");
    if (to == 640) capacity = 1000;
    if (to == 640) require_ok(sagitta_device_block_reserve(block, capacity, 0), "more room");
    test_batch batch;
    batch.add_block(data);
    for (uint32_t q = 0; q < 4; q++) {
      batch.add_query(check::query_like(random, data), metrics[q % 3], 20);
      batch.add_view(0, q == 0 ? to / 2 : to);
    }
    require_search(device, batch, {block}, "growth to " + std::to_string(to));
  }
  require(sagitta_device_block_extend(block, data.values.data(), data.codes, 2000) ==
              SAGITTA_INVALID_ARGUMENT,
          "growth: rows beyond the capacity were taken");
  require(sagitta_device_block_reserve(block, 10, 0) == SAGITTA_INVALID_ARGUMENT,
          "growth: a capacity below the rows was taken");
  sagitta_device_block_destroy(block);
}

/** A block that does not fit is reported and does not affect others. */
void test_memory(sagitta_device* device, random_source& random) {
  const rows data(random, kind::random, 500, 64);
  const resident on_device(device, data, true, true);
  sagitta_device_facts facts{};
  require_ok(sagitta_device_describe(device, &facts), "describe");
  const uint64_t row_bytes = sagitta_device_block_bytes(64, 65536, 1) / 65536;
  const auto too_many = static_cast<uint32_t>(
      std::min<uint64_t>(2 * facts.memory_bytes / row_bytes + 1, 0xfffffff0u));
  sagitta_device_block* block = nullptr;
  require_ok(sagitta_device_block_create(device, 64, &block), "create");
  const sagitta_status status = sagitta_device_block_reserve(block, too_many, 1);
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
/**
 * Any launch of a search may run out of memory, when others were already launched: the search says so,
 * and the next one, which writes the same buffers, is right.
 */
void test_failed_launches(sagitta_device* device, random_source& random) {
  using namespace sagitta::cuda::emulation;
  const rows data(random, kind::random, 600, 48);
  const resident on_device(device, data, true, true);
  for (uint64_t launch = 1, is_struck = 1; is_struck != 0; launch++) {
    test_batch batch;
    batch.add_block(data);
    for (uint32_t q = 0; q < 70; q++) {
      batch.add_query(check::query_like(random, data), metrics[q % 3], 5);
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

void test_all(sagitta_device* device, random_source& random, bool is_large) {
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
  test_overflow(device, random);
  test_repeats(device, random);
  test_growth(device, random);
  test_memory(device, random);
  test_arguments(device, random);
#if defined(SAGITTA_EMULATE_CUDA)
  test_failed_launches(device, random);
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
  bool is_process = false;
  for (int i = 1; i < argument_count; i++) {
    if (std::strcmp(arguments[i], "--large") == 0) is_large = true;
    if (std::strcmp(arguments[i], "--quick") == 0) is_quick = true;
    if (std::strcmp(arguments[i], "--process") == 0) is_process = true;
    if (std::strcmp(arguments[i], "--seed") == 0 && i + 1 < argument_count) {
      seed = std::strtoull(arguments[++i], nullptr, 10);
    }
  }
  uint32_t device_count = 0;
  const sagitta_status status = sagitta_device_count(&device_count);
  if (status != SAGITTA_OK || device_count == 0) {
    std::printf("skipped: no device (%s)\n", status == SAGITTA_OK ? "none found" : sagitta_device_error());
    return 77;
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (const char* const kernels : {"mma", "wgmma"}) {
    if (is_process) break;
    sagitta_device* device = nullptr;
    const sagitta_status opened = sagitta_device_open(0, kernels, &device);
    if (opened == SAGITTA_UNSUPPORTED_TARGET) {
      std::printf("%s: skipped, %s\n", kernels, sagitta_device_error());
      continue;
    }
    require_ok(opened, "open");
    sagitta_device_facts facts{};
    require_ok(sagitta_device_describe(device, &facts), "describe");
    // With default tuning, and with passes and lists so small that little data runs through all of them.
    for (const bool is_small : {true, false}) {
      random_source random(seed);
      if (is_small) {
        device->tuning.dense_rows = 64;
        device->tuning.growth_of_few = 3;
        device->tuning.growth_of_many = 2;
        device->tuning.spare_rows = 500;
        device->tuning.few = 16;
      } else {
        device->tuning = {};
      }
      if (is_quick) {
        test_gathering(device, random);
        test_repeats(device, random);
        test_arguments(device, random);
        continue;
      }
      test_all(device, random, is_large);
      if (!is_small) test_widths(device, random);
      std::printf("%s on %s, %s passes: ok\n", kernels, facts.name, is_small ? "many" : "few");
      std::fflush(stdout);
    }
    sagitta_device_close(device);
  }
  if (!is_quick) check::test_remote_device(seed);
  return 0;
}
