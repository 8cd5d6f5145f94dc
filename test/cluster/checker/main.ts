// node dist/test/cluster/checker/main.js [--minutes 5] [--clients 24] [--seed N] [--faults kill,stop]
// [--retention 20000]
//
// The checker of histories (test/hostile/checker) against a cluster of three nodes on three NATS servers.

import { parseArgs } from 'node:util';
import { runChecker } from '../../hostile/checker/checker.js';
import type { FaultName } from '../../hostile/checker/service.js';
import { NatsServers, natsMissing } from '../nats-servers.js';
import { ClusterService } from './cluster-service.js';

const FAULTS: readonly FaultName[] = ['kill', 'stop'];

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    clients: { type: 'string', default: '24' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    faults: { type: 'string', default: FAULTS.join() },
    retention: { type: 'string', default: '20000' },
  },
});
const missing = natsMissing();
if (missing !== undefined) throw new Error(missing);
const names = values.faults.split(',').filter((name) => name !== '');
const unknown = names.find((name) => !FAULTS.some((known) => known === name));
if (unknown !== undefined) throw new Error(`--faults has ${unknown}; expected any of ${FAULTS}`);
console.log(`seed ${values.seed}, ${values.clients} clients, faults: ${names.join(', ')}`);
const servers = await NatsServers.start();
try {
  const report = await runChecker({
    clientCount: Number(values.clients),
    durationMs: Number(values.minutes) * 60_000,
    seed: Number(values.seed),
    faults: new Set(names as FaultName[]),
    retentionMs: Number(values.retention),
    createService: (options) => new ClusterService(servers, options),
    log: (line) => console.log(line),
  });
  console.table({ ...report.counters, ...report.marks, rounds: report.rounds });
  process.exitCode = report.faults.length > 0 ? 1 : 0;
} finally {
  await servers.stop();
}
