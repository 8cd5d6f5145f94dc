// Packs rows: first a list of those that pass, then copies of their facts and codes, so that scans read
// and multiply no others.
//
// Shapes: panels as in layout.h; a thread block copies one packed panel at a time, whose 16 rows come
// from up to 16 panels.

#include "pack.h"

namespace sagitta::cuda {
namespace {

constexpr uint32_t threads = 256;
constexpr uint32_t blocks_max = 1024;

__global__ __launch_bounds__(threads) void list_rows(const __grid_constant__ pack_parameters p) {
  await_earlier_kernels();
  const uint32_t end = p.tile_count * words_per_tile;
  const uint32_t step = gridDim.x * threads;
  // Whole warps go on together.
  for (uint32_t first = blockIdx.x * threads + threadIdx.x / 32 * 32; first < end; first += step) {
    const uint32_t word = first + threadIdx.x % 32;
    uint32_t rows = word < end ? p.views.rows_of_word(word) : 0;
    uint32_t at = reserve_places(rows, p.counter);
    for (; rows != 0; rows &= rows - 1, at++) {
      const auto bit = static_cast<uint32_t>(__ffs(static_cast<int>(rows)) - 1);
      p.batch_rows[at] = word * 32 + bit;
    }
  }
}

__global__ __launch_bounds__(threads) void copy_rows(const __grid_constant__ pack_parameters p) {
  await_earlier_kernels();
  // The first fact of each row, and its first word of codes is fact_bytes further.
  __shared__ const uint8_t* sources[panel_rows];
  const uint32_t panel_count = (p.row_count + panel_rows - 1) / panel_rows;
  // Facts and steps alike are 16 words, one for each row.
  const uint32_t line_count = p.panel_stride / step_bytes;
  for (uint32_t panel = blockIdx.x; panel < panel_count; panel += gridDim.x) {
    const uint32_t first_row = panel * panel_rows;
    const uint32_t row_count = min(p.row_count - first_row, panel_rows);
    if (threadIdx.x < row_count) {
      const uint32_t batch_row = p.batch_rows[first_row + threadIdx.x];
      const resident_block& block =
          p.views.blocks[block_of(p.views.blocks, p.views.block_count, batch_row / tile_rows)];
      const uint32_t row = batch_row - block.first_tile * tile_rows;
      sources[threadIdx.x] = block.panels + size_t{row / panel_rows} * p.panel_stride +
                             row % panel_rows * sizeof(uint32_t);
    }
    __syncthreads();
    auto* const to = reinterpret_cast<uint32_t*>(p.panels + size_t{panel} * p.panel_stride);
    for (uint32_t i = threadIdx.x; i < line_count * panel_rows; i += threads) {
      if (i % panel_rows >= row_count) continue;
      to[i] = *reinterpret_cast<const uint32_t*>(sources[i % panel_rows] +
                                                 size_t{i / panel_rows} * step_bytes);
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t pack_rows(const pack_parameters& parameters, launch_order order) {
  const uint32_t words = parameters.tile_count * words_per_tile;
  const uint32_t listing = min((words + threads - 1) / threads, blocks_max);
  const cudaError_t error = launch(list_rows, dim3(listing), threads, 0, order, parameters);
  if (error != cudaSuccess) return error;
  const uint32_t copying = min((parameters.row_count + panel_rows - 1) / panel_rows, blocks_max);
  return launch(copy_rows, dim3(copying), threads, 0, order, parameters);
}

cudaError_t preload_packing() {
  const cudaError_t error = preload(list_rows);
  return error == cudaSuccess ? preload(copy_rows) : error;
}

}  // namespace sagitta::cuda
