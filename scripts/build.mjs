// What `npm run build` does. Each part does only what has changed since its last run, and says so. Stops at the first
// part that fails.
//
//   node scripts/build.mjs                     everything
//   node scripts/build.mjs program             what running needs: kernels, dist/app and the console
//   node scripts/build.mjs tests               that, and the separate modules in dist that tests and benches load
//   node scripts/build.mjs modules packages    these parts
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
  app: [['scripts/building/program.mjs']],
  console: [['packages/console/build.mjs']],
  // The second imports the first.
  packages: [
    ['scripts/building/package.mjs', 'client'],
    ['scripts/building/package.mjs', 'langchain'],
  ],
  modules: [[TSC, '-p', 'tsconfig.json']],
  types: [[TSC, '-p', 'packages/console']],
};
const GROUPS = {
  program: ['kernels', 'app', 'console'],
  tests: ['kernels', 'app', 'console', 'packages', 'modules'],
};

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'if-possible': { type: 'boolean', default: false } },
});
const chosen = positionals.flatMap((name) => GROUPS[name] ?? [name]);
const unknown = chosen.find((name) => !(name in PARTS));
if (unknown !== undefined) {
  const known = [...Object.keys(GROUPS), ...Object.keys(PARTS)];
  fail(`there is no part ${unknown}; expected ${known.join(', ')}`);
}
if (existsSync(join(root, TSC))) buildParts();
else checkBuilt();

function buildParts() {
  for (const [name, programs] of Object.entries(PARTS)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    for (const words of programs) {
      const { status, error } = spawnSync(process.execPath, words, { cwd: root, stdio: 'inherit' });
      if (error !== undefined) throw error;
      if (status !== 0) process.exit(status ?? 1);
    }
  }
}

/** Without development packages nothing can be built, but a server that is built can be run. */
function checkBuilt() {
  if (options['if-possible'] && existsSync(join(root, 'dist/app/cli/main.js'))) return;
  fail(
    'the development packages are not installed, which build the program. ' +
      'Run `npm ci && npm run build`; after that, `npm ci --omit=dev` leaves what running needs.',
  );
}

function fail(message) {
  console.error(`build: ${message}`);
  process.exit(1);
}
