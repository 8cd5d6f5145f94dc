// node dist/test/hostile/fuzz/main.js [--minutes 1] [--warm-up 3] [--rounds 1] [--clients 4] [--seed N] [--probe-ms 60000]
// Fails on any fault, on an operation without success or refusal, on a wait of `/livez` beyond --probe-ms, and on
// memory that has grown by more than a tenth.

import { readOptions, summarize } from '../harness/program.js';
import { describeFault, findGaps, runFuzz, tableOf } from './fuzz.js';

const MEMORY_GROWTH_MAX = 1.1;
const MINUTE_MS = 60_000;

const { seed, durationMs, values } = readOptions(1, {
  // In minutes; compiled code and the buffers of threads grow that long.
  'warm-up': 3,
  // Several measurements distinguish growth that ends from growth that continues.
  rounds: 1,
  clients: 4,
  // Longer than any wait on a busy machine. On an idle machine, 200 finds requests that block others.
  'probe-ms': 60_000,
});
const report = await runFuzz({
  seed,
  durationMs,
  clientCount: values.clients,
  rounds: values.rounds,
  warmUpMs: values['warm-up'] * MINUTE_MS,
  probeMs: values['probe-ms'],
});
console.table(tableOf(report.coverage));
const faults = report.faults.map(describeFault);
faults.push(...findGaps(report.coverage));
const [before, after] = [report.memory[0], report.memory.at(-1)];
if (after !== undefined && after.anonymousBytes > before!.anonymousBytes * MEMORY_GROWTH_MAX)
  faults.push('the memory has grown by more than a tenth');
for (const line of report.slowProbes) faults.push(`/livez waited ${line}`);
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
const inMegabytes = (memory: object) =>
  Object.fromEntries(Object.entries(memory).map(([name, bytes]) => [name, megabytes(bytes)]));
const { count, longestMs } = report.probe;
console.log(`${report.requestCount} requests`);
console.log(`/livez: ${count} requests, the longest took ${longestMs.toFixed(0)} ms`);
console.log('memory without collections, after the warm-up and after each round:');
console.table(report.memory.map(inMegabytes));
summarize(faults);
