// node dist/test/hostile/checker/main.js [--minutes 5] [--clients 32] [--seed N] [--faults kill,stop,clock]
// [--retention 10000]

import { namesOf, readOptions, summarize } from '../harness/program.js';
import { runChecker } from './checker.js';
import { type FaultName, findFaketime } from './service.js';

const FAULTS: readonly FaultName[] = ['kill', 'stop', 'clock'];

const { seed, durationMs, values } = readOptions(5, {
  clients: 32,
  faults: FAULTS.join(),
  retention: 10_000,
});
const faults = new Set(namesOf('faults', values.faults, FAULTS));
if (faults.has('clock') && findFaketime() === undefined) {
  console.log('clock jumps are left out: libfaketime is not installed');
  faults.delete('clock');
}
console.log(`${values.clients} clients, faults: ${[...faults].join(', ')}`);
const report = await runChecker({
  clientCount: values.clients,
  durationMs,
  seed,
  faults,
  retentionMs: values.retention,
  log: (line) => console.log(line),
});
console.table({ ...report.counters, ...report.marks, rounds: report.rounds });
summarize(report.faults.map(({ round, kind, detail }) => `round ${round}: ${kind}: ${detail}`));
