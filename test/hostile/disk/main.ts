// node dist/test/hostile/disk/main.js [--phases store,work,start,backup,restore] [--calls pwrite,fsync]
//   [--faults eio,enospc,torn] [--every 1] [--times 1] [--restart 10] [--seed N] [--random 0] [--share 0.01]
// Each n-th call of a phase has each fault, one at a time; with `--every 7`, one of seven, chosen by the seed.
// Afterwards `--random` rounds in which a share of the writes is short. The phase `store` is the store alone.
// Needs a C compiler.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRandom } from '../../database/harness.js';
import { namesOf, readOptions, roundsOf, summarize } from '../harness/program.js';
import { type Case, type CaseReport, FaultyServer, PHASES, planCases } from './disk.js';
import { CALLS, compileFaults, FAULTS, type Fault, STORE_FAULTS } from './faults.js';
import { runStorePlan } from './store-process.js';

const ALL_PHASES = ['store', ...PHASES] as const;
const ALL_FAULTS = Object.keys(FAULTS) as Fault[];

const { seed, durationMs, values } = readOptions(Infinity, {
  phases: ALL_PHASES.join(),
  calls: CALLS.join(),
  faults: ALL_FAULTS.join(),
  every: 1,
  times: 1,
  restart: 10,
  random: 0,
  share: 0.01,
});
const folder = mkdtempSync(join(tmpdir(), 'sagitta-faults-library-'));
const compiled = compileFaults(folder);
if ('reason' in compiled) throw new Error(compiled.reason);
const phases = namesOf('phases', values.phases, ALL_PHASES);
const calls = namesOf('calls', values.calls, CALLS);
const faults = namesOf('faults', values.faults, ALL_FAULTS);
const found: string[] = [];

/** Results of one call and fault. */
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
  found.push(...report.violations.map((violation) => `${what}: ${violation}`));
}

function nameOf({ phase, calls, fault }: Case): string {
  return `${phase} ${calls.join()} ${fault}`;
}

async function runStore(library: string): Promise<void> {
  const { rows, violations } = await runStorePlan(library, {
    calls,
    faults: faults.filter((fault) => STORE_FAULTS.includes(fault)),
    every: values.every,
    seed,
    randomRounds: values.random,
  });
  console.table(rows);
  found.push(...violations);
}

async function runServer(library: string): Promise<void> {
  const server = await FaultyServer.start(library);
  try {
    const cases = await planCases(server, {
      phases: PHASES.filter((phase) => phases.includes(phase)),
      calls,
      faults,
      every: values.every,
      times: values.times,
      random: createRandom(seed),
    });
    console.log(`${cases.length} cases`);
    for (const i of roundsOf({ count: cases.length, durationMs })) {
      const fault = cases[i]!;
      const name = nameOf(fault);
      note(name, `${i + 1} of ${cases.length}: ${name} at ${fault.nth}`, await server.run(fault));
      if (i % values.restart === 0) await server.restart();
    }
    for (let i = 0; i < values.random; i++) {
      const report = await server.runRandom({ share: values.share, seed: seed + i });
      note('random short writes', `random round with seed ${seed + i}`, report);
    }
    await server.restart();
    const last = [...server.model.takeViolations(), ...(await server.checkLastBackup())];
    found.push(...last.map((violation) => `at the end: ${violation}`));
  } finally {
    console.table(rows);
    await server.close();
  }
}

try {
  if (phases.includes('store')) await runStore(compiled.library);
  if (phases.some((phase) => phase !== 'store')) await runServer(compiled.library);
} finally {
  summarize(found);
  rmSync(folder, { recursive: true, force: true });
}
