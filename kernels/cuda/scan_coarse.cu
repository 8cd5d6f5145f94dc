// The scan of coarse codes, for batches of up to 64 queries: a quarter of the bytes of an int8 scan.
//
// Shapes: panels of coarse codes as in layout.h, 16 bytes for 64 dimensions of a row; queries [query /
// 8][quad][word][lane][4 words] (coarse.h).
// Idea: a lane loads a whole chunk of two rows, 16 bytes each, and four lanes have four neighbouring chunks of
// the same rows. A word of a chunk has four planes of four dimensions. Shifts and masks make an operand of
// mma.m16n8k32 of each plane, and queries are stored in the resulting order of dimensions. So codes go from
// memory to the matrix unit through registers only, as in scan_mma. Unpacking takes 8 operations for 16
// dimensions of a row, whatever the number of queries.

#include "scan_kernels.h"
#include "tile.h"

namespace sagitta::cuda {
namespace {

/** A lane's chunks of one quad, for two neighbouring rows of each panel. */
struct row_chunks {
  uint4 at[tile_panels][2];
};

/** The codes of one tile: the panels with the offset of this lane's first chunk. */
struct coarse_tile {
  const uint8_t* rows[tile_panels];
  uint32_t row_bytes;
  /** Bit m tells whether some row of panel m is searched. Other panels are not read. */
  uint32_t wanted;
};

__device__ inline void load_chunks(row_chunks& chunks, const coarse_tile& tile, uint32_t quad,
                                   bool is_shared) {
  const uint32_t byte = (quad * quad_chunks + threadIdx.x % quad_chunks) * coarse_chunk_bytes;
#pragma unroll
  for (uint32_t m = 0; m < tile_panels; m++) {
#pragma unroll
    for (uint32_t r = 0; r < 2; r++) {
      chunks.at[m][r] = make_uint4(0, 0, 0, 0);
      // The last quad may have fewer chunks.
      if (byte >= tile.row_bytes || (tile.wanted >> m & 1) == 0) continue;
      const auto* const from =
          reinterpret_cast<const uint4*>(tile.rows[m] + r * tile.row_bytes + byte);
      chunks.at[m][r] = is_shared ? load_cached(from) : load_streaming(from);
    }
  }
}

template <uint32_t word>
__device__ inline uint32_t word_of(const uint4& chunk) {
  if constexpr (word == 0) return chunk.x;
  if constexpr (word == 1) return chunk.y;
  if constexpr (word == 2) return chunk.z;
  return chunk.w;
}

/** Returns twice the codes of four dimensions, one per byte: a code c stands for 2c − 3, and sums start at −3·Σq. */
__device__ inline uint32_t plane_of(uint32_t word, uint32_t plane) {
  return (plane == 0 ? word << 1 : word >> (2 * plane - 1)) & 0x06060606u;
}

template <int blocks, uint32_t word>
__device__ inline void multiply_word(int32_t (&sums)[tile_panels][blocks][4],
                                     const row_chunks& chunks, const uint4* queries,
                                     uint32_t quad_count) {
  uint32_t first[tile_panels][4];
  uint32_t second[tile_panels][4];
#pragma unroll
  for (uint32_t m = 0; m < tile_panels; m++) {
#pragma unroll
    for (uint32_t r = 0; r < 2; r++) {
      const uint32_t codes = word_of<word>(chunks.at[m][r]);
      first[m][r] = plane_of(codes, 0);
      first[m][2 + r] = plane_of(codes, 1);
      second[m][r] = plane_of(codes, 2);
      second[m][2 + r] = plane_of(codes, 3);
    }
  }
#pragma unroll
  for (int j = 0; j < blocks; j++) {
    const uint4 columns = queries[(size_t{static_cast<uint32_t>(j)} * quad_count * 4 + word) * 32];
#pragma unroll
    for (uint32_t m = 0; m < tile_panels; m++) {
      mma_u8s8(sums[m][j], first[m], make_uint2(columns.x, columns.y));
      mma_u8s8(sums[m][j], second[m], make_uint2(columns.z, columns.w));
    }
  }
}

template <int blocks>
__device__ void scan_tile_coarse(const tile_context& context, const uint4* queries,
                                 uint32_t quad_count, bool is_shared) {
  const scan_parameters& p = *context.parameters;
  const uint32_t lane = threadIdx.x % 32;
  coarse_tile tile{};
  tile.row_bytes = p.coarse_row_bytes;
#pragma unroll
  for (uint32_t m = 0; m < tile_panels; m++) {
    tile.wanted |= (context.wants(m) ? 1u : 0u) << m;
    tile.rows[m] = context.panels + size_t{min(m, context.last_panel)} * p.panel_stride + p.codes_offset +
                   lane / 4 * 2 * tile.row_bytes;
  }
  int32_t sums[tile_panels][blocks][4];
  row_chunks next;
  // As in scan_mma: with 64 queries the sums take half of the registers.
  if (blocks == 8) start_sums(context, sums);
  load_chunks(next, tile, 0, is_shared);
  if (blocks < 8) start_sums(context, sums);
#pragma unroll 1
  for (uint32_t quad = 0; quad < quad_count; quad++) {
    const row_chunks chunks = next;
    if (quad + 1 < quad_count) load_chunks(next, tile, quad + 1, is_shared);
    const uint4* const columns = queries + size_t{quad} * 4 * 32;
    multiply_word<blocks, 0>(sums, chunks, columns, quad_count);
    multiply_word<blocks, 1>(sums, chunks, columns, quad_count);
    multiply_word<blocks, 2>(sums, chunks, columns, quad_count);
    multiply_word<blocks, 3>(sums, chunks, columns, quad_count);
  }
  add_survivors(context, sums);
}

template <int blocks>
__global__ __launch_bounds__(scan_threads, blocks <= 2 ? 2 : 1) void scan_coarse_codes(
    const __grid_constant__ scan_parameters p) {
  await_earlier_kernels();
  if (is_skipped(p.condition)) return;
  constexpr uint32_t group = query_block * blocks;
  const uint32_t quad_count = (p.coarse_row_bytes / coarse_chunk_bytes + quad_chunks - 1) / quad_chunks;
  uint8_t* const shared = dynamic_shared<uint8_t>();
  const size_t query_bytes = size_t{quad_count} * quad_dimensions * group;
  tile_context context = open_block(p, shared, query_bytes, {group, group, 0, 0, tile_panels});
  __syncthreads();

  const auto* const queries = reinterpret_cast<const uint4*>(shared) + threadIdx.x % 32;
  tile_source tiles(p, blockIdx.x * scan_warps + threadIdx.x / 32, gridDim.x * scan_warps, true);
  for (; tiles.index() < p.pass.tile_count; tiles.advance()) {
    tiles.take_next();
    if (!open_tile(context, tiles.index(), blockIdx.y, group)) continue;
    scan_tile_coarse<blocks>(context, queries, quad_count, gridDim.y > 1);
    __syncwarp();
  }
}

}  // namespace

scan_kernel scan_coarse_kernel(uint32_t group) {
  switch (group) {
    case 8: return scan_coarse_codes<1>;
    case 16: return scan_coarse_codes<2>;
    case 32: return scan_coarse_codes<4>;
    default: return scan_coarse_codes<8>;
  }
}

}  // namespace sagitta::cuda
