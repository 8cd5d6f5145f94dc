// Writes a release: one archive with everything that a Linux host needs to run the service without
// a network, Node included. The same inputs give the same bytes.
//
//   npm run bundle                                build/bundle/sagitta-<version>-linux-x64.tar.gz
//   node scripts/bundle.mjs --tree FOLDER         the folder alone, which is what the image holds
//   … --node FILE --node-licence FILE             another Node than the one that runs this
//   … --dist FOLDER                               compiled elsewhere than in dist
//
// gzip, not xz: hosts without a network, and slim images, have gzip but often no xz, and the archive
// is well below its bound either way.

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
import { writeArchive } from './bundle-archive.mjs';
import { listBinaries, listCompiledFiles, listRepositoryFiles } from './bundle-files.mjs';
import { findGlibc, newestGlibc, writeReadme, writeThirdParty } from './bundle-notes.mjs';
import { isLicence, listPackageFiles, listPackages } from './bundle-packages.mjs';

/** What can be handed over by mail gateways and kept in repositories of artifacts. */
const ARCHIVE_BYTES_MAX = 60_000_000;
/** Of every entry, unless SOURCE_DATE_EPOCH says otherwise: the first day that all formats know. */
const SECONDS = 315_532_800;

const root = fileURLToPath(new URL('..', import.meta.url));
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
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`a bundle is made on x64 Linux, not on ${process.arch} ${process.platform}`);
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
    const seconds = Number(process.env.SOURCE_DATE_EPOCH ?? SECONDS);
    await writeArchive(tree, { file, top: name, seconds });
    const { size } = statSync(file);
    console.log(`${file}: ${megabytes(size)}`);
    if (size > ARCHIVE_BYTES_MAX) {
      throw new Error(`${name}.tar.gz has ${size} bytes; at most ${ARCHIVE_BYTES_MAX} are allowed`);
    }
  } finally {
    rmSync(tree, { recursive: true });
  }
}

/** Everything, uncompressed; returns the name of the bundle. */
function fillTree(tree) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const name = `sagitta-${version}-linux-x64`;
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
  strip(['runtime/node', ...binaries].map((path) => join(tree, path)));
  copy(join(root, 'scripts', 'bundle-launcher.sh'), 'bin/sagitta');
  chmodSync(join(tree, 'bin/sagitta'), 0o755);

  const hasCuda = binaries.includes('build/kernels/sagitta-cuda.node');
  const nodeVersion = askNode('process.version');
  const parts = measure(tree, ['runtime/node', ...binaries, ...packages.flatMap(nativeFiles)]);
  const about = { name, nodeVersion, parts, packages, hasCuda };
  writeFileSync(join(tree, 'BUNDLE.md'), writeReadme(about));
  writeFileSync(join(tree, 'THIRD-PARTY.md'), writeThirdParty(about));
  report(parts);
  return name;
}

/** An old build machine, or other flags of the linker, keep the kernels from asking for more. */
function report(parts) {
  for (const { path, glibc } of parts) console.log(`glibc ${glibc.join('.')}  ${path}`);
  const least = newestGlibc(parts.filter(({ isOptional }) => !isOptional));
  for (const { path, glibc } of parts.filter((part) => part.glibc[1] > least[1])) {
    console.log(
      `bundle: ${path} asks for glibc ${glibc.join('.')}, where the service itself is content ` +
        `with ${least.join('.')}: on systems in between it is not used`,
    );
  }
}

function copyPackages(copy) {
  const modules = askNode('process.versions.modules');
  const packages = listPackages(root)
    .map((found) => ({ ...found, files: listPackageFiles(root, found, { modules }) }))
    .filter(({ files }) => files.some((file) => file !== 'package.json' && !isLicence(file)));
  for (const { path, files } of packages) {
    for (const file of files) copy(join(root, path, file), join(path, file));
  }
  return packages.map((found) => ({ ...found, texts: found.files.filter(isLicence) }));
}

function nativeFiles({ path, files }) {
  return files.filter((file) => file.endsWith('.node')).map((file) => join(path, file));
}

/** Without the store or Node nothing runs; every other binary is there to be faster. */
function measure(tree, paths) {
  return paths.map((path) => ({
    path,
    glibc: findGlibc(readFileSync(join(tree, path))),
    isOptional: !path.startsWith('runtime/') && !path.includes('@lmdb'),
  }));
}

/** Debugging symbols are a seventh of Node and most of the kernels. */
function strip(paths) {
  const { status, error, stderr } = spawnSync('strip', paths, { encoding: 'utf8' });
  if (error) console.log('bundle: there is no `strip` here, so the binaries keep their symbols');
  else if (status !== 0) throw new Error(`strip: ${stderr.trim()}`);
}

function askNode(expression) {
  const { status, stdout, stderr } = spawnSync(options.node, ['-p', expression], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${options.node} does not run: ${stderr}`);
  return stdout.trim();
}

/** Where Node's own archive has it, and where Debian's packages put it. */
function findNodeLicence() {
  const beside = join(dirname(realpathSync(options.node)), '..');
  const places = options['node-licence']
    ? [options['node-licence']]
    : [join(beside, 'LICENSE'), join(beside, 'share/doc/nodejs/LICENSE')];
  const found = places.find((path) => existsSync(path));
  if (found) return found;
  throw new Error(`Node's licence is at none of ${places.join(', ')}; name it by --node-licence`);
}

function copyInto(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
  chmodSync(to, statSync(from).mode & 0o100 ? 0o755 : 0o644);
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
