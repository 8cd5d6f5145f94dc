// node dist/test/cluster/faults/main.js [--of nodes] [--faults 100] [--minutes N] [--seed N] [--kinds kill-node,halt-nats]
//   [--pairs 0.25] [--writers 12] [--acknowledged 200] [--replicas 2] [--log FILE]
// node dist/test/cluster/faults/main.js --sum FILE
//
// Faults of the servers of a log, or with `--of nodes`, of whole clusters. README.md describes the options.

import { findFaketime } from '../../hostile/checker/service.js';
import { namesOf, quantile, readOptions, summarize } from '../../hostile/harness/program.js';
import { natsMissing } from '../nats-servers.js';
import { FAULT_KINDS, FAULT_NAMES, type FaultKind, type FaultName } from './fault-kinds.js';
import { runLogFaults } from './log-faults.js';
import { enterNamespaces, hasNamespaces, machinesMissing } from './machines.js';
import { runNodeFaults } from './node-faults.js';
import { appendTotals, sumOf, totalsOf } from './totals.js';

const { seed, durationMs, values } = readOptions(Infinity, {
  faults: 100,
  of: 'log',
  kinds: FAULT_NAMES.join(),
  writers: 12,
  acknowledged: 200,
  replicas: undefined,
  pairs: 0.25,
  log: undefined,
  sum: undefined,
});
const faultCount = values.faults;

if (values.sum !== undefined) {
  console.log(JSON.stringify(sumOf(values.sum), null, 2));
} else {
  const missing = natsMissing();
  if (missing !== undefined) throw new Error(missing);
  if (values.of === 'nodes') await disturbNodes();
  else await disturbLog();
}

async function disturbLog(): Promise<void> {
  const { resumedMs, ...counts } = await runLogFaults({
    faultCount,
    durationMs,
    seed,
    onFault: console.log,
  });
  console.log(counts);
  const ascending = [...resumedMs].sort((a, b) => a - b);
  const [p50, p99] = [0.5, 0.99].map((share) => quantile(ascending, share).toFixed(0));
  console.log(`writes resumed ${p50} ms after a fault (p50), ${p99} ms (p99)`);
}

async function disturbNodes(): Promise<void> {
  const noMachines = hasNamespaces ? undefined : machinesMissing();
  if (!hasNamespaces && noMachines === undefined) await enterNamespaces();
  const kinds = chosenKinds({ machines: noMachines, faketime: faketimeMissing() });
  console.log(`kinds ${kinds.join()}`);
  const report = await runNodeFaults({
    faultCount,
    durationMs,
    seed,
    kinds,
    pairShare: values.pairs,
    writersPerNode: values.writers,
    acknowledgedMin: values.acknowledged,
    replicationFactor: values.replicas === undefined ? null : Number(values.replicas),
    log: console.log,
  });
  const { faults, details, ...counts } = report;
  console.log(counts);
  const totals = totalsOf(report, seed);
  if (values.log !== undefined) appendTotals(values.log, totals);
  summarize(details);
  console.log(JSON.stringify(totals));
}

function faketimeMissing(): string | undefined {
  return findFaketime() === undefined ? 'libfaketime is not installed' : undefined;
}

/** The requested kinds that can happen on this machine. */
function chosenKinds(
  missing: Readonly<Record<'machines' | 'faketime', string | undefined>>,
): FaultName[] {
  return namesOf('kinds', values.kinds, FAULT_NAMES).filter((name) => {
    const { needs }: FaultKind = FAULT_KINDS[name];
    const reason = needs === undefined ? undefined : missing[needs];
    if (reason !== undefined) console.log(`${name} is left out: ${reason}`);
    return reason === undefined;
  });
}
