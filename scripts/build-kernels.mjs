// Builds the kernels with the local C++ compiler: the addons for Node, the bench and the tests. scripts/kernels/targets.mjs
// describes what each of them is made of.
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

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { BuildError, compileAll, hashOf } from './kernels/objects.mjs';
import {
  ARCHITECTURES,
  deviceFlags,
  flagsOf,
  KERNELS,
  sourcesOf,
  TARGETS,
  textOf,
} from './kernels/targets.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(import.meta.url);
/** Only checkouts have the module that tells what kernels for GPUs need. */
const CUBIN = join(ROOT, 'scripts', 'gpu', 'cubin.mjs');

const { names, arch, cross, report, isOptional } = parseArguments(process.argv.slice(2));
let current = names[0];
try {
  const needsClang = names.some((name) => TARGETS[name].needsClang);
  const compiler = needsClang ? findClang() : findCompiler(cross);
  for (current of names) await build({ file: current, ...TARGETS[current] }, compiler);
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  const [line, ...rest] = error.message.split('\n');
  if (isOptional) {
    console.log(`sagitta: ${TARGETS[current].without ?? `${current} was not built`} (${line})`);
  } else {
    console.error([`sagitta: ${line}`, ...rest].join('\n'));
    process.exitCode = 1;
  }
}

function parseArguments(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      cross: { type: 'string' },
      arch: { type: 'string', default: '' },
      'if-possible': { type: 'boolean' },
      report: { type: 'string', multiple: true, default: [] },
    },
  });
  const { cross, report } = values;
  const arch = values.arch.split(' ').filter((name) => name !== '');
  const defaults = report.length > 0 ? ['cuda'] : ['addon', 'files'];
  const names = positionals.length === 0 ? defaults : positionals;
  requireKnown(names, Object.keys(TARGETS));
  requireKnown(arch, ARCHITECTURES);
  requireKnown(report, arch.length === 0 ? ARCHITECTURES : arch);
  return { names, arch, cross, report, isOptional: values['if-possible'] };
}

function requireKnown(given, known) {
  const unknown = given.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  console.error(`unknown argument ${unknown}; expected one of ${known.join(', ')}`);
  process.exit(2);
}

function findCompiler(crossCompiler) {
  return firstOf(crossCompiler ? [crossCompiler] : [process.env.CXX, 'c++', 'g++', 'clang++']);
}

function findClang() {
  return firstOf([process.env.CLANGXX, 'clang++']);
}

/** The first compiler that runs, with its version and target. */
function firstOf(candidates) {
  for (const command of candidates.filter(Boolean)) {
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

async function build(target, compiler) {
  const nvcc = target.isCuda ? findNvcc() : null;
  const figuresOfKernels = existsSync(CUBIN) ? (await import(CUBIN)).figuresOfKernels : null;
  const sources = sourcesOf(target.sources);
  const missing = sources.find((source) => !existsSync(join(KERNELS, source)));
  if (missing)
    throw new BuildError(`kernels/${missing} does not exist, but ${target.file} needs it`);
  const jobs = sources.map((source) => {
    const versions = [compiler.version, compiler.machine];
    if (nvcc !== null && source.endsWith('.cu')) {
      const flags = deviceFlags(arch);
      return {
        source,
        command: [nvcc.command, ...flags, '-ccbin', compiler.command],
        flags,
        versions: [...versions, nvcc.version],
        readFigures: textOf(source).includes('__global__') ? figuresOfKernels : null,
      };
    }
    const flags = flagsOf(source, target, compiler);
    // Debug information has the same paths in every checkout.
    const paths = [`-ffile-prefix-map=${ROOT}=`, ...headersFor(source)];
    return {
      source,
      command: [compiler.command, ...flags, ...paths],
      flags,
      versions: paths.length === 1 ? versions : [...versions, ...versionsOfHeaders()],
      readFigures: null,
    };
  });
  const objects = await compileAll(jobs);
  if (nvcc !== null && report.length > 0) await printReport(objects);
  link(target, objects, { compiler, nvcc });
}

/** Words for the headers of packages and of Node that a source includes. */
function headersFor(source) {
  if (source === 'files/addon.cpp') return ['-isystem', headersOfNode()];
  if (!source.startsWith('node/')) return [];
  return [
    ...['-DNAPI_VERSION=8', '-DNODE_ADDON_API_CPP_EXCEPTIONS_ALL'],
    // An error of a call whose thread is being ended cannot be thrown there, and would end the process.
    '-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS',
    ...['-isystem', packageFolder('node-addon-api')],
    ...['-isystem', join(packageFolder('node-api-headers'), 'include')],
  ];
}

function versionsOfHeaders() {
  const packages = ['node-addon-api', 'node-api-headers'].map(packageFolder);
  return [
    process.versions.modules,
    ...packages.map((folder) => require(join(folder, 'package.json')).version),
  ];
}

/** Where Node finds the package: beside this one, where this one is a dependency. */
function packageFolder(name) {
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    throw new BuildError(`the package ${name} is missing: run \`npm ci\``);
  }
}

/** The folder of the headers of the Node that runs this script, which an installation of Node may lack. */
function headersOfNode() {
  const folder = join(dirname(process.execPath), '..', 'include', 'node');
  const path = join(folder, 'node_version.h');
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const [, found] = /#define NODE_MODULE_VERSION (\d+)/.exec(text) ?? [];
  if (found === process.versions.modules) return folder;
  throw new BuildError('no headers of this Node');
}

/** A table of what the kernels need, which their compilation has told. */
async function printReport(objects) {
  const { linesOfReport } = await import('./gpu/kernel-report.mjs');
  const kept = objects.flatMap(({ figures }) => figures ?? []);
  const found = kept.flatMap((path) => JSON.parse(readFileSync(path, 'utf8')));
  for (const line of linesOfReport(found, report)) console.log(line);
}

function link({ file, flags = [], link: more = [] }, objects, { compiler, nvcc }) {
  const folder = cross === undefined ? 'kernels' : `kernels-${compiler.architecture}`;
  const output = join(ROOT, 'build', folder, file);
  const words = [
    ...(output.endsWith('.node') ? shapeOfAddon(compiler) : ['-pthread']),
    ...(cross === undefined || output.endsWith('.node') ? [] : ['-static']),
    ...flags.filter((flag) => flag.startsWith('-fsanitize')),
  ];
  const [command, start, given, end] =
    nvcc === null
      ? [compiler.command, [], words, more]
      : [
          nvcc.command,
          ['-ccbin', compiler.command, '-cudart', 'static', '--no-device-link'],
          words.flatMap(wordsForNvcc),
          more.flatMap(wordsForNvcc),
        ];
  const stamp = hashOf([...objects.map((each) => each.stamp), ...start, ...given, ...end]);
  if (isFresh(output, stamp)) return;
  mkdirSync(dirname(output), { recursive: true });
  // Written to a new file and renamed, so that processes keep the old file they have loaded.
  const fresh = `${output}.new`;
  const paths = objects.map(({ object }) => object);
  const all = [...start, ...given, '-o', fresh, ...paths, ...end];
  const { status, stderr } = spawnSync(command, all, { encoding: 'utf8' });
  if (status !== 0) throw new BuildError(`${basename(output)} failed to link\n${stderr}`);
  renameSync(fresh, output);
  writeFileSync(`${output}.stamp`, stamp);
}

/** Links libstdc++ statically and drops unused code, so that the addon also loads with older C and C++ libraries. */
function shapeOfAddon({ isClang }) {
  if (process.platform === 'darwin') return ['-bundle', '-undefined', 'dynamic_lookup'];
  const runtime = ['-static-libstdc++', '-Wl,--gc-sections,--exclude-libs,ALL'];
  return ['-shared', ...(isClang ? [] : runtime)];
}

/** nvcc forwards words only with -Xlinker or -Xcompiler. */
function wordsForNvcc(word) {
  if (word === '-shared') return [word];
  return word.startsWith('-Wl,') ? ['-Xlinker', word.slice(4)] : ['-Xcompiler', word];
}

function isFresh(file, stamp) {
  return (
    existsSync(file) &&
    existsSync(`${file}.stamp`) &&
    readFileSync(`${file}.stamp`, 'utf8') === stamp
  );
}
