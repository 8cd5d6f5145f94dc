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

template <class Lanes, class Coarse>
constexpr target create_target(const char* name, scan_costs costs,
                               decltype(target::pack_query) pack_query = pack_quads) {
  return {
      name,
      costs,
      Lanes::query_group,
      Lanes::query_step_bytes,
      encode,
      encode_query,
      pack_query,
      scan<Lanes>,
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
