// Benchmarks the GPU kernels without Node: the peak rates of a device, and the share that searches reach.
//
//   cuda-bench [--device N] [--kernels mma|wgmma|wgmma-ring] [--json] peaks
//   cuda-bench … scan [--data clustered|isotropic|FILE] [--seed N] [--rows N] [--dimension D] [--blocks ROWS]
//                     [--batches 1,16,128] [--ks 10,100] [--filters 100,10,1] [--seconds S] [--host-values]
//                     [--method auto,tiles,coarse] [--check QUERIES] [--profile]
//
// Data are unit vectors from a seed, around 256 centers or in all directions alike (which no bound prunes
// well), or those of a file, row-major [rows, dimension] float32: its last rows are the queries, and --rows
// is a limit. They are in blocks of --blocks rows, by default those of the service: 64 MiB of values.
// Filters are percentages of rows that pass; all queries of a batch have the same filter. The answers to
// --check queries of each batch are compared with the CPU kernels before timing; a wrong answer exits with
// 1. Times are medians of CUDA events. With --profile, a profiler that was started with recording off
// records one search of each case. The exit code is 77 without a device, and 2 if the data do not fit or
// the usage is wrong.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "../../bench/data.h"
#include "../../layout.h"
#include "../device.h"
#include "peaks.h"

namespace {

using namespace bench;

constexpr int no_device = 77;
/** The rows of a block of the service: at most this many bytes of values and this many rows. */
constexpr uint32_t block_value_bytes = 64u << 20;
constexpr uint32_t block_rows_max = 65'536;
/** Rows that a thread encodes at a time; whole panels. */
/** The rows that a basis is learned from; it takes a sample of them. */
constexpr uint32_t learned_rows = 65536;
constexpr uint32_t encoded_rows = 64 * sagitta::panel_rows;

struct options {
  uint32_t device = 0;
  const char* kernels = nullptr;
  /** clustered, isotropic, or the name of a file. */
  std::string data = "clustered";
  uint64_t seed = 1;
  uint32_t rows = 100'000;
  uint32_t dimension = 768;
  /** Rows of a block; 0 for as many as in the service. */
  uint32_t block_rows = 0;
  std::vector<uint32_t> batches = {1, 16, 128, 1024, 4096};
  std::vector<uint32_t> ks = {10};
  std::vector<double> filters = {100};
  double seconds = 1;
  std::vector<sagitta_method> methods = {SAGITTA_METHOD_AUTO};
  /** The number of queries of a batch whose answers are compared with the CPU's. */
  uint32_t checked = 4;
  bool has_values = true;
  bool as_json = false;
  bool is_profiled = false;
};

const char* const method_names[] = {"auto", "tiles", "coarse", "head"};

void require_ok(sagitta_status status, const char* what) {
  if (status == SAGITTA_OK) return;
  std::fprintf(stderr, "cuda-bench: %s: %s\n", what, sagitta_device_error());
  std::exit(status == SAGITTA_OUT_OF_MEMORY ? 2 : 1);
}

[[noreturn]] void end_without_room(const std::string& why) {
  std::fprintf(stderr, "cuda-bench: %s\n", why.c_str());
  std::exit(2);
}

/** Returns the file's name without folder and extension, as printed in lines of results. */
std::string name_of(const std::string& data) {
  const size_t from = data.rfind('/') + 1;
  return data.substr(from, data.find('.', from) - from);
}

/** Memory that is not filled, so that the threads that write it share the cost of its first use. */
template <class Element>
using array = std::unique_ptr<Element[]>;
template <class Element>
array<Element> array_of(size_t count) {
  return std::make_unique_for_overwrite<Element[]>(count);
}

/** The rows of a block of the data, with their codes. */
struct data_block {
  uint32_t first_row;
  uint32_t row_count;
  array<uint8_t> codes;
  /** Null if the dimension has no coarse codes. */
  array<uint8_t> coarse;
  /** Null if the data has no basis. */
  array<uint8_t> head;
};

/** Rows with codes, created on all cores because there may be tens of gigabytes, and queries. */
struct data {
  explicit data(const options& wanted)
      : name(name_of(wanted.data)), seed(wanted.seed), dimension(wanted.dimension) {
    const uint32_t query_count = *std::max_element(wanted.batches.begin(), wanted.batches.end());
    queries = array_of<float>(size_t{query_count} * dimension);
    if (wanted.data == "clustered" || wanted.data == "isotropic") {
      const std::vector<float> centers =
          wanted.data == "clustered" ? create_centers(dimension) : std::vector<float>();
      row_count = wanted.rows;
      values = array_of<float>(size_t{row_count} * dimension);
      fill_unit_vectors(values.get(), row_count, dimension, centers, seed * rows_seed, threads);
      fill_unit_vectors(queries.get(), query_count, dimension, centers, seed * queries_seed, threads);
    } else {
      read(wanted.data, wanted.rows, query_count);
    }
    uint32_t rows = wanted.block_rows;
    if (rows == 0) {
      const auto of_service = static_cast<uint32_t>(block_value_bytes / sizeof(float) / dimension);
      rows = std::clamp(of_service, 1u, block_rows_max);
    }
    for (uint32_t first = 0; first < row_count; first += rows) {
      blocks.push_back({first, std::min(rows, row_count - first), nullptr, nullptr, nullptr});
    }
    learn();
    encode();
    set_ids(std::min(rows, row_count));
  }
  const float* values_of(const data_block& of) const { return values.get() + size_t{of.first_row} * dimension; }
  /** Returns the block as the CPU searches it, without coarse codes and head tiles. */
  sagitta_block block(const data_block& of) const {
    sagitta_block made{};
    made.values = values_of(of);
    made.codes = of.codes.get();
    made.id_offsets = id_offsets.data();
    made.id_bytes = id_bytes.data() + 4 * size_t{of.first_row};
    made.row_count = of.row_count;
    return made;
  }
  const uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::string name;
  uint64_t seed;
  uint32_t dimension;
  uint32_t row_count = 0;
  std::vector<data_block> blocks;
  /** The basis of all blocks; empty if head tiles would not make searches of these rows by a CPU faster. */
  std::vector<uint8_t> basis;
  /** [rows, dimension] */
  array<float> values;
  /** [the largest batch, dimension] */
  array<float> queries;
  /** Offsets in a block, which are the same for all, and ids, which are big-endian row numbers. */
  std::vector<int32_t> id_offsets;
  std::vector<uint8_t> id_bytes;

 private:
  void learn() {
    basis.resize(sagitta_basis_bytes(dimension));
    if (basis.empty()) return;
    size_t byte_count = 0;
    require_ok(sagitta_learn_basis(values.get(), std::min(row_count, learned_rows), dimension, nullptr, 0,
                                   basis.data(), &byte_count),
               "basis");
    basis.resize(byte_count);
  }
  void encode() {
    struct piece {
      const data_block* block;
      uint32_t from;
    };
    std::vector<piece> pieces;
    for (data_block& each : blocks) {
      each.codes = array_of<uint8_t>(sagitta_codes_bytes(each.row_count, dimension));
      const size_t bytes = sagitta_coarse_bytes(each.row_count, dimension);
      if (bytes > 0) each.coarse = array_of<uint8_t>(bytes);
      if (!basis.empty()) each.head = array_of<uint8_t>(sagitta_head_bytes(each.row_count, dimension));
      for (uint32_t from = 0; from < each.row_count; from += encoded_rows) {
        pieces.push_back({&each, from});
      }
    }
    const size_t coarse_bytes = sagitta::coarse_panel_bytes(dimension);
    on_threads(threads, [&](uint32_t t) {
      std::vector<uint8_t> refinement(sagitta_refinement_bytes(encoded_rows, dimension));
      for (size_t i = t; i < pieces.size(); i += threads) {
        const auto [block, from] = pieces[i];
        const uint32_t to = std::min(block->row_count, from + encoded_rows);
        const float* const rows = values_of(*block);
        sagitta_encode(rows, dimension, from, to, block->codes.get());
        if (block->head != nullptr) {
          sagitta_encode_head(rows, dimension, from, to, basis.data(), basis.size(), block->head.get(),
                              sagitta_head_bytes(block->row_count, dimension));
        }
        if (block->coarse == nullptr) continue;
        sagitta_encode_coarse(rows + size_t{from} * dimension, dimension, 0, to - from,
                              block->coarse.get() + from / sagitta::panel_rows * coarse_bytes, refinement.data());
      }
    });
  }
  void set_ids(uint32_t block_rows) {
    id_offsets.resize(block_rows + size_t{1});
    for (uint32_t i = 0; i <= block_rows; i++) id_offsets[i] = static_cast<int32_t>(4 * i);
    id_bytes.resize(4 * size_t{row_count});
    for (size_t i = 0; i < id_bytes.size(); i++) {
      id_bytes[i] = static_cast<uint8_t>(i / 4 >> (24 - 8 * (i % 4)));
    }
  }
  void read(const std::string& path, uint32_t row_limit, uint32_t query_count) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) end_without_room(path + " cannot be read");
    const size_t row_bytes = dimension * sizeof(float);
    const auto byte_count = static_cast<size_t>(file.tellg());
    const size_t all = byte_count / row_bytes;
    if (byte_count % row_bytes != 0 || all <= query_count) {
      end_without_room(path + ": expected rows of " + std::to_string(dimension) +
                       " float32 numbers, more than the largest batch");
    }
    row_count = static_cast<uint32_t>(std::min<size_t>(row_limit, all - query_count));
    values = array_of<float>(size_t{row_count} * dimension);
    const auto read_into = [&](float* to, size_t first_row, size_t count) {
      file.seekg(static_cast<std::streamoff>(first_row * row_bytes));
      file.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count * row_bytes));
    };
    read_into(values.get(), 0, row_count);
    read_into(queries.get(), all - query_count, query_count);
    if (!file) end_without_room(path + " cannot be read");
  }
};

struct batch_case {
  uint32_t queries;
  uint32_t k;
  double filter;
  sagitta_method method;
};

class searcher {
 public:
  searcher(const options& wanted, sagitta_device* device, const data& from)
      : options_(wanted), device_(device), data_(from) {
    const auto start = steady_clock::now();
    for (const data_block& each : from.blocks) {
      sagitta_device_block*& resident = residents_.emplace_back();
      require_ok(sagitta_device_block_create(device, from.dimension, &resident), "block");
      const bool has_head = wanted.has_values && each.head != nullptr;
      require_ok(sagitta_device_block_reserve(resident, each.row_count, wanted.has_values, has_head), "rows");
      blocks_.push_back(from.block(each));
      sagitta_block rows = blocks_.back();
      rows.coarse = each.coarse.get();
      if (has_head) {
        rows.basis = from.basis.data();
        rows.basis_bytes = from.basis.size();
        rows.head = each.head.get();
        rows.head_bytes = sagitta_head_bytes(each.row_count, from.dimension);
      }
      require_ok(sagitta_device_block_extend(resident, &rows, each.row_count), "rows");
    }
    staged_seconds = seconds_since(start);
  }
  searcher(const searcher&) = delete;
  ~searcher() {
    for (sagitta_device_block* const resident : residents_) sagitta_device_block_destroy(resident);
  }

  void run(const batch_case& what, const sagitta::cuda::device_peaks& peaks);
  /** The time until all but the last 16 MiB of rows were uploaded. */
  double staged_seconds = 0;

 private:
  sagitta_device_answer* search(const sagitta_batch& batch) {
    sagitta_device_answer* answer = nullptr;
    require_ok(sagitta_device_search(device_, &batch, residents_.data(), &answer), "search");
    return answer;
  }
  void check_answers(const sagitta_batch& batch, const sagitta_device_answer* answer);
  void print(const batch_case& what, const sagitta::cuda::device_peaks& peaks,
             const std::vector<double>& device_ms, const std::vector<double>& wall_ms,
             const sagitta_device_times& times, double rescored, uint32_t undecided);

  const options& options_;
  sagitta_device* device_;
  const data& data_;
  std::vector<sagitta_block> blocks_;
  std::vector<sagitta_device_block*> residents_;
};

/** Compares answers with the CPU kernels, which have their own tests. */
void searcher::check_answers(const sagitta_batch& batch, const sagitta_device_answer* answer) {
  const uint32_t step = std::max(1u, batch.query_count / std::max(1u, options_.checked));
  std::vector<sagitta_query> few;
  std::vector<uint32_t> numbers;
  for (uint32_t q = 0; q < batch.query_count && few.size() < options_.checked; q += step) {
    few.push_back(batch.queries[q]);
    numbers.push_back(q);
  }
  if (few.empty()) return;
  sagitta_batch checked = batch;
  checked.queries = few.data();
  checked.query_count = static_cast<uint32_t>(few.size());
  checked.worker_count = data_.threads;
  checked.method = SAGITTA_METHOD_AUTO;
  sagitta_search* truth = nullptr;
  check::require(sagitta_search_create(&checked, &truth) == SAGITTA_OK, "the search of the CPU");
  on_threads(checked.worker_count, [&](uint32_t) {
    int is_done = 0;
    sagitta_search_work(truth, &is_done);
  });
  for (uint32_t i = 0; i < few.size(); i++) {
    sagitta_hits expected{};
    sagitta_hits actual{};
    check::require(sagitta_search_hits(truth, i, &expected) == SAGITTA_OK, "the hits of the CPU");
    if (sagitta_device_answer_hits(answer, numbers[i], &actual) == SAGITTA_NOT_DONE) continue;
    const std::string where = "query " + std::to_string(numbers[i]);
    check::require(actual.count == expected.count, where + ": as many hits as on the CPU");
    for (uint32_t hit = 0; hit < actual.count; hit++) {
      check::require(actual.views[hit] == expected.views[hit] && actual.rows[hit] == expected.rows[hit] &&
                         std::memcmp(&actual.scores[hit], &expected.scores[hit], 8) == 0,
                     where + ", hit " + std::to_string(hit) + ": as on the CPU");
    }
  }
  sagitta_search_destroy(truth);
}

void searcher::run(const batch_case& what, const sagitta::cuda::device_peaks& peaks) {
  check::random_source random(7);
  const auto block_count = static_cast<uint32_t>(blocks_.size());
  std::vector<std::vector<uint32_t>> bitmaps(block_count);
  std::vector<sagitta_block_view> views(block_count);
  for (uint32_t b = 0; b < block_count; b++) {
    const uint32_t row_count = blocks_[b].row_count;
    if (what.filter < 100) bitmaps[b] = check::random_bitmap(random, row_count, what.filter / 100);
    views[b] = {bitmaps[b].empty() ? nullptr : bitmaps[b].data(), b, row_count};
  }
  std::vector<sagitta_query> queries(what.queries);
  for (uint32_t q = 0; q < what.queries; q++) {
    queries[q].vector = data_.queries.get() + size_t{q} * data_.dimension;
    queries[q].floor = -INFINITY;
    queries[q].metric = SAGITTA_COSINE;
    queries[q].k = what.k;
    queries[q].view_count = block_count;
  }
  const sagitta_batch batch{blocks_.data(), views.data(),    queries.data(), block_count,    block_count,
                            what.queries,   data_.dimension, 1,              what.method};
  sagitta_device_answer* first = search(batch);
  check_answers(batch, first);
  uint64_t rescored = 0;
  uint32_t undecided = 0;
  for (uint32_t q = 0; q < what.queries; q++) {
    sagitta_hits hits{};
    if (sagitta_device_answer_hits(first, q, &hits) == SAGITTA_NOT_DONE) undecided++;
    rescored += hits.rescored_count;
  }
  sagitta_device_answer_destroy(first);
  if (options_.is_profiled) {
    sagitta::cuda::start_profile();
    sagitta_device_answer_destroy(search(batch));
    sagitta::cuda::stop_profile();
  }
  std::vector<double> device_ms;
  std::vector<double> wall_ms;
  sagitta_device_times times{};
  for (const auto started = steady_clock::now();
       device_ms.size() < 5 || seconds_since(started) < options_.seconds;) {
    const auto start = steady_clock::now();
    sagitta_device_answer* answer = search(batch);
    wall_ms.push_back(1e3 * seconds_since(start));
    require_ok(sagitta_device_answer_times(answer, &times), "times");
    device_ms.push_back(times.total_ms);
    sagitta_device_answer_destroy(answer);
  }
  print(what, peaks, device_ms, wall_ms, times, static_cast<double>(rescored) / what.queries, undecided);
}

void searcher::print(const batch_case& what, const sagitta::cuda::device_peaks& peaks,
                     const std::vector<double>& device_ms, const std::vector<double>& wall_ms,
                     const sagitta_device_times& times, double rescored, uint32_t undecided) {
  const double ms = median(device_ms);
  const double code_bytes = static_cast<double>(data_.row_count) * data_.dimension;
  const double best =
      std::max(peaks.mma_operations_per_second, peaks.wgmma_operations_per_second);
  // No time has passed on the device if no row passes the filter.
  const double per_second = ms > 0 ? 1e3 / ms : 0;
  const double of_copy = code_bytes * per_second / peaks.copy_bytes_per_second;
  const double of_matrix = 2 * code_bytes * what.queries * per_second / best;
  const unsigned long long repeated = times.repeated_queries;
  const unsigned long long coarse = times.coarse_queries;
  const unsigned long long head = times.head_queries;
  const unsigned long long abandoned = times.abandoned_queries;
  if (options_.as_json) {
    std::printf(
        "{\"scan\":\"%s\",\"method\":\"%s\",\"data\":\"%s\",\"seed\":%llu,\"rows\":%u,\"blocks\":%zu,"
        "\"dimension\":%u,\"queries\":%u,\"k\":%u,\"filter_percent\":%g,"
        "\"device_ms_p50\":%.4f,\"wall_ms_p50\":%.4f,\"scan_ms\":%.4f,\"rescore_ms\":%.4f,"
        "\"select_ms\":%.4f,\"upload_ms\":%.4f,\"prepare_ms\":%.4f,\"finish_ms\":%.4f,"
        "\"queries_per_s\":%.1f,\"share_of_copy\":%.4f,\"share_of_int8\":%.4f,"
        "\"rescored_per_query\":%.1f,\"repeated\":%llu,\"coarse\":%llu,\"head\":%llu,\"abandoned\":%llu,"
        "\"undecided\":%u,\"checked\":%u,\"exact\":true}\n",
        options_.kernels == nullptr ? "best" : options_.kernels, method_names[what.method],
        data_.name.c_str(), static_cast<unsigned long long>(data_.seed), data_.row_count,
        blocks_.size(), data_.dimension, what.queries, what.k, what.filter, ms, median(wall_ms),
        times.scan_ms, times.rescore_ms, times.select_ms, times.upload_ms, times.prepare_ms,
        times.finish_ms, what.queries / median(wall_ms) * 1e3, of_copy, of_matrix, rescored, repeated,
        coarse, head, abandoned, undecided, std::min(options_.checked, what.queries));
  } else {
    std::printf(
        "%s, %u × %u, %4u queries, k %3u, %5.4g %% pass: %9.3f ms (wall %9.3f), scan %.3f, rescore %.3f, "
        "select %.3f; %5.1f %% of copy, %5.1f %% of int8; %.1f rescored per query, %llu scanned again, "
        "%llu answered by coarse codes, %llu by head tiles, %llu by neither after a sample, %u undecided, exact\n",
        data_.name.c_str(), data_.row_count, data_.dimension, what.queries, what.k, what.filter, ms,
        median(wall_ms), times.scan_ms, times.rescore_ms, times.select_ms, 100 * of_copy,
        100 * of_matrix, rescored, repeated, coarse, head, abandoned, undecided);
  }
  std::fflush(stdout);
}

template <class Number>
std::vector<Number> numbers_of(const std::string& text) {
  std::vector<Number> numbers;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    numbers.push_back(static_cast<Number>(std::strtod(item.c_str(), nullptr)));
  }
  return numbers;
}

/** Returns nothing if a word is not the name of a method. */
std::vector<sagitta_method> methods_of(const std::string& text) {
  std::vector<sagitta_method> methods;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    const auto found = std::find(std::begin(method_names), std::end(method_names), item);
    if (found == std::end(method_names)) return {};
    methods.push_back(static_cast<sagitta_method>(found - std::begin(method_names)));
  }
  return methods;
}

int usage(const char* why) {
  std::fprintf(stderr, "cuda-bench: %s; usage: cuda-bench [options] peaks | scan (see bench.cpp)\n", why);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  options wanted;
  std::string command;
  for (int i = 1; i < argc; i++) {
    const std::string name = argv[i];
    if (name == "--json") wanted.as_json = true;
    else if (name == "--host-values") wanted.has_values = false;
    else if (name == "--profile") wanted.is_profiled = true;
    else if (name.rfind("--", 0) != 0) command = name;
    else if (i + 1 == argc) return usage((name + " has no value").c_str());
    else if (name == "--kernels") wanted.kernels = argv[++i];
    else if (name == "--batches") wanted.batches = numbers_of<uint32_t>(argv[++i]);
    else if (name == "--ks") wanted.ks = numbers_of<uint32_t>(argv[++i]);
    else if (name == "--filters") wanted.filters = numbers_of<double>(argv[++i]);
    else if (name == "--seconds") wanted.seconds = std::strtod(argv[++i], nullptr);
    else if (name == "--device") wanted.device = numbers_of<uint32_t>(argv[++i])[0];
    else if (name == "--data") wanted.data = argv[++i];
    else if (name == "--blocks") wanted.block_rows = numbers_of<uint32_t>(argv[++i])[0];
    else if (name == "--check") wanted.checked = numbers_of<uint32_t>(argv[++i])[0];
    else if (name == "--method") wanted.methods = methods_of(argv[++i]);
    else if (name == "--seed") wanted.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (name == "--rows") wanted.rows = numbers_of<uint32_t>(argv[++i])[0];
    else if (name == "--dimension") wanted.dimension = numbers_of<uint32_t>(argv[++i])[0];
    else return usage(("unknown option " + name).c_str());
  }
  if (command != "peaks" && command != "scan") return usage("expected peaks or scan");
  if (wanted.methods.empty()) return usage("--method takes auto, tiles, coarse or head, or several of them");
  if (wanted.batches.empty()) return usage("--batches takes at least one number of queries");
  uint32_t device_count = 0;
  if (sagitta_device_count(&device_count) != SAGITTA_OK || device_count == 0) {
    std::fprintf(stderr, "cuda-bench: skipped, no device: %s\n",
                 device_count == 0 ? "none found" : sagitta_device_error());
    return no_device;
  }
  sagitta_device_facts facts{};
  require_ok(sagitta_device_identify(wanted.device, &facts), "device");
  const std::string kernels = wanted.kernels == nullptr ? "" : wanted.kernels;
  if (facts.compute_capability != 90 && kernels.rfind("wgmma", 0) == 0) {
    std::fprintf(stderr, "cuda-bench: skipped, %s has no wgmma\n", facts.name);
    return no_device;
  }
  sagitta_device* device = nullptr;
  require_ok(sagitta_device_open(wanted.device, wanted.kernels, &device), "device");
  require_ok(sagitta_device_describe(device, &facts), "device");
  // The peak of wgmma is left out where only mma is used: where wgmma faults, the rest can still be measured.
  const bool uses_wgmma = std::strcmp(facts.kernels, "mma") != 0;
  const sagitta::cuda::device_peaks peaks = sagitta::cuda::measure_peaks(uses_wgmma);
  std::printf(wanted.as_json
                  ? "{\"device\":\"%s\",\"kernels\":\"%s\",\"compute_capability\":%u,\"driver\":%u,"
                    "\"runtime\":%u,\"copy_gb_per_s\":%.1f,\"mma_int8_top_per_s\":%.1f,"
                    "\"wgmma_int8_top_per_s\":%.1f}\n"
                  : "%s, kernels %s, compute capability %u, driver %u, runtime %u: copy %.1f GB/s, "
                    "int8 by mma %.1f, by wgmma %.1f Top/s\n",
              facts.name, facts.kernels, facts.compute_capability, facts.driver_version,
              facts.runtime_version, peaks.copy_bytes_per_second / 1e9,
              peaks.mma_operations_per_second / 1e12, peaks.wgmma_operations_per_second / 1e12);
  if (command == "scan") {
    const data made(wanted);
    searcher searching(wanted, device, made);
    if (!wanted.as_json) {
      std::printf("%s, seed %llu, %zu blocks, uploaded in %.2f s\n", made.name.c_str(),
                  static_cast<unsigned long long>(made.seed), made.blocks.size(), searching.staged_seconds);
    }
    for (const double filter : wanted.filters) {
      for (const uint32_t k : wanted.ks) {
        for (const uint32_t queries : wanted.batches) {
          for (const auto method : wanted.methods) searching.run({queries, k, filter, method}, peaks);
        }
      }
    }
  }
  sagitta_device_close(device);
}
