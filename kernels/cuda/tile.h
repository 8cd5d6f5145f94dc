// A tile of 64 rows in a scan kernel, apart from its matrix products: which of its rows are searched,
// the test of the bounds, and the lists of survivors. Both scan kernels use it.
//
// Sums lie in registers as the matrix instructions leave them: with q = lane / 4 and t = lane % 4,
// sums[m][j][0..3] are (row 2q, queries 8j + 2t and + 1) and (row 2q + 1, the same) of panel m. The
// instruction sees row 2q as its row q and row 2q + 1 as its row q + 8. The order of its rows is free,
// and this one makes a thread's two rows neighbours in a panel, so that one load gets both.
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
  int32_t* offset;
  float* upper_residual;
  float* upper_norm;
  float* upper_square;
  float* upper_min;
  float* lower_norm;
  float* lower_square;
  float* lower_max;
};
inline constexpr uint32_t test_bytes = 8 * sizeof(float);

__device__ inline group_tests tests_at(uint8_t* shared, uint32_t group) {
  auto* const at = reinterpret_cast<float*>(shared);
  return {reinterpret_cast<int32_t*>(at), at + group,     at + 2 * group, at + 3 * group,
          at + 4 * group,                 at + 5 * group, at + 6 * group, at + 7 * group};
}

__device__ inline void load_tests(const scan_parameters& p, const group_tests& tests,
                                  uint32_t first_query, uint32_t group) {
  for (uint32_t i = threadIdx.x; i < group; i += scan_threads) {
    const scan_weights& weights = p.weights[first_query + i];
    tests.offset[i] = p.offsets[first_query + i];
    tests.upper_residual[i] = weights.upper_residual;
    tests.upper_norm[i] = weights.upper_norm;
    tests.upper_square[i] = weights.upper_square;
    tests.upper_min[i] = weights.upper_min;
    tests.lower_norm[i] = weights.lower_norm;
    tests.lower_square[i] = weights.lower_square;
    tests.lower_max[i] = weights.lower_max;
  }
}

/** The searched rows of a tile: bit r is row first_row + r. */
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
  /** Searched rows per query of the warp, for mixed groups: [warp_queries]. */
  uint64_t* masks;
  /** The warp's first query: in the group, and in the batch. */
  uint32_t first_in_group;
  uint32_t first_query;
  /** The tile's panels, the last of them that exists, and the batch row of its first row. */
  const uint8_t* panels;
  uint32_t last_panel;
  uint32_t first_batch_row;
  /** In a dense pass, the list index of its first row. */
  uint32_t dense_index;
  /** Rows that some query of the warp searches. */
  uint64_t wanted;
  bool is_mixed;
};

/** How a thread block's queries are distributed over its warps. */
struct warp_share {
  uint32_t group;
  uint32_t warp_queries;
  /** The first query of this warp in the group. */
  uint32_t first_in_group;
};

/**
 * Lays out shared memory (codes, tests, masks, survivor buffers) and loads the data of the group. The
 * caller must synchronise the threads of the block before they read it.
 */
__device__ inline tile_context open_block(const scan_parameters& p, uint8_t* shared,
                                          size_t query_bytes, warp_share share) {
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t first_query = blockIdx.y * share.group;
  uint8_t* const after_queries = shared + query_bytes;
  auto* const masks = reinterpret_cast<uint64_t*>(after_queries + size_t{share.group} * test_bytes);
  auto* const survivors = reinterpret_cast<survivor_buffer*>(masks + scan_warps * share.warp_queries);
  const auto* const packed = reinterpret_cast<const uint4*>(p.packed + blockIdx.y * query_bytes);
  for (uint32_t i = threadIdx.x; i < query_bytes / sizeof(uint4); i += scan_threads) {
    reinterpret_cast<uint4*>(shared)[i] = packed[i];
  }
  tile_context context{};
  context.parameters = &p;
  context.tests = tests_at(after_queries, share.group);
  context.survivors = survivors + warp;
  context.masks = masks + size_t{warp} * share.warp_queries;
  context.first_in_group = share.first_in_group;
  context.first_query = first_query + share.first_in_group;
  load_tests(p, context.tests, first_query, share.group);
  if (threadIdx.x % 32 == 0) context.survivors->count = 0;
  return context;
}

/** Moves on to a tile. False when no query of the warp searches rows of it. */
__device__ inline bool open_tile(tile_context& context, uint32_t index, uint32_t group_number,
                                 uint32_t warp_queries) {
  const scan_parameters& p = *context.parameters;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t tile = tile_at(p.pass, index);
  const uint32_t number = block_of(p.blocks, p.block_count, tile);
  const resident_block& block = p.blocks[number];
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
  const row_view* const views = p.views + size_t{number} * p.query_count + context.first_query;
  unsigned long long wanted = 0;
  for (uint32_t i = lane; i < warp_queries; i += 32) {
    const uint64_t mask = mask_of(views[i].rows, views[i].row_count, first_row);
    context.masks[i] = mask;
    wanted |= mask;
  }
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    wanted |= __shfl_xor_sync(all_lanes, wanted, static_cast<int>(distance));
  }
  context.wanted = wanted;
  __syncwarp();
  return wanted != 0;
}

__device__ inline void append(const candidate_lists& lists, uint32_t query, uint32_t batch_row,
                              int32_t sum) {
  const uint32_t at = atomicAdd(lists.counts + query, 1u);
  if (at < lists.capacity) lists.rows[size_t{query} * lists.capacity + at] = {batch_row, sum};
}

/** The facts of a thread's two rows in one panel. The scale of a row not searched is NaN: it fails. */
struct row_facts {
  float2 scale;
  float2 norm;
  float2 residual;
  float2 square;
};

__device__ inline row_facts load_facts(const tile_context& context, uint32_t panel) {
  const uint32_t pair = threadIdx.x % 32 / 4;
  const uint8_t* const at =
      context.panels + size_t{min(panel, context.last_panel)} * context.parameters->panel_stride;
  const auto* const facts = reinterpret_cast<const float2*>(at) + pair;
  row_facts loaded = {__ldg(facts), __ldg(facts + panel_rows / 2), __ldg(facts + panel_rows),
                      __ldg(facts + 3 * (panel_rows / 2))};
  const auto bits = static_cast<uint32_t>(context.wanted >> (panel * panel_rows + 2 * pair));
  const float none = __int_as_float(0x7fffffff);
  if ((bits & 1) == 0) loaded.scale.x = none;
  if ((bits & 2) == 0) loaded.scale.y = none;
  return loaded;
}

/** Limits of no row at all, to be widened row by row. */
__device__ inline row_limits no_limits() { return {0, 0, FLT_MAX, FLT_MAX}; }

__device__ inline void widen(row_limits& limits, float scale, float norm, float residual,
                             float square) {
  if (scale != scale) return;
  limits.residual_max = fmaxf(limits.residual_max, residual);
  limits.norm_max = fmaxf(limits.norm_max, norm);
  limits.norm_min = fminf(limits.norm_min, norm);
  limits.square_min = fminf(limits.square_min, square);
}

/** The least product with which any row within the limits may pass the test of a query. */
__device__ inline float least_product(const group_tests& tests, uint32_t query,
                                      const row_limits& limits) {
  const float norm = tests.upper_norm[query];
  const float by_norm = fmaxf(norm * limits.norm_max, norm * limits.norm_min);
  return tests.upper_min[query] - tests.upper_residual[query] * limits.residual_max - by_norm -
         tests.upper_square[query] * limits.square_min;
}

/** The test of scan_weights (target.h) for one row and one query. */
__device__ inline bool survives(const group_tests& tests, uint32_t query, float product,
                                float norm, float residual, float square) {
  const float by_residual = tests.upper_residual[query] * residual;
  const float upper = product + by_residual + tests.upper_norm[query] * norm +
                      tests.upper_square[query] * square;
  const float lower = product - by_residual + tests.lower_norm[query] * norm +
                      tests.lower_square[query] * square;
  return upper >= tests.upper_min[query] && !(lower > tests.lower_max[query]);
}

/** `query` counts from the warp's first query, `row` from the tile's first row. */
__device__ inline void add_survivor(const tile_context& context, uint32_t query, uint32_t row,
                            int32_t sum) {
  if (context.is_mixed && (context.masks[query] >> row & 1) == 0) return;
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

/** Sets the sums to each query's −128·Σq. */
template <int panels, int blocks>
__device__ inline void start_sums(const tile_context& context, int32_t (&sums)[panels][blocks][4]) {
  const uint32_t column = 2 * (threadIdx.x % 4);
#pragma unroll
  for (int j = 0; j < blocks; j++) {
    const uint32_t query = context.first_in_group + query_block * static_cast<uint32_t>(j) + column;
    const int2 offset = *reinterpret_cast<const int2*>(context.tests.offset + query);
#pragma unroll
    for (int m = 0; m < panels; m++) {
      sums[m][j][0] = sums[m][j][2] = offset.x;
      sums[m][j][1] = sums[m][j][3] = offset.y;
    }
  }
}

/** Adds every searched row at its fixed list index, for a dense pass. */
template <int panels, int blocks>
__device__ inline void add_all(const tile_context& context, uint32_t first_panel,
                                const int32_t (&sums)[panels][blocks][4]) {
  const uint32_t lane = threadIdx.x % 32;
  const candidate_lists& lists = context.parameters->lists;
#pragma unroll
  for (int m = 0; m < panels; m++) {
    const uint32_t row = (first_panel + static_cast<uint32_t>(m)) * panel_rows + 2 * (lane / 4);
#pragma unroll
    for (int j = 0; j < blocks; j++) {
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) {
        const uint32_t query = query_block * static_cast<uint32_t>(j) + 2 * (lane % 4) + i % 2;
        const uint32_t its_row = row + i / 2;
        const uint64_t mask = context.is_mixed ? context.masks[query] : context.wanted;
        if ((mask >> its_row & 1) == 0) continue;
        lists.rows[size_t{context.first_query + query} * lists.capacity + context.dense_index +
                   its_row] = {context.first_batch_row + its_row, sums[m][j][i]};
      }
    }
  }
}

/**
 * Adds the rows whose upper bound reaches the threshold. For most, one comparison decides: the product
 * is below what any of the thread's rows would need.
 */
template <int panels, int blocks>
__device__ inline void add_survivors(const tile_context& context, uint32_t first_panel,
                                      const int32_t (&sums)[panels][blocks][4]) {
  const uint32_t lane = threadIdx.x % 32;
  row_facts facts[panels];
  row_limits limits = no_limits();
#pragma unroll
  for (int m = 0; m < panels; m++) {
    facts[m] = load_facts(context, first_panel + static_cast<uint32_t>(m));
    const row_facts& two = facts[m];
    widen(limits, two.scale.x, two.norm.x, two.residual.x, two.square.x);
    widen(limits, two.scale.y, two.norm.y, two.residual.y, two.square.y);
  }
#pragma unroll
  for (int j = 0; j < blocks; j++) {
    const uint32_t query = query_block * static_cast<uint32_t>(j) + 2 * (lane % 4);
    const uint32_t in_group = context.first_in_group + query;
    const float least[2] = {least_product(context.tests, in_group, limits),
                            least_product(context.tests, in_group + 1, limits)};
    bool is_any = false;
#pragma unroll
    for (int m = 0; m < panels; m++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float scale = i < 2 ? facts[m].scale.x : facts[m].scale.y;
        is_any |= static_cast<float>(sums[m][j][i]) * scale >= least[i % 2];
      }
    }
    if (!is_any) continue;
#pragma unroll
    for (int m = 0; m < panels; m++) {
      const row_facts& two = facts[m];
      const uint32_t row = (first_panel + static_cast<uint32_t>(m)) * panel_rows + 2 * (lane / 4);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float product = static_cast<float>(sums[m][j][i]) * (i < 2 ? two.scale.x : two.scale.y);
        if (!(product >= least[i % 2])) continue;
        const auto its_query = static_cast<uint32_t>(i % 2);
        const bool is_kept =
            i < 2 ? survives(context.tests, in_group + its_query, product, two.norm.x,
                             two.residual.x, two.square.x)
                  : survives(context.tests, in_group + its_query, product, two.norm.y,
                             two.residual.y, two.square.y);
        if (is_kept) {
          add_survivor(context, query + its_query, row + static_cast<uint32_t>(i / 2), sums[m][j][i]);
        }
      }
    }
  }
  flush_survivors(context);
}

}  // namespace sagitta::cuda
