// Large writes are copied and encoded in other threads during their commit. Writers and readers run concurrently, and
// afterwards every answer is compared with brute force over the vectors of its sequence.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { silentLogger } from '../../src/common/logger.js';
import type { VectorBatch } from '../../src/common/types.js';
import { Database } from '../../src/database/database.js';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { createSimdEngine } from '../../src/engine/simd/simd-engine.js';
import { createThreadPool, type WorkerPool } from '../../src/platform/pool.js';
import { createMemoryState, createMemoryStore } from '../../src/storage/memory-store.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { dense } from '../vector-columns.js';
import { columnOf, createRandom, overrideStore, testSeed } from './harness.js';

const DIMENSION = 256;
/** 1 024 rows have the maximum number of values that a write may have without other threads. */
const LARGE_ROWS = 1_100;
const ID_COUNT = 4_000;
const K = 5;
const ROUNDS = IS_NIGHTLY ? 12 : 4;

/** A write of vectors of integers, so that every product is exact. */
type Effect =
  | { readonly kind: 'write'; readonly ids: readonly number[]; readonly values: Int8Array }
  | { readonly kind: 'delete'; readonly ids: readonly number[] };

interface Answer {
  readonly sequence: number;
  readonly query: Float32Array;
  readonly ids: readonly string[];
}

const idOf = (id: number) => `v${String(id).padStart(5, '0')}`;

describe('concurrent writes and queries', () => {
  it('agree with brute force, also after a restart and when segments are sealed', async () => {
    const seed = testSeed();
    console.log(`SAGITTA_TEST_SEED=${seed}`);
    const pool = createThreadPool({
      threadCount: 2,
    });
    try {
      await runWriters(createRandom(seed), pool);
    } finally {
      await pool.close();
    }
  });
});

async function runWriters(random: () => number, pool: WorkerPool): Promise<void> {
  const state = createMemoryState();
  const effects = new Map<number, Effect>();
  const answers: Answer[] = [];
  let failureCount = 0;
  const open = async () => {
    const memory = createMemoryStore({ state });
    let commitCount = 0;
    const store = overrideStore(memory, {
      async commit(operations) {
        const isWrite = operations.some(({ kind }) => kind === 'append');
        // The rows of a failed write are already staged, and other rows replace them.
        if (isWrite && ++commitCount % 4 === 0) {
          failureCount++;
          throw new Error('the disk refuses this commit');
        }
        await memory.commit(operations);
      },
    });
    const database = await Database.open({
      store,
      engine: createEngine(pool),
      engineReason: 'test',
      pool,
      limits: { ...DEFAULT_LIMITS, segmentRowsMax: 2_500 },
      clock: { now: () => Date.now() },
      logger: silentLogger,
    });
    await database.loaded;
    return database;
  };
  let database = await open();
  await database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
    description: null,
    labels: {},
  });
  let isWriting = true;
  const writers = [0, 1].map(() => write(database, random, effects));
  const readers = [0, 1].map(async () => {
    while (isWriting) {
      answers.push(await query(database, random));
      await nextTurn();
    }
  });
  const sealing = (async () => {
    for (let i = 0; isWriting; i++) {
      // A clone seals the active segment, possibly between the commit of a write and its application.
      await untilCommitted(() => database.collection('c').clone({ id: `copy${i}` }));
      await database.collection(`copy${i}`).drop();
      await nextTurn();
    }
  })();
  await Promise.all(writers);
  isWriting = false;
  await Promise.all([...readers, sealing]);
  assert.ok(failureCount > 0, 'some commits have failed');
  answers.push(await query(database, random));
  await database.close();
  database = await open();
  answers.push(await query(database, random));
  await database.close();
  checkAnswers(answers, effects);
}

/**
 * Yields to the event loop: the store in memory and small searches answer at once, which
 * would delay thread messages.
 */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** The engine that makes codes, if its kernels are built; otherwise the reference engine. */
function createEngine(pool: WorkerPool) {
  try {
    return createSimdEngine({ pool });
  } catch {
    return createReferenceEngine({ pool });
  }
}

async function write(
  database: Database,
  random: () => number,
  effects: Map<number, Effect>,
): Promise<void> {
  const below = (n: number) => Math.floor(random() * n);
  for (let round = 0; round < ROUNDS; round++) {
    for (const count of [LARGE_ROWS + below(2_000), 1 + below(20)]) {
      let effect!: Effect;
      const { sequence } = await untilCommitted(() => {
        // Each attempt has rows of its own, since the rows of a failed attempt must not be found.
        const first = below(ID_COUNT);
        const ids = Array.from({ length: count }, (_, i) => (first + i) % ID_COUNT);
        const values = Int8Array.from({ length: count * DIMENSION }, () => below(15) - 7);
        effect = { kind: 'write', ids, values };
        return database.collection('c').write(toBatch(ids, values), { mode: 'upsert' });
      });
      effects.set(sequence, effect);
    }
    const first = below(ID_COUNT);
    const ids = Array.from({ length: 50 }, (_, i) => (first + i) % ID_COUNT);
    const { sequence, deletedCount } = await untilCommitted(() =>
      database.collection('c').delete({ kind: 'ids', ids: ids.map(idOf) }, { dryRun: false }),
    );
    if (deletedCount > 0) effects.set(sequence, { kind: 'delete', ids });
  }
}

async function untilCommitted<Result>(perform: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await perform();
    } catch (error) {
      assert.match((error as Error).message, /the disk refuses/);
    }
  }
}

/** Values in shared memory, like those of a large body. */
function toBatch(ids: readonly number[], integers: Int8Array): VectorBatch {
  const values = new Float32Array(new SharedArrayBuffer(integers.length * 4));
  values.set(integers);
  return {
    count: ids.length,
    ids: columnOf(ids.map(idOf)),
    vectors: [{ name: '', ...dense(DIMENSION), values, presence: null }],
    metadata: columnOf(ids.map(() => '{}')),
  };
}

async function query(database: Database, random: () => number): Promise<Answer> {
  const vector = Float32Array.from({ length: DIMENSION }, () => Math.floor(random() * 15) - 7);
  const { matches, sequence } = await database.collection('c').query({ vector, topK: K });
  return { sequence, query: vector, ids: matches.map(({ id }) => id) };
}

/** Replays the writes in order, and answers each query at its sequence. */
function checkAnswers(answers: readonly Answer[], effects: ReadonlyMap<number, Effect>): void {
  const live = new Map<number, Int8Array>();
  const remaining = answers.toSorted((a, b) => a.sequence - b.sequence);
  const last = Math.max(...effects.keys());
  for (let sequence = 0; sequence <= last; sequence++) {
    const effect = effects.get(sequence);
    if (effect?.kind === 'delete') for (const id of effect.ids) live.delete(id);
    if (effect?.kind === 'write') {
      for (const [i, id] of effect.ids.entries()) {
        live.set(id, effect.values.subarray(i * DIMENSION, (i + 1) * DIMENSION));
      }
    }
    while (remaining[0]?.sequence === sequence) {
      const { query: vector, ids } = remaining.shift()!;
      assert.deepEqual(ids, nearest(live, vector), `the answer at sequence ${sequence}`);
    }
  }
  assert.equal(remaining.length, 0, 'every answer has the sequence of a write');
}

function nearest(live: ReadonlyMap<number, Int8Array>, vector: Float32Array): string[] {
  const scored = [...live].map(([id, values]) => {
    let score = 0;
    for (let i = 0; i < DIMENSION; i++) score += values[i]! * vector[i]!;
    return { id: idOf(id), score };
  });
  scored.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
  return scored.slice(0, K).map(({ id }) => id);
}
