// node dist/test/cluster/simulation/main.js [--seeds 1000 | --minutes 10] [--seed N] [--threads 2] [--until-failure]
// [--trace]
//
// Simulates clusters with consecutive seeds, or with one seed, which repeats exactly what it did before. Prints the
// failures with what had happened before them, and the rate. Exits with 1 after a failure.

import { parseArgs } from 'node:util';
import { consecutive, describeFailure, simulateAll } from './seed-threads.js';

/** Lines of the trace that are printed for a failure, unless `--trace` asks for all. */
const LINES_MAX = 200;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    seed: { type: 'string' },
    threads: { type: 'string', default: '2' },
    trace: { type: 'boolean', default: false },
    'until-failure': { type: 'boolean', default: false },
  },
});
const first = Number(values.seed ?? 1_000 * (Date.now() % 1_000_000));
const isOne =
  values.seeds === undefined && values.minutes === undefined && values.seed !== undefined;
const count = values.minutes === undefined ? Number(values.seeds ?? (isOne ? 1 : 1_000)) : Infinity;
const startedAtMs = performance.now();
const endMs = startedAtMs + 60_000 * Number(values.minutes ?? Infinity);
const failed: number[] = [];
const sums: Record<string, number> = {};
let done = 0;

console.log(`seeds from ${first} on`);
const threadCount = isOne ? 1 : Number(values.threads);
await simulateAll(consecutive(first, count), threadCount, (result) => {
  const { seed, failures, digest, trace: _, ...totals } = result;
  done++;
  for (const [name, value] of Object.entries(totals)) sums[name] = (sums[name] ?? 0) + value;
  const isFailed = failures.length > 0;
  if (isFailed) failed.push(seed);
  if (isFailed || values.trace) {
    console.log(describeFailure(result, values.trace ? Infinity : LINES_MAX));
  }
  if (isFailed || isOne) console.log(JSON.stringify({ seed, ...totals, digest }));
  return performance.now() < endMs && !(isFailed && values['until-failure']);
});
const hours = (performance.now() - startedAtMs) / 3_600_000;
const { virtualMs = 0 } = sums;
const rates = `${Math.round(done / hours)} seeds and ${Math.round(virtualMs / 3_600_000 / hours)} virtual hours an hour`;
const found = failed.length > 0 ? `${failed.length} failed: ${failed.join(' ')}` : 'none failed';
console.log(`${done} seeds, ${found}; ${rates}; ${JSON.stringify(sums)}`);
process.exitCode = failed.length > 0 ? 1 : 0;
