// Compares scans of random panels with those of the reference target: the sums, the surviving rows, and the panels
// that are reported, for any dimension and number of queries.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "../layout.h"
#include "../target.h"
#include "check.h"
#include "emulated_tiles.h"

namespace check {
namespace {

using sagitta::panel_rows;
using sagitta::scan_query;
using sagitta::scan_task;
using sagitta::target;

constexpr float infinity = std::numeric_limits<float>::infinity();

/** Bytes at the end of a page that is followed by one without access, where the system has such pages. */
class guarded_bytes {
 public:
  explicit guarded_bytes(size_t count) {
#if defined(__linux__)
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_ = (count + page - 1) / page * page + page;
    void* const found = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(found != MAP_FAILED, "map memory");
    start_ = static_cast<uint8_t*>(found);
    require(mprotect(start_ + mapped_ - page, page, PROT_NONE) == 0, "protect a page");
    bytes_ = start_ + mapped_ - page - count;
#else
    start_ = bytes_ = static_cast<uint8_t*>(std::aligned_alloc(64, (count + 63) / 64 * 64));
    require(bytes_ != nullptr, "memory");
#endif
  }
  ~guarded_bytes() {
#if defined(__linux__)
    munmap(start_, mapped_);
#else
    std::free(start_);
#endif
  }
  guarded_bytes(const guarded_bytes&) = delete;
  uint8_t* data() const { return bytes_; }

 private:
  uint8_t* start_;
  uint8_t* bytes_;
  size_t mapped_ = 0;
};

/** Extremes are frequent, because sums must neither saturate nor overflow. */
int32_t random_code(random_source& random, int32_t most = 127) {
  if (random.below(3) == 0) return random.below(2) == 0 ? -most : most;
  return static_cast<int32_t>(random.below(2 * static_cast<uint32_t>(most) + 1)) - most;
}

/** Panels of tiles, or of head tiles, whose dimensions are in two arrays. */
struct scanned_panels {
  scanned_panels(random_source& random, uint32_t panel_count, uint32_t dimensions, bool has_head)
      : count(panel_count),
        dimension(dimensions),
        is_head(has_head),
        stride(sagitta::panel_bytes(has_head ? dimensions / 2 : dimensions)),
        bytes(array_count() * panel_count * stride) {
    for (uint32_t panel = 0; panel < array_count() * count; panel++) {
      uint8_t* const start = bytes.data() + panel * stride;
      std::memset(start, 0xff, sagitta::fact_bytes);
      std::memset(start + sagitta::fact_bytes, 128, stride - sagitta::fact_bytes);
    }
    for (uint32_t panel = 0; panel < count; panel++) {
      auto& facts = *reinterpret_cast<sagitta::panel_facts*>(panels() + panel * stride);
      for (uint32_t row = 0; row < panel_rows; row++) {
        facts.scale[row] = static_cast<float>(0.001 + 0.01 * random.uniform());
        facts.norm[row] = static_cast<float>(random.uniform());
        facts.residual[row] = static_cast<float>(0.1 * random.uniform());
        facts.square[row] = static_cast<float>(random.uniform());
        if (random.below(50) == 0) {
          facts.scale[row] = facts.norm[row] = facts.square[row] = 0;
          facts.residual[row] = random.below(2) == 0 ? 0 : sagitta::unscannable_residual;
        }
      }
      const uint32_t dimensions_of_array = dimensions / array_count();
      for (uint32_t i = 0; i < array_count() * dimensions_of_array; i++) {
        uint8_t* const array = bytes.data() + i / dimensions_of_array * count * stride;
        const uint32_t place = i % dimensions_of_array;
        for (uint32_t row = 0; row < panel_rows; row++) {
          const size_t at = sagitta::fact_bytes + place / 4 * sagitta::step_bytes + row * 4 + place % 4;
          const int32_t code = random_code(random, is_head ? sagitta::head_code_max : 127);
          array[panel * stride + at] = static_cast<uint8_t>(code + 128);
        }
      }
    }
  }
  uint32_t array_count() const { return is_head ? 2 : 1; }
  /** The array that begins with the facts. */
  uint8_t* panels() const { return bytes.data() + (is_head ? count * stride : 0); }
  sagitta::panel_codes codes() const {
    if (!is_head) return {bytes.data() + sagitta::fact_bytes, nullptr};
    return {bytes.data() + sagitta::fact_bytes, panels() + sagitta::fact_bytes};
  }
  const sagitta::panel_facts& facts(uint32_t panel) const {
    return *reinterpret_cast<const sagitta::panel_facts*>(panels() + panel * stride);
  }
  const sagitta::panel_scan& scan_of(const target& functions) const {
    return is_head ? functions.head : functions.tiles;
  }

  uint32_t count;
  uint32_t dimension;
  bool is_head;
  size_t stride;
  guarded_bytes bytes;
};

/** What a scan has reported, by query and panel. */
struct report {
  uint32_t survivors;
  int32_t sums[panel_rows];
};
using reports = std::map<std::pair<uint32_t, uint32_t>, report>;

struct scanned_queries {
  std::vector<std::vector<int8_t>> codes;
  std::vector<scan_query> queries;
};

scanned_queries random_queries(random_source& random, const scanned_panels& panels, uint32_t count,
                               bool has_lower) {
  scanned_queries made;
  const uint32_t steps = sagitta::step_count(panels.dimension);
  // Few rows survive then, so that one wrong limit of a group of queries is not hidden by the others.
  const bool is_selective = random.below(2) == 0;
  for (uint32_t q = 0; q < count; q++) {
    std::vector<int8_t> codes(size_t{steps} * 4);
    int32_t code_sum = 0;
    for (uint32_t i = 0; i < panels.dimension; i++) {
      codes[i] = static_cast<int8_t>(random_code(random));
      code_sum += codes[i];
    }
    made.codes.push_back(std::move(codes));
    scan_query query{};
    query.offset = -128 * code_sum;
    query.has_lower = has_lower;
    query.upper_residual = static_cast<float>(random.uniform());
    query.upper_norm = static_cast<float>(2 * random.uniform() - 1);
    query.upper_square = random.below(2) == 0 ? 0 : static_cast<float>(-random.uniform());
    query.lower_norm = static_cast<float>(2 * random.uniform() - 1);
    query.lower_square = random.below(2) == 0 ? 0 : static_cast<float>(-random.uniform());
    // From where nearly all rows survive to where nearly none do, and both extremes.
    const double spread = 60 * std::sqrt(panels.dimension);
    query.upper_min = static_cast<float>(spread * (2 * random.uniform() - 1));
    query.lower_max = static_cast<float>(spread * (2 * random.uniform() - 1));
    if (is_selective) query.upper_min = static_cast<float>(spread * (2 + 2 * random.uniform()));
    if (random.below(5) == 0) query.upper_min = !is_selective && random.below(2) == 0 ? -infinity : infinity;
    if (random.below(5) == 0) query.lower_max = infinity;
    made.queries.push_back(query);
  }
  return made;
}

void require_released() {
#if defined(SAGITTA_EMULATE)
  require(!sagitta::emulated_tiles::in_use(), "a scan leaves its tiles in use");
#endif
}

/** Scans like a search: in groups, with packed queries anywhere in memory. */
template <class Emit>
void scan_groups(const target& functions, const scanned_panels& panels, const scanned_queries& made,
                 Emit& emit) {
  const uint32_t steps = sagitta::step_count(panels.dimension);
  const auto count = static_cast<uint32_t>(made.queries.size());
  for (uint32_t first = 0; first < count; first += functions.query_group) {
    const uint32_t together = std::min(functions.query_group, count - first);
    struct context {
      Emit* emit;
      uint32_t first;
      scan_query** queries;
    };
    std::vector<scan_query> copies(made.queries.begin() + first, made.queries.begin() + first + together);
    std::vector<scan_query*> pointers;
    std::vector<std::unique_ptr<guarded_bytes>> packed;
    for (uint32_t q = 0; q < together; q++) {
      packed.push_back(std::make_unique<guarded_bytes>(size_t{steps} * panels.scan_of(functions).query_step_bytes));
      panels.scan_of(functions).pack_query(made.codes[first + q].data(), steps, packed.back()->data());
      copies[q].packed = packed.back()->data();
      pointers.push_back(&copies[q]);
    }
    context known{&emit, first, pointers.data()};
    scan_task task{};
    task.panels = panels.panels();
    task.panel_count = panels.count;
    task.dimension = panels.dimension;
    task.stride = panels.stride;
    task.codes = panels.codes();
    task.limits = functions.limit_rows(panels.panels(), panels.stride, panels.count * panel_rows);
    task.queries = pointers.data();
    task.query_count = together;
    task.context = &known;
    task.emit = [](void* opaque, uint32_t query, uint32_t panel, uint32_t survivors,
                   const int32_t* sums) {
      const auto& own = *static_cast<const context*>(opaque);
      (*own.emit)(own.first + query, panel, survivors, sums, *own.queries[query]);
    };
    panels.scan_of(functions).scan(task);
    require_released();
  }
}

reports collect(const target& functions, const scanned_panels& panels, const scanned_queries& made) {
  reports found;
  const auto emit = [&](uint32_t query, uint32_t panel, uint32_t survivors, const int32_t* sums,
                        scan_query&) {
    require(survivors != 0 && survivors < 1u << panel_rows, "survivors of a reported panel");
    report one{survivors, {}};
    std::memcpy(one.sums, sums, sizeof one.sums);
    require(found.emplace(std::pair(query, panel), one).second, "a panel is reported once");
  };
  scan_groups(functions, panels, made, emit);
  return found;
}

/** The rows of a panel whose tests are so close that the rounding of float32 may decide them. */
uint32_t close_rows(const scan_query& query, const sagitta::panel_facts& facts, const int32_t* sums) {
  uint32_t close = 0;
  for (uint32_t row = 0; row < panel_rows; row++) {
    const double product = static_cast<double>(facts.scale[row]) * sums[row];
    const double residual = static_cast<double>(query.upper_residual) * facts.residual[row];
    const auto is_close = [&](double sign, float norm, float square, float bound) {
      if (std::isinf(bound)) return false;
      const double of_norm = static_cast<double>(norm) * facts.norm[row];
      const double of_square = static_cast<double>(square) * facts.square[row];
      const double value = product + sign * residual + of_norm + of_square;
      const double magnitude =
          std::abs(product) + residual + std::abs(of_norm) + std::abs(of_square) + std::abs(bound);
      return std::abs(value - static_cast<double>(bound)) <= 0x1p-20 * magnitude;
    };
    if (is_close(1, query.upper_norm, query.upper_square, query.upper_min)) close |= 1u << row;
    if (query.has_lower && is_close(-1, query.lower_norm, query.lower_square, query.lower_max)) {
      close |= 1u << row;
    }
  }
  return close;
}

void compare(const scanned_panels& panels, const scanned_queries& made, const std::string& what) {
  const reports expected = collect(sagitta::reference_target, panels, made);
  const reports found = collect(sagitta::selected_target(), panels, made);
  for (uint32_t q = 0; q < made.queries.size(); q++) {
    for (uint32_t panel = 0; panel < panels.count; panel++) {
      const auto its = found.find({q, panel});
      const auto reference = expected.find({q, panel});
      if (its == found.end() && reference == expected.end()) continue;
      const std::string where = what + ", query " + std::to_string(q) + ", panel " + std::to_string(panel);
      const int32_t* const sums = (its == found.end() ? reference : its)->second.sums;
      const uint32_t close = close_rows(made.queries[q], panels.facts(panel), sums);
      const uint32_t left = its == found.end() ? 0 : its->second.survivors;
      const uint32_t right = reference == expected.end() ? 0 : reference->second.survivors;
      require((left & ~close) == (right & ~close), where + ": survivors");
      if (its == found.end() || reference == expected.end()) continue;
      require(std::memcmp(its->second.sums, reference->second.sums, sizeof its->second.sums) == 0,
              where + ": sums");
    }
  }
}

/** A call that tightens a test ends the reports of its query; one that throws ends the scan. */
void test_calls(random_source& random, uint32_t query_count) {
  const scanned_panels panels(random, 11, 100, false);
  scanned_queries made = random_queries(random, panels, query_count, false);
  for (scan_query& query : made.queries) query.upper_min = -infinity;
  std::vector<uint32_t> calls(query_count);
  const auto tighten = [&](uint32_t query, uint32_t, uint32_t, const int32_t*, scan_query& test) {
    calls[query]++;
    test.upper_min = infinity;
  };
  scan_groups(sagitta::selected_target(), panels, made, tighten);
  for (const uint32_t count : calls) require(count == 1, "a tightened test holds from the next panel on");

  const auto fail = [&](uint32_t, uint32_t, uint32_t, const int32_t*, scan_query&) { throw 7; };
  bool has_failed = false;
  try {
    scan_groups(sagitta::selected_target(), panels, made, fail);
  } catch (int) {
    has_failed = true;
  }
  require(has_failed, "an exception leaves the scan");
  require_released();
}

}  // namespace

void test_scans(random_source& random, bool is_quick) {
  const auto run = [&](uint32_t dimension, uint32_t query_count, bool is_head = false) {
    const uint32_t panel_count = 1 + random.below(dimension > 2000 ? 3 : 9);
    const scanned_panels panels(random, panel_count, dimension, is_head);
    const bool has_lower = random.below(2) == 0;
    compare(panels, random_queries(random, panels, query_count, has_lower),
            std::string(is_head ? "scan of head tiles" : "scan") + ", dimension " + std::to_string(dimension) + ", " + std::to_string(query_count) +
                " queries, " + std::to_string(panel_count) + " panels" +
                (has_lower ? ", with rank keys" : ""));
  };
  for (uint32_t dimension = 1; dimension <= 200; dimension += is_quick && dimension > 20 ? 7 : 1) {
    run(dimension, 1 + random.below(33));
  }
  for (uint32_t query_count = 1; query_count <= 33; query_count++) {
    run(64, query_count);
    run(100, query_count);
    run(1 + random.below(600), query_count);
  }
  // Around the dimensions from which on the target for AMX takes fewer queries at once.
  for (const uint32_t dimension : {767u, 1024u, 4095u, 4096u, 4097u, 8192u, 8196u, 12288u, 16383u, 16384u}) {
    run(dimension, 1 + random.below(33));
    if (!is_quick) run(dimension, 32);
  }
  for (uint32_t directions = 32; directions <= 384; directions += 32) {
    for (const uint32_t query_count : {1u, 2u, 5u, 1 + random.below(33), 32u}) run(directions, query_count, true);
  }
  for (const uint32_t query_count : {1u, 3u, 4u, 16u, 17u, 32u, 33u}) test_calls(random, query_count);
}

}  // namespace check
