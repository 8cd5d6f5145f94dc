// Builds the kernels with the local C++ compiler: the Node addon, the bench and the tests.
//
//   node scripts/build-kernels.mjs                  the addons, as `npm ci` does: addon files
//   node scripts/build-kernels.mjs bench test       build/kernels/bench, build/kernels/test
//   node scripts/build-kernels.mjs test-memory      the tests under AddressSanitizer and UBSan
//   node scripts/build-kernels.mjs test-threads     the tests under ThreadSanitizer
//   node scripts/build-kernels.mjs test-emulated    the tests of every x86 target, on any x86
//   node scripts/build-kernels.mjs fuzz-json fuzz-search fuzz-crc32    libFuzzer programs, with clang
//   node scripts/build-kernels.mjs cuda             the kernels for NVIDIA GPUs, with nvcc
//   node scripts/build-kernels.mjs cuda-test-emulated    the CUDA tests, emulated on the CPU
//   … cuda-test-emulated-slow    with every access instrumented, to find races
//   … cuda --arch '80 90a'                          for these architectures only
//   … --report 90a --report 80                      a table of what the kernels in `cuda` need there
//   … --if-possible                                 on failure, print one line and exit with 0
//   … --cross aarch64-linux-gnu-g++                 cross compile into another directory
//
// A compiled file is named by a digest of all that went into it: source, the headers that it includes, flags and
// compiler. It is kept in ~/.cache/sagitta/objects, or where SAGITTA_OBJECTS says, so that no program, checkout or image
// compiles it again. Beside a file with kernels for GPUs is what these need, for --report.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, homedir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const kernels = join(root, 'kernels');
const objects = process.env.SAGITTA_OBJECTS ?? join(homedir(), '.cache', 'sagitta', 'objects');
/** Kept of compiled files; those that were not used for longest are removed. With all kernels for GPUs one build has 0.4 GB. */
const OBJECT_BYTES_MAX = 2e9;
/** The start of the names of folders in which compilers write, and how long a compiler takes at most. */
const FRESH = 'new-';
const FRESH_MS_MAX = 86_400_000;

const WARNINGS = '-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'.split(' ');
const BASE = ['-std=c++20', '-g', '-fPIC', '-fvisibility=hidden', '-ffp-contract=off', ...WARNINGS];

/**
 * Allows fused multiply-add in the SIMD files: products of widened float32 are exact, so canonical sums
 * keep their bits, and the slack of the bounds exceeds any difference in rounding. The search itself is
 * compiled without it.
 */
const FUSED = '-ffp-contract=fast';

/** Files that need more than the baseline instruction set. */
const AVX2 = ['-mavx2', '-mfma', '-mpopcnt', FUSED];
const AVX512 = [...AVX2, '-mavx512f', '-mavx512bw', '-mavx512dq', '-mavx512vl', '-mavx512vnni'];
const FLAGS = {
  x86_64: {
    'simd/avx2.cpp': AVX2,
    'simd/avx_vnni.cpp': [...AVX2, '-mavxvnni'],
    'simd/avx512_vnni.cpp': [...AVX512, '-mprefer-vector-width=512'],
    'bench/peaks_avx2.cpp': AVX2,
    'bench/peaks_avx_vnni.cpp': [...AVX2, '-mavxvnni'],
    'bench/peaks_avx512_vnni.cpp': [...AVX512, '-mprefer-vector-width=512'],
  },
  aarch64: {
    'simd/neon_dotprod.cpp': ['-march=armv8.2-a+dotprod'],
    'bench/peaks_neon_dotprod.cpp': ['-march=armv8.2-a+dotprod'],
  },
};
const COMMON = { 'reference/target_reference.cpp': ['-fno-tree-vectorize'] };

const LIBRARY = [
  'kernels.cpp',
  'dispatch.cpp',
  'reference/target_reference.cpp',
  'search/count_before.cpp',
  'search/learned_shares.cpp',
  'search/plan.cpp',
  'search/query_state.cpp',
  'search/rotation.cpp',
  'search/row_scores.cpp',
  'search/search.cpp',
  'search/top_rows.cpp',
  'search/valid.cpp',
  'simd/avx2.cpp',
  'simd/avx512_vnni.cpp',
  'simd/avx_vnni.cpp',
  'simd/neon_dotprod.cpp',
];
const JSON_READER = ['json/vectors.cpp'];
const TERM_VECTORS = ['testing/check.cpp', 'bench/term_vectors.cpp'];
const TEST = [
  ...LIBRARY,
  ...JSON_READER,
  ...TERM_VECTORS,
  'testing/test_batch.cpp',
  'testing/test_coarse.cpp',
  'testing/test_json.cpp',
  'testing/test_rows.cpp',
  'testing/test_term_vectors.cpp',
  'testing/test.cpp',
];
const PEAKS = ['baseline', 'avx2', 'avx_vnni', 'avx512_vnni', 'neon_dotprod'].map(
  (name) => `bench/peaks_${name}.cpp`,
);

/** The device code with its host side, and the emulation of CUDA on the CPU. */
const CUDA = sourcesIn('cuda', '.cu');
const EMULATION = sourcesIn('testing/cuda_emulation', '.cpp');
const EMULATION_TEST = ['.cu', '.cpp'].flatMap((end) =>
  sourcesIn('testing/cuda_emulation/test', end),
);
// GCC wrongly reports variables set between two jumps of a fiber as uninitialized.
const EMULATED = ['-DSAGITTA_EMULATE_CUDA', '-Wno-unknown-pragmas', '-Wno-maybe-uninitialized'];
/** The same for all programs under these sanitizers, so that they share what is compiled. */
const CUDA_ADDON = ['node/batch.cpp', 'node/cuda_addon.cpp'];
const CUDA_TEST = ['check.cpp', 'test_batch.cpp', 'cuda_remote_test.cu', 'cuda_test.cu'].map(
  (name) => `testing/${name}`,
);
const CUDA_BENCH = ['testing/check.cpp', 'cuda/bench/bench.cpp', 'cuda/bench/peaks.cu'];
const SANITIZED = [
  '-O1',
  '-fsanitize=address,undefined',
  '-fno-sanitize-recover=all',
  // GCC's warning has false positives in instrumented code.
  '-Wno-maybe-uninitialized',
];

/** Fuzzers report what they read out of bounds, too. */
const FUZZED = [
  '-O1',
  '-Wno-sign-conversion',
  '-fsanitize=fuzzer,address,undefined',
  '-fno-sanitize-recover=all',
];

/** Atomic values of 16 bytes, which clang leaves to a library. */
const ATOMICS = process.platform === 'linux' ? ['-latomic'] : [];

/** Machine code for each of these, and PTX, which drivers compile for later architectures. */
const ARCHITECTURES = ['80', '86', '89', '90a', '100', '120'];
const PTX = ['90', '120'];
// No implicit fused multiply-add, as on the CPU: the sources call fma where they need it.
const NVCC = ['-std=c++20', '-O3', '--fmad=false', '-lineinfo', '-Werror', 'all-warnings'];
// The host code that nvcc generates is not pedantic C++.
const NVCC_HOST = BASE.filter((flag) => !['-std=c++20', '-g', '-Wpedantic'].includes(flag));

const TARGETS = {
  addon: {
    file: 'sagitta.node',
    sources: [...LIBRARY, ...JSON_READER, 'node/batch.cpp', 'node/json.cpp', 'node/addon.cpp'],
    flags: ['-O3'],
  },
  files: {
    file: 'sagitta-files.node',
    sources: ['files/addon.cpp', 'files/crc32.cpp', 'files/mapped_files.cpp'],
    // The signal handler stays in place when the last thread that loaded the addon ends.
    flags: ['-O3', ...(process.platform === 'linux' ? ['-Wl,-z,nodelete'] : [])],
  },
  bench: {
    file: 'bench',
    sources: [...LIBRARY, 'testing/check.cpp', 'bench/bench.cpp', ...PEAKS],
    flags: ['-O3'],
  },
  'term-vectors': {
    file: 'term-vectors',
    sources: [...LIBRARY, ...TERM_VECTORS, 'bench/term_vectors_main.cpp'],
    flags: ['-O3'],
    isPortable: true,
  },
  test: { file: 'test', sources: TEST, flags: ['-O3'] },
  'test-memory': { file: 'test-memory', sources: TEST, flags: SANITIZED },
  // Without -mavx512…: SIMDe's headers emulate the instructions that the CPU lacks.
  'test-emulated': {
    file: 'test-emulated',
    sources: TEST,
    flags: ['-O2', '-DSAGITTA_EMULATE', '-mavx2', '-mfma', '-mpopcnt'],
    isBaseline: true,
  },
  'test-threads': { file: 'test-threads', sources: TEST, flags: ['-O2', '-fsanitize=thread'] },
  'fuzz-json': fuzzTarget('json', ...JSON_READER),
  'fuzz-search': fuzzTarget('search', ...LIBRARY, 'testing/check.cpp', 'testing/test_batch.cpp'),
  'fuzz-crc32': fuzzTarget('crc32', 'files/crc32.cpp'),
  cuda: deviceTarget('sagitta-cuda.node', ...CUDA_ADDON),
  'cuda-bench': deviceTarget('cuda-bench', ...CUDA_BENCH),
  'cuda-test': deviceTarget('cuda-test', ...CUDA_TEST),
  'cuda-emulated': emulatedTarget('sagitta-cuda-emulated.node', ['-O3'], ['-O2'], ...CUDA_ADDON),
  'cuda-bench-emulated': emulatedTarget('cuda-bench-emulated', ['-O3'], ['-O2'], ...CUDA_BENCH),
  'cuda-test-emulated': emulatedTarget('cuda-test-emulated', SANITIZED, [], ...CUDA_TEST),
  'cuda-test-emulated-slow': instrumentedTarget(
    'cuda-test-emulated-slow',
    ...CUDA,
    ...EMULATION,
    ...LIBRARY,
    ...CUDA_TEST,
  ),
  // Tests of the emulation itself; platform-test runs the same tests on a device.
  'emulation-test': {
    file: 'emulation-test',
    sources: [...EMULATION, ...EMULATION_TEST],
    flags: SANITIZED,
    emulatedFlags: EMULATED,
  },
  'emulation-test-slow': instrumentedTarget('emulation-test-slow', ...EMULATION, ...EMULATION_TEST),
  'platform-test': {
    file: 'platform-test',
    sources: sourcesIn('testing/cuda_emulation/test', '.cu'),
    flags: ['-O3'],
    isCuda: true,
  },
};

/** Checkouts have the modules that tell what kernels need, packages and images do not. */
const HAS_REPORT = existsSync(join(root, 'scripts', 'gpu', 'cubin.mjs'));

class BuildError extends Error {}

/** What has been read of kernels. */
const texts = new Map();

/** Of what compiled files include from packages and from Node. */
const VERSIONS = [
  process.versions.modules,
  ...['node-addon-api', 'node-api-headers'].map(versionOf),
].join(' ');

const DEFAULT_NAMES = ['addon'];
const WITHOUT_FILES =
  'vectors are read into memory instead of mapped: no addon for files was built';

const { names, arch, cross, report, isOptional } = parseArguments(process.argv.slice(2));
try {
  await buildAll();
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  const [line, ...rest] = error.message.split('\n');
  if (isOptional) {
    console.log(`sagitta: ${whatIsMissing(names)} (${line})`);
  } else {
    console.error([`sagitta: ${line}`, ...rest].join('\n'));
    process.exitCode = 1;
  }
}

async function buildAll() {
  const needsClang = names.some((name) => TARGETS[name].needsClang);
  const compiler = needsClang ? findClang() : findCompiler(cross);
  for (const name of names) await build(name, compiler);
  if (names === DEFAULT_NAMES) await buildForNode(compiler);
}

function parseArguments(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      cross: { type: 'string' },
      arch: { type: 'string', default: '' },
      'if-possible': { type: 'boolean' },
      report: { type: 'string', multiple: true },
    },
  });
  const { cross = null, report = [] } = values;
  const arch = values.arch.split(' ').filter((name) => name !== '');
  const defaults = report.length > 0 ? ['cuda'] : DEFAULT_NAMES;
  const names = positionals.length === 0 ? defaults : positionals;
  requireKnown(names, Object.keys(TARGETS));
  requireKnown(arch, ARCHITECTURES);
  requireKnown(report, arch.length === 0 ? ARCHITECTURES : arch);
  return { names, arch, cross, report, isOptional: values['if-possible'] };
}

/** What the server does without the addons of these names. */
function whatIsMissing(names) {
  if (names.some((name) => TARGETS[name].isCuda)) return 'GPUs are not used: no kernels were built';
  if (names.includes('files')) return WITHOUT_FILES;
  return 'no kernels were built, so searches are many times slower; with the npm packages that `sagitta selftest --engine wasm` names, they use WebAssembly';
}

/** Builds what needs Node's own headers, which an installation of Node may lack. */
async function buildForNode(compiler) {
  if (cross !== null) return;
  if (headersOfNode() === null) {
    console.log(`sagitta: ${WITHOUT_FILES} (no headers of this Node)`);
    return;
  }
  await build('files', compiler);
}

/** The folder of the headers of the Node that runs this script; null if it has none. */
function headersOfNode() {
  const folder = join(dirname(process.execPath), '..', 'include', 'node');
  const version = join(folder, 'node_version.h');
  if (!existsSync(version)) return null;
  const found = /#define NODE_MODULE_VERSION (\d+)/.exec(readFileSync(version, 'utf8'))?.[1];
  return found === process.versions.modules ? folder : null;
}

function requireKnown(given, known) {
  const unknown = given.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  console.error(`unknown argument ${unknown}; expected one of ${known.join(', ')}`);
  process.exit(2);
}

function deviceTarget(file, ...own) {
  const sources = [...CUDA, ...LIBRARY, ...own];
  return { file, sources, flags: ['-O3'], isCuda: true };
}

/** With libFuzzer, which is a part of clang. */
function fuzzTarget(name, ...sources) {
  const own = `testing/fuzz/fuzz_${name}.cpp`;
  return {
    file: `fuzz-${name}`,
    sources: [own, ...sources],
    flags: FUZZED,
    libraries: ATOMICS,
    needsClang: true,
  };
}

/** `emulatedFlags` are for all but the library, which is compiled as for programs without the emulation. */
function emulatedTarget(file, flags, emulatedFlags, ...own) {
  const sources = [...CUDA, ...EMULATION, ...LIBRARY, ...own];
  return { file, sources, flags, emulatedFlags: [...emulatedFlags, ...EMULATED] };
}

/**
 * Calls the emulation at every access of memory that a kernel makes, instead of ThreadSanitizer, which
 * is not linked.
 */
function instrumentedTarget(file, ...sources) {
  const kernelFlags = ['-fsanitize=thread'];
  return { file, sources, flags: ['-O3'], emulatedFlags: ['-O1', ...EMULATED], kernelFlags };
}

function sourcesIn(folder, end) {
  return readdirSync(join(kernels, folder))
    .filter((name) => name.endsWith(end))
    .sort()
    .map((name) => `${folder}/${name}`);
}

function findCompiler(crossCompiler) {
  return firstOf(crossCompiler ? [crossCompiler] : [process.env.CXX, 'c++', 'g++', 'clang++']);
}

function findClang() {
  return firstOf([process.env.CLANGXX, 'clang++']);
}

/** The first compiler that runs, with its version and target. */
function firstOf(candidates) {
  for (const command of candidates) {
    if (!command) continue;
    const version = spawnSync(command, ['--version'], { encoding: 'utf8' });
    if (version.status !== 0) continue;
    const machine = spawnSync(command, ['-dumpmachine'], { encoding: 'utf8' }).stdout.trim();
    const isClang = version.stdout.includes('clang');
    const architecture = machine.split('-')[0].replace('arm64', 'aarch64');
    // Begins with the name by which it was called.
    const [line] = version.stdout.split('\n');
    return { command, isClang, architecture, version: line.replace(/^\S+ /, ''), machine };
  }
  throw new BuildError(`no C++ compiler found (tried ${candidates.filter(Boolean).join(', ')})`);
}

function findNvcc() {
  const { NVCC: given, CUDA_HOME: home } = process.env;
  const usual = ['nvcc', '/usr/local/cuda/bin/nvcc'];
  const candidates = [given, home && join(home, 'bin/nvcc'), ...usual].filter(Boolean);
  for (const command of candidates) {
    const version = spawnSync(command, ['--version'], { encoding: 'utf8' });
    if (version.status === 0) return { command, version: version.stdout };
  }
  throw new BuildError(`nvcc not found (tried ${candidates.join(', ')}); it is part of CUDA 13`);
}

async function build(name, compiler) {
  const {
    file,
    sources,
    flags,
    // For files with kernels.
    kernelFlags = [],
    libraries = [],
    isBaseline = false,
    isCuda = false,
    emulatedFlags = [],
    isPortable = isCuda,
  } = TARGETS[name];
  const nvcc = isCuda ? findNvcc() : null;
  const missing = sources.find((source) => !existsSync(join(kernels, source)));
  if (missing) throw new BuildError(`${file} needs kernels/${missing}, which does not exist`);
  const directory = cross === null ? 'kernels' : `kernels-${compiler.architecture}`;
  const folder = join(root, 'build', directory);
  mkdirSync(objects, { recursive: true });
  mkdirSync(folder, { recursive: true });
  const jobs = sources.map((source) => {
    const inputs = filesReadBy(source);
    const isKernel = textOf(source).includes('__global__');
    const special = isBaseline ? {} : FLAGS[compiler.architecture];
    const isForDevice = isCuda && source.endsWith('.cu');
    const command = isForDevice
      ? [...nvccCommand(nvcc, compiler), '-c']
      : [
          compiler.command,
          ...compileFlags(source, flags, special, compiler),
          ...(LIBRARY.includes(source) ? [] : emulatedFlags),
          // The emulation is optimised even where the code under test is not.
          ...(EMULATION.includes(source) ? ['-O2'] : []),
          ...(isKernel ? kernelFlags : []),
          '-c',
        ];
    const stamp = hashOf([
      ...inputs.flatMap((path) => [path, textOf(path)]),
      // The same for every checkout and every name of the compiler; the versions of packages are in their paths' place.
      command
        .filter((word) => word !== compiler.command && word !== nvcc?.command)
        .join(' ')
        .replaceAll(root, '')
        .replaceAll(dirname(process.execPath), ''),
      source.startsWith('node/') || source === 'files/addon.cpp' ? VERSIONS : '',
      compiler.version,
      compiler.machine,
      isForDevice ? nvcc.version : '',
    ]);
    const object = join(objects, `${stamp}.o`);
    const figures = isForDevice && isKernel && HAS_REPORT ? join(objects, `${stamp}.json`) : null;
    return { source, object, figures, stamp, command: [...command, source, '-o'] };
  });
  await runAll(jobs.filter((job) => !isKept(job)).map((job) => compile(job)));
  if (isCuda && report.length > 0) await printReport(jobs);
  removeUnused();
  link(join(folder, file), jobs, { flags, libraries, compiler, nvcc, isPortable });
}

/** A table of what the kernels need, which their compilation has told. */
async function printReport(jobs) {
  const { linesOfReport } = await import('./gpu/kernel-report.mjs');
  const kept = jobs.flatMap(({ figures }) => figures ?? []);
  const found = kept.flatMap((path) => JSON.parse(readFileSync(path, 'utf8')));
  for (const line of linesOfReport(found, report)) console.log(line);
}

/** The source and all files of the project that it includes, directly or not, relative to kernels. */
function filesReadBy(source) {
  const found = new Set([source]);
  for (const path of found) {
    for (const [, name] of textOf(path).matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)) {
      const included = relative(kernels, join(kernels, dirname(path), name));
      if (existsSync(join(kernels, included))) found.add(included);
    }
  }
  return [...found];
}

function textOf(path) {
  if (!texts.has(path)) texts.set(path, readFileSync(join(kernels, path), 'utf8'));
  return texts.get(path);
}

function nvccCommand(nvcc, compiler) {
  const wanted = arch.length === 0 ? ARCHITECTURES : arch;
  const ptx = arch.length === 0 ? PTX : [];
  return [
    nvcc.command,
    ...[...NVCC, '-ccbin', compiler.command, '-Xcompiler', NVCC_HOST.join(',')],
    ...wanted.flatMap((name) => ['-gencode', `arch=compute_${name},code=sm_${name}`]),
    ...ptx.flatMap((name) => ['-gencode', `arch=compute_${name},code=compute_${name}`]),
    // For the report.
    ...['-Xptxas', '-v'],
  ];
}

function compileFlags(source, flags, targetFlags, { isClang }) {
  const special = { ...COMMON, ...targetFlags }[source] ?? [];
  // GCC warns about the calling convention of wide vectors, but none is passed between files.
  const quiet = isClang ? ['-Wno-unknown-warning-option'] : ['-Wno-psabi'];
  return [
    ...BASE,
    // Debug information has the same paths in every checkout.
    `-ffile-prefix-map=${root}=`,
    ...flags,
    ...special,
    ...quiet,
    ...(source.startsWith('node/') ? nodeFlags() : []),
    ...(source === 'files/addon.cpp' ? headerFlagsOfNode() : []),
    ...(source.endsWith('.cu') ? ['-x', 'c++'] : []),
  ];
}

/** Flags for Node-API's headers and their C++ wrapper, from their packages. */
function nodeFlags() {
  const folders = [
    packageFolder('node-addon-api'),
    join(packageFolder('node-api-headers'), 'include'),
  ];
  const include = folders.flatMap((folder) => ['-isystem', folder]);
  return [
    ...['-DNAPI_VERSION=8', '-DNODE_ADDON_API_CPP_EXCEPTIONS_ALL'],
    // An error of a call whose thread is being ended cannot be thrown there, and would end the process.
    '-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS',
    ...include,
  ];
}

/** Where Node finds the package: beside this one, where this one is a dependency. */
function packageFolder(name) {
  try {
    return dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
  } catch {
    throw new BuildError(`the package ${name} is missing: run \`npm ci\``);
  }
}

/** Empty where the package is missing, of which the compiler will complain. */
function versionOf(name) {
  try {
    return createRequire(import.meta.url)(`${name}/package.json`).version;
  } catch {
    return '';
  }
}

function headerFlagsOfNode() {
  const folder = headersOfNode();
  if (folder === null) throw new BuildError('there are no headers of this Node');
  return ['-isystem', folder];
}

/** Whether the file is compiled already; it then counts as used now. */
function isKept({ object, figures }) {
  const needed = [object, figures].filter((path) => path !== null);
  try {
    for (const path of needed) utimesSync(path, new Date(), new Date());
    return true;
  } catch {
    return false;
  }
}

function removeUnused() {
  const kept = readdirSync(objects)
    .map((name) => join(objects, name))
    .map((path) => ({ path, ...statIfPresent(path) }))
    .sort((left, right) => right.usedMs - left.usedMs);
  let bytes = 0;
  for (const { path, size, usedMs } of kept) {
    bytes += size;
    const isAbandoned = basename(path).startsWith(FRESH) && Date.now() - usedMs > FRESH_MS_MAX;
    if (bytes > OBJECT_BYTES_MAX || isAbandoned) rmSync(path, { force: true, recursive: true });
  }
}

/** Another build may have removed the file. */
function statIfPresent(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  return { size: found?.size ?? 0, usedMs: found?.mtimeMs ?? 0 };
}

function compile({ source, object, figures, command }) {
  return async () => {
    // Renamed when it is whole, since other builds use the same folder.
    const scratch = mkdtempSync(join(objects, FRESH));
    try {
      const fresh = join(scratch, basename(object));
      const keep = figures === null ? [] : ['--keep', '--keep-dir', scratch];
      const log = await runCompiler(source, [...command, fresh, ...keep]);
      for (const line of log.match(/.*\(C7\d+\).*/g) ?? []) console.error(`${source}: ${line}`);
      if (figures !== null) {
        const { figuresOfKernels } = await import('./gpu/cubin.mjs');
        const path = join(scratch, basename(figures));
        writeFileSync(path, JSON.stringify(figuresOfKernels(scratch, log)));
        renameSync(path, figures);
      }
      renameSync(fresh, object);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  };
}

/** What the compiler has printed. */
function runCompiler(source, [command, ...words]) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, words, { cwd: kernels });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new BuildError(`${basename(source)} failed to compile\n${output}`));
    });
  });
}

/** Runs the jobs, as many at once as there are processors. */
async function runAll(jobs) {
  const next = jobs.values();
  const workers = Array.from({ length: availableParallelism() }, async () => {
    for (const job of next) await job();
  });
  const results = await Promise.allSettled(workers);
  const failed = results.find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
}

function link(output, jobs, { flags, libraries, compiler, nvcc, isPortable }) {
  const isAddon = output.endsWith('.node');
  const linked = flags.filter((flag) => /^-(fsanitize|Wl)/.test(flag));
  const shape = isAddon
    ? process.platform === 'darwin'
      ? ['-bundle', '-undefined', 'dynamic_lookup']
      : ['-shared', ...staticRuntime(compiler)]
    : ['-pthread', ...(cross === null ? portable(isPortable) : ['-static'])];
  const command = nvcc
    ? [
        nvcc.command,
        ...['-ccbin', compiler.command, '-cudart', 'static', '--no-device-link'],
        ...shape.flatMap(linkFlagOfNvcc),
      ]
    : [compiler.command, ...shape];
  const stamp = hashOf([...jobs.map((job) => job.stamp), ...linked, ...command.slice(1)]);
  if (isFresh(output, stamp)) return;
  mkdirSync(dirname(output), { recursive: true });
  // Written to a new file and renamed, so that processes keep the old file they have loaded.
  const fresh = `${output}.new`;
  const objects = jobs.map((job) => job.object);
  const given = [...command.slice(1), ...linked, '-o', fresh, ...objects, ...libraries];
  const { status, stderr } = spawnSync(command[0], given, { encoding: 'utf8' });
  if (status !== 0) throw new BuildError(`${basename(output)} failed to link\n${stderr}`);
  renameSync(fresh, output);
  writeFileSync(`${output}.stamp`, stamp);
}

/** Programs for a first session on a device are copied to hosts that may have another C++ library. */
function portable(isPortable) {
  return isPortable ? ['-static-libstdc++', '-static-libgcc'] : [];
}

/** nvcc forwards flags only with -Xlinker or -Xcompiler. */
function linkFlagOfNvcc(flag) {
  if (flag === '-shared') return [flag];
  return flag.startsWith('-Wl,') ? ['-Xlinker', flag.slice(4)] : ['-Xcompiler', flag];
}

/** Links libstdc++ statically and drops unused code, so that the addon also loads with older C and C++ libraries. */
function staticRuntime({ isClang }) {
  return isClang ? [] : ['-static-libstdc++', '-Wl,--gc-sections,--exclude-libs,ALL'];
}

function isFresh(file, stamp) {
  return (
    existsSync(file) &&
    existsSync(`${file}.stamp`) &&
    readFileSync(`${file}.stamp`, 'utf8') === stamp
  );
}

function hashOf(parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex');
}
