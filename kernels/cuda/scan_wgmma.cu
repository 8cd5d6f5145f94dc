// The scan of large batches on compute capability 9.0: warpgroup matrix products that read queries
// directly from shared memory. Codes go from memory to registers, without passing through shared memory.

#include "scan_kernels.h"
#include "tile_wgmma.h"

namespace sagitta::cuda {
namespace {

/** The codes of a warp's panel, in device memory. */
struct codes_in_memory {
  /** The thread's first word. */
  const uint8_t* from;
  /** Whether the panel is wanted; otherwise it is not read. */
  bool is_wanted;

  template <int blocks>
  __device__ void begin(const tile_context& context, chunk_words& words,
                        int32_t (&sums)[1][blocks][4]) {
    from = context.panels + size_t{context.first_panel} * context.parameters->panel_stride +
           context.parameters->codes_offset + first_word();
    is_wanted = context.wants(context.first_panel);
    load(words, 0);
    start_sums(context, sums);
  }

  __device__ void load(chunk_words& words, uint32_t chunk) const {
    if (!is_wanted) return;
    const uint8_t* const at = from + size_t{chunk} * chunk_bytes;
#pragma unroll
    for (uint32_t i = 0; i < 2 * chunk_steps; i++) {
      words.at[i] = load_cached(reinterpret_cast<const uint2*>(at + i * words_apart));
    }
  }
};

template <int group>
__global__ __launch_bounds__(scan_threads, group <= 128 ? 2 : 1) void scan_wgmma(
    const __grid_constant__ scan_parameters p) {
  await_earlier_kernels();
  if (is_skipped(p.condition)) return;
  uint8_t* const shared = dynamic_shared<uint8_t>();
  const size_t query_bytes = size_t{p.chunk_count} * chunk_dimensions * group;
  tile_context context = open_block(p, shared, query_bytes, share_of_warp(group));
  fence_async_shared();
  __syncthreads();
  codes_in_memory codes{};
  scan_tiles<group>(context, wgmma_descriptor(shared), codes);
}

}  // namespace

scan_kernel scan_wgmma_kernel(uint32_t group) {
  switch (group) {
    case 64: return scan_wgmma<64>;
    case 128: return scan_wgmma<128>;
    default: return scan_wgmma<256>;
  }
}

}  // namespace sagitta::cuda
