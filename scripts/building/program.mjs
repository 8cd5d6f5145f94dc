// Builds the program from src to dist/app: one file for each module that a process or thread starts with, which has
// all code that it always needs, and further files for code that is loaded when it is used. Node loads one large
// file in a fraction of the time that hundreds of small ones take. Does nothing when no input has changed.

import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { buildIfChanged } from './inputs.mjs';
import { ThirdParty } from './third-party.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OUT = join(ROOT, 'dist', 'app');
/** The digest of the inputs of what is in dist/app. */
const STAMP = join(ROOT, 'dist', '.app-inputs');
const INPUTS = [
  'src',
  'package-lock.json',
  'scripts/building/program.mjs',
  'scripts/building/code-cache.cjs',
  'scripts/building/save-code-cache.mjs',
  'scripts/building/third-party.mjs',
];

/**
 * The modules that a process or thread starts with; `programFile` in src/common/package-files.ts finds them. Each is a
 * build of its own, since a file that several share would have code that only one of them needs. Large ones that most
 * processes load have a code cache.
 */
const ENTRIES = [
  { name: 'cli/main' },
  { name: 'main', isCached: true },
  { name: 'worker', isCached: true },
  { name: 'server/pages/docs-worker' },
  { name: 'engine/cuda/cuda-process' },
  { name: 'engine/cuda/cuda-worker' },
  { name: 'engine/tensor/tensor-worker' },
];

/**
 * Packages that stay in node_modules: they have binaries or files that they find beside their code, or only few
 * installations ever load them.
 */
const EXTERNAL =
  /^(@fastify\/(static|swagger-ui)|@nats-io|@opentelemetry|@tensorflow|h5wasm|lmdb|parquet-wasm|piscina|snowball-stemmers)(\/|$)/;

/**
 * Escapes all other characters: a file that has one takes two bytes of memory for each of its characters, and Node
 * decodes it more slowly.
 */
const ASCII_ONLY = {
  name: 'ascii-only',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replace(/[^\0-\x7f]/g, escapeUnit);
    }
  },
};

await buildIfChanged({ stamp: STAMP, inputs: INPUTS, output: join(OUT, 'cli/main.js') }, build);

async function build() {
  const startedAt = performance.now();
  const thirdParty = new ThirdParty();
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT, { recursive: true });
  // Node loads files of this type several times as fast as modules, and can cache their code.
  writeFileSync(join(OUT, 'package.json'), '{ "type": "commonjs" }\n');
  copyFileSync(join(ROOT, 'scripts/building/code-cache.cjs'), join(OUT, 'code-cache.js'));
  await Promise.all(ENTRIES.map((entry) => buildEntry(entry, thirdParty)));
  writeFileSync(join(OUT, 'third-party.txt'), thirdParty.text);
  const { status } = spawnSync(process.execPath, ['scripts/building/save-code-cache.mjs'], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the code cache was not written');
  const seconds = (performance.now() - startedAt) / 1_000;
  console.log(`program: built dist/app in ${seconds.toFixed(1)} s`);
}

async function buildEntry({ name, isCached = false }, thirdParty) {
  const bundle = await rolldown({
    cwd: ROOT,
    input: { [name]: `src/${name}.ts` },
    platform: 'node',
    external: EXTERNAL,
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    plugins: [thirdParty.plugin, ASCII_ONLY],
  });
  const { output } = await bundle.write({
    dir: OUT,
    format: 'cjs',
    sourcemap: true,
    // Names stay, so that stack traces can be read without the source map.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false } },
    comments: false,
    entryFileNames: isCached ? '[name].code.js' : '[name].js',
    chunkFileNames: '[name]-[hash].js',
  });
  await bundle.close();
  if (!isCached) return;
  if (/\bimport\(/.test(output[0].code)) {
    throw new Error(
      `${name} has an import(), which V8 cannot run from a code cache: put it into a module that is loaded on use`,
    );
  }
  writeLoader(name, output[0].exports);
}

/** Writes the file that loads the code of an entry through the cache. */
function writeLoader(name, exported) {
  const path = join(OUT, `${name}.js`);
  const loader = relative(dirname(path), join(OUT, 'code-cache.js'));
  writeFileSync(
    path,
    `module.exports = require('./${loader}').load('${name}.code.js');
// Never runs: tells Node the names that \`import\` finds.
0 && (module.exports = { ${exported.filter((word) => word !== 'default').join(', ')} });
`,
  );
}

function escapeUnit(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
