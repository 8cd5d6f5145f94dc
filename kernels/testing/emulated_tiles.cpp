// The state and the checks of emulated tiles, as Intel's manual describes the instructions.
#include "emulated_tiles.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace sagitta::emulated_tiles {
namespace {

constexpr uint32_t tile_count = 8;
constexpr uint32_t rows_max = 16;
constexpr uint32_t row_bytes_max = 64;
constexpr uint8_t palette_max = 1;

struct tile {
  uint32_t rows;
  uint32_t row_bytes;
  uint8_t bytes[rows_max][row_bytes_max];
};

struct machine {
  bool is_configured = false;
  /** Where an interrupted load or store would continue. No instruction here is interrupted, but a config can set it. */
  uint32_t start_row = 0;
  tile tiles[tile_count] = {};
};

thread_local machine own;

void end_process(const char* message) {
  std::fprintf(stderr, "emulated tiles: %s\n", message);
  std::abort();
}

void (*refusal)(const char*) = end_process;

/** Every check is a condition under which the instruction raises #GP or #UD. */
void require(bool holds, const char* instruction, const std::string& what) {
  if (holds) return;
  refusal((std::string(instruction) + ": " + what).c_str());
  std::abort();
}

bool is_zero(const uint8_t* bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

tile& used_tile(uint32_t number, const char* instruction) {
  require(own.is_configured, instruction, "no tile is configured");
  require(number < tile_count, instruction, "there is no tile " + std::to_string(number));
  tile& found = own.tiles[number];
  require(found.rows != 0, instruction, "tile " + std::to_string(number) + " has no rows");
  return found;
}

/** The first row of a load or store, which then begins at row 0 again. */
uint32_t take_start_row(const tile& used, const char* instruction) {
  require(own.start_row < used.rows, instruction, "it starts past the last row");
  const uint32_t first = own.start_row;
  own.start_row = 0;
  return first;
}

}  // namespace

void on_refusal(void (*refuse)(const char* message)) {
  refusal = refuse == nullptr ? end_process : refuse;
}

bool in_use() { return own.is_configured; }

void load_config(const void* config) {
  constexpr const char* name = "LDTILECFG";
  uint8_t bytes[64];
  std::memcpy(bytes, config, sizeof bytes);
  require(bytes[0] <= palette_max, name, "there is no palette " + std::to_string(bytes[0]));
  if (bytes[0] == 0) return release();
  require(is_zero(bytes + 2, 14) && is_zero(bytes + 32, 16) && is_zero(bytes + 56, 8), name,
          "reserved bytes are not zero");
  machine next;
  next.is_configured = true;
  next.start_row = bytes[1];
  for (uint32_t i = 0; i < tile_count; i++) {
    uint16_t row_bytes;
    std::memcpy(&row_bytes, bytes + 16 + 2 * i, sizeof row_bytes);
    const uint8_t rows = bytes[48 + i];
    const std::string which = "tile " + std::to_string(i);
    require(row_bytes <= row_bytes_max, name, which + " has rows of more than 64 bytes");
    require(rows <= rows_max, name, which + " has more than 16 rows");
    require((rows == 0) == (row_bytes == 0), name, which + " has rows or columns, but not both");
    next.tiles[i].rows = rows;
    next.tiles[i].row_bytes = row_bytes;
  }
  own = next;
}

void release() { own = machine{}; }

void load(uint32_t number, const void* rows, size_t stride) {
  constexpr const char* name = "TILELOADD";
  tile& to = used_tile(number, name);
  const uint32_t first = take_start_row(to, name);
  // Rows before the first one keep their bytes; what the shape leaves out becomes zero.
  for (uint32_t row = first; row < rows_max; row++) {
    std::memset(to.bytes[row], 0, row_bytes_max);
    if (row >= to.rows) continue;
    std::memcpy(to.bytes[row], static_cast<const uint8_t*>(rows) + row * stride, to.row_bytes);
  }
}

void store(uint32_t number, void* rows, size_t stride) {
  constexpr const char* name = "TILESTORED";
  const tile& from = used_tile(number, name);
  for (uint32_t row = take_start_row(from, name); row < from.rows; row++) {
    std::memcpy(static_cast<uint8_t*>(rows) + row * stride, from.bytes[row], from.row_bytes);
  }
}

void add_products(uint32_t sums, uint32_t left, uint32_t right) {
  constexpr const char* name = "TDPBSUD";
  require(sums != left && sums != right && left != right, name, "two operands are the same tile");
  tile& to = used_tile(sums, name);
  const tile& a = used_tile(left, name);
  const tile& b = used_tile(right, name);
  require(to.row_bytes % 4 == 0 && a.row_bytes % 4 == 0 && b.row_bytes % 4 == 0, name,
          "the bytes of a row are no multiple of four");
  require(to.rows == a.rows, name, "the sums and the left operand differ in their rows");
  require(to.row_bytes == b.row_bytes, name, "the sums and the right operand differ in their columns");
  require(a.row_bytes / 4 == b.rows, name,
          "the columns of the left operand differ from the rows of the right one");
  own.start_row = 0;
  for (uint32_t m = 0; m < to.rows; m++) {
    for (uint32_t n = 0; n < to.row_bytes / 4; n++) {
      // Unsigned, because sums wrap around.
      uint32_t sum;
      std::memcpy(&sum, to.bytes[m] + 4 * n, sizeof sum);
      for (uint32_t i = 0; i < a.row_bytes; i++) {
        const int32_t product = static_cast<int8_t>(a.bytes[m][i]) * b.bytes[i / 4][4 * n + i % 4];
        sum += static_cast<uint32_t>(product);
      }
      std::memcpy(to.bytes[m] + 4 * n, &sum, sizeof sum);
    }
  }
  for (uint32_t row = to.rows; row < rows_max; row++) std::memset(to.bytes[row], 0, row_bytes_max);
}

}  // namespace sagitta::emulated_tiles
