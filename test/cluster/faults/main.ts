// node dist/test/cluster/faults/main.js [--of nodes] [--faults 100] [--seed N] [--kinds kill-node,halt-nats]
//   [--writers 12] [--acknowledged 200] [--replicas 2] [--log FILE]
// node dist/test/cluster/faults/main.js --sum FILE
//
// Faults of the servers of a log, or with `--of nodes` those of whole clusters. README.md describes the options.

import { parseArgs } from 'node:util';
import { findFaketime } from '../../hostile/checker/service.js';
import { quantile } from '../../hostile/overload/overload.js';
import { natsMissing } from '../nats-servers.js';
import { FAULT_KINDS, FAULT_NAMES, type FaultKind, type FaultName } from './fault-kinds.js';
import { runLogFaults } from './log-faults.js';
import { enterNamespaces, hasNamespaces, machinesMissing } from './machines.js';
import { runNodeFaults } from './node-faults.js';
import { appendTotals, sumOf, totalsOf } from './totals.js';

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '100' },
    of: { type: 'string', default: 'log' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    kinds: { type: 'string', default: FAULT_NAMES.join() },
    writers: { type: 'string', default: '12' },
    acknowledged: { type: 'string', default: '200' },
    replicas: { type: 'string' },
    log: { type: 'string' },
    sum: { type: 'string' },
  },
});
const faultCount = Number(values.faults);
const seed = Number(values.seed);

if (values.sum !== undefined) {
  console.log(JSON.stringify(sumOf(values.sum), null, 2));
} else {
  const missing = natsMissing();
  if (missing !== undefined) throw new Error(missing);
  if (values.of === 'nodes') await disturbNodes();
  else await disturbLog();
}

async function disturbLog(): Promise<void> {
  console.log(`seed ${seed}`);
  const { resumedMs, ...counts } = await runLogFaults({ faultCount, seed, onFault: console.log });
  console.log(counts);
  const ascending = [...resumedMs].sort((a, b) => a - b);
  const [p50, p99] = [0.5, 0.99].map((share) => quantile(ascending, share).toFixed(0));
  console.log(`writes resumed ${p50} ms after a fault (p50), ${p99} ms (p99)`);
}

async function disturbNodes(): Promise<void> {
  const noMachines = hasNamespaces ? undefined : machinesMissing();
  if (!hasNamespaces && noMachines === undefined) await enterNamespaces();
  const kinds = chosenKinds({ machines: noMachines, faketime: faketimeMissing() });
  console.log(`seed ${seed}, kinds ${kinds.join()}`);
  const report = await runNodeFaults({
    faultCount,
    seed,
    kinds,
    writersPerNode: Number(values.writers),
    acknowledgedMin: Number(values.acknowledged),
    replicationFactor: values.replicas === undefined ? null : Number(values.replicas),
    log: console.log,
  });
  const { faults, details, ...counts } = report;
  console.log(counts);
  const totals = totalsOf(report, seed);
  if (values.log !== undefined) appendTotals(values.log, totals);
  console.log(JSON.stringify(totals));
  process.exitCode = details.length > 0 ? 1 : 0;
}

function faketimeMissing(): string | undefined {
  return findFaketime() === undefined ? 'libfaketime is not installed' : undefined;
}

/** Those that were asked for and can happen here. */
function chosenKinds(
  missing: Readonly<Record<'machines' | 'faketime', string | undefined>>,
): FaultName[] {
  return values.kinds.split(',').filter((name): name is FaultName => {
    if (!(name in FAULT_KINDS)) {
      throw new Error(`--kinds has ${name}; expected any of ${FAULT_NAMES.join()}`);
    }
    const { needs }: FaultKind = FAULT_KINDS[name as FaultName];
    const reason = needs === undefined ? undefined : missing[needs];
    if (reason !== undefined) console.log(`${name} is left out: ${reason}`);
    return reason === undefined;
  });
}
