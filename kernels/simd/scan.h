// The scan of panels by queries for any instruction set: the integer sums of a tile of queries × panels
// stay in registers over all dimensions; then both tests of `scan_query` run on the sums. An
// instruction set provides a `Lanes` class:
//
//   width               rows per register; panel_rows is a multiple of it
//   sums, rows, query   16- to 64-byte registers: 32-bit sums, four codes of each row, four codes
//                       of the query in every lane
//   panels_of(Q)        panels of a tile of Q queries, such that no register spills
//   zero, start, load, broadcast, accumulate, add, store
//   may_survive(sums, facts, least)   whether the product of any row of a panel reaches `least`
//   weigh(sums, facts, row, query)    the mask of surviving rows among the `width` rows from `row` on
//
// Everything has internal linkage; see rows.h.
#pragma once

#include "../layout.h"
#include "../target.h"

namespace sagitta {
namespace {

/**
 * The prefetch distance. The hardware's own prefetching stops at page boundaries. A shorter distance comes
 * too late; with a longer one, lines are evicted before they are used (measured: 2 to 16 KiB).
 */
constexpr size_t prefetch_bytes = 6144;

/** The steps of each piece of a panel's codes. */
inline uint32_t steps_of_piece(const scan_task& task) {
  const uint32_t steps = step_count(task.dimension);
  return task.codes.second == nullptr ? steps : steps / 2;
}

/**
 * Computes the integer sums of a tile, row-major [Queries, Panels, panel_rows], kept in registers until the
 * end. Not inlined and without calls: values that live across a call would be spilled. Tiles of few sums
 * use two chains, for even and odd steps, because consecutive additions to one sum wait for each other.
 */
template <class Lanes, uint32_t Queries, uint32_t Panels>
__attribute__((noinline)) void sum_tile(const scan_task& task, uint32_t first_panel, int32_t* stored) {
  constexpr uint32_t panel_registers = panel_rows / Lanes::width;
  constexpr uint32_t tile_registers = Panels * panel_registers;
  constexpr uint32_t chains = Queries * tile_registers <= 4 ? 2 : 1;

  const uint8_t* packed[Queries];
  typename Lanes::sums sums[chains][Queries][tile_registers];
#pragma GCC unroll 8
  for (uint32_t q = 0; q < Queries; q++) {
    packed[q] = task.queries[q]->packed;
#pragma GCC unroll 32
    for (uint32_t i = 0; i < tile_registers; i++) {
      sums[0][q][i] = Lanes::start(task.queries[q]->offset);
      if constexpr (chains == 2) sums[1][q][i] = Lanes::zero();
    }
  }
  const uint8_t* codes[Panels];
  const auto add_step = [&](uint32_t step, auto& chain) __attribute__((always_inline)) {
    typename Lanes::rows rows[tile_registers];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < Panels; p++) {
      const uint8_t* const from = codes[p] + size_t{step} * step_bytes;
      __builtin_prefetch(from + prefetch_bytes);
#pragma GCC unroll 4
      for (uint32_t i = 0; i < panel_registers; i++) {
        rows[p * panel_registers + i] = Lanes::load(from + i * (step_bytes / panel_registers));
      }
    }
#pragma GCC unroll 8
    for (uint32_t q = 0; q < Queries; q++) {
      const auto query = Lanes::broadcast(packed[q] + step * Lanes::query_step_bytes);
#pragma GCC unroll 32
      for (uint32_t i = 0; i < tile_registers; i++) Lanes::accumulate(chain[q][i], rows[i], query);
    }
  };
  const uint32_t steps = steps_of_piece(task);
  const uint8_t* piece = task.codes.first;
  while (true) {
#pragma GCC unroll 8
    for (uint32_t p = 0; p < Panels; p++) codes[p] = piece + (first_panel + p) * task.stride;
    uint32_t step = 0;
    if constexpr (chains == 2) {
      for (; step + 2 <= steps; step += 2) {
        add_step(step, sums[0]);
        add_step(step + 1, sums[1]);
      }
    }
    for (; step < steps; step++) add_step(step, sums[0]);
    if (piece == task.codes.second || task.codes.second == nullptr) break;
    piece = task.codes.second;
#pragma GCC unroll 8
    for (uint32_t q = 0; q < Queries; q++) packed[q] += size_t{steps} * Lanes::query_step_bytes;
  }

#pragma GCC unroll 8
  for (uint32_t q = 0; q < Queries; q++) {
#pragma GCC unroll 32
    for (uint32_t i = 0; i < tile_registers; i++) {
      auto sum = sums[0][q][i];
      if constexpr (chains == 2) sum = Lanes::add(sum, sums[1][q][i]);
      Lanes::store(stored + (q * tile_registers + i) * Lanes::width, sum);
    }
  }
}

/**
 * The smallest product with which any row within the limits may pass the query's test, lowered by more than
 * the rounding errors of this function.
 */
inline float least_product(const scan_query& query, const row_limits& limits) {
  const float residual = query.upper_residual * limits.residual_max;
  const float norm =
      query.upper_norm * (query.upper_norm < 0 ? limits.norm_min : limits.norm_max);
  const float square = query.upper_square * limits.square_min;
  const float magnitudes = __builtin_fabsf(query.upper_min) + residual + __builtin_fabsf(norm) +
                           __builtin_fabsf(square);
  return query.upper_min - (residual + norm + square) - 0x1p-20f * magnitudes;
}

/** Emits the rows of a panel that pass the query's test. Returns whether there are any. */
template <class Lanes, bool has_lower>
inline __attribute__((always_inline)) bool emit_survivors(const scan_task& task, uint32_t query,
                                                          uint32_t panel, const panel_facts& facts,
                                                          const int32_t* sums) {
  uint32_t survivors = 0;
#pragma GCC unroll 4
  for (uint32_t row = 0; row < panel_rows; row += Lanes::width) {
    survivors |= Lanes::template weigh<has_lower>(sums, facts, row, *task.queries[query]) << row;
  }
  if (__builtin_expect(survivors == 0, 1)) return false;
  task.emit(task.context, query, panel, survivors, sums);
  return true;
}

/** `least` [Queries] holds their least_product. Emitting may tighten the test and thereby raise it. */
template <class Lanes, uint32_t Queries, uint32_t Panels, bool has_lower>
void scan_tile(const scan_task& task, uint32_t first_panel, float* least) {
  const size_t stride = task.stride;
  const uint8_t* const first = task.panels + first_panel * stride;
  alignas(64) int32_t sums[Queries * Panels * panel_rows];
  for (uint32_t p = 0; p < Panels; p++) {
    const uint8_t* const ahead = first + p * stride + prefetch_bytes;
    for (uint32_t at = 0; at < fact_bytes; at += step_bytes) __builtin_prefetch(ahead + at);
  }
  sum_tile<Lanes, Queries, Panels>(task, first_panel, sums);

  for (uint32_t q = 0; q < Queries; q++) {
    for (uint32_t p = 0; p < Panels; p++) {
      const auto& facts = *reinterpret_cast<const panel_facts*>(first + p * stride);
      const int32_t* const found = sums + (q * Panels + p) * panel_rows;
      if (__builtin_expect(!Lanes::may_survive(found, facts, least[q]), 1)) continue;
      if (emit_survivors<Lanes, has_lower>(task, q, first_panel + p, facts, found)) {
        least[q] = least_product(*task.queries[q], task.limits);
      }
    }
  }
}

template <class Lanes, uint32_t Queries, bool has_lower>
void scan_group(const scan_task& task) {
  constexpr uint32_t panels = Lanes::panels_of(Queries);
  float least[Queries];
  for (uint32_t q = 0; q < Queries; q++) least[q] = least_product(*task.queries[q], task.limits);
  uint32_t panel = 0;
  for (; panel + panels <= task.panel_count; panel += panels) {
    scan_tile<Lanes, Queries, panels, has_lower>(task, panel, least);
  }
  for (; panel < task.panel_count; panel++) {
    scan_tile<Lanes, Queries, 1, has_lower>(task, panel, least);
  }
}

template <class Lanes, uint32_t Queries = Lanes::query_group>
void scan_queries(const scan_task& task) {
  if (task.query_count == Queries) {
    if (task.queries[0]->has_lower) scan_group<Lanes, Queries, true>(task);
    else scan_group<Lanes, Queries, false>(task);
  } else if constexpr (Queries > 1) {
    scan_queries<Lanes, Queries - 1>(task);
  }
}

template <class Lanes>
void scan(const scan_task& task) {
  if (task.query_count > 0) scan_queries<Lanes>(task);
}

}  // namespace
}  // namespace sagitta
