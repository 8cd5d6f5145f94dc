// node dist/test/cluster/checker/main.js [--minutes 5] [--clients 24] [--seed N] [--faults kill,stop]
// [--retention 20000]
//
// The checker of histories (test/hostile/checker) against a cluster of three nodes on three NATS servers.

import { runChecker } from '../../hostile/checker/checker.js';
import type { FaultName } from '../../hostile/checker/service.js';
import { namesOf, readOptions, summarize } from '../../hostile/harness/program.js';
import { NatsServers, natsMissing } from '../nats-servers.js';
import { ClusterService } from './cluster-service.js';

const FAULTS: readonly FaultName[] = ['kill', 'stop'];

const { seed, durationMs, values } = readOptions(5, {
  clients: 24,
  faults: FAULTS.join(),
  retention: 20_000,
});
const missing = natsMissing();
if (missing !== undefined) throw new Error(missing);
const faults = new Set(namesOf('faults', values.faults, FAULTS));
console.log(`${values.clients} clients, faults: ${[...faults].join(', ')}`);
const servers = await NatsServers.start();
try {
  const report = await runChecker({
    clientCount: values.clients,
    durationMs,
    seed,
    faults,
    retentionMs: values.retention,
    createService: (options) => new ClusterService(servers, options),
    log: (line) => console.log(line),
  });
  console.table({ ...report.counters, ...report.marks, rounds: report.rounds });
  summarize(report.faults.map(({ round, kind, detail }) => `round ${round}: ${kind}: ${detail}`));
} finally {
  await servers.stop();
}
