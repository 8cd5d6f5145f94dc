// The repository and compiled files of a bundle: the server, its console, and the benches with what they
// import from the tests. Compiled files without a source are left out.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { PRODUCTS } from '../building/products.mjs';

const BINARIES = ['build/kernels/sagitta.node'];
/** The bench executable measures the machine's peaks, `files` needs the headers of Node, `cuda` a compiler. */
const OPTIONAL_BINARIES = [
  'build/kernels/bench',
  'build/kernels/sagitta-cuda.node',
  'build/kernels/sagitta-files.node',
];

/** Screenshots of the console, which is part of the bundle, and the queries of a check of the sample data. */
const EXCLUDED = /^(docs\/images\/console\/|examples\/data\/wordnet-queries\.arrow$)/;

/** Paths relative to the root, sorted. */
export function listRepositoryFiles(root) {
  return PRODUCTS.bundle.sources
    .flatMap((path) => (statSync(join(root, path)).isFile() ? [path] : listFiles(root, path)))
    .filter((path) => !EXCLUDED.test(path))
    .sort();
}

export function listBinaries(root) {
  const missing = BINARIES.find((path) => !existsSync(join(root, path)));
  if (missing) throw new Error(`${missing} is missing: run \`node scripts/build-kernels.mjs\``);
  return [...BINARIES, ...OPTIONAL_BINARIES.filter((path) => existsSync(join(root, path)))];
}

/**
 * Paths relative to `dist`, sorted: the program, the console, and the benches as separate modules with what they import.
 * Throws when a file is not compiled.
 */
export function listCompiledFiles(root, dist) {
  const found = new Set(
    listFiles(root, 'bench')
      .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
      .map((path) => path.replace(/\.ts$/, '.js')),
  );
  // Benches run tasks in the pool.
  found.add('src/worker.js');
  // The iteration visits entries added on the way: imports of imported files.
  for (const path of found) {
    const file = join(dist, path);
    if (!existsSync(file)) throw new Error(`${file} is missing: run \`npm run build\``);
    for (const imported of importsOf(readFileSync(file, 'utf8'))) {
      found.add(relative(dist, join(dirname(file), imported)));
    }
  }
  const built = ['app', 'console'].flatMap((folder) => listBuiltFiles(dist, folder));
  return [...found, ...built].sort();
}

/** What the build has made for users; source maps stay where the sources are. */
function listBuiltFiles(dist, folder) {
  const files = existsSync(join(dist, folder)) ? listFiles(dist, folder) : [];
  if (files.length === 0) throw new Error(`${dist}/${folder} is missing: run \`npm run build\``);
  return files.filter((path) => !path.endsWith('.map'));
}

/** Relative imports: `from './a.js'`, `import('./a.js')`, and `new URL('./a.js', import.meta.url)`. */
function importsOf(text) {
  const pattern =
    /(?:\bfrom|\bimport\s*\(|^import|\bnew URL\()\s*(['"])(\.{1,2}\/[^'"]+\.js)\1(?=[;,)])/gm;
  return [...text.matchAll(pattern)].map((match) => match[2]);
}

function listFiles(root, folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}
