// Creates a release bundle: one archive with everything a Linux host needs to run the server offline,
// Node included. The build is reproducible.
//
//   npm run bundle                                     build/bundle/sagitta-<version>-linux-<architecture>.tar.gz
//   node scripts/bundle/bundle.mjs --tree DIRECTORY    only the directory tree, as in the image
//   … --node FILE --node-licence FILE                  another Node than the one running this script
//   … --dist DIRECTORY                                 another directory of compiled files
//
// gzip, not xz: hosts without a network and slim images have gzip but often no xz, and the archive is
// well below its limit either way.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { requireSize } from '../packages/size-limits.mjs';
import { writeArchive } from './archive.mjs';
import { listBinaries, listCompiledFiles, listRepositoryFiles } from './files.mjs';
import { findGlibc, newestGlibc, writeReadme, writeThirdParty } from './notes.mjs';
import { isLicence, listPackageFiles, listPackages } from './packages.mjs';

/** Without kernels for GPUs, so that this size is known without nvcc. A third is the weights of the built-in model. */
const ARCHIVE_BYTES_MAX = 80_000_000;
/** What kernels for every architecture of GPUs add. */
const CUDA_BYTES_MAX = 7_000_000;
/** Timestamp of every entry unless SOURCE_DATE_EPOCH is set: 1980-01-01, which all formats support. */
const TIMESTAMP_SECONDS = 315_532_800;

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values: options } = parseArgs({
  options: {
    tree: { type: 'string' },
    out: { type: 'string', default: join(root, 'build', 'bundle') },
    dist: { type: 'string', default: join(root, 'dist') },
    node: { type: 'string', default: process.execPath },
    'node-licence': { type: 'string' },
  },
});

try {
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) {
    throw new Error(
      `bundles are built on x64 and arm64 Linux only, found ${process.arch} ${process.platform}`,
    );
  }
  if (options.tree !== undefined) fillTree(resolve(options.tree));
  else await writeBundle(resolve(options.out));
} catch (error) {
  console.error(`bundle: ${error.message}`);
  process.exitCode = 1;
}

async function writeBundle(folder) {
  mkdirSync(folder, { recursive: true });
  const tree = mkdtempSync(join(folder, 'tree-'));
  try {
    const name = fillTree(tree);
    const file = join(folder, `${name}.tar.gz`);
    const seconds = Number(process.env.SOURCE_DATE_EPOCH ?? TIMESTAMP_SECONDS);
    await writeArchive(tree, { file, top: name, seconds });
    const hasCuda = existsSync(join(tree, 'build/kernels/sagitta-cuda.node'));
    console.log(file);
    requireSize(file, ARCHIVE_BYTES_MAX + (hasCuda ? CUDA_BYTES_MAX : 0));
  } finally {
    rmSync(tree, { recursive: true });
  }
}

/** Fills the directory with the bundle's files and returns the name of the bundle. */
function fillTree(tree) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const name = `sagitta-${version}-linux-${process.arch}`;
  const copy = (from, path) => copyInto(from, join(tree, path));
  for (const path of listRepositoryFiles(root)) copy(join(root, path), path);
  for (const path of listCompiledFiles(root, options.dist)) {
    copy(join(options.dist, path), join('dist', path));
  }
  const packages = copyPackages(copy);
  copy(options.node, 'runtime/node');
  copy(findNodeLicence(), 'runtime/LICENSE');
  const binaries = listBinaries(root);
  for (const path of binaries) copy(join(root, path), path);
  const native = ['runtime/node', ...binaries, ...packages.flatMap(nativeFiles)];
  strip(native.map((path) => join(tree, path)));
  copy(join(root, 'scripts', 'bundle', 'launcher.sh'), 'bin/sagitta');
  chmodSync(join(tree, 'bin/sagitta'), 0o755);

  const hasCuda = binaries.includes('build/kernels/sagitta-cuda.node');
  const nodeVersion = queryNode('process.version');
  const parts = measure(tree, native);
  const about = { name, nodeVersion, parts, packages, hasCuda };
  writeFileSync(join(tree, 'BUNDLE.md'), writeReadme(about));
  writeFileSync(join(tree, 'THIRD-PARTY.md'), writeThirdParty(about));
  report(parts);
  return name;
}

/** Prints the glibc requirements; an older build machine or other linker flags lower those of the kernels. */
function report(parts) {
  for (const { path, glibc } of parts) console.log(`glibc ${glibc.join('.')}  ${path}`);
  const least = newestGlibc(parts.filter(({ isOptional }) => !isOptional));
  for (const { path, glibc } of parts.filter((part) => part.glibc[1] > least[1])) {
    console.log(
      `bundle: ${path} requires glibc ${glibc.join('.')}, the server itself only ` +
        `${least.join('.')}; systems in between will not use it`,
    );
  }
}

function copyPackages(copy) {
  const packages = listPackages(root)
    .map((found) => ({ ...found, files: listPackageFiles(root, found) }))
    .filter(({ files }) => files.some((file) => file !== 'package.json' && !isLicence(file)));
  for (const { path, files } of packages) {
    for (const file of files) copy(join(root, path, file), join(path, file));
  }
  return packages.map((found) => ({ ...found, texts: found.files.filter(isLicence) }));
}

function nativeFiles({ path, files }) {
  return files.filter((file) => file.endsWith('.node')).map((file) => join(path, file));
}

/** The binaries with their glibc versions. Only Node is required; others add speed. */
function measure(tree, paths) {
  return paths.map((path) => ({
    path,
    glibc: findGlibc(readFileSync(join(tree, path))),
    isOptional: !path.startsWith('runtime/'),
  }));
}

/** Removes debug symbols: a seventh of Node, and most of the kernels. */
function strip(paths) {
  const { status, error, stderr } = spawnSync('strip', paths, { encoding: 'utf8' });
  if (error) console.log('bundle: `strip` not found, the binaries keep their debug symbols');
  else if (status !== 0) throw new Error(`strip: ${stderr.trim()}`);
}

function queryNode(expression) {
  const { status, stdout, stderr } = spawnSync(options.node, ['-p', expression], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${options.node} failed: ${stderr}`);
  return stdout.trim();
}

/** Node's licence file, as placed by Node's own archive or by Debian's packages. */
function findNodeLicence() {
  const prefix = join(dirname(realpathSync(options.node)), '..');
  const paths = options['node-licence']
    ? [options['node-licence']]
    : [join(prefix, 'LICENSE'), join(prefix, 'share/doc/nodejs/LICENSE')];
  const found = paths.find((path) => existsSync(path));
  if (found) return found;
  throw new Error(`Node's licence not found at ${paths.join(', ')}; name it with --node-licence`);
}

function copyInto(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
  chmodSync(to, statSync(from).mode & 0o100 ? 0o755 : 0o644);
}
