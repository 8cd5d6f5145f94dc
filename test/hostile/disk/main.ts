// node dist/test/hostile/disk/main.js [--calls pwrite,fsync] [--faults eio,enospc,torn] [--every 1] [--times 1]
//   [--seed N] [--random ROUNDS]
// Every n-th call of a round has each of the faults, one at a time. `--random` runs rounds with short writes.

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createRandom } from '../../database/harness.js';
import { FaultyServer } from './disk.js';
import type { Call, Fault } from './faults.js';

const { values } = parseArgs({
  options: {
    library: { type: 'string', default: '/tmp/faults-b.so' },
    random: { type: 'string', default: '0' },
    share: { type: 'string', default: '0.05' },
    calls: { type: 'string' },
    faults: { type: 'string', default: 'eio' },
    every: { type: 'string', default: '1' },
    times: { type: 'string', default: '1' },
    log: { type: 'string', default: '/tmp/b-log' },
    seed: { type: 'string', default: '1' },
  },
});
void createRandom;
const server = await FaultyServer.start(values.library);
try {
  const counts = await server.count();
  console.log(counts);
  for (let i = 0; i < Number(values.random); i++) {
    const t = Date.now();
    const report = await server.runRandom({ share: Number(values.share), seed: i + Number(values.seed) });
    if (report.end !== null || report.violations.length > 0) console.log(i, report, Date.now() - t);
  }
  for (const call of (values.calls ?? '').split(',').filter((c) => c) as Call[]) {
    const total = counts[call];
    for (const fault of values.faults.split(',') as Fault[]) {
      let fired = 0;
      for (let nth = 1; nth <= total; nth += Number(values.every)) {
        const report = await server.run({ calls: [call], fault, nth, times: Number(values.times) });
        if (report.firedCount > 0) fired++;
        if (report.end !== null || report.violations.length > 0) console.log(call, fault, nth, report);
        if (nth % 10 === 0) await server.restart();
      }
      console.log(call, fault, total, fired);
    }
  }
} finally {
  writeFileSync(values.log, server.log);
  await server.close();
}
