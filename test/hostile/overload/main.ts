// node dist/test/hostile/overload/main.js [--minutes 1] [--clients 512] [--memory 1000000000] [--seed N]
// Needs the permission to create a cgroup.

import { quantile, readOptions, summarize } from '../harness/program.js';
import { MemoryCgroup } from './memory-cgroup.js';
import { findFaults, runOverload } from './overload.js';

const { seed, durationMs, values } = readOptions(1, { clients: 512, memory: 1_000_000_000 });
const cgroup = MemoryCgroup.create(`sagitta-overload-${process.pid}`, values.memory);
if (cgroup === null) throw new Error('this process may not create a cgroup with a limit of memory');
console.log(`${values.clients} clients, ${values.memory} bytes of memory`);
try {
  const report = await runOverload({
    cgroup,
    clientCount: values.clients,
    durationMs,
    seed,
  });
  console.table(report.heavy);
  console.table(report.small);
  const shown = (share: number) => `${quantile(report.smallMs, share).toFixed(0)} ms`;
  console.log(`small requests: p50 ${shown(0.5)}, p99 ${shown(0.99)}, worst ${shown(1)}`);
  console.log(`anonymous memory: at most ${(report.bytesMax / 1e6).toFixed(0)} MB`);
  summarize(findFaults(report));
} finally {
  cgroup.remove();
}
