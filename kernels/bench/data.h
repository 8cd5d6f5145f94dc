// Helpers of the benches: clocks, threads, and unit vectors from a fixed seed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "../testing/check.h"

namespace bench {

using steady_clock = std::chrono::steady_clock;

inline double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <class Work>
void on_threads(uint32_t thread_count, const Work& work) {
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < thread_count; t++) threads.emplace_back([&work, t] { work(t); });
  for (std::thread& thread : threads) thread.join();
}

/** [256, dimension] */
inline std::vector<float> create_centers(uint32_t dimension) {
  check::random_source random(1);
  std::vector<float> centers(size_t{256} * dimension);
  for (float& value : centers) value = random.normal();
  return centers;
}

/** The first seeds of rows and of queries, far enough apart that no vector is in both. */
constexpr uint64_t rows_seed = 1'000;
constexpr uint64_t queries_seed = 1'000'000'000;

/**
 * Fills unit vectors [rows, dimension] around 256 centers, or in all directions alike if `centers` is
 * empty. They depend on the seed but not on the number of threads.
 */
inline void fill_unit_vectors(float* values, uint32_t row_count, uint32_t dimension,
                              const std::vector<float>& centers, uint64_t first_seed,
                              uint32_t thread_count) {
  constexpr uint32_t rows_per_seed = 256;
  const uint32_t seed_count = (row_count + rows_per_seed - 1) / rows_per_seed;
  on_threads(thread_count, [&](uint32_t t) {
    for (uint32_t s = t; s < seed_count; s += thread_count) {
      check::random_source random(first_seed + s);
      const uint32_t end = std::min(row_count, (s + 1) * rows_per_seed);
      for (uint32_t row = s * rows_per_seed; row < end; row++) {
        float* const at = values + size_t{row} * dimension;
        const float* const center =
            centers.empty() ? nullptr : centers.data() + size_t{random.below(256)} * dimension;
        double square = 0;
        for (uint32_t i = 0; i < dimension; i++) {
          at[i] = center == nullptr ? random.normal() : center[i] + 0.7f * random.normal();
          square += static_cast<double>(at[i]) * static_cast<double>(at[i]);
        }
        const auto inverse = static_cast<float>(1 / std::sqrt(square));
        for (uint32_t i = 0; i < dimension; i++) at[i] *= inverse;
      }
    }
  });
}

}  // namespace bench
