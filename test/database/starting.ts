// A starting database whose segment files are read when the test releases them.

import { DEFAULT_LIMITS, type Limits } from '../../src/common/limits.js';
import { silentLogger } from '../../src/common/logger.js';
import { Database } from '../../src/database/database.js';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { createInlinePool } from '../../src/platform/pool.js';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../src/storage/memory-store.js';
import type { Store } from '../../src/storage/store.js';
import { type PromiseWithResolvers, withResolvers } from '../support/waiting.js';
import { batchOf, createTestClock, openDatabase, overrideStore } from './harness.js';

export const SHAPE = {
  vectors: { '': { kind: 'dense', dimension: 1, metric: 'dot' } },
  description: null,
  labels: {},
} as const;

/** Rows of dimension 1 whose ids sort by their number. */
export function rowsOf(count: number) {
  return Array.from({ length: count }, (_, i) => ({ id: `v${i}`, values: [i], metadata: '{}' }));
}

/** Collections of these ids, each with a file of 64 rows, and 6 rows in the log. */
export async function createStateOf(ids: readonly string[]): Promise<MemoryState> {
  const state = createMemoryState();
  const database = await openDatabase({ state });
  for (const id of ids) {
    await database.createCollection({ id, ...SHAPE });
    await database.collection(id).write(batchOf(rowsOf(70)), { mode: 'upsert' });
  }
  await turns();
  await database.close();
  return state;
}

/** Lets everything run that does not wait for the test. */
export async function turns(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
}

export interface StartingDatabase {
  readonly database: Database;
  /** The ids of the collections whose files were requested, in order. */
  readonly begun: readonly string[];
  /** Releases the files of a collection, including those requested later. */
  release(...ids: string[]): void;
}

/** Every existing file waits for `release`. */
export async function startDatabase(
  state: MemoryState,
  options: { readonly limits?: Partial<Limits>; readonly methods?: Partial<Store> } = {},
): Promise<StartingDatabase> {
  const store = createMemoryStore({ state });
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const begun: string[] = [];
  const gateOf = (id: string) => {
    const gate = gates.get(id) ?? withResolvers();
    gates.set(id, gate);
    return gate;
  };
  const ids = new Map(
    Database.collectionsIn(store).map(({ id, incarnation }) => [incarnation, id]),
  );
  const database = await openOver(
    overrideStore(store, {
      async readBlob(name) {
        const id = ids.get(name.slice(0, name.indexOf('/')));
        if (id !== undefined) {
          begun.push(id);
          await gateOf(id).promise;
        }
        return store.readBlob(name);
      },
      ...options.methods,
    }),
    options.limits,
  );
  return {
    database,
    begun,
    release(...released) {
      for (const id of released) gateOf(id).resolve();
    },
  };
}

/** Opens a database on the calling thread, while its collections are still being loaded. */
export function openOver(store: Store, limits: Partial<Limits> = {}): Promise<Database> {
  const pool = createInlinePool();
  return Database.open({
    store,
    engine: createReferenceEngine({ pool }),
    engineReason: 'test',
    pool,
    limits: { ...DEFAULT_LIMITS, segmentRowsMax: 64, ...limits },
    clock: createTestClock(),
    logger: silentLogger,
  });
}
