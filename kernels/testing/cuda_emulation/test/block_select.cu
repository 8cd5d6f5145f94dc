// Compares the operations of a whole thread block on a list (cuda/block_select.h) with the standard
// library, with both numbers of threads that launches use: the emulation of searches takes 256 for nearly
// all lists, devices take 1,024 for few.
#include <algorithm>
#include <vector>

#include "../../../cuda/block_select.h"
#include "test.h"

namespace platform_test {
namespace {

using namespace sagitta::cuda;

struct select_result {
  float kth;
  double kth_score;
  uint32_t sum_total;
  uint32_t kept;
};

struct block_parameters {
  candidate* rows;
  candidate_score* scores;
  uint32_t count;
  uint32_t k;
  /** [threads]: the sum of the numbers of the threads before each one. */
  uint32_t* sums;
  select_result* result;
};

__global__ void select_in_block(const __grid_constant__ block_parameters p) {
  const block_sum sum = sum_before(threadIdx.x % 7 + 1);
  p.sums[threadIdx.x] = sum.before;
  const uint32_t kth = kth_largest<uint32_t>(p.count, p.k, [&](uint32_t i, uint32_t& key) {
    key = ordered(static_cast<float>(p.rows[i].sum));
    return p.rows[i].batch_row % 5 != 0;
  });
  const uint64_t kth_score = kth_largest<uint64_t>(p.count, p.k, [&](uint32_t i, uint64_t& key) {
    key = ordered(p.scores[i].score);
    return true;
  });
  const double limit = value_of(kth_score);
  const uint32_t kept = shorten(p.rows, p.scores, p.count, [&](const candidate_score& score) {
    return score.score >= limit;
  });
  if (threadIdx.x != 0) return;
  *p.result = {value_of(kth), limit, sum.total, kept};
}

void test_with(uint32_t threads, uint32_t count, uint32_t k) {
  std::vector<candidate> rows(count);
  std::vector<candidate_score> scores(count);
  std::vector<float> sums_of_some;
  std::vector<double> all_scores;
  for (uint32_t i = 0; i < count; i++) {
    // Few different values, so that many are equal.
    rows[i] = {i, static_cast<int32_t>(mixed(i) % 2001) - 1000};
    scores[i].score = static_cast<double>(static_cast<int64_t>(mixed(i + count) % 997) - 500) / 8;
    if (i % 5 != 0) sums_of_some.push_back(static_cast<float>(rows[i].sum));
    all_scores.push_back(scores[i].score);
  }
  device_array<candidate> on_device(count);
  device_array<candidate_score> scores_on_device(count);
  device_array<uint32_t> sums(threads);
  device_array<select_result> result(1);
  on_device.set(rows.data());
  scores_on_device.set(scores.data());
  require_success(launch(select_in_block, dim3(1), threads, 0, nullptr,
                         block_parameters{on_device.data(), scores_on_device.data(), count, k,
                                          sums.data(), result.data()}),
                  "select_in_block");
  select_result found;
  result.get(&found);
  std::vector<uint32_t> found_sums(threads);
  sums.get(found_sums.data());
  uint32_t total = 0;
  for (uint32_t thread = 0; thread < threads; thread++) {
    require(found_sums[thread] == total, "sum_before", thread);
    total += thread % 7 + 1;
  }
  require(found.sum_total == total, "the total of sum_before", threads);
  std::sort(sums_of_some.rbegin(), sums_of_some.rend());
  std::sort(all_scores.rbegin(), all_scores.rend());
  require(found.kth == sums_of_some[k - 1], "kth_largest of 32 bits", threads);
  require(found.kth_score == all_scores[k - 1], "kth_largest of 64 bits", threads);
  std::vector<candidate> kept(count);
  std::vector<candidate_score> kept_scores(count);
  on_device.get(kept.data());
  scores_on_device.get(kept_scores.data());
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (scores[i].score < all_scores[k - 1]) continue;
    require(kept[at].batch_row == i, "the order of shorten", i);
    require(kept_scores[at].score == scores[i].score, "the scores of shorten", i);
    at++;
  }
  require(found.kept == at, "the count of shorten", at);
}

}  // namespace

void test_block_select() {
  for (const uint32_t threads : {256u, 1024u}) {
    for (const uint32_t count : {40u, 256u, 1024u, 3000u}) {
      for (const uint32_t k : {1u, 7u, 30u}) test_with(threads, count, k);
    }
  }
}

}  // namespace platform_test
