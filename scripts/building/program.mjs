// Builds the program from src to dist/app. Each module that a process or thread starts with becomes one file with all
// the code it always needs; code that is loaded on use goes into separate files. Node loads one large file in a
// fraction of the time that hundreds of small files take. Does nothing if no input has changed.

import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { Visitor } from 'rolldown/utils';
import { wrap } from './code-cache.cjs';
import { writeGuide } from './guide.mjs';
import { buildIfChanged } from './inputs.mjs';
import { ROOT } from './products.mjs';
import { ThirdParty } from './third-party.mjs';

const OUT = join(ROOT, 'dist', 'app');

/**
 * The modules that processes and threads start with; `programFile` in src/common/package-files.ts finds them. Each
 * group is one build: its members share files, whereas code that several groups need is repeated in each.
 */
const ENTRIES = [
  ['cli/main', 'main'],
  ['worker'],
  ['engine/cuda/cuda-process'],
  ['engine/cuda/cuda-worker'],
  ['engine/tensor/tensor-worker'],
  ['server/embedding/model-worker'],
  ['platform/watchdog-thread'],
  ['storage/block-thread', 'cluster/blobs/block-source'],
];

/** The files of the API reference and of the guide beside its pages, by name in dist/app/docs. */
const DOCS = {
  'index.html': 'src/server/pages/docs/index.html',
  'initializer.js': 'src/server/pages/docs/initializer.js',
  'icon.svg': 'packages/console/src/icon.svg',
  'guide.css': 'src/server/pages/docs/guide.css',
  'index.css': 'node_modules/swagger-ui-dist/index.css',
  'swagger-ui.css': 'node_modules/swagger-ui-dist/swagger-ui.css',
  'swagger-ui-bundle.js': 'node_modules/swagger-ui-dist/swagger-ui-bundle.js',
  'swagger-ui-bundle.js.LICENSE.txt':
    'node_modules/swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt',
};

/**
 * Packages that stay in node_modules, because they look for binaries or other files beside their code or because few
 * installations ever load them.
 */
const EXTERNAL =
  /^(@fastify\/(ajv-compiler|fast-json-stringify-compiler)|light-my-request|@tensorflow|h5wasm|parquet-wasm|piscina|re2js|snowball-stemmers)(\/|$)/;

/**
 * Escapes all characters outside ASCII: a single one would make the file take two bytes of memory per character, and
 * slower for Node to decode.
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
 * Routes imports of ES modules through the code cache's own `import()`. Node prints a warning when a cached script
 * calls the built-in one, and the warning would end up in the output of commands.
 */
const IMPORTS_THROUGH_CACHE = {
  name: 'imports-through-cache',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replace(/\bimport\(/g, 'importPackage(');
    }
  },
};

/**
 * Begins every `{ ...object, member }` with `...null`, which adds nothing. V8 clones an object that comes first with a
 * hidden class of its own kind, and makes a new class for each member added to the clone, every time the literal is
 * evaluated. That takes about a microsecond, and no access to such objects can be cached: together a fifth of the time
 * of a small request. After another element the object's members are copied one by one into a known class instead.
 */
const SHARED_CLASSES = {
  name: 'shared-classes',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = withKnownClasses(file.code, this.parse(file.code));
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
  // Node loads CommonJS several times as fast as ES modules and can cache its code.
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
    plugins: [thirdParty.plugin, ASCII_ONLY, SHARED_CLASSES, IMPORTS_THROUGH_CACHE, WRAPPED],
  });
  const { output } = await bundle.write({
    dir: OUT,
    format: 'cjs',
    sourcemap: true,
    // Names and line breaks are kept so that stack traces are readable without the source map.
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
  writeGuide(join(ROOT, 'docs'), join(OUT, 'docs'));
}

/** Writes the file that loads an entry module through the code cache. */
function writeLoader(name, exported) {
  const path = join(OUT, `${name}.js`);
  const loader = join(relative(dirname(path), OUT), 'code-cache.js');
  writeFileSync(
    path,
    `module.exports = require('./${loader}').load('${name}.code.js');
// Never runs: it declares the export names for \`import\`.
0 && (module.exports = { ${exported.filter((word) => word !== 'default').join(', ')} });
`,
  );
}

/** The code of a chunk in which no object literal begins with the members of another object. */
function withKnownClasses(code, program) {
  const offsets = [];
  new Visitor({
    ObjectExpression({ properties: [first] }) {
      if (first?.type === 'SpreadElement') offsets.push(first.start);
    },
  }).visit(program);
  offsets.sort((a, b) => a - b);
  let end = 0;
  const parts = offsets.map((offset) => {
    const part = code.slice(end, offset);
    end = offset;
    return part;
  });
  return [...parts, code.slice(end)].join('...null, ');
}

function escapeUnit(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
