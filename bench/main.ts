// Runs the benches one after another, each in its own process.
//
//   npm run bench                             smoke parameters: half a minute, only checks the benches
//   npm run bench -- --full                   the parameters of docs/performance.md: half an hour
//   npm run bench -- --full engine rest       selected benches
//   npm run bench -- --full --out DIRECTORY   also writes DIRECTORY/<name>.md
//   npm run bench -- --engine NAME engine     a specific engine, for benches that support it
//   npm run bench -- --full compare --before DIRECTORY    compares this checkout with another one
//
// Each bench has more options; run it directly to use them: `node dist/bench/engine.js`.

import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const NAMES = [
  'service',
  'filter',
  'aggregate',
  'browse',
  'projection',
  'text',
  'hybrid',
  'sentences',
  'scores',
  'engine',
  'rest',
  'batches',
  'loading',
  'memory',
  'pauses',
  'cluster',
  'console',
  'compare',
] as const;
/** The benches that support --engine. */
const WITH_ENGINE: readonly string[] = ['engine'];

const { values, positionals } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    out: { type: 'string' },
    engine: { type: 'string' },
    before: { type: 'string' },
  },
  allowPositionals: true,
});
const unknown = positionals.find((name) => !NAMES.some((known) => known === name));
if (unknown !== undefined) {
  console.error(`unknown bench ${unknown}; expected one of ${NAMES.join(', ')}`);
  process.exit(2);
}
if (values.engine !== undefined && !positionals.every((name) => WITH_ENGINE.includes(name))) {
  console.error(
    `--engine applies only to the bench ${WITH_ENGINE.join(', ')}, found ${positionals.join(', ')}`,
  );
  process.exit(2);
}
const chosen = positionals.length > 0 ? positionals : benchesOf(values.engine);
if (values.out !== undefined) mkdirSync(values.out, { recursive: true });
for (const name of NAMES) {
  if (!chosen.includes(name)) continue;
  console.log(`── ${name}`);
  const script = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
  const out = values.out === undefined ? [] : ['--out', join(values.out, `${name}.md`)];
  const engine =
    values.engine === undefined || !WITH_ENGINE.includes(name) ? [] : ['--engine', values.engine];
  const before =
    values.before === undefined || name !== 'compare' ? [] : ['--before', values.before];
  const { status } = spawnSync(
    process.execPath,
    [script, ...(values.full ? ['--full'] : []), ...engine, ...before, ...out],
    { stdio: 'inherit' },
  );
  if (status !== 0) process.exit(status ?? 1);
}

/** Returns the benches to run by default: all, or those that apply to the named engine. */
function benchesOf(engine: string | undefined): readonly string[] {
  // A full comparison needs another checkout; without full parameters it compares this one with itself.
  const isCompared = !values.full || values.before !== undefined;
  if (engine !== undefined) return WITH_ENGINE;
  return NAMES.filter((name) => name !== 'compare' || isCompared);
}
