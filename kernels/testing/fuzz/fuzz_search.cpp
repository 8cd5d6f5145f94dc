// Encodes and searches arbitrary values on every target of the processor and compares the hits with brute force. The
// first bytes choose the shape and other random choices; the rest are row values, as the upper halves of float32.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../test_batch.h"

namespace {

constexpr uint32_t dimensions[] = {1, 2, 3, 4, 7, 16, 33, 63, 64, 65, 96, 130};
constexpr size_t head_bytes = 8;
constexpr uint32_t queries_max = 4;

uint32_t pick(uint8_t byte, uint32_t bound) { return byte % bound; }

void fill(check::rows& rows, const uint8_t* data, size_t byte_length) {
  const size_t count = std::min(rows.values.size(), byte_length / 2);
  for (size_t i = 0; i < count; i++) {
    uint16_t half = 0;
    std::memcpy(&half, data + 2 * i, sizeof half);
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
    // Rows are finite: callers of the kernels have checked that.
    if (std::isfinite(value)) rows.values[i] = value;
  }
  rows.encode();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t byte_length) {
  if (byte_length < head_bytes) return 0;
  sagitta_select_target(sagitta_target_name(pick(data[0], static_cast<uint32_t>(sagitta_target_count()))));
  const uint32_t dimension = dimensions[pick(data[1], std::size(dimensions))];
  check::random_source random(uint64_t{data[2]} | uint64_t{data[3]} << 8);
  const check::kind kind = check::all_kinds[pick(data[4], std::size(check::all_kinds))];
  check::rows first(random, kind, 1 + data[5], dimension);
  check::rows second(random, kind, data[6] / 4, dimension);
  fill(first, data + head_bytes, byte_length - head_bytes);
  check::test_batch batch;
  batch.add_block(first);
  batch.add_block(second, (data[7] & 1) != 0);
  batch.method = static_cast<sagitta_method>(pick(data[7] >> 1, 3));
  for (uint32_t count = 1 + pick(data[7] >> 3, queries_max); count > 0; count--) {
    batch.add_random_query(random);
  }
  check::require_exact(batch.view(1), 1, "of the fuzzer");
  return 0;
}
