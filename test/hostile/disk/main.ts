// node dist/test/hostile/disk/main.js [--phases store,work,start,backup,restore] [--calls pwrite,fsync]
//   [--faults eio,enospc,torn] [--every 1] [--times 1] [--restart 10] [--seed N] [--random 0] [--share 0.01]
// Each n-th call of a phase has each fault, one at a time; with `--every 7`, one of seven, chosen by the seed.
// Afterwards `--random` rounds in which a share of the writes is short. The phase `store` is the store alone.
// Needs a C compiler.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createRandom } from '../../database/harness.js';
import { type Case, type CaseReport, FaultyServer, PHASES, planCases } from './disk.js';
import { CALLS, type Call, compileFaults, FAULTS, type Fault, STORE_FAULTS } from './faults.js';
import { runStorePlan } from './store-process.js';

const { values } = parseArgs({
  options: {
    phases: { type: 'string', default: ['store', ...PHASES].join() },
    calls: { type: 'string', default: CALLS.join() },
    faults: { type: 'string', default: Object.keys(FAULTS).join() },
    every: { type: 'string', default: '1' },
    times: { type: 'string', default: '1' },
    restart: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    random: { type: 'string', default: '0' },
    share: { type: 'string', default: '0.01' },
  },
});
const seed = Number(values.seed);
console.log(`seed ${seed}`);
const folder = mkdtempSync(join(tmpdir(), 'sagitta-faults-library-'));
const compiled = compileFaults(folder);
if ('reason' in compiled) throw new Error(compiled.reason);
const phases = values.phases.split(',');
const calls = values.calls.split(',') as Call[];
const faults = values.faults.split(',') as Fault[];

/** Of one call and fault. */
interface Row {
  cases: number;
  fired: number;
  ended: number;
  refused: number;
  violations: number;
}
const rows: Record<string, Row> = {};

function note(name: string, what: string, report: CaseReport): void {
  rows[name] ??= { cases: 0, fired: 0, ended: 0, refused: 0, violations: 0 };
  const row = rows[name];
  row.cases++;
  if (report.firedCount > 0) row.fired++;
  if (report.end !== null) row.ended++;
  if (report.outcome.refused.size > 0) row.refused++;
  row.violations += report.violations.length;
  console.log(`${what}: ${report.end ?? 'went on'}`, [...report.outcome.refused]);
  for (const violation of report.violations) console.log(`  fault: ${violation}`);
}

function nameOf({ phase, calls, fault }: Case): string {
  return `${phase} ${calls.join()} ${fault}`;
}

async function runStore(library: string): Promise<void> {
  const { rows, violations } = await runStorePlan(library, {
    calls,
    faults: faults.filter((fault) => STORE_FAULTS.includes(fault)),
    every: Number(values.every),
    seed,
    randomRounds: Number(values.random),
  });
  console.table(rows);
  for (const violation of violations) console.log(`fault: ${violation}`);
  if (violations.length > 0) process.exitCode = 1;
}

async function runServer(library: string): Promise<void> {
  const server = await FaultyServer.start(library);
  try {
    const cases = await planCases(server, {
      phases: PHASES.filter((phase) => phases.includes(phase)),
      calls,
      faults,
      every: Number(values.every),
      times: Number(values.times),
      random: createRandom(seed),
    });
    console.log(`${cases.length} cases`);
    for (const [i, fault] of cases.entries()) {
      const name = nameOf(fault);
      note(name, `${i + 1} of ${cases.length}: ${name} at ${fault.nth}`, await server.run(fault));
      if (i % Number(values.restart) === 0) await server.restart();
    }
    for (let i = 0; i < Number(values.random); i++) {
      const report = await server.runRandom({ share: Number(values.share), seed: seed + i });
      note('random short writes', `random round with seed ${seed + i}`, report);
    }
    await server.restart();
    for (const violation of [
      ...server.model.takeViolations(),
      ...(await server.checkLastBackup()),
    ]) {
      console.log(`at the end: ${violation}`);
      process.exitCode = 1;
    }
  } finally {
    console.table(rows);
    if (Object.values(rows).some(({ violations }) => violations > 0)) process.exitCode = 1;
    await server.close();
  }
}

try {
  if (phases.includes('store')) await runStore(compiled.library);
  if (phases.some((phase) => phase !== 'store')) await runServer(compiled.library);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
