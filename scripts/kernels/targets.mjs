// What the programs and addons of kernels/ are made of: sources and compiler flags. Sources are names and patterns of
// one folder, relative to kernels.

import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const KERNELS = fileURLToPath(new URL('../../kernels', import.meta.url));

const WARNINGS = '-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'.split(' ');
const BASE = ['-std=c++20', '-g', '-fPIC', '-fvisibility=hidden', '-ffp-contract=off', ...WARNINGS];

/**
 * Fused multiply-add is allowed in the SIMD files: products of widened float32 are exact, so canonical sums keep their
 * bits, and the slack of the bounds exceeds any difference in rounding. The search itself is compiled without it.
 */
const AVX2 = ['-mavx2', '-mfma', '-mpopcnt', '-ffp-contract=fast'];
const AVX512_VNNI = [
  ...AVX2,
  ...['-mavx512f', '-mavx512bw', '-mavx512dq', '-mavx512vl', '-mavx512vnni'],
  '-mprefer-vector-width=512',
];
/** Flags of simd/NAME.cpp and bench/peaks_NAME.cpp, which need more than the baseline instruction set. */
const INSTRUCTIONS = {
  x86_64: {
    avx2: AVX2,
    avx_vnni: [...AVX2, '-mavxvnni'],
    avx512_vnni: AVX512_VNNI,
    avx512_amx: [...AVX512_VNNI, '-mamx-tile', '-mamx-int8'],
  },
  aarch64: { neon_dotprod: ['-march=armv8.2-a+dotprod'] },
};

const SANITIZED = [
  '-O1',
  '-fsanitize=address,undefined',
  '-fno-sanitize-recover=all',
  // GCC's warning has false positives in instrumented code.
  '-Wno-maybe-uninitialized',
];
/** CUDA on the CPU. GCC wrongly reports variables set between two jumps of a fiber as uninitialized. */
const EMULATED = ['-DSAGITTA_EMULATE_CUDA', '-Wno-unknown-pragmas', '-Wno-maybe-uninitialized'];
/** Machine code for each of these, and PTX, which drivers compile for later architectures. */
export const ARCHITECTURES = ['80', '86', '89', '90a', '100', '120'];
const PTX = ['90', '120'];
// No implicit fused multiply-add, as on the CPU: the sources call fma where they need it.
const NVCC = ['-std=c++20', '-O3', '--fmad=false', '-lineinfo', '-Werror', 'all-warnings'];
// The host code that nvcc generates is not pedantic C++.
const NVCC_HOST = BASE.filter((flag) => !['-std=c++20', '-g', '-Wpedantic'].includes(flag));

/** Programs for hosts that may have another C++ library. */
const PORTABLE = ['-static-libstdc++', '-static-libgcc'];
/** With libFuzzer, which is a part of clang. */
const FUZZER = {
  flags: [
    '-O1',
    '-Wno-sign-conversion',
    '-fsanitize=fuzzer,address,undefined',
    '-fno-sanitize-recover=all',
  ],
  // For atomic values of 16 bytes, which clang leaves to a library.
  link: process.platform === 'linux' ? ['-latomic'] : [],
  needsClang: true,
};

const LIBRARY = [
  ...['kernels.cpp', 'dispatch.cpp', 'processor.cpp'],
  ...['reference/*.cpp', 'search/*.cpp', 'simd/*.cpp'],
];
const JSON_READER = 'json/vectors.cpp';
const TERM_VECTORS = ['testing/check.cpp', 'bench/term_vectors.cpp'];
const MAPPED_FILES = ['files/mapped_files.cpp', 'files/partial_files.cpp'];
const TEST = [
  ...[...LIBRARY, JSON_READER, ...MAPPED_FILES, ...TERM_VECTORS],
  ...['testing/test_*.cpp', 'testing/test.cpp'],
];
const CUDA = ['cuda/*.cu', ...LIBRARY];
const CUDA_ADDON = ['node/batch.cpp', 'node/cuda_addon.cpp'];
const CUDA_TEST = ['testing/check.cpp', 'testing/test_batch.cpp', 'testing/cuda_*test.cu'];
const CUDA_BENCH = ['testing/check.cpp', 'cuda/bench/bench.cpp', 'cuda/bench/peaks.cu'];
const EMULATION = 'testing/cuda_emulation/*.cpp';
const EMULATION_TEST = ['testing/cuda_emulation/test/*.cu', 'testing/cuda_emulation/test/*.cpp'];

const INSTRUMENTED_CUDA = {
  flags: ['-O3'],
  emulatedFlags: ['-O1', ...EMULATED],
  // Calls the emulation at every access of memory, to find races; ThreadSanitizer itself is not linked.
  kernelFlags: ['-fsanitize=thread'],
};

const WITHOUT_CUDA = 'GPUs are not used: no kernels were built';

/**
 * What can be built, by name: `file`, which is the name by default, the sources, and flags of all of them, -O3 by
 * default. `emulatedFlags` are for sources outside the library, which is compiled as for programs without the emulation,
 * and `kernelFlags` for sources with GPU kernels. `link` are words for the linker. `without` says what happens where an
 * addon is missing.
 */
export const TARGETS = {
  addon: {
    file: 'sagitta.node',
    sources: [...LIBRARY, JSON_READER, 'node/batch.cpp', 'node/json.cpp', 'node/addon.cpp'],
    without:
      'no kernels were built, so searches are many times slower; with the npm packages that `sagitta selftest --engine wasm` names, they use WebAssembly',
  },
  files: {
    file: 'sagitta-files.node',
    sources: ['files/*.cpp'],
    // The signal handler stays in place when the last thread that loaded the addon ends.
    link: process.platform === 'linux' ? ['-Wl,-z,nodelete'] : [],
    without: 'vectors are read into memory instead of mapped: no addon for files was built',
  },
  bench: {
    sources: [...LIBRARY, 'testing/check.cpp', 'bench/bench.cpp', 'bench/peaks_*.cpp'],
  },
  'term-vectors': {
    sources: [...LIBRARY, ...TERM_VECTORS, 'bench/term_vectors_main.cpp'],
    link: PORTABLE,
  },
  test: { sources: TEST },
  'test-memory': { sources: TEST, flags: SANITIZED },
  'test-threads': { sources: TEST, flags: ['-O2', '-fsanitize=thread'] },
  // SIMDe's headers emulate the instructions that the CPU lacks, except for AMX.
  'test-emulated': {
    sources: [...TEST, 'testing/emulated_tiles.cpp'],
    flags: ['-O2', '-DSAGITTA_EMULATE', '-mavx2', '-mfma', '-mpopcnt'],
    isBaseline: true,
  },
  'fuzz-json': { ...FUZZER, sources: ['testing/fuzz/fuzz_json.cpp', JSON_READER] },
  'fuzz-search': {
    ...FUZZER,
    sources: [
      'testing/fuzz/fuzz_search.cpp',
      ...LIBRARY,
      'testing/check.cpp',
      'testing/test_batch.cpp',
    ],
  },
  'fuzz-crc32': { ...FUZZER, sources: ['testing/fuzz/fuzz_crc32.cpp', 'files/crc32.cpp'] },
  cuda: {
    file: 'sagitta-cuda.node',
    sources: [...CUDA, ...CUDA_ADDON],
    isCuda: true,
    without: WITHOUT_CUDA,
  },
  'cuda-bench': { sources: [...CUDA, ...CUDA_BENCH], link: PORTABLE, isCuda: true },
  'cuda-test': { sources: [...CUDA, ...CUDA_TEST], link: PORTABLE, isCuda: true },
  'cuda-emulated': {
    file: 'sagitta-cuda-emulated.node',
    sources: [...CUDA, EMULATION, ...CUDA_ADDON],
    emulatedFlags: ['-O2', ...EMULATED],
    without: WITHOUT_CUDA,
  },
  'cuda-bench-emulated': {
    sources: [...CUDA, EMULATION, ...CUDA_BENCH],
    emulatedFlags: ['-O2', ...EMULATED],
  },
  'cuda-test-emulated': {
    sources: [...CUDA, EMULATION, ...CUDA_TEST],
    flags: SANITIZED,
    emulatedFlags: EMULATED,
  },
  'cuda-test-emulated-slow': {
    sources: [...CUDA, EMULATION, ...CUDA_TEST],
    ...INSTRUMENTED_CUDA,
  },
  // Tests of the emulation itself; platform-test runs the same tests on a device.
  'emulation-test': {
    sources: [EMULATION, ...EMULATION_TEST],
    flags: SANITIZED,
    emulatedFlags: EMULATED,
  },
  'emulation-test-slow': { sources: [EMULATION, ...EMULATION_TEST], ...INSTRUMENTED_CUDA },
  'platform-test': { sources: ['testing/cuda_emulation/test/*.cu'], link: PORTABLE, isCuda: true },
};

/** The files of patterns. */
export function sourcesOf(patterns) {
  return patterns.flatMap((pattern) => {
    if (!pattern.includes('*')) return [pattern];
    const [start, end] = basename(pattern).split('*');
    const folder = dirname(pattern);
    return readdirSync(join(KERNELS, folder))
      .filter((name) => name.startsWith(start) && name.endsWith(end))
      .sort()
      .map((name) => `${folder}/${name}`);
  });
}

export function textOf(path) {
  return readFileSync(join(KERNELS, path), 'utf8');
}

/** The flags of a source in a target for a processor architecture. */
export function flagsOf(source, target, { architecture, isClang }) {
  const { flags = ['-O3'], isBaseline = false, emulatedFlags = [], kernelFlags = [] } = target;
  const [, instructions] = /^(?:simd\/|bench\/peaks_)(\w+)\.cpp$/.exec(source) ?? [];
  const isLibrary = sourcesOf(LIBRARY).includes(source);
  return [
    ...BASE,
    ...flags,
    ...((!isBaseline && INSTRUCTIONS[architecture]?.[instructions]) || []),
    ...(source.startsWith('reference/') ? ['-fno-tree-vectorize'] : []),
    // GCC warns about the calling convention of wide vectors, but none is passed between files.
    isClang ? '-Wno-unknown-warning-option' : '-Wno-psabi',
    ...(source.endsWith('.cu') ? ['-x', 'c++'] : []),
    ...(isLibrary ? [] : emulatedFlags),
    // The emulation is optimised even where the code under test is not.
    ...(sourcesOf([EMULATION]).includes(source) ? ['-O2'] : []),
    ...(textOf(source).includes('__global__') ? kernelFlags : []),
  ];
}

/** The flags with which nvcc compiles device code, for some architectures or for all of them. */
export function deviceFlags(architectures) {
  const isAll = architectures.length === 0;
  const code = (isAll ? ARCHITECTURES : architectures).map((name) => [name, `sm_${name}`]);
  const ptx = (isAll ? PTX : []).map((name) => [name, `compute_${name}`]);
  return [
    ...[...NVCC, '-Xcompiler', NVCC_HOST.join(',')],
    ...[...code, ...ptx].flatMap(([name, kind]) => [
      '-gencode',
      `arch=compute_${name},code=${kind}`,
    ]),
    // For the report.
    ...['-Xptxas', '-v'],
  ];
}
