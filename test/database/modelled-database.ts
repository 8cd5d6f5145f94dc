// A database in memory that can be restarted and crashed, for runs against the model.

import { createMemoryState } from '../../src/storage/memory-store.js';
import { createCrashingStore, createTestClock, openDatabase } from './harness.js';
import type { ModelledSystem } from './model.js';

export async function openSystem(): Promise<ModelledSystem> {
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
