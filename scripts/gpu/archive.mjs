// Builds what lease.sh needs on a host without network, Node or compiler:
//
//   node scripts/gpu/archive.mjs --programs    build/gpu/sagitta-gpu-programs.tar.gz: the programs, stripped, the
//                                          scripts and the terms of WordNet
//   … --lease                              these without the terms, which a checkout has, and build/gpu/bundle.tar.xz:
//                                          of a bundle what the steps use, with Node and the kernels for GPUs
//   … --sentences FILE                     vectors of sentences go along, a .npy file of shape [rows, dimension];
//                                          with --lease so many of its first rows as there is room for
//   … --arch 90a                           only for this architecture; may be repeated. By default all that
//                                          `build-kernels.mjs cuda` compiles, with --lease only 90a
//
// Prints what weighs what. Fails when the programs exceed 20 MB; when, with --lease, all that travels exceeds 55 MiB,
// the files of the checkout included; and when a binary needs a newer glibc than 2.36.

import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { PRODUCTS, ROOT as root } from '../building/products.mjs';
import { writeArchive } from '../bundle/archive.mjs';
import { findGlibc } from '../bundle/notes.mjs';
import { requireSize } from '../packages/size-limits.mjs';

const MEBIBYTE = 2 ** 20;
const PROGRAMS_BYTES_MAX = 20_000_000;
/** The checkout and both archives: what may be carried, less a margin for what is built meanwhile. */
const LEASE_BYTES_MAX = 55 * MEBIBYTE;
/** The glibc of Debian 12. */
const GLIBC_MAX = [2, 36];
/** As in bundles: a timestamp that all formats support. */
const TIMESTAMP_SECONDS = 315_532_800;
const PROGRAMS = ['platform-test', 'cuda-test', 'cuda-bench', 'term-vectors'];
const TERMS = 'bench/data/wordnet-terms.gz';
/** Copied as they are. */
const FILES = PRODUCTS.gpu.sources.filter((path) => path !== TERMS);
/** Files of the repository that `doctor`, `selftest`, `bench rest` and `serve` load from a bundle. */
const LOADED = ['LICENSE', 'NOTICE', 'openapi.json', 'package.json', 'scripts/sagitta.cjs'];
/** The other parts of a bundle: texts, the console, formats of files, clusters, tracing, and sources. */
const NOT_LOADED = [
  ...PRODUCTS.bundle.sources.filter((path) => !LOADED.includes(path)),
  ...['BUNDLE.md', 'build/kernels/bench', 'dist/console'],
  ...['h5wasm', 'node-addon-api', 'node-api-headers', 'parquet-wasm'].map(
    (name) => `node_modules/${name}`,
  ),
];

const { values: options } = parseArgs({
  options: {
    programs: { type: 'boolean', default: false },
    lease: { type: 'boolean', default: false },
    sentences: { type: 'string' },
    arch: { type: 'string', multiple: true },
    out: { type: 'string', default: join(root, PRODUCTS.gpu.output) },
  },
});
/** Rows of the table of what weighs what: [name, bytes]. */
const weights = [];

try {
  if (options.programs === options.lease) {
    throw new Error('expected --programs, or --lease for the bundle as well');
  }
  const architectures = options.arch ?? (options.lease ? ['90a'] : []);
  const carried = [['files of the checkout', bytesOf(trackedFiles())]];
  if (options.lease) carried.push(weightOf(await writeBundle(architectures)));
  buildKernels(PROGRAMS, architectures);
  const plain = await writePrograms(null);
  requireSize(plain, PROGRAMS_BYTES_MAX);
  const room = LEASE_BYTES_MAX - sumOf(carried) - statSync(plain).size;
  const sentences =
    options.sentences && readSentences(options.lease ? room : Number.MAX_SAFE_INTEGER);
  carried.push(weightOf(sentences ? await writePrograms(sentences) : plain));
  weights.push(...carried, ['all that travels', sumOf(carried)]);
  printWeights();
  if (options.lease && sumOf(carried) > LEASE_BYTES_MAX) {
    throw new Error(
      `${mebibytes(sumOf(carried))} MiB travel, the limit is ${mebibytes(LEASE_BYTES_MAX)}`,
    );
  }
} catch (error) {
  console.error(`gpu archive: ${error.message}`);
  process.exitCode = 1;
}

/** Returns the archive. `sentences` are the bytes of a .npy file, or null. */
function writePrograms(sentences) {
  return inTree(async (tree) => {
    for (const name of PROGRAMS) {
      copyFileSync(join(root, 'build', 'kernels', name), join(tree, name));
      chmodSync(join(tree, name), 0o755);
    }
    run('strip', pathsOf(tree, PROGRAMS));
    // With a lease, the checkout travels, which has the terms.
    for (const path of options.lease ? FILES : [...FILES, TERMS]) {
      copyFileSync(join(root, path), join(tree, basename(path)));
    }
    if (sentences !== null) writeFileSync(join(tree, 'sentences.npy'), sentences);
    requireGlibc(pathsOf(tree, PROGRAMS));
    for (const name of readdirSync(tree)) {
      weigh(`programs, unpacked: ${name}`, bytesOf([join(tree, name)]));
    }
    const file = join(options.out, 'sagitta-gpu-programs.tar.gz');
    await writeArchive(tree, { file, top: 'sagitta-gpu-programs', seconds: TIMESTAMP_SECONDS });
    return file;
  });
}

/** The .npy file with so many of its first rows as fit in `bytesMax`; they hardly become smaller in an archive. */
function readSentences(bytesMax) {
  const bytes = readFileSync(options.sentences);
  const start = 10 + bytes.readUInt16LE(8);
  const header = bytes.toString('latin1', 0, start);
  const [, count] = /'shape': \((\d+), \d+\)/.exec(header) ?? [];
  if (!header.startsWith('\x93NUMPY\x01') || count === undefined) {
    throw new Error(`${options.sentences} is not a .npy file of two dimensions`);
  }
  const rowBytes = (bytes.length - start) / count;
  const kept = Math.min(count, Math.floor((0.99 * bytesMax - start) / rowBytes));
  if (kept <= 0) throw new Error('there is no room for vectors of sentences');
  console.log(`${kept} of ${count} vectors of sentences travel`);
  const changed = header
    .replace(`(${count}, `, `(${kept}, `)
    .trimEnd()
    .padEnd(start - 1);
  const rows = bytes.subarray(start, start + kept * rowBytes);
  return Buffer.concat([Buffer.from(`${changed}\n`, 'latin1'), rows]);
}

/** Returns the archive. */
function writeBundle(architectures) {
  buildKernels(['cuda'], architectures);
  run('npm', ['run', '--silent', 'build']);
  return inTree((scratch) => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const top = `sagitta-${version}-linux-${process.arch}`;
    const tree = join(scratch, top);
    mkdirSync(tree);
    run(process.execPath, ['scripts/bundle/bundle.mjs', '--tree', tree]);
    for (const path of NOT_LOADED) rmSync(join(tree, path), { recursive: true });
    const binaries = filesIn(tree).filter((path) => /\.node$|\/runtime\/node$/.test(path));
    requireGlibc(binaries);
    for (const path of ['runtime/node', 'build/kernels', 'dist', 'node_modules']) {
      weigh(`bundle, unpacked: ${path}`, bytesOf(filesIn(join(tree, path))));
    }
    const file = join(options.out, 'bundle.tar.xz');
    rmSync(file, { force: true });
    const owner = ['--owner=0', '--group=0', `--mtime=@${TIMESTAMP_SECONDS}`, '--sort=name'];
    // Half of what gzip makes of Node; Python unpacks it where there is no xz.
    run('tar', [
      ...owner,
      '--use-compress-program=xz --x86 --lzma2=preset=9e',
      '-cf',
      file,
      '-C',
      scratch,
      top,
    ]);
    return file;
  });
}

/** What the function returns for a new folder, which is removed afterwards. */
async function inTree(fill) {
  mkdirSync(options.out, { recursive: true });
  const tree = mkdtempSync(join(options.out, 'tree-'));
  try {
    return await fill(tree);
  } finally {
    rmSync(tree, { recursive: true });
  }
}

function requireGlibc(binaries) {
  for (const path of binaries) {
    const [major, minor] = findGlibc(readFileSync(path));
    if (major > GLIBC_MAX[0] || minor > GLIBC_MAX[1]) {
      throw new Error(
        `${basename(path)} needs glibc ${major}.${minor}, the host may have ${GLIBC_MAX.join('.')}`,
      );
    }
  }
}

/** Notes the bytes of an unpacked part; the last weight of a name counts. */
function weigh(name, bytes) {
  const known = weights.find(([each]) => each === name);
  if (known === undefined) weights.push([name, bytes]);
  else known[1] = bytes;
}

function weightOf(file) {
  return [basename(file), statSync(file).size];
}

function sumOf(rows) {
  return rows.reduce((sum, [, bytes]) => sum + bytes, 0);
}

function trackedFiles() {
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' });
  return pathsOf(
    root,
    listed.split('\0').filter((path) => path !== ''),
  );
}

function printWeights() {
  const width = Math.max(...weights.map(([name]) => name.length));
  for (const [name, bytes] of weights) {
    console.log(`${name.padEnd(width)}  ${mebibytes(bytes).padStart(6)} MiB`);
  }
}

function mebibytes(bytes) {
  return (bytes / MEBIBYTE).toFixed(2);
}

function bytesOf(paths) {
  return paths.reduce((sum, path) => sum + statSync(path).size, 0);
}

function pathsOf(folder, names) {
  return names.map((name) => join(folder, name));
}

/** The files in a folder, or the file itself. */
function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function buildKernels(targets, architectures) {
  const words = ['--arch', architectures.join(' ')];
  run(process.execPath, ['scripts/build-kernels.mjs', ...targets, ...words]);
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} exited with ${status}`);
}
