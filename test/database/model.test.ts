// The database against a model.

import { describe, it } from 'node:test';
import { createMemoryState } from '../../src/storage/memory-store.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { createCrashingStore, createTestClock, openDatabase, testSeed } from './harness.js';
import { type ModelledSystem, runAgainstModel } from './model.js';

const STEPS = 400;
const ROUNDS = IS_NIGHTLY ? 6 : 2;

describe('database against a model', () => {
  for (let round = 0; round < ROUNDS; round++) {
    const seed = testSeed() + round;
    it(`agrees after ${STEPS} random operations (seed ${seed})`, async () => {
      await runAgainstModel(await openSystem(), { seed, stepCount: STEPS });
    });
  }
});

async function openSystem(): Promise<ModelledSystem> {
  const clock = createTestClock();
  const state = createMemoryState();
  let die: () => void;
  const open = () => {
    const mortal = createCrashingStore(state);
    die = mortal.die;
    return openDatabase({ store: mortal.store, clock, limits: { retentionMs: 60_000 } });
  };
  let database = await open();
  return {
    clock,
    now: () => clock.now(),
    get database() {
      return database;
    },
    reader: async () => database,
    async restart() {
      await database.close();
      database = await open();
    },
    async crash() {
      die();
      database = await open();
    },
    close: () => database.close(),
  };
}
