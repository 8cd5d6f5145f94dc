// node dist/test/hostile/checker/main.js [--minutes 5] [--clients 32] [--seed N] [--faults kill,stop,clock]
// [--retention 10000]

import { parseArgs } from 'node:util';
import { runChecker } from './checker.js';
import { type FaultName, findFaketime } from './service.js';

const FAULTS: readonly FaultName[] = ['kill', 'stop', 'clock'];

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    clients: { type: 'string', default: '32' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    faults: { type: 'string', default: FAULTS.join() },
    retention: { type: 'string', default: '10000' },
  },
});
const names = values.faults.split(',').filter((name) => name !== '');
const unknown = names.find((name) => !FAULTS.some((known) => known === name));
if (unknown !== undefined) throw new Error(`--faults has ${unknown}; expected any of ${FAULTS}`);
const faults = new Set(names as FaultName[]);
if (faults.has('clock') && findFaketime() === undefined) {
  console.log('clock jumps are left out: libfaketime is not installed');
  faults.delete('clock');
}
console.log(`seed ${values.seed}, ${values.clients} clients, faults: ${[...faults].join(', ')}`);
const report = await runChecker({
  clientCount: Number(values.clients),
  durationMs: Number(values.minutes) * 60_000,
  seed: Number(values.seed),
  faults,
  retentionMs: Number(values.retention),
  log: (line) => console.log(line),
});
console.table({ ...report.counters, ...report.marks, rounds: report.rounds });
process.exitCode = report.faults.length > 0 ? 1 : 0;
