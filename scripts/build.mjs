// What `npm run build` does: builds the kernels, compiles the sources and the declarations of the packages,
// builds the console, and fills the packages. Stops at the first part that fails.
//
//   node scripts/build.mjs                     everything
//   node scripts/build.mjs compile packages    these parts
//   node scripts/build.mjs --if-possible       where the compiler is not installed, uses what is built already

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const TSC = 'node_modules/typescript/bin/tsc';

/** Parts in the order in which they need each other, each with its programs. */
const PARTS = {
  kernels: [['scripts/build-kernels.mjs', '--if-possible']],
  compile: [
    [TSC, '-p', 'tsconfig.json'],
    [TSC, '-p', 'tsconfig.types.json'],
  ],
  console: [[TSC, '-p', 'src/console'], ['scripts/build-console.mjs']],
  packages: [['scripts/packages/assemble.mjs']],
};

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'if-possible': { type: 'boolean', default: false } },
});
const unknown = positionals.find((name) => !(name in PARTS));
if (unknown !== undefined) {
  fail(`there is no part ${unknown}; expected ${Object.keys(PARTS).join(', ')}`);
}
if (existsSync(join(root, TSC))) buildParts();
else checkBuilt();

function buildParts() {
  for (const [name, programs] of Object.entries(PARTS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    for (const words of programs) {
      const { status, error } = spawnSync(process.execPath, words, { cwd: root, stdio: 'inherit' });
      if (error !== undefined) throw error;
      if (status !== 0) process.exit(status ?? 1);
    }
  }
}

/** Without development packages nothing can be compiled, but a server that is built can be run. */
function checkBuilt() {
  if (options['if-possible'] && existsSync(join(root, 'dist/src/cli/main.js'))) return;
  fail(
    'TypeScript is not installed, which compiles the sources. ' +
      'Run `npm ci && npm run build`; after that, `npm ci --omit=dev` leaves what running needs.',
  );
}

function fail(message) {
  console.error(`build: ${message}`);
  process.exit(1);
}
