// Compares the emulated tiles of AMX with plain loops, and requires that they refuse what a processor refuses.

#include "emulated_tiles.h"

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "check.h"

namespace check {

#if defined(SAGITTA_EMULATE)

namespace {

namespace tiles = sagitta::emulated_tiles;

struct config {
  uint8_t bytes[64] = {1};

  config& shape(uint32_t tile, uint32_t rows, uint32_t row_bytes) {
    const auto narrow = static_cast<uint16_t>(row_bytes);
    std::memcpy(bytes + 16 + 2 * tile, &narrow, sizeof narrow);
    bytes[48 + tile] = static_cast<uint8_t>(rows);
    return *this;
  }
  config& set(uint32_t index, uint8_t value) {
    bytes[index] = value;
    return *this;
  }
};

std::vector<uint8_t> random_bytes(random_source& random, size_t count) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) {
    byte = random.below(4) == 0 ? (random.below(2) == 0 ? 0x80 : 0xff)
                                : static_cast<uint8_t>(random.below(256));
  }
  return bytes;
}

/** sums [rows, columns] += left [rows, depth] · right [depth, columns], read from the bytes of tiles. */
void test_products(random_source& random) {
  const uint32_t rows = 1 + random.below(16);
  const uint32_t depth = 4 * (1 + random.below(16));
  const uint32_t columns = 1 + random.below(16);
  const size_t stride = 64 + random.below(100);
  const std::vector<uint8_t> left = random_bytes(random, 16 * stride);
  const std::vector<uint8_t> right = random_bytes(random, 16 * stride);
  const std::vector<uint8_t> start = random_bytes(random, 16 * stride);
  tiles::load_config(config().shape(2, rows, 4 * columns).shape(7, rows, depth).shape(0, depth / 4, 4 * columns).bytes);
  tiles::load(2, start.data(), stride);
  tiles::load(7, left.data(), stride);
  tiles::load(0, right.data(), stride);
  const uint32_t rounds = 1 + random.below(3);
  for (uint32_t round = 0; round < rounds; round++) tiles::add_products(2, 7, 0);
  std::vector<uint8_t> found(16 * stride, 0xee);
  tiles::store(2, found.data(), stride);
  std::vector<uint8_t> expected(16 * stride, 0xee);
  for (uint32_t row = 0; row < rows; row++) {
    for (uint32_t column = 0; column < columns; column++) {
      int32_t before;
      std::memcpy(&before, start.data() + row * stride + 4 * column, sizeof before);
      int64_t sum = 0;
      for (uint32_t i = 0; i < depth; i++) {
        const auto query = static_cast<int8_t>(left[row * stride + i]);
        sum += query * right[i / 4 * stride + 4 * column + i % 4];
      }
      const auto wrapped = static_cast<uint32_t>(before + static_cast<int64_t>(rounds) * sum);
      std::memcpy(expected.data() + row * stride + 4 * column, &wrapped, sizeof wrapped);
    }
  }
  require(found == expected, "products of emulated tiles");
}

void test_state() {
  uint8_t ones[16][64];
  uint8_t found[16][64];
  std::memset(ones, 1, sizeof ones);
  tiles::load_config(config().shape(1, 16, 64).bytes);
  tiles::load(1, ones, 64);
  tiles::load_config(config().shape(1, 16, 64).bytes);
  tiles::store(1, found, 64);
  const uint8_t zeros[16][64] = {};
  require(std::memcmp(found, zeros, sizeof found) == 0, "a new shape sets tiles to zero");
  // An interrupted load continues at the first row of the config, and the next one begins at row 0.
  tiles::load_config(config().shape(1, 16, 64).set(1, 5).bytes);
  tiles::load(1, ones, 64);
  tiles::store(1, found, 64);
  require(found[4][63] == 0 && found[5][0] == 1 && found[15][63] == 1, "a load that continues");
  require(tiles::in_use(), "tiles are in use");
  tiles::release();
  require(!tiles::in_use(), "released tiles");
  tiles::load_config(config().shape(1, 16, 64).bytes);
  tiles::load_config(config().set(0, 0).bytes);
  require(!tiles::in_use(), "palette 0 releases tiles");
}

void require_refused(const char* expected, const std::function<void()>& run) {
  std::string message;
  try {
    run();
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  require(message.find(expected) != std::string::npos,
          std::string("expected a refusal: ") + expected + "; found: " + message);
}

void test_refusals() {
  tiles::on_refusal([](const char* message) { throw std::runtime_error(message); });
  uint8_t bytes[16 * 64] = {};
  const auto refuse_config = [](const char* expected, const config& wrong) {
    require_refused(expected, [&] { tiles::load_config(wrong.bytes); });
    require(!tiles::in_use(), "a refused config");
  };
  tiles::release();
  refuse_config("no palette 2", config().set(0, 2));
  refuse_config("more than 16 rows", config().shape(3, 17, 64));
  refuse_config("more than 64 bytes", config().shape(3, 16, 65));
  refuse_config("not both", config().shape(3, 0, 64));
  refuse_config("not both", config().shape(3, 16, 0));
  for (const uint32_t reserved : {2u, 15u, 32u, 47u, 56u, 63u}) {
    refuse_config("reserved bytes", config().shape(3, 16, 64).set(reserved, 1));
  }
  require_refused("TILELOADD: no tile is configured", [&] { tiles::load(0, bytes, 64); });
  require_refused("TILESTORED: no tile is configured", [&] { tiles::store(0, bytes, 64); });
  require_refused("TDPBSUD: no tile is configured", [] { tiles::add_products(0, 1, 2); });

  tiles::load_config(config().shape(0, 8, 64).shape(1, 8, 32).shape(2, 8, 64).set(1, 8).bytes);
  require_refused("past the last row", [&] { tiles::load(0, bytes, 64); });
  require_refused("past the last row", [&] { tiles::store(0, bytes, 64); });
  require_refused("tile 3 has no rows", [&] { tiles::load(3, bytes, 64); });
  require_refused("no tile 8", [&] { tiles::load(8, bytes, 64); });
  require_refused("tile 3 has no rows", [] { tiles::add_products(0, 1, 3); });
  for (const auto& [sums, left, right] : {std::tuple(0, 0, 2), {0, 1, 0}, {0, 1, 1}}) {
    require_refused("same tile", [=] {
      tiles::add_products(static_cast<uint32_t>(sums), static_cast<uint32_t>(left),
                          static_cast<uint32_t>(right));
    });
  }
  const auto refuse_shapes = [](const char* expected, const config& shapes) {
    tiles::load_config(shapes.bytes);
    require_refused(expected, [] { tiles::add_products(0, 1, 2); });
  };
  refuse_shapes("differ in their rows", config().shape(0, 8, 64).shape(1, 7, 32).shape(2, 8, 64));
  refuse_shapes("differ in their columns", config().shape(0, 8, 64).shape(1, 8, 32).shape(2, 8, 60));
  refuse_shapes("rows of the right one", config().shape(0, 8, 64).shape(1, 8, 32).shape(2, 9, 64));
  refuse_shapes("multiple of four", config().shape(0, 8, 62).shape(1, 8, 32).shape(2, 8, 62));
  refuse_shapes("multiple of four", config().shape(0, 8, 64).shape(1, 8, 33).shape(2, 8, 64));
  tiles::release();
  tiles::on_refusal(nullptr);
}

}  // namespace

void test_emulated_tiles(random_source& random) {
  for (uint32_t i = 0; i < 500; i++) test_products(random);
  test_state();
  test_refusals();
}

#else

void test_emulated_tiles(random_source&) {}

#endif

}  // namespace check
