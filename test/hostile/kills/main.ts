// node dist/test/hostile/kills/main.js [--store 400] [--server 100] [--minutes N] [--seed N]
// Kills so many processes with a store, and so many servers, and compares what is there afterwards with what was
// acknowledged. Needs a C compiler.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRandom } from '../../database/harness.js';
import { FaultyServer, type Phase } from '../disk/disk.js';
import { type Call, compileFaults } from '../disk/faults.js';
import { readOptions, roundsOf, summarize } from '../harness/program.js';
import { type KillRow, StoreKills } from './store-kills.js';

/** Share of processes that are killed while they start. */
const STARTS_SHARE = 0.2;
const CALLS: readonly Call[] = [
  'dsync',
  'pwrite',
  'pwritev',
  'fsync',
  'rename',
  'create',
  'unlink',
];

const { seed, durationMs, values } = readOptions(Infinity, { store: 400, server: 100 });
/** Time for each of the two parts. */
const partMs = durationMs / 2;
const random = createRandom(seed);
const folder = mkdtempSync(join(tmpdir(), 'sagitta-faults-library-'));
const compiled = compileFaults(folder);
if ('reason' in compiled) throw new Error(compiled.reason);
const found: string[] = [];

async function killStores(library: string): Promise<void> {
  const kills = new StoreKills(library, random);
  try {
    for (const round of roundsOf({ count: values.store, durationMs: partMs }))
      await kills.round(round);
  } finally {
    console.table(kills.rows);
    console.log(`${kills.acknowledgedCount} commits`);
    found.push(...kills.violations);
    kills.close();
  }
}

async function killServers(library: string): Promise<void> {
  const rows: Record<string, KillRow> = {};
  const server = await FaultyServer.start(library);
  try {
    const counts = { work: await server.count('work'), start: await server.count('start') };
    for (const round of roundsOf({ count: values.server, durationMs: partMs })) {
      const phase: Phase = random() < STARTS_SHARE ? 'start' : 'work';
      const possible = CALLS.filter((call) => counts[phase][call] > 0);
      const call = possible[Math.floor(random() * possible.length)]!;
      const nth = 1 + Math.floor(random() * counts[phase][call]);
      const { firedCount, violations } = await server.run({
        phase,
        calls: [call],
        fault: 'kill',
        nth,
      });
      const name = `${phase} ${call}`;
      rows[name] ??= { kills: 0, met: 0, violations: 0 };
      rows[name].kills++;
      rows[name].met += firedCount;
      rows[name].violations += violations.length;
      found.push(...violations.map((what) => `round ${round}, ${name} at ${nth}: ${what}`));
    }
    await server.restart();
    found.push(...server.model.takeViolations());
  } finally {
    console.table(rows);
    await server.close();
  }
}

try {
  if (values.store > 0) await killStores(compiled.library);
  if (values.server > 0) await killServers(compiled.library);
} finally {
  summarize(found);
  rmSync(folder, { recursive: true, force: true });
}
