// AVX-512 with AMX: TDPBSUD multiplies 64 dimensions of up to 16 queries by those of a whole panel, whose
// codes have the layout of its right operand. Everything else, and scans for few queries, is as with VNNI.
#if ((defined(__AMX_INT8__) || defined(__AMXINT8__)) && defined(__AVX512VNNI__)) || \
    defined(SAGITTA_EMULATE)

#include <utility>

#include "avx512_lanes.h"
#include "table.h"
#include "tiles.h"

namespace sagitta {
namespace {

/**
 * For fewer queries VPDPBUSD is used: for 64 dimensions of a panel it takes 16 instructions per query, two of
 * which begin in every cycle, and TDPBSUD takes 16 cycles for any number of queries.
 */
constexpr uint32_t tiled_queries_min = 4;
constexpr uint32_t tile_rows = 16;
constexpr uint32_t tile_row_bytes = 64;
constexpr uint32_t query_group = 2 * tile_rows;
static_assert(query_group <= query_group_max);
static_assert(tile_row_bytes == step_bytes && tile_rows == panel_rows);

/** Four tiles of sums, so that consecutive additions do not wait for each other, then queries, then codes of rows. */
constexpr uint32_t sum_tiles = 4;
constexpr uint32_t query_tile = 4;
constexpr uint32_t code_tile = 6;

/**
 * The most rows of 64 dimensions of queries that are copied, in 128 KiB of stack: 32 queries up to dimension
 * 4 096, fewer at once beyond.
 */
constexpr uint32_t copied_rows = 2048;

/**
 * Queries in the order in which tiles load them: [chunk][query][64]. A chunk is up to 16 steps. All chunks have the
 * same number of steps, since tiles have one shape; the last one begins early enough to end with the
 * dimensions, and there the queries are zero where it overlaps the one before. If the codes of panels are in two
 * pieces, chunks divide them without a rest.
 */
struct tiled_queries {
  uint32_t count;
  /** One or two tiles of equally many queries; the last query of an odd number is followed by one of zeros. */
  uint32_t tiles;
  uint32_t rows_of_tile;
  uint32_t steps_of_chunk;
  uint32_t chunk_count;
  /** The first step of the last chunk. */
  uint32_t last_step;
  alignas(64) int32_t starts[query_group][panel_rows];
  alignas(64) uint8_t codes[copied_rows * tile_row_bytes];

  uint32_t row_count() const { return tiles * rows_of_tile; }
  uint32_t first_step(uint32_t chunk) const {
    return chunk + 1 == chunk_count ? last_step : chunk * steps_of_chunk;
  }
};

/** Pieces have a multiple of 4 steps; see head_directions. */
uint32_t steps_of_chunk(const scan_task& task) {
  const uint32_t steps = steps_of_piece(task);
  if (task.codes.second == nullptr) return steps < tile_rows ? steps : tile_rows;
  uint32_t divisor = tile_rows;
  while (steps % divisor != 0) divisor--;
  return divisor;
}

uint32_t chunks_of(const scan_task& task) {
  const uint32_t size = steps_of_chunk(task);
  return (step_count(task.dimension) + size - 1) / size;
}

void copy_queries(const scan_task& task, uint32_t first, uint32_t count, tiled_queries& copied) {
  const uint32_t steps = step_count(task.dimension);
  copied.count = count;
  copied.tiles = count > tile_rows ? 2 : 1;
  copied.rows_of_tile = (count + copied.tiles - 1) / copied.tiles;
  copied.steps_of_chunk = steps_of_chunk(task);
  copied.chunk_count = chunks_of(task);
  copied.last_step = steps - copied.steps_of_chunk;
  const uint32_t rows = copied.row_count();
  const uint32_t overlap = copied.chunk_count * copied.steps_of_chunk - steps;
  for (uint32_t q = 0; q < rows; q++) {
    const scan_query* const query = q < count ? task.queries[first + q] : nullptr;
    _mm512_store_si512(copied.starts[q], _mm512_set1_epi32(query == nullptr ? 0 : query->offset));
    uint8_t* to = copied.codes + size_t{q} * tile_row_bytes;
    for (uint32_t chunk = 0; chunk < copied.chunk_count; chunk++) {
      std::memset(to, 0, tile_row_bytes);
      if (query != nullptr) {
        // The steps before these are those of the chunk before.
        const uint32_t first_byte = chunk + 1 == copied.chunk_count ? overlap * step_dimensions : 0;
        const uint8_t* const from = query->packed + copied.first_step(chunk) * step_dimensions;
        std::memcpy(to + first_byte, from + first_byte, copied.steps_of_chunk * step_dimensions - first_byte);
      }
      to += size_t{rows} * tile_row_bytes;
    }
  }
}

/** The shapes of all tiles while one group of queries is scanned. */
class tile_scope {
 public:
  explicit tile_scope(const tiled_queries& queries) {
    tile_shapes shapes;
    const auto rows = static_cast<uint8_t>(queries.rows_of_tile);
    const auto steps = static_cast<uint8_t>(queries.steps_of_chunk);
    for (uint32_t tile = 0; tile < 8; tile++) {
      shapes.rows[tile] = tile < code_tile ? rows : steps;
      shapes.row_bytes[tile] = tile_row_bytes;
    }
    for (uint32_t tile = query_tile; tile < code_tile; tile++) {
      shapes.row_bytes[tile] = static_cast<uint16_t>(steps * step_dimensions);
    }
    shape_tiles(shapes);
  }
  tile_scope(const tile_scope&) = delete;
  ~tile_scope() { release_tiles(); }
};

/** Calls run with 0, 1, … count − 1 as constants. */
template <uint32_t count, class Run>
inline __attribute__((always_inline)) void for_each_of(const Run& run) {
  [&]<uint32_t... i>(std::integer_sequence<uint32_t, i...>) __attribute__((always_inline)) {
    (run(std::integral_constant<uint32_t, i>()), ...);
  }(std::make_integer_sequence<uint32_t, count>());
}

/** Computes the sums [panel][query][panel_rows] of `Panels` panels. */
template <uint32_t QueryTiles, uint32_t Panels>
__attribute__((noinline)) void sum_panels(const tiled_queries& queries, const scan_task& task, uint32_t first_panel,
                                          int32_t* stored) {
  static_assert(QueryTiles * Panels <= sum_tiles);
  const uint32_t rows_of_tile = queries.rows_of_tile;
  const uint32_t steps = steps_of_piece(task);
  for_each_of<QueryTiles>([&](auto tile) __attribute__((always_inline)) {
    for_each_of<Panels>([&](auto p) __attribute__((always_inline)) {
      load_tile<tile.value * Panels + p.value>(queries.starts[tile.value * rows_of_tile],
                                               sizeof queries.starts[0]);
    });
  });
  const size_t chunk_bytes = size_t{queries.row_count()} * tile_row_bytes;
  for (uint32_t chunk = 0; chunk < queries.chunk_count; chunk++) {
    const uint8_t* const from = queries.codes + chunk * chunk_bytes;
    for_each_of<QueryTiles>([&](auto tile) __attribute__((always_inline)) {
      load_tile<query_tile + tile.value>(from + tile.value * rows_of_tile * tile_row_bytes,
                                         tile_row_bytes);
    });
    const uint32_t first_step = queries.first_step(chunk);
    const bool is_second = first_step >= steps;
    const uint8_t* const codes = (is_second ? task.codes.second : task.codes.first) + first_panel * task.stride +
                                 size_t{is_second ? first_step - steps : first_step} * step_bytes;
    for_each_of<Panels>([&](auto p) __attribute__((always_inline)) {
      const uint8_t* const rows = codes + p.value * task.stride;
#pragma GCC unroll 16
      for (uint32_t step = 0; step < tile_rows; step++) {
        __builtin_prefetch(rows + prefetch_bytes + step * step_bytes);
      }
      constexpr uint32_t code = code_tile + p.value % 2;
      load_tile<code>(rows, step_bytes);
      for_each_of<QueryTiles>([&](auto tile) __attribute__((always_inline)) {
        add_tile_products<tile.value * Panels + p.value, query_tile + tile.value, code>();
      });
    });
  }
  for_each_of<QueryTiles>([&](auto tile) __attribute__((always_inline)) {
    for_each_of<Panels>([&](auto p) __attribute__((always_inline)) {
      int32_t* const to = stored + (p.value * queries.row_count() + tile.value * rows_of_tile) * panel_rows;
      store_tile<tile.value * Panels + p.value>(to, sizeof queries.starts[0]);
    });
  });
}

/** The queries from `first` on of a task; `least` [count] holds their least_product. */
struct tiled_scan {
  const scan_task& task;
  uint32_t first;
  float least[query_group];
};

template <bool has_lower>
inline void test_query(tiled_scan& scan, uint32_t q, uint32_t panel, const panel_facts& facts,
                       const int32_t* sums) {
  const uint32_t query = scan.first + q;
  if (!avx512_lanes::may_survive(sums, facts, scan.least[q])) return;
  if (emit_survivors<avx512_lanes, has_lower>(scan.task, query, panel, facts, sums)) {
    scan.least[q] = least_product(*scan.task.queries[query], scan.task.limits);
  }
}

/** Four queries are tested with one branch, because the products are so cheap that branches would count. */
template <bool has_lower>
inline void test_panel(tiled_scan& scan, uint32_t count, uint32_t panel, const panel_facts& facts,
                       const int32_t* sums) {
  constexpr uint32_t together = 4;
  uint32_t q = 0;
  for (; q + together <= count; q += together) {
    uint32_t reached = 0;
#pragma GCC unroll 4
    for (uint32_t i = q; i < q + together; i++) {
      reached |= avx512_lanes::reach(sums + i * panel_rows, facts, scan.least[i]);
    }
    if (__builtin_expect(reached == 0, 1)) continue;
    for (uint32_t i = q; i < q + together; i++) {
      test_query<has_lower>(scan, i, panel, facts, sums + i * panel_rows);
    }
  }
  for (; q < count; q++) test_query<has_lower>(scan, q, panel, facts, sums + q * panel_rows);
}

/** Scans as many panels from `panel` on as fill tiles of `Panels`, and returns the next one. */
template <uint32_t QueryTiles, uint32_t Panels, bool has_lower>
uint32_t scan_panels(tiled_scan& scan, const tiled_queries& queries, uint32_t panel) {
  const size_t stride = scan.task.stride;
  alignas(64) int32_t sums[Panels * QueryTiles * tile_rows * panel_rows];
  for (; panel + Panels <= scan.task.panel_count; panel += Panels) {
    const uint8_t* const first = scan.task.panels + panel * stride;
    sum_panels<QueryTiles, Panels>(queries, scan.task, panel, sums);
    for (uint32_t p = 0; p < Panels; p++) {
      const auto& facts = *reinterpret_cast<const panel_facts*>(first + p * stride);
      test_panel<has_lower>(scan, queries.count, panel + p, facts,
                            sums + p * queries.row_count() * panel_rows);
    }
  }
  return panel;
}

template <bool has_lower>
void scan_queries_in_tiles(const scan_task& task, uint32_t first, uint32_t count) {
  tiled_queries queries;
  copy_queries(task, first, count, queries);
  tiled_scan scan{task, first, {}};
  for (uint32_t q = 0; q < count; q++) {
    scan.least[q] = least_product(*task.queries[first + q], task.limits);
  }
  const tile_scope scope(queries);
  uint32_t panel = 0;
  if (queries.tiles == 2) {
    panel = scan_panels<2, 2, has_lower>(scan, queries, panel);
    scan_panels<2, 1, has_lower>(scan, queries, panel);
  } else {
    panel = scan_panels<1, 4, has_lower>(scan, queries, panel);
    panel = scan_panels<1, 2, has_lower>(scan, queries, panel);
    scan_panels<1, 1, has_lower>(scan, queries, panel);
  }
}

void scan_in_tiles(const scan_task& task) {
  if (task.query_count < tiled_queries_min) {
    if (task.query_count > 0) scan_queries<avx512_lanes, tiled_queries_min - 1>(task);
    return;
  }
  const uint32_t fitting = copied_rows / chunks_of(task);
  const uint32_t most = fitting < query_group ? fitting : query_group;
  const uint32_t parts = (task.query_count + most - 1) / most;
  const uint32_t size = (task.query_count + parts - 1) / parts;
  for (uint32_t first = 0; first < task.query_count; first += size) {
    const uint32_t count = first + size < task.query_count ? size : task.query_count - first;
    if (task.queries[0]->has_lower) scan_queries_in_tiles<true>(task, first, count);
    else scan_queries_in_tiles<false>(task, first, count);
  }
}

constexpr target create_amx_target() {
  // A quarter of the time of VNNI in batches is an estimate from counts of instructions.
  target table = create_target<avx512_lanes, avx512_coarse>(
      "avx512_amx", {0.0048, 0.0065, 0.0012, tiled_queries_min});
  table.query_group = query_group;
  table.tiles.scan = table.head.scan = scan_in_tiles;
  return table;
}

constexpr target table = create_amx_target();

}  // namespace

const target* const avx512_amx_target = &table;

}  // namespace sagitta

#else

#include "../target.h"
namespace sagitta {
const target* const avx512_amx_target = nullptr;
}

#endif
