// A tile of 64 rows in a scan kernel, apart from its matrix products: which of its rows are searched, the
// test of the bounds, and the lists of survivors. All scan kernels use it.
//
// Idea: sums do not start at 0 but at minus the least sum that a row needs for a query, so that whether any
// row of many is left can be read from signs alone, two sums per instruction. What a row needs is
// calculated while its codes are loaded. Only sums that are not negative are examined again: they are
// stored, and one loop tests them exactly.
//
// Sums lie in registers as the matrix instructions leave them: with q = lane / 4 and t = lane % 4,
// sums[m][j][0..3] are (row 2q, queries 8j + 2t and + 1) and (row 2q + 1, the same) of panel m. The
// instruction sees row 2q as its row q and row 2q + 1 as its row q + 8. The order of its rows is free, and
// this one makes a thread's two rows neighbours in a panel, so that one load gets both.
#pragma once

#include "intrinsics.h"
#include "platform.h"
#include "scan.h"

namespace sagitta::cuda {

inline constexpr uint32_t all_lanes = 0xffffffffu;
inline constexpr uint32_t scan_threads = 256;
inline constexpr uint32_t scan_warps = scan_threads / 32;

/** A survivor of the current tile: a query of the warp, a row of the tile, and their integer product. */
struct survivor {
  /** query · tile_rows + row, in one word to save shared memory. */
  uint32_t query_and_row;
  int32_t sum;

  __device__ uint32_t query() const { return query_and_row / tile_rows; }
  __device__ uint32_t row() const { return query_and_row % tile_rows; }
};

/**
 * Survivors of a warp's tile in shared memory. They are flushed to the lists together, so that the
 * lanes do their atomic additions at the same time. Survivors beyond the capacity are appended at once.
 */
inline constexpr uint32_t survivors_max = 64;

struct survivor_buffer {
  uint32_t count;
  uint32_t unused;
  survivor entries[survivors_max];
};

/** The tests of a thread block's queries, in shared memory: [group] each. */
struct group_tests {
  /** upper_min, upper_residual, upper_norm, upper_square of scan_weights. */
  float4* upper;
  /** The start of the sums, apart from what a row needs: −128·Σq + needed_origin. */
  uint32_t* start;
  float* lower_norm;
  float* lower_square;
  float* lower_max;
};
inline constexpr uint32_t test_bytes = sizeof(float4) + 4 * sizeof(float);

__device__ inline group_tests tests_at(uint8_t* shared, uint32_t group) {
  auto* const upper = reinterpret_cast<float4*>(shared);
  auto* const rest = reinterpret_cast<float*>(upper + group);
  return {upper, reinterpret_cast<uint32_t*>(rest), rest + group, rest + 2 * group,
          rest + 3 * group};
}

/**
 * What a row needs of a query is n = (min − residual·r − norm·x − square·xx) / scale, with the weights of
 * the query (scan_weights) and the facts of the row. Sums are within ±2^28 (bounds.h), so n is limited to
 * this range and calculated as u = n / 2^29 + 1/2, which one saturating operation limits to 0…1: NaN, of
 * rows that are not scanned, gives 0, which every sum reaches. The bits of 1 + u are an integer, in units
 * of 64, that starts at those of 1.
 */
inline constexpr float needed_unit = 0x1p-29f;
inline constexpr uint32_t needed_step = 64;
inline constexpr uint32_t needed_origin = 0x3f800000u * needed_step + (1u << 28);

/**
 * A row's part of what it needs: its facts divided by its scale. The start is below 1/2 by more than the
 * rounding of sums of this size. The roundings of the terms, at most four, and of their factors, at most
 * three units in the last place, stay within what the proof in bounds.h allows for those of a test.
 */
struct row_needs {
  float start;
  float min;
  float residual;
  float norm;
  float square;
};

__device__ inline row_needs needs_of(float scale, float norm, float residual, float square) {
  const float unit = needed_unit * approximate_reciprocal(scale);
  return {0.5f - 0x1p-21f, unit, -unit * residual, -unit * norm, -unit * square};
}

/** For a row that is not searched: more than any sum, unless the query has no threshold at all. */
__device__ inline row_needs needs_of_none() { return {2.0f, 0x1p-126f, 0, 0, 0}; }

/** Returns the least sum with which the row may pass the test of the query, plus needed_origin. */
__device__ inline uint32_t needed(const float4& upper, const row_needs& row) {
  float part = __fmaf_rn(upper.x, row.min, row.start);
  part = __fmaf_rn(upper.y, row.residual, part);
  part = __fmaf_rn(upper.z, row.norm, part);
  part = __saturatef(__fmaf_rn(upper.w, row.square, part));
  return __float_as_uint(__fadd_rd(1.0f, part)) * needed_step;
}

__device__ inline void load_tests(const scan_parameters& p, const group_tests& tests,
                                  uint32_t first_query, uint32_t group) {
  for (uint32_t i = threadIdx.x; i < group; i += scan_threads) {
    const scan_weights& weights = p.weights[first_query + i];
    tests.upper[i] = make_float4(weights.upper_min, weights.upper_residual, weights.upper_norm,
                                 weights.upper_square);
    tests.start[i] = static_cast<uint32_t>(p.offsets[first_query + i]) + needed_origin;
    tests.lower_norm[i] = weights.lower_norm;
    tests.lower_square[i] = weights.lower_square;
    tests.lower_max[i] = weights.lower_max;
  }
}

/** Returns the searched rows of a tile: bit r is row first_row + r. */
__device__ inline uint64_t mask_of(const uint32_t* rows, uint32_t row_count, uint32_t first_row) {
  if (first_row >= row_count) return 0;
  const uint32_t count = min(row_count - first_row, tile_rows);
  uint64_t mask = ~uint64_t{0} >> (tile_rows - count);
  if (rows != nullptr) {
    const uint64_t low = rows[first_row / 32];
    const uint64_t high = count > 32 ? rows[first_row / 32 + 1] : 0;
    mask &= low | high << 32;
  }
  return mask;
}

/** One tile of a warp, and the queries that search it. */
struct tile_context {
  const scan_parameters* parameters;
  group_tests tests;
  survivor_buffer* survivors;
  /** Searched rows per query of the warp and panel, for mixed groups: [warp_queries, panel_count]. */
  uint16_t* masks;
  /** The panels of the tile that the warp multiplies. */
  uint32_t first_panel;
  uint32_t panel_count;
  /** The warp's first query, as an index in the group and in the batch. */
  uint32_t first_in_group;
  uint32_t first_query;
  /** The tile's panels, the last one that exists, and the batch row of the tile's first row. */
  const uint8_t* panels;
  uint32_t last_panel;
  uint32_t first_batch_row;
  /** In a dense pass, the list index of its first row. */
  uint32_t dense_index;
  /** Rows that some query of the warp searches. */
  uint64_t wanted;
  bool is_mixed;

  /** Whether a panel of the tile contains wanted rows. Other panels are not read. */
  __device__ bool wants(uint32_t panel) const {
    return (wanted >> (panel * panel_rows) & 0xffff) != 0;
  }
  /** Returns the rows of one of the warp's panels that a query of the warp searches: bits 0 to 15. */
  __device__ uint32_t rows_of(uint32_t query, uint32_t panel) const {
    if (is_mixed) return masks[query * panel_count + panel - first_panel];
    return static_cast<uint32_t>(wanted >> (panel * panel_rows)) & 0xffff;
  }
};

/** How a thread block's queries are distributed over its warps. */
struct warp_share {
  uint32_t group;
  uint32_t warp_queries;
  /** The first query of this warp in the group. */
  uint32_t first_in_group;
  /** The panels of a tile that this warp multiplies. */
  uint32_t first_panel;
  uint32_t panel_count;
};

/** Bytes of shared memory in addition to the codes of the queries. */
SAGITTA_HOST_DEVICE constexpr size_t bytes_beside_codes(uint32_t group, uint32_t warp_queries,
                                           uint32_t panel_count) {
  return size_t{group} * test_bytes +
         size_t{scan_warps} * warp_queries * panel_count * sizeof(uint16_t) +
         scan_warps * sizeof(survivor_buffer);
}

/**
 * Lays out shared memory (codes, tests, masks, survivor buffers) and loads the data of the group; called by the
 * scan_threads threads that scan. The caller must synchronise the threads of the block before they read it.
 */
__device__ inline tile_context open_block(const scan_parameters& p, uint8_t* shared,
                                          size_t query_bytes, warp_share share,
                                          bool is_scanning = true) {
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t first_query = blockIdx.y * share.group;
  uint8_t* const after_queries = shared + query_bytes;
  auto* const masks = reinterpret_cast<uint16_t*>(after_queries + size_t{share.group} * test_bytes);
  const uint32_t warp_masks = share.warp_queries * share.panel_count;
  auto* const survivors = reinterpret_cast<survivor_buffer*>(masks + scan_warps * warp_masks);
  const auto* const packed = reinterpret_cast<const uint4*>(p.packed + blockIdx.y * query_bytes);
  for (uint32_t i = threadIdx.x; is_scanning && i < query_bytes / sizeof(uint4); i += scan_threads) {
    reinterpret_cast<uint4*>(shared)[i] = packed[i];
  }
  tile_context context{};
  context.parameters = &p;
  context.tests = tests_at(after_queries, share.group);
  context.survivors = survivors + warp;
  context.masks = masks + warp * warp_masks;
  context.first_panel = share.first_panel;
  context.panel_count = share.panel_count;
  context.first_in_group = share.first_in_group;
  context.first_query = first_query + share.first_in_group;
  if (!is_scanning) return context;
  load_tests(p, context.tests, first_query, share.group);
  if (threadIdx.x % 32 == 0) context.survivors->count = 0;
  return context;
}

/** Moves on to a tile. Returns false when no query of the warp searches rows of it in this scan. */
__device__ inline bool open_tile(tile_context& context, uint32_t index, uint32_t group_number,
                                 uint32_t warp_queries) {
  const scan_parameters& p = *context.parameters;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t tile = tile_at(p.pass, index);
  const uint32_t number = block_of(p.blocks, p.block_count, tile);
  const resident_block& block = p.blocks[number];
  if (block.panels == nullptr) return false;
  const uint32_t first_panel = (tile - block.first_tile) * tile_panels;
  const uint32_t first_row = first_panel * panel_rows;
  context.panels = block.panels + size_t{first_panel} * p.panel_stride;
  context.last_panel = block.panel_count - 1 - first_panel;
  context.first_batch_row = tile * tile_rows;
  context.dense_index = index * tile_rows;
  const group_view& group = p.groups[size_t{group_number} * p.block_count + number];
  context.is_mixed = group.is_mixed != 0;
  if (!context.is_mixed) {
    context.wanted = mask_of(group.rows, group.row_count, first_row);
    return context.wanted != 0;
  }
  if (first_row >= group.row_count) return false;
  const uint32_t* const scope_of = p.scope_of + context.first_query;
  unsigned long long wanted = 0;
  for (uint32_t i = lane; i < warp_queries; i += 32) {
    const row_view& view = p.scopes[size_t{scope_of[i]} * p.block_count + number];
    const uint64_t mask = mask_of(view.rows, view.row_count, first_row);
    for (uint32_t m = 0; m < context.panel_count; m++) {
      context.masks[i * context.panel_count + m] =
          static_cast<uint16_t>(mask >> ((context.first_panel + m) * panel_rows));
    }
    wanted |= mask;
  }
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    wanted |= __shfl_xor_sync(all_lanes, wanted, static_cast<int>(distance));
  }
  context.wanted = wanted;
  __syncwarp();
  return wanted != 0;
}

/**
 * The tiles that a warp takes: the first one by its number, then always the next one that no warp of its
 * group of queries has taken, so that warps that met few rows or fast memory do more. Warps that share
 * their rows must take the same tiles, so they step through them by a fixed stride instead.
 */
class tile_source {
 public:
  __device__ tile_source(const scan_parameters& p, uint32_t first, uint32_t step, bool has_counter)
      : counter_(has_counter ? p.tile_counters + blockIdx.y : nullptr), index_(first), step_(step) {}
  __device__ uint32_t index() const { return index_; }
  /** Takes the next tile; its number arrives while the current one is scanned. */
  __device__ void take_next() {
    if (counter_ != nullptr && threadIdx.x % 32 == 0) taken_ = atomicAdd(counter_, 1u);
  }
  /** Moves on to the tile taken. All lanes of the warp must call it. */
  __device__ void advance() {
    index_ = counter_ == nullptr ? index_ + step_ : step_ + __shfl_sync(all_lanes, taken_, 0);
  }

 private:
  uint32_t* counter_;
  uint32_t index_;
  uint32_t step_;
  uint32_t taken_ = 0;
};

__device__ inline void append(const candidate_lists& lists, uint32_t query, uint32_t batch_row,
                              int32_t sum) {
  const uint32_t at = atomicAdd(lists.counts + query, 1u);
  if (at < lists.capacity) lists.rows[size_t{query} * lists.capacity + at] = {batch_row, sum};
}

/** What a thread's two rows in one panel need. */
struct pair_needs {
  row_needs row[2];
};

/** The facts of a thread's two rows in one panel. */
struct pair_facts {
  float2 scale;
  float2 norm;
  float2 residual;
  float2 square;
};

/** Calls `load` for each of the facts of the panel at `at`. */
template <class Load>
__device__ inline pair_facts load_facts(const uint8_t* at, Load load) {
  const auto* const facts = reinterpret_cast<const float2*>(at) + threadIdx.x % 32 / 4;
  return {load(facts), load(facts + panel_rows / 2), load(facts + panel_rows),
          load(facts + 3 * (panel_rows / 2))};
}

/** Loads the facts of panels in device memory. */
struct facts_in_memory {
  __device__ pair_facts of(const tile_context& context, uint32_t panel) const {
    return load_facts(context.panels + size_t{panel} * context.parameters->panel_stride,
                      [](const float2* facts) { return __ldg(facts); });
  }
};

template <class Facts>
__device__ inline pair_needs load_needs(const tile_context& context, uint32_t panel,
                                        const Facts& facts) {
  pair_needs needs = {{needs_of_none(), needs_of_none()}};
  if (!context.wants(panel)) return needs;
  const pair_facts of = facts.of(context, panel);
  const uint32_t pair = threadIdx.x % 32 / 4;
  const auto bits = static_cast<uint32_t>(context.wanted >> (panel * panel_rows + 2 * pair));
  if ((bits & 1) != 0) needs.row[0] = needs_of(of.scale.x, of.norm.x, of.residual.x, of.square.x);
  if ((bits & 2) != 0) needs.row[1] = needs_of(of.scale.y, of.norm.y, of.residual.y, of.square.y);
  return needs;
}

/** Applies the test of scan_weights (target.h) to one row and one query. */
__device__ inline bool survives(const group_tests& tests, uint32_t query, float product,
                                float norm, float residual, float square) {
  const float4 weights = tests.upper[query];
  const float by_residual = weights.y * residual;
  const float upper = product + by_residual + weights.z * norm + weights.w * square;
  const float lower = product - by_residual + tests.lower_norm[query] * norm +
                      tests.lower_square[query] * square;
  return upper >= weights.x && !(lower > tests.lower_max[query]);
}

/** `query` is relative to the warp's first query, `row` to the tile's first row. */
__device__ inline void add_survivor(const tile_context& context, uint32_t query, uint32_t row,
                            int32_t sum) {
  const uint32_t at = atomicAdd(&context.survivors->count, 1u);
  if (at < survivors_max) {
    context.survivors->entries[at] = {query * tile_rows + row, sum};
  } else {
    append(context.parameters->lists, context.first_query + query, context.first_batch_row + row, sum);
  }
}

/** Moves the buffered survivors into the lists. All lanes of the warp must call it. */
__device__ inline void flush_survivors(const tile_context& context) {
  __syncwarp();
  const uint32_t count = context.survivors->count;
  if (count == 0) return;
  for (uint32_t i = threadIdx.x % 32; i < min(count, survivors_max); i += 32) {
    const survivor entry = context.survivors->entries[i];
    append(context.parameters->lists, context.first_query + entry.query(),
           context.first_batch_row + entry.row(), entry.sum);
  }
  __syncwarp();
  if (threadIdx.x % 32 == 0) context.survivors->count = 0;
  __syncwarp();
}

/**
 * Starts the sums at −128·Σq minus what the row needs for the query; in a dense pass, which keeps every
 * row, at −128·Σq.
 */
template <int panels, int blocks, class Facts = facts_in_memory>
__device__ inline void start_sums(const tile_context& context, int32_t (&sums)[panels][blocks][4],
                                  const Facts& facts = {}) {
  const uint32_t first = context.first_in_group + 2 * (threadIdx.x % 4);
  const bool is_dense = context.parameters->is_dense;
  pair_needs needs[panels] = {};
#pragma unroll
  for (int m = 0; m < panels; m++) {
    if (!is_dense) needs[m] = load_needs(context, context.first_panel + static_cast<uint32_t>(m), facts);
  }
#pragma unroll
  for (int j = 0; j < blocks; j++) {
    const uint32_t query = first + query_block * static_cast<uint32_t>(j);
    const uint2 start = *reinterpret_cast<const uint2*>(context.tests.start + query);
    const float4 upper[2] = {context.tests.upper[query], context.tests.upper[query + 1]};
#pragma unroll
    for (int m = 0; m < panels; m++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t least = is_dense ? needed_origin : needed(upper[i % 2], needs[m].row[i / 2]);
        sums[m][j][i] = static_cast<int32_t>((i % 2 == 0 ? start.x : start.y) - least);
      }
    }
  }
}

/**
 * Writes every row at its fixed list index, for a dense pass: no_row for rows that are not searched, so
 * that lists need not be cleared before.
 */
template <int panels, int blocks>
__device__ inline void add_all(const tile_context& context,
                               const int32_t (&sums)[panels][blocks][4]) {
  const uint32_t lane = threadIdx.x % 32;
  const candidate_lists& lists = context.parameters->lists;
#pragma unroll
  for (int m = 0; m < panels; m++) {
    const uint32_t panel = context.first_panel + static_cast<uint32_t>(m);
#pragma unroll
    for (int i = 0; i < 2 * blocks; i++) {
      const uint32_t query = query_block * static_cast<uint32_t>(i / 2) + 2 * (lane % 4) + i % 2;
      const uint32_t rows = context.rows_of(query, panel) >> (2 * (lane / 4));
      const uint32_t row = panel * panel_rows + 2 * (lane / 4);
      candidate* const to = lists.rows + size_t{context.first_query + query} * lists.capacity +
                            context.dense_index + row;
      const uint32_t batch_row = context.first_batch_row + row;
      to[0] = {(rows & 1) != 0 ? batch_row : no_row, sums[m][i / 2][i % 2]};
      to[1] = {(rows & 2) != 0 ? batch_row + 1 : no_row, sums[m][i / 2][2 + i % 2]};
    }
  }
}

/** Like add_all for a tile none of whose rows is searched. */
__device__ inline void add_none(const tile_context& context, uint32_t warp_queries) {
  const candidate_lists& lists = context.parameters->lists;
  for (uint32_t i = threadIdx.x % 32; i < warp_queries * tile_rows; i += 32) {
    lists.rows[size_t{context.first_query + i / tile_rows} * lists.capacity + context.dense_index +
               i % tile_rows] = {no_row, 0};
  }
}

/**
 * Tests one row for one query exactly and adds it if it passes. `excess` is the amount by which the sum
 * exceeds what the row needs; `query` is relative to the warp's first query, `row` to the tile's first row.
 */
__device__ inline void test_row(const tile_context& context, uint32_t query, uint32_t row,
                                int32_t excess) {
  if ((context.rows_of(query, row / panel_rows) >> (row % panel_rows) & 1) == 0) return;
  const auto& facts = *reinterpret_cast<const panel_facts*>(
      context.panels + size_t{row / panel_rows} * context.parameters->panel_stride);
  const uint32_t at = row % panel_rows;
  const float scale = __ldg(facts.scale + at);
  const float norm = __ldg(facts.norm + at);
  const float residual = __ldg(facts.residual + at);
  const float square = __ldg(facts.square + at);
  const uint32_t in_group = context.first_in_group + query;
  const uint32_t least =
      needed(context.tests.upper[in_group], needs_of(scale, norm, residual, square));
  const auto sum = static_cast<int32_t>(static_cast<uint32_t>(excess) + least - needed_origin);
  const float product = static_cast<float>(sum) * scale;
  if (survives(context.tests, in_group, product, norm, residual, square)) {
    add_survivor(context, query, row, sum);
  }
}

/** Adds the rows whose upper bound reaches the threshold. All lanes of the warp must call it. */
template <int panels, int blocks>
__device__ inline void add_survivors(const tile_context& context,
                                     const int32_t (&sums)[panels][blocks][4]) {
  // Handles sixteen sums at a time: of four panels and eight queries, or of one panel and 32 queries.
  constexpr int blocks_together = panels == 1 ? 4 : 1;
  constexpr int parts = blocks / blocks_together;
  constexpr int part_sums = panels * blocks_together * 4;
  // Indexed by variables and therefore in local memory, which is written and read only for hits.
  int4 stored[parts][part_sums / 4];
  uint32_t hits = 0;
#pragma unroll
  for (int part = 0; part < parts; part++) {
    int32_t signs = -1;
#pragma unroll
    for (int i = 0; i < part_sums; i++) {
      signs &= sums[i / 4 / blocks_together][part * blocks_together + i / 4 % blocks_together][i % 4];
    }
    if (signs < 0) continue;
    hits |= 1u << part;
#pragma unroll
    for (int i = 0; i < part_sums / 4; i++) {
      const int32_t(&four)[4] =
          sums[i / blocks_together][part * blocks_together + i % blocks_together];
      stored[part][i] = make_int4(four[0], four[1], four[2], four[3]);
    }
  }
  if (__any_sync(all_lanes, hits != 0) == 0) return;
  const uint32_t lane = threadIdx.x % 32;
  for (; hits != 0; hits &= hits - 1) {
    const int part = __ffs(static_cast<int>(hits)) - 1;
    const auto* const kept = reinterpret_cast<const int32_t*>(stored[part]);
#pragma unroll 1
    for (uint32_t i = 0; i < part_sums; i++) {
      if (kept[i] < 0) continue;
      const uint32_t block = static_cast<uint32_t>(part * blocks_together) + i / 4 % blocks_together;
      const uint32_t panel = context.first_panel + i / 4 / blocks_together;
      test_row(context, query_block * block + 2 * (lane % 4) + i % 2,
               panel * panel_rows + 2 * (lane / 4) + i / 2 % 2, kept[i]);
    }
  }
  flush_survivors(context);
}

}  // namespace sagitta::cuda
