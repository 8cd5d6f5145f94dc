// A ring of stages in shared memory through which the codes of a warpgroup's tiles pass: a producer warp fills
// stages by bulk copies, and the four warps of the warpgroup read them.
//
// Shapes: a stage holds one chunk of dimensions of a tile, [panel][facts, codes]. The facts come with chunk 0,
// whose codes they precede in memory; stages of other chunks leave their place unused. Only wanted panels are
// copied, and only dimensions that exist: what a stage holds behind these is left over from earlier tiles and
// multiplied by zeros.
// Protocol: each stage has two mbarriers. `full` expects one arrival, which announces the bytes of the copies,
// and these bytes; `empty` expects the four warps, once they have the stage in registers. Both ends go through
// the same sequence of tiles and chunks, so that they need not tell each other which tile a stage belongs to.
// Every stage that is filled is read: no copy is in flight when the block ends.
#pragma once

#include "tile_wgmma.h"

namespace sagitta::cuda {

/**
 * Each warpgroup has a ring and a producer warp of its own and never waits for the other's tiles. The
 * producers are in a third warpgroup, whose other warps end at once, because registers can only be passed
 * from one warpgroup to another: each thread of the block begins with 168 of them (launch bounds).
 */
inline constexpr uint32_t ring_threads = scan_threads + warpgroup_threads;
inline constexpr int producer_registers = 40;
inline constexpr int reader_registers = 232;
static_assert(warpgroups * reader_registers + producer_registers == (warpgroups + 1) * 168);

inline constexpr uint32_t stage_panel_bytes = fact_bytes + chunk_bytes;
inline constexpr uint32_t stage_bytes = tile_panels * stage_panel_bytes;

/** With one stage, no copy would be in flight while it is read. */
inline constexpr uint32_t ring_stages_min = 2;

/** Bulk copies need 16 bytes; aligning to whole lines of the banks keeps reads free of conflicts. */
inline constexpr size_t ring_alignment = 128;

SAGITTA_HOST_DEVICE constexpr size_t ring_aligned(size_t byte_count) {
  return (byte_count + ring_alignment - 1) / ring_alignment * ring_alignment;
}

/** Bytes of the mbarriers of all rings: [warpgroup][full, empty][stage]. */
SAGITTA_HOST_DEVICE constexpr size_t ring_barrier_bytes(uint32_t stages) {
  return ring_aligned(size_t{warpgroups} * 2 * stages * sizeof(uint64_t));
}

/** Bytes of shared memory of a block whose rings come after `bytes_before`. */
constexpr size_t bytes_with_rings(size_t bytes_before, uint32_t stages) {
  return ring_aligned(bytes_before) + ring_barrier_bytes(stages) +
         size_t{warpgroups} * stages * stage_bytes;
}

/** One end of a ring: its memory and its next stage. */
struct ring_end {
  /** [stages][stage_bytes] */
  uint8_t* stages;
  /** [stages] each. */
  uint64_t* full;
  uint64_t* empty;
  uint32_t stage_count;
  uint32_t stage;
  /** The parity of the phase in which the stage is filled and read. */
  uint32_t parity;

  __device__ void advance() {
    if (++stage < stage_count) return;
    stage = 0;
    parity ^= 1;
  }
};

/** Returns the ring of a warpgroup; `shared` is the block's shared memory. */
__device__ inline ring_end ring_of(uint8_t* shared, size_t bytes_before, uint32_t stage_count,
                                   uint32_t warpgroup) {
  uint8_t* const barriers = shared + ring_aligned(bytes_before);
  auto* const full = reinterpret_cast<uint64_t*>(barriers) + 2 * warpgroup * stage_count;
  uint8_t* const stages = barriers + ring_barrier_bytes(stage_count) +
                          size_t{warpgroup} * stage_count * stage_bytes;
  return {stages, full, full + stage_count, stage_count, 0, 0};
}

/** One thread must call it, before a barrier of the block. */
__device__ inline void open_ring(const ring_end& ring) {
  for (uint32_t i = 0; i < ring.stage_count; i++) {
    mbarrier_init(ring.full + i, 1);
    mbarrier_init(ring.empty + i, group_warps);
  }
  fence_mbarrier_init();
}

/** Copies a chunk of the tile into the next stage once that is empty. One thread must call it. */
__device__ inline void fill_stage(ring_end& ring, const tile_context& tile, uint32_t chunk) {
  const uint32_t stride = tile.parameters->panel_stride;
  const uint32_t from = chunk == 0 ? 0 : fact_bytes + chunk * chunk_bytes;
  const uint32_t byte_count = min(fact_bytes + (chunk + 1) * chunk_bytes, stride) - from;
  uint32_t panel_count = 0;
  for (uint32_t m = 0; m < tile_panels; m++) panel_count += tile.wants(m) ? 1 : 0;
  uint64_t* const full = ring.full + ring.stage;
  uint8_t* const to = ring.stages + ring.stage * stage_bytes + (chunk == 0 ? 0 : fact_bytes);
  // Before the first phase, waiting for the phase before it returns at once: all stages are empty.
  mbarrier_wait(ring.empty + ring.stage, ring.parity ^ 1);
  mbarrier_arrive_expect(full, panel_count * byte_count);
  for (uint32_t m = 0; m < tile_panels; m++) {
    if (!tile.wants(m)) continue;
    copy_to_shared(to + m * stage_panel_bytes, tile.panels + size_t{m} * stride + from, byte_count,
                   full);
  }
  ring.advance();
}

/** The facts of a warp's panel, for start_sums. */
struct loaded_facts {
  pair_facts pair;
  __device__ pair_facts of(const tile_context&, uint32_t) const { return pair; }
};

/** The codes of a warp's panel, in its warpgroup's ring. */
class codes_in_ring {
 public:
  __device__ codes_in_ring(const ring_end& ring, uint32_t panel) : ring_(ring), panel_(panel) {}

  template <int blocks>
  __device__ void begin(const tile_context& context, chunk_words& words,
                        int32_t (&sums)[1][blocks][4]) {
    is_wanted_ = context.wants(panel_);
    const uint8_t* const from = await_panel();
    loaded_facts facts{};
    if (is_wanted_) facts.pair = load_facts(from, [](const float2* fact) { return *fact; });
    read_words(words, from);
    release();
    start_sums(context, sums, facts);
  }

  __device__ void load(chunk_words& words, uint32_t) {
    read_words(words, await_panel());
    release();
  }

 private:
  /** Waits for the next stage, even if the panel is not wanted: nothing else keeps the warps in step. */
  __device__ const uint8_t* await_panel() const {
    mbarrier_wait(ring_.full + ring_.stage, ring_.parity);
    return ring_.stages + ring_.stage * stage_bytes + panel_ * stage_panel_bytes;
  }

  /**
   * The words of a thread's two rows are neighbours, but loading both at once would put two lanes on each
   * bank: the lines of the four lanes that share a row alternate between two halves of the banks. Two
   * loads, in opposite order in half of the lanes, spread 32 lanes over 32 banks.
   */
  __device__ void read_words(chunk_words& words, const uint8_t* from) const {
    if (!is_wanted_) return;
    const bool is_swapped = threadIdx.x % 4 >= 2;
    const uint8_t* const codes = from + fact_bytes + first_word();
    const uint8_t* const one = codes + (is_swapped ? sizeof(uint32_t) : 0);
    const uint8_t* const other = codes + (is_swapped ? 0 : sizeof(uint32_t));
#pragma unroll
    for (uint32_t i = 0; i < 2 * chunk_steps; i++) {
      const uint32_t early = load_shared(reinterpret_cast<const uint32_t*>(one + i * words_apart));
      const uint32_t late = load_shared(reinterpret_cast<const uint32_t*>(other + i * words_apart));
      words.at[i] = is_swapped ? make_uint2(late, early) : make_uint2(early, late);
    }
  }

  /** Called when the warp has the stage in registers. */
  __device__ void release() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(ring_.empty + ring_.stage);
    ring_.advance();
  }

  ring_end ring_;
  uint32_t panel_;
  bool is_wanted_ = false;
};

}  // namespace sagitta::cuda
