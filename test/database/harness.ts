// A database over an in-memory store on the calling thread, for tests. It has small segments, so that
// sealing, checkpoints and compactions happen within a few rows, and a clock that tests advance.

import { DEFAULT_LIMITS, type Limits } from '../../src/common/limits.js';
import { silentLogger } from '../../src/common/logger.js';
import { BIT_METRICS, METRICS, type VectorBatch } from '../../src/common/types.js';
import { type Named, UNNAMED } from '../../src/common/vectors.js';
import type { DatabaseObserver } from '../../src/database/api/observer.js';
import { Database } from '../../src/database/database.js';
import type { Peers } from '../../src/database/search/peers.js';
import type { Engine } from '../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { createSimdEngine } from '../../src/engine/simd/simd-engine.js';
import { createInlinePool, type WorkerPool } from '../../src/platform/pool.js';
import type { CommitLogs } from '../../src/storage/commit-log.js';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../src/storage/memory-store.js';
import type { Store } from '../../src/storage/store.js';
import { dense, columnOf as vectorColumnOf } from '../vector-columns.js';

export { createRandom } from '../support/random.js';

/** The metrics of vectors with any elements. */
export const VALUE_METRICS = METRICS.filter((metric) => !BIT_METRICS.has(metric));

export interface TestClock {
  nowMs: number;
  now(): number;
}

export function createTestClock(): TestClock {
  return {
    nowMs: Date.UTC(2026, 0, 1),
    now() {
      return this.nowMs;
    },
  };
}

export async function openDatabase(options: {
  state?: MemoryState;
  store?: Store;
  logs?: CommitLogs;
  clock?: Pick<TestClock, 'now'>;
  limits?: Partial<Limits>;
  engine?: Engine;
  observer?: DatabaseObserver;
  peers?: Peers;
  cursorKey?: (stored: Uint8Array) => Uint8Array;
}): Promise<Database> {
  const pool = createInlinePool();
  const database = await Database.open({
    store: options.store ?? createMemoryStore({ state: options.state ?? createMemoryState() }),
    ...(options.logs === undefined ? {} : { logs: options.logs }),
    engine: options.engine ?? createTestEngine(pool),
    engineReason: 'test',
    pool,
    limits: { ...DEFAULT_LIMITS, segmentRowsMax: 64, ...options.limits },
    clock: options.clock ?? createTestClock(),
    logger: silentLogger,
    ...(options.observer === undefined ? {} : { observer: options.observer }),
    ...(options.peers === undefined ? {} : { peers: options.peers }),
    ...(options.cursorKey === undefined ? {} : { cursorKey: options.cursorKey }),
  });
  await database.loaded;
  return database;
}

/** The engine that encodes rows, if its kernels are built; otherwise the reference engine. */
function createTestEngine(pool: WorkerPool): Engine {
  try {
    return createSimdEngine({ pool });
  } catch {
    return createReferenceEngine({ pool });
  }
}

export interface TestVector {
  readonly id: string;
  readonly values: readonly number[];
  /** JSON text. */
  readonly metadata: string;
}

/** A batch with the named vectors of the rows, and with the unnamed vector unless rows have no values. */
export function batchOf(rows: readonly TestVector[], further: readonly Named[] = []): VectorBatch {
  const dimension = rows[0]?.values.length ?? 0;
  const values = rows.map((row) => row.values);
  const unnamed = dimension === 0 ? [] : [vectorColumnOf(UNNAMED, dense(dimension), values)];
  return {
    count: rows.length,
    ids: columnOf(rows.map(({ id }) => id)),
    vectors: [...unnamed, ...further],
    metadata: columnOf(rows.map(({ metadata }) => metadata)),
  };
}

export function columnOf(strings: readonly string[]): {
  offsets: Int32Array;
  bytes: Uint8Array;
} {
  const parts = strings.map((text) => Buffer.from(text));
  const offsets = new Int32Array(strings.length + 1);
  for (const [i, part] of parts.entries()) offsets[i + 1] = offsets[i]! + part.length;
  return { offsets, bytes: Buffer.concat(parts) };
}

export function testSeed(): number {
  return Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 1_000_000);
}

/** The store with some of its methods replaced. */
export function overrideStore(store: Store, methods: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name in methods) return Reflect.get(methods, name);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** A store whose process can die, after which nothing reaches the disk. */
export function createCrashingStore(state: MemoryState): { store: Store; die(): void } {
  let isDead = false;
  const alive = createMemoryStore({
    state,
    beforeCommit: async () => {
      // Waits for one turn of the event loop, so that the process can die between a write and its reply.
      await new Promise((resolve) => setImmediate(resolve));
      if (isDead) await new Promise(() => {});
    },
  });
  const store = overrideStore(alive, {
    async writeBlob(name, parts) {
      await new Promise((resolve) => setImmediate(resolve));
      if (isDead) await new Promise(() => {});
      await alive.writeBlob(name, parts);
    },
    async removeBlob(name) {
      if (isDead) await new Promise(() => {});
      await alive.removeBlob(name);
    },
  });
  return {
    store,
    die() {
      isDead = true;
    },
  };
}
