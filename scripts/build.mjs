// Implements `npm run build`: builds the products of scripts/building/products.mjs whose inputs have changed since the
// last build, and names them. Stops at the first failure.
//
//   node scripts/build.mjs                     everything
//   node scripts/build.mjs program             only what the server needs to run: kernels, dist/app and the console
//   node scripts/build.mjs tests               also the separate modules in dist that tests and benches load
//   node scripts/build.mjs modules packages    only the named products
//   node scripts/build.mjs --if-possible       accepts an existing build where the compiler is not installed

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PRODUCTS, ROOT } from './building/products.mjs';

/** Names for several products at once. */
const GROUPS = {
  program: ['kernels', 'app', 'console'],
  packages: ['client', 'langchain'],
  tests: ['kernels', 'app', 'console', 'client', 'langchain', 'modules'],
};

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'if-possible': { type: 'boolean', default: false } },
});
const chosen = positionals.flatMap((name) => GROUPS[name] ?? [name]);
const buildable = Object.keys(PRODUCTS).filter((name) => PRODUCTS[name].commands !== undefined);
const unknown = chosen.find((name) => !buildable.includes(name));
if (unknown !== undefined) {
  const known = [...Object.keys(GROUPS), ...buildable];
  fail(`Expected one of ${known.join(', ')}; found ${unknown}`);
}
if (existsSync(join(ROOT, 'node_modules/typescript'))) buildProducts();
else checkBuilt();

function buildProducts() {
  for (const name of buildable) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    for (const words of PRODUCTS[name].commands) {
      const { status, error } = spawnSync(process.execPath, words, { cwd: ROOT, stdio: 'inherit' });
      if (error !== undefined) throw error;
      if (status !== 0) process.exit(status ?? 1);
    }
  }
}

/** Nothing can be built without the development packages, but an existing build still runs. */
function checkBuilt() {
  if (options['if-possible'] && existsSync(join(ROOT, 'dist/app/cli/main.js'))) return;
  fail(
    'Expected the development packages, which build the program; found none. ' +
      'Run `npm ci && npm run build`; `npm ci --omit=dev` removes them again afterwards.',
  );
}

function fail(message) {
  console.error(`build: ${message}`);
  process.exit(1);
}
