// Products of coarse codes for any instruction set: sums of a few rows × queries stay in registers over all
// dimensions and are reduced together. An instruction set provides a `Coarse` class:
//
//   bytes               size of a register of codes, whose four planes hold 4 · bytes dimensions
//   rows_of(Q)          rows of a tile of Q queries, a divisor of panel_rows
//   codes, query, sums  registers of codes, of a packed query, and of sums to reduce
//   load, load_query, zero
//   first<plane>(codes), second<plane>(coarse, refinement)   the codes of a plane, as unsigned bytes
//   accumulate(sums, codes, query)   adds the products of a plane
//   accumulate_narrow                optional: a faster version for codes of the first level
//   end_step(sums, step)   is called for each sum after each step of `bytes`
//   reduce<count>(sums, to)
//
// Everything has internal linkage; see rows.h.
#pragma once

#include <type_traits>

#include "scan.h"

namespace sagitta {
namespace {

/** The values of the sixteen codes of the second level, plus refined_offset. */
constexpr uint8_t refined_values[16] = {
    refined_offset - refined_levels[7], refined_offset - refined_levels[6],
    refined_offset - refined_levels[5], refined_offset - refined_levels[4],
    refined_offset - refined_levels[3], refined_offset - refined_levels[2],
    refined_offset - refined_levels[1], refined_offset - refined_levels[0],
    refined_offset + refined_levels[0], refined_offset + refined_levels[1],
    refined_offset + refined_levels[2], refined_offset + refined_levels[3],
    refined_offset + refined_levels[4], refined_offset + refined_levels[5],
    refined_offset + refined_levels[6], refined_offset + refined_levels[7]};

/** The prefetch distance. In measurements, 2 to 8 KiB were equally fast and shorter distances slower. */
constexpr size_t coarse_prefetch_bytes = 4096;

enum class coarse_level { first, second };

template <class Coarse>
concept has_narrow_sums = requires { &Coarse::accumulate_narrow; };

/** Computes sums [Queries, Rows], without their offsets. `refinement` is read only on the second level. */
template <class Coarse, coarse_level Level, uint32_t Queries, uint32_t Rows, bool is_scan>
__attribute__((noinline)) void sum_coarse(uint32_t row_bytes, const uint8_t* const* coarse,
                                          const uint8_t* const* refinement,
                                          const uint8_t* const* packed, int32_t* stored) {
  typename Coarse::sums sums[Queries * Rows];
#pragma GCC unroll 16
  for (uint32_t i = 0; i < Queries * Rows; i++) sums[i] = Coarse::zero();
  const uint32_t steps = (row_bytes + Coarse::bytes - 1) / Coarse::bytes;
  for (uint32_t step = 0; step < steps; step++) {
    typename Coarse::query query[Queries][4];
#pragma GCC unroll 4
    for (uint32_t q = 0; q < Queries; q++) {
#pragma GCC unroll 4
      for (uint32_t plane = 0; plane < 4; plane++) {
        query[q][plane] = Coarse::load_query(packed[q] + (step * 4 + plane) * Coarse::bytes);
      }
    }
#pragma GCC unroll 16
    for (uint32_t r = 0; r < Rows; r++) {
      const uint8_t* const from = coarse[r] + step * Coarse::bytes;
      if constexpr (is_scan) __builtin_prefetch(from + coarse_prefetch_bytes);
      const auto first = Coarse::load(from);
      const auto add = [&](auto plane, const auto& codes) __attribute__((always_inline)) {
#pragma GCC unroll 4
        for (uint32_t q = 0; q < Queries; q++) {
          auto& sum = sums[q * Rows + r];
          if constexpr (Level == coarse_level::first && has_narrow_sums<Coarse>) {
            Coarse::accumulate_narrow(sum, codes, query[q][plane.value]);
          } else {
            Coarse::accumulate(sum, codes, query[q][plane.value]);
          }
        }
      };
      const auto each = [&](auto plane) __attribute__((always_inline)) {
        if constexpr (Level == coarse_level::first) {
          add(plane, Coarse::template first<plane.value>(first));
        } else {
          const auto second = Coarse::load(refinement[r] + step * Coarse::bytes);
          add(plane, Coarse::template second<plane.value>(first, second));
        }
      };
      each(std::integral_constant<uint32_t, 0>());
      each(std::integral_constant<uint32_t, 1>());
      each(std::integral_constant<uint32_t, 2>());
      each(std::integral_constant<uint32_t, 3>());
    }
#pragma GCC unroll 16
    for (uint32_t i = 0; i < Queries * Rows; i++) Coarse::end_step(sums[i], step);
  }
  Coarse::template reduce<Queries * Rows>(sums, stored);
}

/** The value of a first-level code is 2 · code − 3; `offset` is −3 · Σq. */
inline int32_t first_sum(int32_t sum, int32_t offset) { return 2 * sum + offset; }

template <class Coarse, coarse_level Level>
void sum_rows(const coarse_query& query, const uint8_t* const* coarse,
              const uint8_t* const* refinement, uint32_t count, int32_t* sums) {
  constexpr uint32_t rows = Coarse::rows_of(1);
  for (uint32_t from = 0; from < count; from += rows) {
    const uint8_t* first[rows];
    const uint8_t* second[rows];
    for (uint32_t r = 0; r < rows; r++) {
      const uint32_t row = from + r < count ? from + r : count - 1;
      first[r] = coarse[row];
      second[r] = Level == coarse_level::second ? refinement[row] : nullptr;
    }
    alignas(64) int32_t found[rows];
    sum_coarse<Coarse, Level, 1, rows, false>(coarse_row_bytes(query.dimension), first, second,
                                              &query.packed, found);
    for (uint32_t r = 0; r < rows && from + r < count; r++) {
      sums[from + r] = Level == coarse_level::first ? first_sum(found[r], query.offset)
                                                    : found[r] + query.offset;
    }
  }
}

template <class Coarse>
void coarse_sums(const coarse_query& query, const uint8_t* const* coarse, uint32_t count,
                 int32_t* sums) {
  sum_rows<Coarse, coarse_level::first>(query, coarse, nullptr, count, sums);
}

template <class Coarse>
void refined_sums(const coarse_query& query, const uint8_t* const* coarse,
                  const uint8_t* const* refinement, uint32_t count, int32_t* sums) {
  sum_rows<Coarse, coarse_level::second>(query, coarse, refinement, count, sums);
}

template <class Lanes, class Coarse, uint32_t Queries, bool has_lower>
void scan_coarse_group(const scan_task& task, uint32_t first_query) {
  constexpr uint32_t rows = Coarse::rows_of(Queries);
  const size_t stride = coarse_panel_bytes(task.dimension);
  const uint32_t row_bytes = coarse_row_bytes(task.dimension);
  const uint8_t* packed[Queries];
  for (uint32_t q = 0; q < Queries; q++) packed[q] = task.queries[first_query + q]->packed;
  for (uint32_t panel = 0; panel < task.panel_count; panel++) {
    const uint8_t* const start = task.panels + panel * stride;
    alignas(64) int32_t sums[Queries][panel_rows];
    for (uint32_t row = 0; row < panel_rows; row += rows) {
      const uint8_t* from[rows];
      for (uint32_t r = 0; r < rows; r++) from[r] = start + fact_bytes + (row + r) * row_bytes;
      alignas(64) int32_t found[Queries * rows];
      sum_coarse<Coarse, coarse_level::first, Queries, rows, true>(row_bytes, from, nullptr, packed,
                                                                   found);
      for (uint32_t q = 0; q < Queries; q++) {
        const int32_t offset = task.queries[first_query + q]->offset;
        for (uint32_t r = 0; r < rows; r++) {
          sums[q][row + r] = first_sum(found[q * rows + r], offset);
        }
      }
    }
    const auto& facts = *reinterpret_cast<const panel_facts*>(start);
    for (uint32_t q = 0; q < Queries; q++) {
      emit_survivors<Lanes, has_lower>(task, first_query + q, panel, facts, sums[q]);
    }
  }
}

template <class Lanes, class Coarse, bool has_lower>
void scan_coarse_queries(const scan_task& task) {
  uint32_t query = 0;
  for (; query + 4 <= task.query_count; query += 4) {
    scan_coarse_group<Lanes, Coarse, 4, has_lower>(task, query);
  }
  if (query + 2 <= task.query_count) {
    scan_coarse_group<Lanes, Coarse, 2, has_lower>(task, query);
    query += 2;
  }
  if (query < task.query_count) scan_coarse_group<Lanes, Coarse, 1, has_lower>(task, query);
}

template <class Lanes, class Coarse>
void scan_coarse(const scan_task& task) {
  if (task.query_count == 0) return;
  if (task.queries[0]->has_lower) scan_coarse_queries<Lanes, Coarse, true>(task);
  else scan_coarse_queries<Lanes, Coarse, false>(task);
}

/** Pads the query to whole registers; see layout.h. */
template <class Coarse>
void pack_coarse_query(const int8_t* codes, uint32_t dimension, uint8_t* packed) {
  const uint32_t steps = (coarse_row_bytes(dimension) + Coarse::bytes - 1) / Coarse::bytes;
  for (uint32_t step = 0; step < steps; step++) {
    for (uint32_t plane = 0; plane < 4; plane++) {
      for (uint32_t j = 0; j < Coarse::bytes; j++) {
        const uint32_t byte = step * Coarse::bytes + j;
        const uint32_t i = byte / coarse_chunk_bytes * coarse_chunk_dimensions +
                           plane * coarse_chunk_bytes + byte % coarse_chunk_bytes;
        const int8_t code = i < dimension ? codes[i] : int8_t{0};
        packed[(step * 4 + plane) * Coarse::bytes + j] = static_cast<uint8_t>(code);
      }
    }
  }
}

}  // namespace
}  // namespace sagitta
