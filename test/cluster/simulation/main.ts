// node dist/test/cluster/simulation/main.js [--seeds 1000] [--seed N] [--until-failure] [--trace]
//
// Simulates clusters with consecutive seeds, or with one seed, which repeats exactly what it did before. Prints the
// failures with what had happened before them, and the rate. Exits with 1 after a failure.

import { parseArgs } from 'node:util';
import { simulate } from './simulate.js';

/** Lines of the trace that are printed for a failure, unless `--trace` asks for all. */
const LINES_MAX = 200;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    'until-failure': { type: 'boolean', default: false },
  },
});
const first = Number(values.seed ?? Date.now() % 1_000_000);
const count = Number(values.seeds ?? (values.seed === undefined ? 1_000 : 1));
const startedAtMs = performance.now();
const failed: number[] = [];
let done = 0;
let virtualMs = 0;
const sums: Record<string, number> = {};
for (let seed = first; seed < first + count; seed++) {
  const result = await simulate(seed);
  done++;
  virtualMs += result.virtualMs;
  const { failures, digest, trace, ...totals } = result;
  for (const [name, value] of Object.entries(totals)) sums[name] = (sums[name] ?? 0) + value;
  if (failures.length > 0) failed.push(seed);
  if (failures.length === 0 && !values.trace && count > 1) continue;
  const lines = values.trace ? trace : trace.slice(-LINES_MAX);
  if (failures.length > 0 || values.trace) console.log(lines.join('\n'));
  console.log(JSON.stringify({ ...totals, digest }));
  for (const failure of failures) console.log(`seed ${seed}: ${failure}`);
  if (failures.length > 0 && values['until-failure']) break;
}
const hours = (performance.now() - startedAtMs) / 3_600_000;
console.log(
  `${done} seeds from ${first} on, ${failed.length} failed${failed.length > 0 ? `: ${failed.join(' ')}` : ''}; ${Math.round(done / hours)} seeds and ${Math.round(virtualMs / 3_600_000 / hours)} virtual hours an hour`,
);
console.log(JSON.stringify({ ...sums, seed: undefined }));
process.exitCode = failed.length > 0 ? 1 : 0;
