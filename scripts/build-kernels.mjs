// Builds the kernels with whatever C++ compiler there is: the addon, the bench and the tests.
//
//   node scripts/build-kernels.mjs                  the addon, which `npm ci` does
//   node scripts/build-kernels.mjs bench test       build/kernels/bench, build/kernels/test
//   node scripts/build-kernels.mjs test-memory      the tests under AddressSanitizer and UBSan
//   node scripts/build-kernels.mjs test-threads     the tests under ThreadSanitizer
//   node scripts/build-kernels.mjs test-emulated    the tests of every x86 target, on any x86
//   … --if-possible                                 a failure is one line, and exit code 0
//   … --cross aarch64-linux-gnu-g++                 another compiler, another folder
//
// Nothing is compiled again whose sources, flags and compiler are the same as last time.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const kernels = join(root, 'kernels');

const WARNINGS = '-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'.split(' ');
const BASE = ['-std=c++20', '-g', '-fPIC', '-fvisibility=hidden', '-ffp-contract=off', ...WARNINGS];

/**
 * Where processors fuse: products of widened float32 are exact, so canonical sums keep their bits, and
 * the slack of the bounds is wider than any rounding that is left out. The search itself is not.
 */
const FUSED = '-ffp-contract=fast';

/** Files that want more than the baseline. */
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
  aarch64: { 'simd/neon_dotprod.cpp': ['-march=armv8.2-a+dotprod'] },
};
const COMMON = { 'reference/target_reference.cpp': ['-fno-tree-vectorize'] };

const LIBRARY = [
  'kernels.cpp',
  'dispatch.cpp',
  'reference/target_reference.cpp',
  'search/plan.cpp',
  'search/query_state.cpp',
  'search/search.cpp',
  'search/top_rows.cpp',
  'search/valid.cpp',
  'simd/avx2.cpp',
  'simd/avx512_vnni.cpp',
  'simd/avx_vnni.cpp',
  'simd/neon_dotprod.cpp',
];
const TEST = [...LIBRARY, 'test/check.cpp', 'test/test.cpp'];
const PEAKS = ['baseline', 'avx2', 'avx_vnni', 'avx512_vnni'].map(
  (name) => `bench/peaks_${name}.cpp`,
);

const TARGETS = {
  addon: { file: 'sagitta.node', sources: [...LIBRARY, 'node/addon.cpp'], flags: ['-O3'] },
  bench: {
    file: 'bench',
    sources: [...LIBRARY, 'test/check.cpp', 'bench/bench.cpp', ...PEAKS],
    flags: ['-O3'],
  },
  test: { file: 'test', sources: TEST, flags: ['-O3'] },
  'test-memory': {
    file: 'test-memory',
    sources: TEST,
    flags: ['-O2', '-fsanitize=address,undefined', '-fno-sanitize-recover=all'],
  },
  // Without -mavx512…: what the processor lacks is emulated, with SIMDe's headers.
  'test-emulated': {
    file: 'test-emulated',
    sources: TEST,
    flags: ['-O2', '-DSAGITTA_EMULATE', '-mavx2', '-mfma', '-mpopcnt'],
    isBaseline: true,
  },
  'test-threads': { file: 'test-threads', sources: TEST, flags: ['-O2', '-fsanitize=thread'] },
};

class BuildError extends Error {}

const { names, isOptional, cross } = parseArguments(process.argv.slice(2));
try {
  const compiler = findCompiler(cross);
  for (const name of names) await build(name, compiler);
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  const [line, ...rest] = error.message.split('\n');
  if (isOptional) {
    console.log(`sagitta: the SIMD kernels were not built (${line}); the wasm engine will answer`);
  } else {
    console.error([`sagitta: ${line}`, ...rest].join('\n'));
    process.exitCode = 1;
  }
}

function parseArguments(given) {
  const rest = [...given];
  const at = rest.indexOf('--cross');
  const crossCompiler = at < 0 ? null : rest.splice(at, 2)[1];
  const wanted = rest.filter((argument) => !argument.startsWith('--'));
  const unknown = wanted.find((name) => !(name in TARGETS));
  if (unknown !== undefined) {
    console.error(`${unknown} is none of ${Object.keys(TARGETS).join(', ')}`);
    process.exit(2);
  }
  return {
    names: wanted.length === 0 ? ['addon'] : wanted,
    isOptional: rest.includes('--if-possible'),
    cross: crossCompiler,
  };
}

/** The first that answers, and what it compiles for. */
function findCompiler(crossCompiler) {
  const candidates = crossCompiler ? [crossCompiler] : [process.env.CXX, 'c++', 'g++', 'clang++'];
  for (const command of candidates) {
    if (!command) continue;
    const version = spawnSync(command, ['--version'], { encoding: 'utf8' });
    if (version.status !== 0) continue;
    const machine = spawnSync(command, ['-dumpmachine'], { encoding: 'utf8' }).stdout.trim();
    const isClang = version.stdout.includes('clang');
    const architecture = machine.split('-')[0].replace('arm64', 'aarch64');
    return { command, isClang, architecture, version: version.stdout.split('\n')[0], machine };
  }
  throw new BuildError(`no C++ compiler: ${candidates.filter(Boolean).join(', ')} do not answer`);
}

async function build(name, compiler) {
  const { file, sources, flags, isBaseline = false } = TARGETS[name];
  const isNative = cross === null;
  const folder = join(root, 'build', isNative ? 'kernels' : `kernels-${compiler.architecture}`);
  const objects = join(folder, 'objects', name);
  mkdirSync(objects, { recursive: true });
  const headers = hashOf(
    readdirSync(kernels, { recursive: true })
      .filter((path) => path.endsWith('.h'))
      .sort()
      .map((path) => readFileSync(join(kernels, path), 'utf8')),
  );
  const jobs = sources.map((source) => {
    const object = join(objects, `${source.replaceAll('/', '-').replace(/\.cpp$/, '')}.o`);
    const special = isBaseline ? {} : FLAGS[compiler.architecture];
    const command = [compiler.command, ...compileFlags(source, flags, special, compiler), '-c'];
    const content = readFileSync(join(kernels, source), 'utf8');
    const stamp = hashOf([headers, content, command.join(' '), compiler.version]);
    return { object, stamp, command: [...command, source, '-o', relative(kernels, object)] };
  });
  await runAll(
    jobs.filter(({ object, stamp }) => !isFresh(object, stamp)).map((job) => compile(job)),
  );
  link(join(folder, file), jobs, flags, compiler, name === 'addon');
}

function compileFlags(source, flags, targetFlags, { isClang }) {
  const special = { ...COMMON, ...targetFlags }[source] ?? [];
  // GCC says that wide vectors would be passed differently elsewhere; none is passed between files.
  const quiet = isClang ? ['-Wno-unknown-warning-option'] : ['-Wno-psabi'];
  return [
    ...BASE,
    ...flags,
    ...special,
    ...quiet,
    ...(source.startsWith('node/') ? nodeFlags() : []),
  ];
}

/** Node's own headers and the C++ wrapper around them, from their packages. */
function nodeFlags() {
  const folders = ['node-addon-api', 'node-api-headers/include'].map((path) =>
    join(root, 'node_modules', path),
  );
  const missing = folders.find((folder) => !existsSync(folder));
  if (missing) throw new BuildError(`${relative(root, missing)} is missing: run \`npm ci\``);
  const include = folders.flatMap((folder) => ['-isystem', folder]);
  return ['-DNAPI_VERSION=8', '-DNODE_ADDON_API_CPP_EXCEPTIONS_ALL', ...include];
}

function compile({ object, stamp, command }) {
  return () =>
    new Promise((resolve, reject) => {
      const child = spawn(command[0], command.slice(1), { cwd: kernels });
      let said = '';
      child.stderr.on('data', (chunk) => {
        said += chunk;
      });
      child.on('error', reject);
      child.on('close', (code) => {
        if (code !== 0) {
          reject(new BuildError(`${basename(command.at(-3))} does not compile\n${said}`));
          return;
        }
        writeFileSync(`${object}.stamp`, stamp);
        resolve();
      });
    });
}

/** As many at once as there are processors. */
async function runAll(jobs) {
  const next = jobs.values();
  const workers = Array.from({ length: availableParallelism() }, async () => {
    for (const job of next) await job();
  });
  const results = await Promise.allSettled(workers);
  const failed = results.find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
}

function link(output, jobs, flags, compiler, isAddon) {
  const sanitizers = flags.filter((flag) => flag.startsWith('-fsanitize'));
  const shape = isAddon
    ? process.platform === 'darwin'
      ? ['-bundle', '-undefined', 'dynamic_lookup']
      : ['-shared', ...staticRuntime(compiler)]
    : ['-pthread', ...(cross === null ? [] : ['-static'])];
  const stamp = hashOf([...jobs.map((job) => job.stamp), ...sanitizers, ...shape]);
  if (isFresh(output, stamp)) return;
  mkdirSync(dirname(output), { recursive: true });
  // A process that has the old file loaded keeps it.
  const fresh = `${output}.new`;
  const linked = spawnSync(
    compiler.command,
    [...shape, ...sanitizers, '-o', fresh, ...jobs.map((job) => job.object)],
    { encoding: 'utf8' },
  );
  if (linked.status !== 0)
    throw new BuildError(`${basename(output)} does not link\n${linked.stderr}`);
  renameSync(fresh, output);
  writeFileSync(`${output}.stamp`, stamp);
}

/** The addon then runs on systems with another C++ library than that of the build. */
function staticRuntime({ isClang }) {
  return isClang ? [] : ['-static-libstdc++', '-static-libgcc'];
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
