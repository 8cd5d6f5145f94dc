// node dist/test/hostile/fuzz/main.js [--minutes 1] [--warm-up 3] [--rounds 1] [--clients 4] [--seed N] [--probe-ms 200]
// Fails on any fault, on an operation without success or refusal, on a wait of `/livez` beyond --probe-ms, and on
// memory that has grown by more than a tenth.

import { parseArgs } from 'node:util';
import { describeFault, findGaps, runFuzz, tableOf } from './fuzz.js';

const MEMORY_GROWTH_MAX = 1.1;
const MINUTE_MS = 60_000;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    // In minutes; so long compiled code and the buffers of threads still grow.
    'warm-up': { type: 'string', default: '3' },
    // A curve of the memory tells growth that ends from growth that goes on.
    rounds: { type: 'string', default: '1' },
    clients: { type: 'string', default: '4' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    'probe-ms': { type: 'string', default: '200' },
  },
});
const probeMs = Number(values['probe-ms']);
console.log(`seed ${values.seed}, ${values.clients} clients`);
const report = await runFuzz({
  seed: Number(values.seed),
  clientCount: Number(values.clients),
  durationMs: Number(values.minutes) * MINUTE_MS,
  rounds: Number(values.rounds),
  warmUpMs: Number(values['warm-up']) * MINUTE_MS,
  probeMs,
});
console.table(tableOf(report.coverage));
const faults = report.faults.map(describeFault);
faults.push(...findGaps(report.coverage));
const [before, after] = [report.memory[0]!, report.memory.at(-1)!];
if (after.anonymousBytes > before.anonymousBytes * MEMORY_GROWTH_MAX)
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
for (const fault of faults) console.log(`fault: ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
