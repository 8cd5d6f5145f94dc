// Computes the vectors of texts from a file of their term counts, for benches of real data.
//
//   term-vectors TERMS DIMENSION TO    TO: row-major [texts, dimension] float32
//
// Prints a line of JSON. The same terms give the same vectors up to rounding, on any machine.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>

#include "data.h"
#include "term_vectors.h"

int main(int argc, char** argv) {
  const int dimension = argc == 4 ? std::atoi(argv[2]) : 0;
  if (dimension < 1 || dimension > 16384) {
    std::fprintf(stderr, "usage: term-vectors TERMS DIMENSION TO\n");
    return 2;
  }
  try {
    std::ifstream file(argv[1], std::ios::binary);
    if (!file) throw std::runtime_error(std::string(argv[1]) + " cannot be read");
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto start = bench::steady_clock::now();
    const bench::term_counts counts = bench::read_terms(bytes);
    const uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
    const std::vector<float> vectors =
        bench::project_terms(counts, static_cast<uint32_t>(dimension), threads);
    std::ofstream to(argv[3], std::ios::binary);
    to.write(reinterpret_cast<const char*>(vectors.data()),
             static_cast<std::streamsize>(vectors.size() * sizeof(float)));
    to.close();
    if (!to) throw std::runtime_error(std::string(argv[3]) + " cannot be written");
    std::printf("{\"texts\":%zu,\"terms\":%u,\"dimension\":%d,\"seconds\":%.1f}\n",
                vectors.size() / static_cast<size_t>(dimension), counts.term_count, dimension,
                bench::seconds_since(start));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "term-vectors: %s\n", error.what());
    return 1;
  }
}
