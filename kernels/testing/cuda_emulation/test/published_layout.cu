// The layouts of matrices in the PTX ISA: "Matrix Fragments for mma.m16n8k32", "Register Fragments" of
// wgmma .m64nNk32, and "Asynchronous Warpgroup Level Matrix Shared Memory Layout". Everything here is
// transcribed from the formulas and tables of these sections: nothing of the kernels' encoders, of
// wgmma_descriptor or of the emulation's model is used to place or to find an element.
#include <vector>

#include "../../../cuda/intrinsics.h"
#include "test.h"

namespace platform_test {
namespace {

using namespace sagitta::cuda;

// ── fragments ─────────────────────────────────────────────────────────────────────────────────────
// The ISA's names: groupID = laneid >> 2, threadID_in_group = laneid % 4; a, b and c are the elements of
// a thread's fragment from low to high, four 8-bit elements to a register.

struct element {
  uint32_t row;
  uint32_t column;
};

/** A of mma.m16n8k32 and of a warp of wgmma, 8-bit: i = 0 … 15. */
__host__ __device__ element place_of_a(uint32_t lane, uint32_t i) {
  const uint32_t group = lane >> 2;
  const uint32_t in_group = lane % 4;
  const uint32_t row = i < 4 || (i >= 8 && i < 12) ? group : group + 8;
  const uint32_t column = i < 8 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16;
  return {row, column};
}

/** B of mma.m16n8k32, 8-bit: i = 0 … 7. Rows are along k. */
__host__ __device__ element place_of_b(uint32_t lane, uint32_t i) {
  const uint32_t in_group = lane % 4;
  const uint32_t row = i < 4 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16;
  return {row, lane >> 2};
}

/** C and D of mma.m16n8k32: i = 0 … 3. */
__host__ __device__ element place_of_c(uint32_t lane, uint32_t i) {
  const uint32_t group = lane >> 2;
  return {i < 2 ? group : group + 8, lane % 4 * 2 + (i & 1)};
}

/** D of wgmma.m64nNk32, the rows within a warp: d0, d1 and d2, d3 as above, and so on every 8 columns. */
__host__ __device__ element place_of_d(uint32_t lane, uint32_t i) {
  const uint32_t group = lane >> 2;
  const uint32_t row = i % 4 < 2 ? group : group + 8;
  return {row, i / 4 * 8 + lane % 4 * 2 + (i & 1)};
}

constexpr uint32_t depth = 32;

/** Arbitrary matrices: [16 or 64, 32] u8 and [columns, 32] s8. */
__host__ __device__ uint8_t a_at(uint32_t row, uint32_t k) {
  return static_cast<uint8_t>(mixed(row * depth + k));
}
__host__ __device__ int8_t b_at(uint32_t column, uint32_t k) {
  return static_cast<int8_t>(mixed(~uint64_t{0} - column * depth - k));
}

int32_t product_at(uint32_t row, uint32_t column) {
  int32_t sum = 0;
  for (uint32_t k = 0; k < depth; k++) sum += a_at(row, k) * b_at(column, k);
  return sum;
}

__device__ void fill_a(uint32_t (&registers)[4], uint32_t first_row) {
  for (uint32_t i = 0; i < 16; i++) {
    const element at = place_of_a(threadIdx.x % 32, i);
    if (i % 4 == 0) registers[i / 4] = 0;
    registers[i / 4] |= uint32_t{a_at(first_row + at.row, at.column)} << i % 4 * 8;
  }
}

struct published_parameters {
  /** [rows, columns] */
  int32_t* sums;
  /** For wgmma: the bytes between groups of eight columns, and the offset of the start of the matrix. */
  uint32_t stride;
  uint32_t start;
};

__global__ void multiply_fragments(const __grid_constant__ published_parameters p) {
  const uint32_t lane = threadIdx.x;
  uint32_t a[4];
  fill_a(a, 0);
  uint32_t b[2] = {0, 0};
  for (uint32_t i = 0; i < 8; i++) {
    const element at = place_of_b(lane, i);
    b[i / 4] |= uint32_t{static_cast<uint8_t>(b_at(at.column, at.row))} << i % 4 * 8;
  }
  int32_t c[4] = {0, 0, 0, 0};
  mma_u8s8(c, a, make_uint2(b[0], b[1]));
  for (uint32_t i = 0; i < 4; i++) {
    const element at = place_of_c(lane, i);
    p.sums[at.row * 8 + at.column] = c[i];
  }
}

// ── shared memory ─────────────────────────────────────────────────────────────────────────────────

/**
 * Returns where byte `k` of a column is with the 128-byte swizzle, K-major. The swizzle atom has 8 rows
 * (here: columns of B) of 8 units of 128 bits, 1,024 bytes, and repeats every `stride` bytes ("stride
 * dimension byte offset"). The figure of the layout shows unit u of row r at unit u XOR r of the row, which
 * is the ISA's Swizzle<3, 4, 3>: bits 4 to 6 of the address change by bits 7 to 9. `start` counts from a
 * boundary of 1,024 bytes, where the pattern begins.
 */
__host__ __device__ uint32_t swizzled_offset(uint32_t column, uint32_t k, uint32_t start,
                                             uint32_t stride) {
  const uint32_t plain = start + column / 8 * stride + column % 8 * 128 + k;
  const uint32_t bits_7_to_9 = (plain & 0x380) >> 7;
  return plain ^ bits_7_to_9 << 4;
}

/** matrix-descriptor-encode(x) of the section "Matrix Descriptor Format". */
__host__ __device__ uint64_t descriptor_encode(uint64_t x) { return (x & 0x3ffff) >> 4; }

/**
 * The fields of that section's table: bits 0 to 13 the start address, 16 to 29 the leading dimension byte
 * offset, 32 to 45 the stride dimension byte offset (all encoded), 49 to 51 the base offset, 62 to 63 the
 * swizzle mode, where 1 is 128 bytes. The base offset is 0 if the pattern starts at a boundary of 1,024
 * bytes. Swizzled K-major layouts do not use the leading dimension byte offset: any value will do.
 */
__host__ __device__ uint64_t published_descriptor(uint64_t address, uint64_t leading, uint64_t stride) {
  const uint64_t base_offset = 0;
  const uint64_t swizzle_128_bytes = 1;
  return descriptor_encode(address) | descriptor_encode(leading) << 16 | descriptor_encode(stride) << 32 |
         base_offset << 49 | swizzle_128_bytes << 62;
}

/** Returns the address of shared memory as used in descriptors, counted from the start of the block's memory. */
__device__ uint64_t shared_address(const void* shared) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint64_t>(__cvta_generic_to_shared(shared));
#else
  return static_cast<uint64_t>(static_cast<const uint8_t*>(shared) - dynamic_shared<uint8_t>());
#endif
}

template <int N>
__global__ void multiply_by_descriptor(const __grid_constant__ published_parameters p) {
  uint8_t* const shared = dynamic_shared<uint8_t>();
  for (uint32_t i = threadIdx.x; i < N * depth; i += blockDim.x) {
    const uint32_t column = i / depth;
    const uint32_t k = i % depth;
    shared[swizzled_offset(column, k, p.start, p.stride)] = static_cast<uint8_t>(b_at(column, k));
  }
  fence_async_shared();
  __syncthreads();
  const uint32_t warp = threadIdx.x / 32;
  uint32_t a[4];
  fill_a(a, warp * 16);
  int32_t d[N / 2];
  wgmma_fence();
  wgmma_u8s8<N>(d, a, published_descriptor(shared_address(shared + p.start), 4096, p.stride), false);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_fence_sums(d);
  for (uint32_t i = 0; i < N / 2; i++) {
    const element at = place_of_d(threadIdx.x % 32, i);
    p.sums[(warp * 16 + at.row) * N + at.column] = d[i];
  }
}

__global__ void compare_descriptors(const __grid_constant__ published_parameters p) {
  for (uint32_t offset = 0; offset < 8192; offset += 1024) {
    const uint8_t* const from = dynamic_shared<uint8_t>() + offset;
    const uint64_t expected = published_descriptor(shared_address(from), 16, 1024);
    const uint64_t leading = uint64_t{0x3fff} << 16;
    p.sums[offset / 1024] = (wgmma_descriptor(from) & ~leading) == (expected & ~leading);
  }
}

void require_products(device_array<int32_t>& sums, uint32_t row_count, uint32_t column_count,
                      const char* what, uint64_t at) {
  std::vector<int32_t> found(size_t{row_count} * column_count);
  sums.get(found.data());
  for (uint32_t row = 0; row < row_count; row++) {
    for (uint32_t column = 0; column < column_count; column++) {
      require(found[row * column_count + column] == product_at(row, column), what, at);
    }
  }
}

template <int N>
void test_descriptor() {
  // K advances within the 128 bytes of a row by the start address; atoms may be apart.
  for (const uint32_t stride : {1024u, 2048u}) {
    for (const uint32_t start : {0u, 32u, 96u, 3072u, 3072u + 64u}) {
      device_array<int32_t> sums(64 * N);
      const int shared_bytes = 4096 + N / 8 * 2048;
      require_success(cudaFuncSetAttribute(multiply_by_descriptor<N>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
                      "cudaFuncSetAttribute");
      require_success(launch(multiply_by_descriptor<N>, dim3(1), 128, shared_bytes, nullptr,
                             published_parameters{sums.data(), stride, start}),
                      "wgmma by the published layout");
      require_products(sums, 64, N, "products of wgmma by the published layout", stride + start);
    }
  }
}

}  // namespace

void test_published_layout() {
  device_array<int32_t> sums(16 * 8);
  require_success(launch(multiply_fragments, dim3(1), 32, 0, nullptr,
                         published_parameters{sums.data(), 0, 0}),
                  "mma by the published layout");
  require_products(sums, 16, 8, "products of mma by the published layout", 0);
  cudaDeviceProp properties;
  require_success(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  if (properties.major != 9) return;
  test_descriptor<64>();
  test_descriptor<256>();
  device_array<int32_t> equal(8);
  require_success(launch(compare_descriptors, dim3(1), 1, 8192, nullptr,
                         published_parameters{equal.data(), 0, 0}),
                  "descriptors");
  int32_t found[8];
  equal.get(found);
  for (uint64_t i = 0; i < 8; i++) require(found[i] == 1, "wgmma_descriptor has other fields", i);
}

}  // namespace platform_test
