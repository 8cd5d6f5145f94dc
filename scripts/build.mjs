// What `npm run build` does: builds the products of scripts/building/products.mjs that have changed since their last
// build, and says which. Stops at the first that fails.
//
//   node scripts/build.mjs                     everything
//   node scripts/build.mjs program             what running needs: kernels, dist/app and the console
//   node scripts/build.mjs tests               that, and the separate modules in dist that tests and benches load
//   node scripts/build.mjs modules packages    these products
//   node scripts/build.mjs --if-possible       where the compiler is not installed, uses what is built already

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PRODUCTS, ROOT } from './building/products.mjs';

/** What running needs, and what tests need. */
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

/** Without development packages nothing can be built, but a server that is built can be run. */
function checkBuilt() {
  if (options['if-possible'] && existsSync(join(ROOT, 'dist/app/cli/main.js'))) return;
  fail(
    'the development packages are not installed, which build the program. ' +
      'Run `npm ci && npm run build`; after that, `npm ci --omit=dev` leaves what running needs.',
  );
}

function fail(message) {
  console.error(`build: ${message}`);
  process.exit(1);
}
