// Compares small kernels with plain loops: barriers, exchanges between lanes, atomics and arithmetic.
#include <vector>

#include "test.h"

namespace platform_test {
namespace {

using sagitta::cuda::dynamic_shared;
using sagitta::cuda::launch;

struct reduce_parameters {
  const uint32_t* values;
  uint32_t count;
  unsigned long long* sum;
  uint32_t* block_maxima;
};

/** Threads past the end of the values return before the first barrier. */
__global__ void __launch_bounds__(256) reduce(const __grid_constant__ reduce_parameters p) {
  __shared__ uint32_t maxima[256];
  uint32_t* const sums = dynamic_shared<uint32_t>();
  const uint32_t thread = threadIdx.x;
  const uint32_t index = blockIdx.x * blockDim.x + thread;
  const uint32_t here = min(p.count - blockIdx.x * blockDim.x, blockDim.x);
  if (thread >= (here + 31) / 32 * 32) return;
  sums[thread] = index < p.count ? p.values[index] : 0;
  maxima[thread] = sums[thread];
  for (uint32_t step = 128; step > 0; step /= 2) {
    __syncthreads();
    const uint32_t other = thread + step;
    const bool takes = thread < step && other < here;
    if (takes) {
      sums[thread] += sums[other];
      maxima[thread] = max(maxima[thread], maxima[other]);
    }
  }
  if (thread == 0) {
    atomicAdd(p.sum, static_cast<unsigned long long>(sums[0]));
    p.block_maxima[blockIdx.x] = maxima[0];
  }
}

void test_reduce() {
  constexpr uint32_t count = 900;
  constexpr uint32_t blocks = 4;
  std::vector<uint32_t> values(count);
  unsigned long long expected = 0;
  for (uint32_t i = 0; i < count; i++) expected += values[i] = static_cast<uint32_t>(mixed(i)) >> 8;
  device_array<uint32_t> on_device(count);
  device_array<unsigned long long> sum(1);
  device_array<uint32_t> maxima(blocks);
  on_device.set(values.data());
  const reduce_parameters p = {on_device.data(), count, sum.data(), maxima.data()};
  require_success(launch(reduce, dim3(blocks), 256, 256 * sizeof(uint32_t), nullptr, p), "reduce");
  unsigned long long found = 0;
  sum.get(&found);
  require(found == expected, "the sum of a reduction");
  std::vector<uint32_t> found_maxima(blocks);
  maxima.get(found_maxima.data());
  for (uint32_t block = 0; block < blocks; block++) {
    uint32_t largest = 0;
    for (uint32_t i = block * 256; i < std::min(count, block * 256 + 256); i++) {
      largest = std::max(largest, values[i]);
    }
    require(found_maxima[block] == largest, "the maximum of a block", block);
  }
}

struct lanes_result {
  uint32_t ballot, half_ballot, any, all, added, least, largest;
  uint32_t from_next, from_xor, from_up, from_segment;
  float from_float;
  double from_double;
  unsigned long long from_long;
  int counted, either;
};
struct lanes_parameters {
  lanes_result* results;
};

__global__ void exchange_lanes(lanes_parameters p) {
  const uint32_t thread = threadIdx.x;
  const uint32_t lane = thread % 32;
  const auto own = static_cast<uint32_t>(mixed(thread));
  lanes_result result;
  result.ballot = __ballot_sync(~0u, own & 1);
  // The halves of a warp may diverge.
  if (lane < 16) {
    result.half_ballot = __ballot_sync(0xffffu, own & 2);
  } else {
    result.half_ballot = __ballot_sync(0xffff0000u, own & 4);
  }
  __syncwarp();
  result.any = __any_sync(~0u, lane == 3) != 0;
  result.all = __all_sync(~0u, lane != 3) != 0;
  result.added = __reduce_add_sync(~0u, own);
  result.least = min(own, __shfl_xor_sync(~0u, own, 1));
  result.largest = __reduce_max_sync(~0u, own);
  result.from_next = __shfl_down_sync(~0u, own, 1);
  result.from_xor = __shfl_xor_sync(~0u, own, 5);
  result.from_up = __shfl_up_sync(~0u, own, 3);
  result.from_segment = __shfl_sync(~0u, own, 9, 8);
  result.from_float = __shfl_sync(~0u, static_cast<float>(lane) + 0.5f, 7);
  result.from_double = __shfl_xor_sync(~0u, static_cast<double>(lane) / 3, 31);
  result.from_long = __shfl_down_sync(~0u, static_cast<unsigned long long>(mixed(thread)), 4);
  result.counted = __syncthreads_count(static_cast<int>(own & 1));
  result.either = __syncthreads_or(thread == 70) != 0;
  p.results[thread] = result;
}

void test_lanes() {
  constexpr uint32_t threads = 96;
  device_array<lanes_result> results(threads);
  require_success(
      launch(exchange_lanes, dim3(1), threads, 0, nullptr, lanes_parameters{results.data()}),
      "exchange_lanes");
  std::vector<lanes_result> found(threads);
  results.get(found.data());
  int odd = 0;
  for (uint32_t i = 0; i < threads; i++) odd += static_cast<int>(mixed(i) & 1);
  for (uint32_t thread = 0; thread < threads; thread++) {
    const uint32_t first = thread / 32 * 32;
    const uint32_t lane = thread % 32;
    const auto value = [&](uint32_t of) { return static_cast<uint32_t>(mixed(first + of)); };
    uint32_t ballot = 0;
    uint32_t half = 0;
    uint32_t sum = 0;
    uint32_t largest = 0;
    for (uint32_t i = 0; i < 32; i++) {
      ballot |= (value(i) & 1) << i;
      if (i / 16 == lane / 16 && (value(i) & (lane < 16 ? 2 : 4)) != 0) half |= 1u << i;
      sum += value(i);
      largest = std::max(largest, value(i));
    }
    const lanes_result& own = found[thread];
    require(own.ballot == ballot, "__ballot_sync", thread);
    require(own.half_ballot == half, "__ballot_sync of half a warp", thread);
    require(own.any == 1 && own.all == 0, "__any_sync and __all_sync", thread);
    require(own.added == sum, "__reduce_add_sync", thread);
    require(own.largest == largest, "__reduce_max_sync", thread);
    require(own.least == std::min(value(lane), value(lane ^ 1)), "min of neighbours", thread);
    require(own.from_next == value(lane < 31 ? lane + 1 : lane), "__shfl_down_sync", thread);
    require(own.from_xor == value(lane ^ 5), "__shfl_xor_sync", thread);
    require(own.from_up == value(lane >= 3 ? lane - 3 : lane), "__shfl_up_sync", thread);
    require(own.from_segment == value(lane / 8 * 8 + 1), "__shfl_sync in segments", thread);
    require(own.from_float == 7.5f, "__shfl_sync of float", thread);
    require(own.from_double == static_cast<double>(lane ^ 31) / 3, "__shfl_xor_sync of double");
    require(own.from_long == mixed(first + (lane < 28 ? lane + 4 : lane)), "64-bit shuffle", thread);
    require(own.counted == odd, "__syncthreads_count", thread);
    require(own.either == 1, "__syncthreads_or", thread);
  }
}

struct atomics_parameters {
  unsigned* counters;
  unsigned long long* longs;
};

__global__ void count_atomically(atomics_parameters p) {
  __shared__ unsigned in_block;
  if (threadIdx.x == 0) in_block = 0;
  __syncthreads();
  const unsigned before = atomicAdd(&in_block, 1);
  atomicOr(&p.counters[3], 1u << before % 32);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&p.counters[0], in_block);
  const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMax(&p.counters[1], index * 7 % 1009);
  atomicMin(&p.counters[2], 5000 - index);
  atomicMax(&p.longs[0], static_cast<unsigned long long>(mixed(index)));
  atomicMin(&p.longs[1], ~static_cast<unsigned long long>(mixed(index)));
  unsigned seen = atomicAdd(&p.counters[4], 0);
  for (;;) {
    const unsigned old = atomicCAS(&p.counters[4], seen, seen + 2);
    if (old == seen) break;
    seen = old;
  }
}

void test_atomics() {
  constexpr unsigned blocks = 5;
  constexpr unsigned threads = 64;
  device_array<unsigned> counters(5);
  device_array<unsigned long long> longs(2);
  const unsigned start[5] = {0, 0, ~0u, 0, 0};
  const unsigned long long long_start[2] = {0, ~0ull};
  counters.set(start);
  longs.set(long_start);
  require_success(launch(count_atomically, dim3(blocks), threads, 0, nullptr,
                         atomics_parameters{counters.data(), longs.data()}),
                  "count_atomically");
  unsigned found[5];
  unsigned long long found_longs[2];
  counters.get(found);
  longs.get(found_longs);
  unsigned largest = 0;
  unsigned long long largest_long = 0;
  for (unsigned i = 0; i < blocks * threads; i++) {
    largest = std::max(largest, i * 7 % 1009);
    largest_long = std::max<unsigned long long>(largest_long, mixed(i));
  }
  require(found[0] == blocks * threads, "atomicAdd in shared memory");
  require(found[1] == largest, "atomicMax");
  require(found[2] == 5000 - (blocks * threads - 1), "atomicMin");
  require(found[3] == ~0u, "atomicOr");
  require(found[4] == 2 * blocks * threads, "atomicCAS");
  require(found_longs[0] == largest_long && found_longs[1] == ~largest_long, "64-bit atomics");
}

struct arithmetic_parameters {
  double* doubles;
  float* floats;
  int* integers;
};

__global__ void calculate(arithmetic_parameters p) {
  const double a = 1.0 / 3;
  const double b = 1 + 0x1p-40;
  p.doubles[0] = __fma_rn(a, b, -a);
  p.doubles[1] = __dadd_rn(__dmul_rn(a, b), -a);
  p.doubles[2] = a * b - a;
  p.doubles[3] = __dsqrt_rn(__ddiv_rn(2.0, 3.0));
  p.doubles[4] = __longlong_as_double(__double_as_longlong(a) + 1);
  p.floats[0] = fmaf(0.1f, 0.1f, -0.01f);
  p.floats[1] = __int2float_rn(0x7fffffff);
  p.floats[2] = fminf(__uint_as_float(0x7fc00000u), 2.0f);
  p.floats[3] = fmaxf(-1.0f, __int_as_float(0x3f800000));
  p.integers[0] = __popc(0xf0f0u) + 100 * __popcll(~0ull);
  p.integers[1] = __ffs(0x50) + 100 * __ffs(0) + 10000 * __ffsll(1ll << 40);
  p.integers[2] = __clz(1) + 100 * __clz(0) + 10000 * __clzll(1);
  p.integers[3] = static_cast<int>(__float_as_uint(1.0f) >> 16);
}

void test_arithmetic() {
  device_array<double> doubles(5);
  device_array<float> floats(4);
  device_array<int> integers(4);
  require_success(launch(calculate, dim3(1), 1, 0, nullptr,
                         arithmetic_parameters{doubles.data(), floats.data(), integers.data()}),
                  "calculate");
  double found[5];
  float found_floats[4];
  int found_integers[4];
  doubles.get(found);
  floats.get(found_floats);
  integers.get(found_integers);
  const double a = 1.0 / 3;
  const volatile double product = a * (1 + 0x1p-40);
  require(found[0] == std::fma(a, 1 + 0x1p-40, -a), "__fma_rn");
  require(found[1] == product - a && found[0] != found[1], "__dmul_rn, __dadd_rn");
  require(found[2] == found[1], "a multiplication and a subtraction are not fused");
  require(found[3] == std::sqrt(2.0 / 3.0), "__dsqrt_rn, __ddiv_rn");
  require(found[4] == std::nextafter(a, 1), "__double_as_longlong");
  require(found_floats[0] == std::fma(0.1f, 0.1f, -0.01f), "fmaf");
  require(found_floats[1] == 0x1p31f, "__int2float_rn");
  require(found_floats[2] == 2 && found_floats[3] == 1, "fminf, fmaxf");
  require(found_integers[0] == 6408, "__popc, __popcll");
  require(found_integers[1] == 410005, "__ffs, __ffsll");
  require(found_integers[2] == 633231, "__clz, __clzll");
  require(found_integers[3] == 0x3f80, "__float_as_uint");
}

}  // namespace

void test_threads() {
  test_reduce();
  test_lanes();
  test_atomics();
  test_arithmetic();
}

}  // namespace platform_test
