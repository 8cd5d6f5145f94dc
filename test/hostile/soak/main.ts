// node dist/test/hostile/soak/main.js [--minutes 60] [--load 0.7] [--restart-minutes 5] [--seed N] [--to DIRECTORY]
// Writes soak.json and soak.svg into the directory, and ends with 1 when something grew or a reply was wrong.

import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { plotSoak } from './plot.js';
import { runSoak } from './soak.js';
import { trendsOf } from './trend.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    load: { type: 'string', default: '0.7' },
    'restart-minutes': { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    to: { type: 'string', default: '.' },
  },
});
/** After a start, caches fill and the heap grows to its size. */
const SETTLE_SECONDS = 90;
const MINUTE_MS = 60_000;

console.log(`seed ${values.seed}`);
const report = await runSoak({
  durationMs: Number(values.minutes) * MINUTE_MS,
  restartMs: Number(values['restart-minutes']) * MINUTE_MS,
  sampleMs: 5_000,
  calibrationMs: 20_000,
  load: Number(values.load),
  rowCount: 20_000,
  seed: Number(values.seed),
  onSample({ seconds, process, residentBytes, heapBytes, descriptors, allocatedBytes, p50, p99 }) {
    const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
    console.log(
      `${seconds.toFixed(0)} s, process ${process}: ${mb(residentBytes)} resident, ${mb(heapBytes)} heap, ${descriptors} descriptors, ${mb(allocatedBytes)} on disk, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(0)} ms`,
    );
  },
});
const trends = trendsOf(report.samples, SETTLE_SECONDS);
console.table(trends);
const capacities = report.capacities.map((capacity) => capacity.toFixed(0)).join(', ');
const requestCount = report.samples.at(-1)?.requestCount ?? 0;
console.log(`requests/s that could be done: ${capacities}`);
console.log(`${requestCount} requests; they fell behind ${report.behindCount} times`);
for (const fault of report.faults) console.log(`fault: ${fault}`);
const title = `${values.minutes} minutes of mixed work at ${Number(values.load) * 100} % of the capacity: ${requestCount} requests, ${availableParallelism()} cores, seed ${values.seed}`;
writeFileSync(join(values.to, 'soak.svg'), plotSoak(report.samples, title));
writeFileSync(join(values.to, 'soak.json'), `${JSON.stringify({ ...report, trends }, null, 1)}\n`);
const isFlat = trends.every((trend) => trend.isFlat);
process.exitCode = isFlat && report.faults.length === 0 ? 0 : 1;
