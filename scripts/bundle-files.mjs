// Which files of the repository go into a bundle, and which compiled ones: the service, and the
// benches with whatever they import from the tests. Compiled files without a source stay out.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const FILES = [
  'package.json',
  // What installs TensorFlow takes versions from it.
  'package-lock.json',
  'openapi.json',
  'LICENSE',
  'NOTICE',
  'README.md',
  'CHANGELOG.md',
  // Not compiled, unlike the rest of the benches.
  'bench/cuda/torch_topk.py',
  'scripts/build-kernels.mjs',
  'scripts/container/healthcheck.mjs',
];
const FOLDERS = ['docs', 'examples/data', 'kernels'];
const SCRIPTS_IF_THERE = /^install-tensorflow/;
const BINARIES = ['build/kernels/sagitta.node'];
/** The bench executable tells the share of the machine's peak; the others need a CUDA compiler. */
const BINARIES_IF_THERE = [
  'build/kernels/bench',
  'build/kernels/cuda-bench',
  'build/kernels/sagitta-cuda.node',
];

/** Relative to the root, in order. Throws where something is not built. */
export function listRepositoryFiles(root) {
  const scripts = readdirSync(join(root, 'scripts')).filter((name) => SCRIPTS_IF_THERE.test(name));
  return [...FILES, ...scripts.map((name) => `scripts/${name}`)]
    .concat(FOLDERS.flatMap((folder) => listFiles(root, folder)))
    .sort();
}

export function listBinaries(root) {
  const missing = BINARIES.find((path) => !existsSync(join(root, path)));
  if (missing) throw new Error(`${missing} is missing: run \`node scripts/build-kernels.mjs\``);
  return [...BINARIES, ...BINARIES_IF_THERE.filter((path) => existsSync(join(root, path)))];
}

/** Relative to the folder of compiled files, which is `dist` unless somebody builds elsewhere. */
export function listCompiledFiles(root, dist) {
  const compiled = (folder) =>
    listFiles(root, folder)
      .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
      .map((path) => path.replace(/\.ts$/, '.js'));
  const found = new Set([...compiled('src'), ...compiled('bench')]);
  // A set hands out what is added while it is walked: the files that files import, too.
  for (const path of found) {
    const file = join(dist, path);
    if (!existsSync(file)) throw new Error(`${file} is missing: run \`npm run build\``);
    for (const imported of importsOf(readFileSync(file, 'utf8'))) {
      found.add(relative(dist, join(dirname(file), imported)));
    }
  }
  return [...found].sort();
}

/** Of files: `from './a.js'`, `import('./a.js')`, and `new URL('./a.js', import.meta.url)`. */
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
