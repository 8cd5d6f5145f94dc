// Short runs on a faulty disk: the store alone with a sample of all faults, and a server with some of them.
// `disk/main.ts` tries each fault at each call.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createRandom, testSeed } from '../database/harness.js';
import { type Case, FaultyServer } from './disk/disk.js';
import { CALLS, compileFaults, STORE_FAULTS } from './disk/faults.js';
import { runStorePlan } from './disk/store-process.js';

/** One of this many calls of the store has each fault. */
const EVERY = 25;
const RANDOM_ROUNDS = 5;
/** Fewer than the number of calls of each kind below in any round. */
const NTH_MAX = 12;

const folder = mkdtempSync(join(tmpdir(), 'sagitta-faults-library-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const compiled = compileFaults(folder);
const skip = 'reason' in compiled && compiled.reason;
const library = 'library' in compiled ? compiled.library : '';

describe('a faulty disk', { skip }, () => {
  it('loses no acknowledged commit of the store, whichever call fails', async (t) => {
    const seed = testSeed();
    t.diagnostic(`seed ${seed}`);
    const { rows, violations } = await runStorePlan(library, {
      calls: CALLS,
      faults: STORE_FAULTS,
      every: EVERY,
      seed,
      randomRounds: RANDOM_ROUNDS,
    });
    assert.deepEqual(violations, [], `seed ${seed}`);
    assert.ok(rows['dsync torn']!.failed > 0, 'a write that failed ends the store');
    assert.equal(rows['pwrite short']!.failed, 0, 'a short write is continued');
    assert.equal(rows['random short writes']!.fired, RANDOM_ROUNDS);
  });

  it('is distinguished from a lost commit', async () => {
    const { violations } = await runStorePlan(library, {
      calls: [],
      faults: [],
      every: 1,
      seed: 1,
      randomRounds: 0,
      isLossPlanted: true,
    });
    assert.equal(violations.length, 1);
    assert.match(violations[0]!, /planted: \d+ entries, expected \d+/);
  });

  it('does no harm to a server: it continues, or exits with a message', async (t) => {
    const seed = testSeed();
    t.diagnostic(`seed ${seed}`);
    const random = createRandom(seed);
    const nth = () => 1 + Math.floor(random() * NTH_MAX);
    const cases: readonly Case[] = [
      { phase: 'work', calls: ['dsync'], fault: 'tornfull', nth: nth() },
      { phase: 'work', calls: ['fsync', 'rename'], fault: 'eio', nth: nth() },
      { phase: 'work', calls: ['dsync'], fault: 'lost', nth: nth() },
      { phase: 'start', calls: ['read'], fault: 'eio', nth: 1 },
      { phase: 'restore', calls: ['fsync'], fault: 'enospc', nth: 1 },
    ];
    const server = await FaultyServer.start(library);
    try {
      await server.count('work');
      for (const fault of cases) {
        const what = `seed ${seed}: ${JSON.stringify(fault)}`;
        const { violations, firedCount } = await server.run(fault);
        assert.deepEqual(violations, [], what);
        assert.ok(firedCount > 0, what);
      }
      const { violations } = await server.runRandom({ share: 0.05, seed });
      assert.deepEqual(violations, [], `random short writes, seed ${seed}`);
      assert.deepEqual(await server.checkLastBackup(), [], `seed ${seed}`);
      const found = await server.plantLoss();
      assert.ok(found.length > 0, 'a planted loss is found');
    } finally {
      await server.close();
    }
  });
});
