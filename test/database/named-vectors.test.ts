// Compares named vectors in a database with brute force over plain rows, across restarts, checkpoints and compactions.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, VectorBatch } from '../../src/common/types.js';
import type { QueryRequest } from '../../src/database/api/query-api.js';
import type { Database } from '../../src/database/database.js';
import { createMemoryState } from '../../src/storage/memory-store.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { columnsOf, dense } from '../vector-columns.js';
import {
  batchOf,
  createRandom,
  createTestClock,
  openDatabase,
  type TestVector,
  testSeed,
} from './harness.js';

const SHAPES = {
  title: { ...dense(3), metric: 'dot' },
  image: { ...dense(5), metric: 'euclidean' },
} as const;
type Name = keyof typeof SHAPES;
const NAMES = Object.keys(SHAPES) as Name[];

interface Row extends TestVector {
  readonly tag: string;
  readonly vectors: Readonly<Partial<Record<Name, readonly number[]>>>;
}

function batchWith(rows: readonly Row[], isShared = false): VectorBatch {
  const columns = columnsOf(
    SHAPES,
    rows.map(({ vectors }) => vectors),
  );
  const batch = batchOf(rows, columns);
  if (!isShared) return batch;
  const vectors = batch.vectors.map((column) => ({ ...column, values: inSharedMemory(column) }));
  return { ...batch, vectors };
}

function inSharedMemory({ values }: { readonly values: Float32Array }): Float32Array {
  const shared = new Float32Array(new SharedArrayBuffer(values.byteLength));
  shared.set(values);
  return shared;
}

const UNNAMED = { ...dense(2), metric: 'dot' } as const;

/** Without an unnamed vector, rows have only named vectors. */
async function createCollection(
  database: Database,
  unnamed: typeof UNNAMED | null = UNNAMED,
): Promise<void> {
  const vectors = { ...(unnamed && { '': unnamed }), ...SHAPES };
  await database.createCollection({ id: 'c', vectors, description: null, labels: {} });
}

/** Small integers make every product and sum exact, so that ties are real. */
function scoreOf(name: Name, query: readonly number[], values: readonly number[]): number {
  if (name === 'title') return values.reduce((sum, value, i) => sum + value * query[i]!, 0);
  return -values.reduce((sum, value, i) => sum + (value - query[i]!) ** 2, 0);
}

function nearest(rows: Iterable<Row>, name: Name, query: readonly number[], k: number): string[] {
  const scored = [...rows].flatMap(({ id, vectors }) => {
    const values = vectors[name];
    return values === undefined ? [] : [{ id, score: scoreOf(name, query, values) }];
  });
  scored.sort((a, b) => b.score - a.score || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)));
  return scored.slice(0, k).map(({ id }) => id);
}

const INCLUDE = { values: true, metadata: true };

async function rowOf(database: Database, id: string): Promise<unknown> {
  const { values, vectors, metadata } = await database.collection('c').get(id, INCLUDE);
  const named = Object.entries(vectors!).map(([name, vector]) => {
    assert.ok(vector instanceof Float32Array);
    return [name, [...vector]];
  });
  return { id, values: [...(values ?? [])], vectors: Object.fromEntries(named), metadata };
}

async function idsOf(database: Database, request: QueryRequest): Promise<string[]> {
  const { matches } = await database.collection('c').query(request);
  return matches.map(({ id }) => id);
}

async function compareWithModel(unnamed: typeof UNNAMED | null): Promise<void> {
  const seed = testSeed();
  console.log(`seed ${seed}`);
  const random = createRandom(seed);
  const below = (n: number) => Math.floor(random() * n);
  const integers = (count: number) => Array.from({ length: count }, () => below(7) - 3);
  const randomRow = (): Row => {
    const tag = ['red', 'green'][below(2)]!;
    const vectors: Partial<Record<Name, readonly number[]>> = {};
    for (const name of NAMES) {
      if (random() < 0.6) vectors[name] = integers(SHAPES[name].dimension);
    }
    const metadata = JSON.stringify({ tag });
    const values = integers(unnamed?.dimension ?? 0);
    return { id: `v${below(200)}`, values, vectors, metadata, tag };
  };
  const state = createMemoryState();
  const clock = createTestClock();
  const open = () => openDatabase({ state, clock, limits: { retentionMs: 60_000 } });
  let database = await open();
  await createCollection(database, unnamed);
  const model = new Map<string, Row>();
  for (let step = 0; step < (IS_NIGHTLY ? 60 : 20); step++) {
    const rows = Array.from({ length: 1 + below(40) }, randomRow);
    const distinct = [...new Map(rows.map((row) => [row.id, row])).values()];
    await database.collection('c').write(batchWith(distinct), { mode: 'upsert' });
    for (const row of distinct) model.set(row.id, row);
    const gone = `v${below(200)}`;
    await database.collection('c').delete({ kind: 'ids', ids: [gone] }, { dryRun: false });
    model.delete(gone);
    const patched = randomRow();
    const old = model.get(patched.id);
    if (old !== undefined) {
      const title = patched.vectors.title;
      await database.collection('c').patch(old.id, {
        vectors: new Map([['title', title === undefined ? null : Float32Array.from(title)]]),
      });
      const { title: _, ...kept } = old.vectors;
      model.set(old.id, { ...old, vectors: { ...kept, ...(title && { title }) } });
    }
    const filter: JsonObject | undefined = random() < 0.5 ? { tag: 'red' } : undefined;
    const passing = [...model.values()].filter(({ tag }) => filter === undefined || tag === 'red');
    for (const using of NAMES) {
      const query = integers(SHAPES[using].dimension);
      const vector = Float32Array.from(query);
      const reply = await database.collection('c').query({ vector, using, filter, topK: 7 });
      const expected = nearest(passing, using, query, 7);
      assert.deepEqual(
        reply.matches.map(({ id }) => id),
        expected,
        `${using} at step ${step}`,
      );
      assert.equal(reply.total, passing.filter(({ vectors }) => using in vectors).length);
    }
    if (random() < 0.2) {
      clock.nowMs += 61_000;
      await database.close();
      database = await open();
    }
  }
  for (const { tag: _, ...row } of model.values()) {
    assert.deepEqual(await rowOf(database, row.id), row);
  }
  await database.close();
}

describe('named vectors', () => {
  for (const unnamed of [UNNAMED, null]) {
    const which = unnamed === null ? 'without the unnamed vector ' : '';
    it(`${which}agree with brute force through writes, patches, deletes, restarts and compactions`, () =>
      compareWithModel(unnamed));
  }

  it('are on disk after a write that is large enough for the pool', async () => {
    const state = createMemoryState();
    let database = await openDatabase({ state, limits: { segmentRowsMax: 65_536 } });
    await createCollection(database);
    const rows = Array.from({ length: 40_000 }, (_, i): Row => {
      const vectors = i % 3 === 0 ? {} : { title: [i, 1, 2], image: [1, 2, 3, 4, i] };
      return { id: `v${i}`, values: [i, 1], vectors, metadata: '{}', tag: '' };
    });
    await database.collection('c').write(batchWith(rows, true), { mode: 'upsert' });
    await database.close();
    database = await openDatabase({ state, limits: { segmentRowsMax: 65_536 } });
    for (const i of [0, 1, 2, 39_998, 39_999]) {
      const { tag: _, ...row } = rows[i]!;
      assert.deepEqual(await rowOf(database, row.id), row);
    }
    const vector = Float32Array.of(1, 0, 0);
    assert.deepEqual(await idsOf(database, { vector, using: 'title', topK: 2 }), [
      'v39998',
      'v39997',
    ]);
    await database.close();
  });

  it('are searched by the vector of an id, page by page, and graded by recall', async () => {
    const database = await openDatabase({});
    await createCollection(database);
    const rows = Array.from({ length: 30 }, (_, i): Row => {
      const vectors = i % 2 === 0 ? { title: [i, 0, 1] } : {};
      return {
        id: `v${String(i).padStart(2, '0')}`,
        values: [i, 1],
        vectors,
        metadata: '{}',
        tag: '',
      };
    });
    await database.collection('c').write(batchWith(rows), { mode: 'upsert' });
    const all = nearest(rows, 'title', [4, 0, 1], 30).filter((id) => id !== 'v04');
    const found: string[] = [];
    let request: QueryRequest = { id: 'v04', using: 'title', limit: 4 };
    for (;;) {
      const { matches, nextCursor, total } = await database.collection('c').query(request);
      if (request.cursor === undefined) assert.equal(total, all.length);
      found.push(...matches.map(({ id }) => id));
      if (nextCursor === undefined) break;
      request = { cursor: nextCursor };
    }
    assert.deepEqual(found, all);
    const { recalls } = await database.collection('c').recall({
      vectors: [Float32Array.of(4, 0, 1)],
      ids: [['v28', 'v26', 'v01']],
      using: 'title',
    });
    assert.deepEqual(recalls, [2 / 3]);
    await database.close();
  });

  it('that do not exist are refused, with what exists', async () => {
    const database = await openDatabase({});
    await createCollection(database);
    const row = { id: 'a', values: [1, 2], vectors: {}, metadata: '{}', tag: '' };
    await database.collection('c').write(batchWith([row]), { mode: 'upsert' });
    const query = (request: QueryRequest) => database.collection('c').query(request);
    const vector = Float32Array.of(1, 2);
    await assert.rejects(query({ vector, using: 'sound' }), {
      code: 'invalid_request',
      message: /no named vector "sound"; its names are "title", "image"/,
    });
    await assert.rejects(query({ vector, using: 'title' }), {
      code: 'dimension_mismatch',
      message: /has 2 elements; the dimension of "title" is 3/,
    });
    await assert.rejects(query({ id: 'a', using: 'title' }), {
      code: 'vector_not_found',
      message: /The vector "a" of collection "c" has no "title"/,
    });
    await database.close();
  });
});
