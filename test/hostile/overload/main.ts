// node dist/test/hostile/overload/main.js [--minutes 1] [--clients 512] [--memory 1000000000] [--seed N]
// Needs the permission to create a cgroup.

import { parseArgs } from 'node:util';
import { MemoryCgroup } from './memory-cgroup.js';
import { findFaults, quantile, runOverload } from './overload.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    clients: { type: 'string', default: '512' },
    memory: { type: 'string', default: '1000000000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const cgroup = MemoryCgroup.create(`sagitta-overload-${process.pid}`, Number(values.memory));
if (cgroup === null) throw new Error('this process may not create a cgroup with a limit of memory');
console.log(`seed ${values.seed}, ${values.clients} clients, ${values.memory} bytes of memory`);
try {
  const report = await runOverload({
    cgroup,
    clientCount: Number(values.clients),
    durationMs: Number(values.minutes) * 60_000,
    seed: Number(values.seed),
  });
  console.table(report.heavy);
  console.table(report.small);
  const shown = (share: number) => `${quantile(report.smallMs, share).toFixed(0)} ms`;
  console.log(`small requests: p50 ${shown(0.5)}, p99 ${shown(0.99)}, worst ${shown(1)}`);
  console.log(`anonymous memory: at most ${(report.bytesMax / 1e6).toFixed(0)} MB`);
  const faults = findFaults(report);
  for (const fault of faults) console.log(`fault: ${fault}`);
  process.exitCode = faults.length > 0 ? 1 : 0;
} finally {
  cgroup.remove();
}
