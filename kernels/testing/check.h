// Helpers of the tests: seeded data of many kinds, brute force by the formulas, and failures that name the case.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../kernels.h"

namespace check {

/** Ends the process with a message when the condition does not hold. */
void require(bool holds, const std::string& what);

/** The generator xorshift64*, which gives the same numbers on every machine. */
class random_source {
 public:
  explicit random_source(uint64_t seed) : state_(seed * 2685821657736338717ull + 1) {}
  uint64_t next();
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(next() % bound); }
  /** A number from 0 to 1. */
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /** An approximately normal number: a sum of uniform ones. */
  float normal();

 private:
  uint64_t state_;
};

enum class kind {
  random,
  clustered,
  equal,
  duplicates,
  outlier,
  denormal,
  zeros,
  sorted,
  huge,
  scattered,
};
inline constexpr kind all_kinds[] = {kind::random,   kind::clustered, kind::equal, kind::duplicates,
                                     kind::outlier,  kind::denormal,  kind::zeros, kind::sorted,
                                     kind::huge,     kind::scattered};
/** Returns the kinds that the tests go through: all of them, or only a few after `test_few_kinds`. */
std::span<const kind> tested_kinds();
void test_few_kinds();
const char* name_of(kind kind);

/** Rows with codes and ids. Not copyable, because blocks point into it. */
struct rows {
  rows(random_source& random, kind kind, uint32_t row_count, uint32_t dimension);
  rows(const rows&) = delete;

  /** Encodes the rows with the selected target. */
  void encode();
  sagitta_block block() const;
  const float* row(uint32_t index) const { return values.data() + size_t{index} * dimension; }

  uint32_t row_count;
  uint32_t dimension;
  std::vector<float> values;
  std::vector<uint8_t> code_storage;
  std::vector<uint8_t> coarse_storage;
  std::vector<uint8_t> refinement_storage;
  uint8_t* codes;
  /** Null if the dimension has no coarse codes. */
  uint8_t* coarse;
  uint8_t* refinement;
  /** A basis that has little or much to do with the rows; empty if the dimension has none or as a matter of chance. */
  std::vector<uint8_t> basis;
  /** Empty if there is no basis. */
  std::vector<uint8_t> head_storage;
  uint8_t* head = nullptr;
  std::vector<int32_t> id_offsets;
  std::vector<uint8_t> id_bytes;
};

/**
 * Returns a basis of random orthonormal directions and weights. The first direction is that of `row`, if it is
 * not null and has a length.
 */
std::vector<uint8_t> random_basis(random_source& random, uint32_t dimension, const float* row);

/** Removes the vector's part along the directions of a basis, but for rounding. */
void remove_directions(const std::vector<uint8_t>& basis, uint32_t dimension, std::vector<float>& vector);

/** Returns a query vector similar to the rows. */
std::vector<float> query_like(random_source& random, const rows& rows);

/** Returns a bitmap in which rows pass with this probability. */
std::vector<uint32_t> random_bitmap(random_source& random, uint32_t row_count, double probability);

double canonical(sagitta_metric metric, const float* query, const float* row, uint32_t dimension);

struct hit {
  uint32_t view;
  uint32_t row;
  double score;
};

/** Returns the hits of a query, found by scoring and sorting all rows. */
std::vector<hit> brute_force(const sagitta_batch& batch, uint32_t query);

/** Requires every hit to equal that of brute force, to the bit. */
void require_true(const sagitta_batch& batch, uint32_t query, const sagitta_hits& hits,
                  const std::string& what);

/** Runs the search on `thread_count` threads and requires every hit to equal that of brute force, to the bit. */
void require_exact(const sagitta_batch& batch, uint32_t thread_count, const std::string& what);

/** See test_rows.cpp. */
void test_row_scores(random_source& random);
void test_counts(random_source& random);

/** See test_processor.cpp. */
void test_processor();

/** See test_scan.cpp. */
void test_scans(random_source& random, bool is_quick);

/** See test_emulated_tiles.cpp; does nothing where tiles are not emulated. */
void test_emulated_tiles(random_source& random);

/** See test_coarse.cpp. */
void test_coarse_codes(random_source& random);

/** See test_head.cpp. */
void test_matrix_products(random_source& random);
void test_head_tiles(random_source& random);
void test_learned_bases(random_source& random);

}  // namespace check
