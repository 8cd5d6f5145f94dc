// Builds the program from src to dist/app: one file for each module that a process or thread starts with, which has
// all code that it always needs, and further files for code that is loaded when it is used. Node loads one large
// file in a fraction of the time that hundreds of small ones take. Does nothing when no input has changed.

import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { wrap } from './code-cache.cjs';
import { buildIfChanged } from './inputs.mjs';
import { ROOT } from './products.mjs';
import { ThirdParty } from './third-party.mjs';

const OUT = join(ROOT, 'dist', 'app');

/**
 * The modules that a process or thread starts with, which `programFile` in src/common/package-files.ts finds. Each group
 * is a build: what a group shares is in files of their own, what several groups need is in each.
 */
const ENTRIES = [
  ['cli/main', 'main'],
  ['worker'],
  ['engine/cuda/cuda-process'],
  ['engine/cuda/cuda-worker'],
  ['engine/tensor/tensor-worker'],
];

/** The files of the API reference by their names in dist/app/docs. */
const DOCS = {
  'index.html': 'src/server/pages/docs/index.html',
  'initializer.js': 'src/server/pages/docs/initializer.js',
  'icon.svg': 'packages/console/src/icon.svg',
  'index.css': 'node_modules/swagger-ui-dist/index.css',
  'swagger-ui.css': 'node_modules/swagger-ui-dist/swagger-ui.css',
  'swagger-ui-bundle.js': 'node_modules/swagger-ui-dist/swagger-ui-bundle.js',
  'swagger-ui-bundle.js.LICENSE.txt':
    'node_modules/swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt',
};

/**
 * Packages that stay in node_modules: they have binaries or files that they find beside their code, or few installations
 * ever load them.
 */
const EXTERNAL =
  /^(@fastify\/(ajv-compiler|fast-json-stringify-compiler)|light-my-request|@tensorflow|h5wasm|parquet-wasm|piscina|re2js|snowball-stemmers)(\/|$)/;

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

/**
 * Packages that are modules come through the code cache's own `import()`: Node prints a warning when that of a script is
 * called, which has no place in what a command says.
 */
const IMPORTS_THROUGH_CACHE = {
  name: 'imports-through-cache',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replace(/\bimport\(/g, 'importPackage(');
    }
  },
};

const WRAPPED = {
  name: 'wrapped',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = wrap(file.code);
    }
  },
};

await buildIfChanged('app', build);

async function build() {
  const startedAt = performance.now();
  const thirdParty = new ThirdParty();
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT, { recursive: true });
  // Node loads files of this type several times as fast as modules, and can cache their code.
  writeFileSync(join(OUT, 'package.json'), '{ "type": "commonjs" }\n');
  copyFileSync(join(ROOT, 'scripts/building/code-cache.cjs'), join(OUT, 'code-cache.js'));
  await Promise.all(ENTRIES.map((names) => buildEntries(names, thirdParty)));
  copyDocs(thirdParty);
  writeFileSync(join(OUT, 'third-party.txt'), thirdParty.text);
  const { status } = spawnSync(process.execPath, ['scripts/building/save-code-cache.mjs'], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the code cache was not written');
  const seconds = (performance.now() - startedAt) / 1_000;
  console.log(`program: built dist/app in ${seconds.toFixed(1)} s`);
}

async function buildEntries(names, thirdParty) {
  const bundle = await rolldown({
    cwd: ROOT,
    input: Object.fromEntries(names.map((name) => [name, `src/${name}.ts`])),
    platform: 'node',
    external: EXTERNAL,
    resolve: {
      alias: { '@sagitta/client': join(ROOT, 'packages/client/src/client.ts') },
      extensionAlias: { '.js': ['.ts', '.js'] },
    },
    plugins: [thirdParty.plugin, ASCII_ONLY, IMPORTS_THROUGH_CACHE, WRAPPED],
  });
  const { output } = await bundle.write({
    dir: OUT,
    format: 'cjs',
    sourcemap: true,
    // Names and lines stay, so that stack traces can be read without the source map.
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: false } },
    comments: false,
    entryFileNames: '[name].code.js',
    chunkFileNames: '[name]-[hash].js',
  });
  await bundle.close();
  for (const file of output) {
    if (file.type === 'chunk' && file.isEntry) writeLoader(file.name, file.exports);
  }
}

function copyDocs(thirdParty) {
  mkdirSync(join(OUT, 'docs'));
  for (const [name, source] of Object.entries(DOCS)) {
    copyFileSync(join(ROOT, source), join(OUT, 'docs', name));
    thirdParty.add(join(ROOT, source));
  }
}

/** Writes the file that loads an entry through the code cache. */
function writeLoader(name, exported) {
  const path = join(OUT, `${name}.js`);
  const loader = join(relative(dirname(path), OUT), 'code-cache.js');
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
