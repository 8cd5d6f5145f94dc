// node dist/test/hostile/soak/main.js [--minutes 60] [--load 0.7] [--restart-minutes 5] [--seed N] [--to DIRECTORY]
// Writes soak.json and soak.svg into the directory, and ends with 1 when something grew or a reply was wrong.

import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { readOptions, summarize } from '../harness/program.js';
import { plotSoak } from './plot.js';
import { runSoak } from './soak.js';
import { trendsOf } from './trend.js';

const { seed, durationMs, values } = readOptions(60, { load: 0.7, 'restart-minutes': 5, to: '.' });
/** After a start, caches fill and the heap grows to its size. */
const SETTLE_SECONDS = 90;
const MINUTE_MS = 60_000;

const report = await runSoak({
  durationMs,
  restartMs: values['restart-minutes'] * MINUTE_MS,
  sampleMs: 5_000,
  calibrationMs: 20_000,
  load: values.load,
  rowCount: 20_000,
  seed,
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
const title = `${durationMs / MINUTE_MS} minutes of mixed work at ${values.load * 100} % of the capacity: ${requestCount} requests, ${availableParallelism()} cores, seed ${seed}`;
writeFileSync(join(values.to, 'soak.svg'), plotSoak(report.samples, title));
writeFileSync(join(values.to, 'soak.json'), `${JSON.stringify({ ...report, trends }, null, 1)}\n`);
const growing = trends.filter(({ isFlat }) => !isFlat);
summarize([...report.faults, ...growing.map(({ quantity }) => `${quantity} grows`)]);
