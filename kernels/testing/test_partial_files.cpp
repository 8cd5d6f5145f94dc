// Threads read random places of files, while another one serves their requests and takes blocks away again at random: at
// every place there is what the file says. Then the fetching ends, and no thread is left waiting.

#include "test_partial_files.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>

#include "../files/partial_files.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace check {

#ifdef __linux__

namespace {

namespace files = sagitta::files;

constexpr size_t block_bytes = 65'536;
constexpr uint32_t block_count = 40;
/** The last block is shorter. */
constexpr size_t byte_length = block_count * block_bytes - 10'000;
constexpr size_t word_count = byte_length / 8;

uint64_t word_at(uint32_t seed, size_t at) { return (at + 1) * 0x9e3779b97f4a7c15ull ^ seed; }

/** A file that is mapped several times; the service keeps the blocks that it fetched. */
struct source_file {
  uint32_t seed;
  int descriptor;
  std::map<uint32_t, bool> is_fetched;
  std::vector<std::pair<uint32_t, uint32_t>> mappings;
};

void write_block(const source_file& file, uint32_t block) {
  const size_t begin = block * block_bytes;
  const size_t end = std::min(begin + block_bytes, byte_length);
  std::vector<uint64_t> words((end - begin) / 8);
  for (size_t i = 0; i < words.size(); i++) words[i] = word_at(file.seed, begin / 8 + i);
  const ssize_t written = pwrite(file.descriptor, words.data(), words.size() * 8, static_cast<off_t>(begin));
  require(written == static_cast<ssize_t>(words.size() * 8), "partial files: a block is written");
}

/** Serves requests until the pipe ends, and evicts blocks. */
void serve(int pipe, std::vector<source_file>& sources, random_source random) {
  files::block_request request{};
  while (read(pipe, &request, sizeof request) == sizeof request) {
    if (request.block == files::block_request::unmapped) continue;
    for (source_file& file : sources) {
      for (const auto& [index, generation] : file.mappings) {
        if (index != request.index || generation != request.generation) continue;
        if (!file.is_fetched[request.block]) write_block(file, request.block);
        file.is_fetched[request.block] = true;
        require(files::map_block(index, generation, request.block), "partial files: a block is mapped");
      }
      for (uint32_t i = 0; i < 3; i++) {
        const uint32_t block = 1 + random.below(block_count - 1);
        if (!file.is_fetched[block]) continue;
        for (const auto& [index, generation] : file.mappings) files::rest_block(index, generation, block);
        if (random.below(2) == 0) continue;
        bool is_absent = true;
        for (const auto& [index, generation] : file.mappings) {
          is_absent = files::drop_block(index, generation, block) && is_absent;
        }
        if (!is_absent) continue;
        file.is_fetched[block] = false;
        require(files::punch(file.descriptor, block * block_bytes, block_bytes), "partial files: a hole is made");
      }
    }
  }
}

/** The kernel writes what is read here, which the sanitizer does not see. */
#if defined(__clang__) || defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#endif
uint64_t load(const void* data, size_t at) {
  return static_cast<const volatile uint64_t*>(data)[at];
}

}  // namespace

void test_partial_files(random_source& random, bool is_quick) {
  if (!files::has_partial_files()) return;
  std::signal(SIGPIPE, SIG_IGN);
  uint32_t queue = 0;
  int pipe = -1;
  files::failure failed{};
  require(files::open_queue(queue, pipe, failed), "partial files: a queue is opened");
  std::vector<source_file> sources;
  std::vector<files::mapping> mappings;
  std::vector<uint32_t> seeds;
  for (uint32_t seed = 1; seed <= 2; seed++) {
    const int descriptor = memfd_create("sagitta-test", MFD_CLOEXEC);
    require(ftruncate(descriptor, static_cast<off_t>(byte_length)) == 0, "partial files: a file is made");
    sources.push_back({seed, descriptor, {}, {}});
    write_block(sources.back(), 0);
    for (int i = 0; i < 2; i++) {
      files::mapping mapped{};
      uint32_t generation = 0;
      const files::partial_options options{descriptor, byte_length, block_bytes, {{0, 1}}, queue};
      require(files::map_partial_file(options, mapped, generation, failed), "partial files: a file is mapped");
      sources.back().mappings.emplace_back(mapped.index, generation);
      mappings.push_back(mapped);
      seeds.push_back(seed);
    }
  }
  std::thread service(serve, pipe, std::ref(sources), random_source(random.next()));
  std::atomic<uint32_t> wrong_count = 0;
  std::vector<std::thread> readers;
  const uint32_t read_count = is_quick ? 1'000 : 5'000;
  for (int i = 0; i < 4; i++) {
    readers.emplace_back([&, places = random_source(random.next())]() mutable {
      for (uint32_t j = 0; j < read_count; j++) {
        const uint32_t which = places.below(static_cast<uint32_t>(mappings.size()));
        const size_t at = places.below(static_cast<uint32_t>(word_count));
        if (load(mappings[which].data, at) != word_at(seeds[which], at)) wrong_count++;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  require(wrong_count == 0, "partial files: readers find what the file says");
  for (const files::mapping& mapped : mappings) {
    require(files::damage_flags[mapped.index] == 0, "partial files: none was flagged");
  }
  // Whether or not these reads wait already, they end.
  std::vector<std::thread> late;
  for (const files::mapping& mapped : mappings) {
    late.emplace_back([&mapped] {
      for (uint32_t block = 0; block < block_count; block++) load(mapped.data, block * block_bytes / 8);
    });
  }
  files::close_queue(queue);
  for (std::thread& reader : late) reader.join();
  for (const files::mapping& mapped : mappings) {
    require(files::damage_flags[mapped.index] == files::flag_unavailable, "partial files: all were flagged");
    files::unmap_partial_file(mapped);
  }
  service.join();
  close(pipe);
  for (const source_file& file : sources) close(file.descriptor);
}

#else

void test_partial_files(random_source&, bool) {}

#endif

}  // namespace check
