// The function table of an instruction set, from its `Lanes` (scan.h) and `Coarse` (coarse.h) classes.
#pragma once

#include "coarse.h"
#include "head.h"

namespace sagitta {
namespace {

/** Packs the codes of a query unchanged: the four codes of a step are one 32-bit operand. */
inline void pack_quads(const int8_t* codes, uint32_t steps, uint8_t* packed) {
  std::memcpy(packed, codes, size_t{steps} * step_dimensions);
}

template <class Lanes>
constexpr panel_scan scan_quads = {Lanes::query_step_bytes, pack_quads, scan<Lanes>};

template <class Lanes, class Coarse>
constexpr target create_target(const char* name, scan_costs costs, panel_scan tiles = scan_quads<Lanes>,
                               panel_scan head = scan_quads<Lanes>) {
  return {
      name,
      costs,
      Lanes::query_group,
      encode,
      encode_query,
      tiles,
      head,
      limit_rows,
      products,
      rotate,
      encode_coarse,
      pack_coarse_query<Coarse>,
      scan_coarse<Lanes, Coarse>,
      coarse_sums<Coarse>,
      refined_sums<Coarse>,
      project,
      subtract_parts,
      encode_head,
      count_bits,
  };
}

}  // namespace
}  // namespace sagitta
