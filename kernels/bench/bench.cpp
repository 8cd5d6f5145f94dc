// Benchmarks the kernels without Node: the peak rates of the machine, and the share that a search reaches.
//
//   bench targets
//   bench peaks [--threads N] [--target NAME] [--json]
//   bench scan  [--rows N] [--dimension D] [--queries Q] [--k K] [--threads T] [--target NAME]
//               [--seconds S] [--json]
//
// A scan compares queries with brute force before timing; a wrong answer exits with 1. The data are
// clustered unit vectors from a fixed seed.

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../testing/check.h"
#include "data.h"
#include "peaks.h"

namespace {

using namespace bench;

const sagitta::peak_functions& peaks_of_target() {
  const sagitta::peak_functions* const known[] = {
      sagitta::avx512_amx_peaks, sagitta::avx512_vnni_peaks, sagitta::avx_vnni_peaks,
      sagitta::avx2_peaks, sagitta::neon_dotprod_peaks};
  for (const sagitta::peak_functions* candidate : known) {
    if (candidate == nullptr) continue;
    if (std::strcmp(candidate->name, sagitta_selected_target()) == 0) return *candidate;
  }
  return sagitta::baseline_peaks;
}

/** Measures operations per second of all threads: the median of five runs of a tenth of a second. */
double operations_per_second(uint32_t thread_count, double (*operations)(uint64_t)) {
  constexpr uint64_t rounds = 200'000;
  std::vector<double> rates;
  for (int run = 0; run < 5; run++) {
    // Each on its own cache line, so that threads do not wait for each other's.
    struct alignas(64) count {
      double operations = 0;
    };
    std::vector<count> done(thread_count);
    const auto start = steady_clock::now();
    on_threads(thread_count, [&](uint32_t t) {
      while (seconds_since(start) < 0.1) done[t].operations += operations(rounds);
    });
    double total = 0;
    for (const count& own : done) total += own.operations;
    rates.push_back(total / seconds_since(start));
  }
  return median(rates);
}

/** Working sets to read: in the caches of the cores, in a shared cache, and in memory. */
constexpr size_t read_bytes[] = {size_t{1} << 20, size_t{1} << 22, size_t{1} << 24,
                                 size_t{1} << 26, size_t{1} << 28, size_t{1} << 30};
/** The number of bytes read in one measurement, however small the working set is. */
constexpr size_t read_bytes_min = size_t{1} << 29;

/** Measures bytes per second of all threads, each reading its share of the first `bytes` of the memory. */
double read_rate(uint32_t thread_count, const sagitta::peak_functions& peaks,
                 const uint8_t* memory, size_t bytes) {
  const size_t share = bytes / thread_count / 16384 * 16384;
  const size_t repeats = std::max<size_t>(1, read_bytes_min / bytes);
  double most = 0;
  for (const auto read : peaks.reads) {
    std::vector<double> rates;
    for (int run = 0; run < 5; run++) {
      std::atomic<uint64_t> sum = 0;
      const auto start = steady_clock::now();
      on_threads(thread_count, [&](uint32_t t) {
        for (size_t i = 0; i < repeats; i++) sum += read(memory + t * share, share);
      });
      rates.push_back(static_cast<double>(share * repeats) * thread_count / seconds_since(start));
      if (sum == 0) std::abort();
    }
    most = std::max(most, median(rates));
  }
  return most;
}

/** Memory of ones in huge pages if the system has them; with small pages, the page tables would be the limit. */
class huge_memory {
 public:
  explicit huge_memory(size_t bytes) {
    constexpr size_t page_bytes = size_t{1} << 21;
    bytes_ = static_cast<uint8_t*>(std::aligned_alloc(page_bytes, bytes + page_bytes));
    check::require(bytes_ != nullptr, "memory for the working sets");
#if defined(__linux__)
    madvise(bytes_, bytes + page_bytes, MADV_HUGEPAGE);
#endif
    // One extra page, since prefetches reach beyond the end.
    std::memset(bytes_, 1, bytes + page_bytes);
  }
  ~huge_memory() { std::free(bytes_); }
  huge_memory(const huge_memory&) = delete;
  huge_memory& operator=(const huge_memory&) = delete;
  const uint8_t* bytes() const { return bytes_; }

 private:
  uint8_t* bytes_;
};

void print_peaks(uint32_t thread_count, bool as_json) {
  const sagitta::peak_functions& peaks = peaks_of_target();
  const huge_memory memory(std::end(read_bytes)[-1]);
  const double floats = operations_per_second(thread_count, peaks.float_operations) / 1e9;
  const double products = operations_per_second(thread_count, peaks.int8_operations) / 1e9;
  const double clock = operations_per_second(1, sagitta::dependent_additions) / 1e9;
  const char* const format =
      as_json ? "{\"target\":\"%s\",\"threads\":%u,\"clock_ghz\":%.2f,\"f32_gflop_per_s\":%.1f,"
                "\"int8_gop_per_s\":%.1f,\"reads\":["
              : "%s, %u threads at %.2f GHz: float32 %.0f GFLOP/s, int8 %.0f Gop/s; read";
  std::printf(format, peaks.name, thread_count, clock, floats, products);
  const char* separator = "";
  for (const size_t bytes : read_bytes) {
    const double rate = read_rate(thread_count, peaks, memory.bytes(), bytes) / 1e9;
    if (as_json) std::printf("%s{\"bytes\":%zu,\"gb_per_s\":%.2f}", separator, bytes, rate);
    else std::printf("%s %zu MiB at %.1f GB/s", separator, bytes >> 20, rate);
    separator = ",";
  }
  std::puts(as_json ? "]}" : "");
}

struct scan_options {
  uint32_t rows;
  uint32_t dimension;
  uint32_t queries;
  uint32_t k;
  uint32_t threads;
  double seconds;
};

struct scan_result {
  double seconds_p50;
  double rescored_per_query;
};

void run_search(sagitta_search* search, uint32_t thread_count) {
  on_threads(thread_count, [&](uint32_t) {
    int is_done = 0;
    sagitta_search_work(search, &is_done);
  });
}

void check_answers(const sagitta_batch& batch, const sagitta_search* search) {
  for (uint32_t q = 0; q < batch.query_count; q += 1 + batch.query_count / 5) {
    sagitta_hits hits{};
    sagitta_search_hits(search, q, &hits);
    const std::vector<check::hit> expected = check::brute_force(batch, q);
    check::require(hits.count == expected.size(), "as many hits as brute force");
    for (uint32_t i = 0; i < hits.count; i++) {
      check::require(hits.rows[i] == expected[i].row, "the rows of brute force");
    }
  }
}

scan_result measure_scan(const sagitta_batch& batch, const scan_options& options) {
  std::vector<double> times;
  uint64_t rescored = 0;
  const auto started = steady_clock::now();
  for (bool is_first = true; is_first || times.size() < 5 || seconds_since(started) < options.seconds;
       is_first = false) {
    const auto start = steady_clock::now();
    sagitta_search* search = nullptr;
    check::require(sagitta_search_create(&batch, &search) == SAGITTA_OK, "create");
    run_search(search, options.threads);
    if (!is_first) times.push_back(seconds_since(start));
    if (is_first) {
      check_answers(batch, search);
      for (uint32_t q = 0; q < batch.query_count; q++) {
        sagitta_hits hits{};
        sagitta_search_hits(search, q, &hits);
        rescored += hits.rescored_count;
      }
    }
    sagitta_search_destroy(search);
  }
  return {median(times), static_cast<double>(rescored) / batch.query_count};
}

void print_scan(const scan_options& options, bool as_json) {
  const std::vector<float> centers = create_centers(options.dimension);
  check::random_source random(1);
  check::rows rows(random, check::kind::zeros, 0, options.dimension);
  rows.row_count = options.rows;
  rows.values.resize(size_t{options.rows} * options.dimension);
  fill_unit_vectors(rows.values.data(), options.rows, options.dimension, centers, rows_seed, options.threads);
  rows.id_offsets.resize(options.rows + 1);
  const auto encode_start = steady_clock::now();
  rows.encode();
  const double encode_seconds = seconds_since(encode_start);

  std::vector<float> vectors(size_t{options.queries} * options.dimension);
  fill_unit_vectors(vectors.data(), options.queries, options.dimension, centers, queries_seed, 1);
  const sagitta_block block = rows.block();
  std::vector<sagitta_block_view> views(options.queries);
  std::vector<sagitta_query> queries(options.queries);
  for (uint32_t q = 0; q < options.queries; q++) {
    views[q].row_count = options.rows;
    queries[q].vector = vectors.data() + size_t{q} * options.dimension;
    queries[q].floor = -INFINITY;
    queries[q].metric = SAGITTA_COSINE;
    queries[q].k = options.k;
    queries[q].first_view = q;
    queries[q].view_count = 1;
  }
  const sagitta_batch batch = {&block,          views.data(),    queries.data(), 1,
                               options.queries, options.queries, options.dimension, options.threads,
                               SAGITTA_METHOD_AUTO};
  const scan_result result = measure_scan(batch, options);
  const double operations = 2.0 * options.rows * options.dimension * options.queries;
  const double code_bytes = static_cast<double>(options.rows) * options.dimension;
  const char* const format =
      as_json ? "{\"target\":\"%s\",\"rows\":%u,\"dimension\":%u,\"queries\":%u,\"k\":%u,"
                "\"threads\":%u,\"seconds_p50\":%.6f,\"queries_per_s\":%.1f,\"gop_per_s\":%.1f,"
                "\"gb_per_s\":%.2f,\"rescored_per_query\":%.1f,\"encode_seconds\":%.3f,"
                "\"exact\":true}\n"
              : "%s: %u × %u, %u queries, k %u, %u threads: %.6f s, %.1f queries/s, %.1f Gop/s, "
                "%.2f GB/s, %.1f rescored per query, encoded in %.3f s, exact\n";
  std::printf(format, sagitta_selected_target(), options.rows, options.dimension, options.queries,
              options.k, options.threads, result.seconds_p50, options.queries / result.seconds_p50,
              operations / result.seconds_p50 / 1e9, code_bytes / result.seconds_p50 / 1e9,
              result.rescored_per_query, encode_seconds);
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  const std::string command = argc > 1 ? argv[1] : "";
  bool as_json = false;
  for (int i = 2; i < argc; i++) {
    if (std::strcmp(argv[i], "--json") == 0) {
      as_json = true;
    } else if (i + 1 < argc && std::strncmp(argv[i], "--", 2) == 0) {
      options[argv[i] + 2] = argv[i + 1];
      i++;
    } else {
      std::fprintf(stderr, "unknown argument %s\n", argv[i]);
      return 2;
    }
  }
  const auto number = [&](const char* name, uint32_t otherwise) {
    const auto found = options.find(name);
    return found == options.end() ? otherwise
                                  : static_cast<uint32_t>(std::strtoul(found->second.c_str(), nullptr, 10));
  };
  const uint32_t threads = std::max(1u, number("threads", std::thread::hardware_concurrency()));
  if (options.contains("target") &&
      sagitta_select_target(options["target"].c_str()) != SAGITTA_OK) {
    std::fprintf(stderr, "target %s is not available; see `bench targets`\n",
                 options["target"].c_str());
    return 2;
  }
  if (command == "targets") {
    for (size_t i = 0; i < sagitta_target_count(); i++) std::puts(sagitta_target_name(i));
  } else if (command == "peaks") {
    print_peaks(threads, as_json);
  } else if (command == "scan") {
    print_scan({number("rows", 100'000), number("dimension", 768), number("queries", 1000),
                number("k", 10), threads, static_cast<double>(number("seconds", 2))},
               as_json);
  } else {
    std::fprintf(stderr, "usage: bench targets | peaks | scan [options]; options are listed in bench.cpp\n");
    return 2;
  }
}
