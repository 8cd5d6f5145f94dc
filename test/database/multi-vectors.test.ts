// Compares MaxSim over multi-vectors in a database with brute force over plain rows, across restarts, checkpoints and
// compactions.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, VectorBatch } from '../../src/common/types.js';
import type { MultiVector } from '../../src/common/vectors.js';
import type { QueryRequest } from '../../src/database/api/query-api.js';
import type { Database } from '../../src/database/database.js';
import {
  canonicalScore,
  createCanonicalQuery,
  sumOfProducts,
  sumOfSquares,
} from '../../src/engine/core/canonical.js';
import { createMemoryState } from '../../src/storage/memory-store.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { columnsOf, dense, multi } from '../vector-columns.js';
import {
  batchOf,
  createRandom,
  createTestClock,
  openDatabase,
  type TestVector,
  testSeed,
} from './harness.js';

const DIMENSION = 3;
const METRICS = ['dot', 'cosine'] as const;
type Metric = (typeof METRICS)[number];
const SHAPES = {
  dot: { ...multi(DIMENSION), metric: 'dot' },
  cosine: { ...multi(DIMENSION), metric: 'cosine' },
} as const;

type Vectors = readonly (readonly number[])[];

interface Row extends TestVector {
  readonly tag: string;
  /** Under the name of each metric. */
  readonly vectors: Readonly<Partial<Record<Metric, Vectors>>>;
}

function multiOf(vectors: Vectors): MultiVector {
  return { dimension: DIMENSION, values: Float32Array.from(vectors.flat()) };
}

function batchWith(rows: readonly Row[]): VectorBatch {
  const vectors = rows.map((row) => ({
    dot: row.vectors.dot?.flat(),
    cosine: row.vectors.cosine?.flat(),
  }));
  return batchOf(rows, columnsOf(SHAPES, vectors));
}

async function createCollection(database: Database, isWithUnnamed: boolean): Promise<void> {
  await database.createCollection({
    id: 'c',
    vectors: { ...(isWithUnnamed && { '': { ...dense(2), metric: 'dot' } }), ...SHAPES },
    description: null,
    labels: {},
  });
}

/** MaxSim by its definition, in the order of the vectors of the query. */
function maxSim(metric: Metric, query: Vectors, vectors: Vectors): number {
  let sum = 0;
  for (const vector of query) {
    const { values, square } = createCanonicalQuery(metric, Float32Array.from(vector));
    const scores = vectors.map((other) => {
      const row = Float32Array.from(other);
      const product = sumOfProducts(values, row, 0);
      return canonicalScore(metric, product, square, sumOfSquares(row, 0, DIMENSION));
    });
    sum += Math.max(...scores);
  }
  return sum;
}

interface Ranked {
  readonly id: string;
  readonly score: number;
}

function rank(rows: Iterable<Row>, metric: Metric, query: Vectors): Ranked[] {
  const scored = [...rows].flatMap(({ id, vectors }) => {
    const found = vectors[metric];
    return found === undefined ? [] : [{ id, score: maxSim(metric, query, found) }];
  });
  return scored.sort(
    (a, b) => b.score - a.score || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)),
  );
}

const shown = ({ id, score }: Ranked) => ({ id, score: Math.fround(score) });

async function pagesOf(database: Database, request: QueryRequest): Promise<Ranked[]> {
  const found: Ranked[] = [];
  for (let next: QueryRequest | null = request; next !== null; ) {
    const { matches, nextCursor } = await database.collection('c').query(next);
    found.push(...matches.map(({ id, score }) => ({ id, score })));
    next = nextCursor === undefined ? null : { cursor: nextCursor };
  }
  return found;
}

async function compareWithModel(isWithUnnamed: boolean): Promise<void> {
  const seed = testSeed();
  console.log(`seed ${seed}`);
  const random = createRandom(seed);
  const below = (n: number) => Math.floor(random() * n);
  // A few values, so that scores tie; some are not exact in binary.
  const vector = () => {
    const values = Array.from({ length: DIMENSION }, () => (below(7) - 3) / 3);
    return values.every((value) => value === 0) ? [1, 0, 0] : values;
  };
  const vectorsOf = (countMax: number) => Array.from({ length: 1 + below(countMax) }, vector);
  const randomRow = (): Row => {
    const tag = ['red', 'green'][below(2)]!;
    const vectors: Partial<Record<Metric, Vectors>> = {};
    for (const name of METRICS) if (random() < 0.7) vectors[name] = vectorsOf(6);
    const values = isWithUnnamed ? [below(7), below(7)] : [];
    return { id: `v${below(150)}`, values, vectors, metadata: JSON.stringify({ tag }), tag };
  };
  const state = createMemoryState();
  const clock = createTestClock();
  const open = () => openDatabase({ state, clock, limits: { retentionMs: 60_000 } });
  let database = await open();
  await createCollection(database, isWithUnnamed);
  const model = new Map<string, Row>();
  for (let step = 0; step < (IS_NIGHTLY ? 40 : 15); step++) {
    const rows = Array.from({ length: 1 + below(40) }, randomRow);
    const distinct = [...new Map(rows.map((row) => [row.id, row])).values()];
    await database.collection('c').write(batchWith(distinct), { mode: 'upsert' });
    for (const row of distinct) model.set(row.id, row);
    const gone = `v${below(150)}`;
    await database.collection('c').delete({ kind: 'ids', ids: [gone] }, { dryRun: false });
    model.delete(gone);
    const { id, vectors } = randomRow();
    const old = model.get(id);
    if (old !== undefined) {
      const { dot } = vectors;
      await database
        .collection('c')
        .patch(id, { vectors: new Map([['dot', dot ? multiOf(dot) : null]]) });
      const { dot: _, ...kept } = old.vectors;
      model.set(id, { ...old, vectors: { ...kept, ...(dot && { dot }) } });
    }
    const filter: JsonObject | undefined = random() < 0.5 ? { tag: 'red' } : undefined;
    const passing = [...model.values()].filter(({ tag }) => filter === undefined || tag === 'red');
    for (const using of METRICS) {
      const query = vectorsOf(20);
      const multiVector = query.map((values) => Float32Array.from(values));
      const expected = rank(passing, using, query);
      const request = { multiVector, using, filter };
      const reply = await database.collection('c').query({ ...request, topK: 7 });
      assert.deepEqual(reply.matches.map(shown), expected.slice(0, 7).map(shown), `step ${step}`);
      assert.equal(reply.total, expected.length);
      if (step % 8 === 0) {
        assert.deepEqual(await pagesOf(database, { ...request, limit: 9 }), expected.map(shown));
      }
      const [best] = expected;
      if (best === undefined) continue;
      const stored = model.get(best.id)!.vectors[using]!;
      const byId = await database.collection('c').query({ id: best.id, using, topK: 5 });
      const others = [...model.values()].filter((row) => row.id !== best.id);
      assert.deepEqual(byId.matches.map(shown), rank(others, using, stored).slice(0, 5).map(shown));
    }
    if (random() < 0.2) {
      clock.nowMs += 61_000;
      await database.close();
      database = await open();
    }
  }
  for (const { id, vectors } of model.values()) {
    const found = await database.collection('c').get(id, { values: true, metadata: true });
    const expected = Object.entries(vectors).map(([name, list]) => [name, multiOf(list)]);
    assert.deepEqual(Object.entries(found.vectors!).sort(), expected.sort());
  }
  await database.close();
}

describe('multi-vectors', () => {
  for (const isWithUnnamed of [true, false]) {
    const which = isWithUnnamed ? 'beside' : 'without';
    it(`${which} an unnamed vector agree with brute force through writes, restarts and compactions`, () =>
      compareWithModel(isWithUnnamed));
  }

  it('count in what one update of metadata may write', async () => {
    const vectors = { dot: Array.from({ length: 100 }, () => [1, 2, 3]) };
    const rows = Array.from({ length: 10 }, (_, i): Row => {
      return { id: `v${i}`, values: [], vectors, metadata: '{}', tag: '' };
    });
    // Rows of 1 200 bytes each.
    const database = await openDatabase({ limits: { bodyBytesMax: 5_000 } });
    await createCollection(database, false);
    await database.collection('c').write(batchWith(rows), { mode: 'upsert' });
    const change = { kind: 'patch', text: '{"n":1}' } as const;
    const update = (limit?: number) =>
      database.collection('c').updateMetadata({ kind: 'all' }, { change, limit });
    await assert.rejects(update(), { code: 'limit_exceeded' });
    assert.deepEqual(await update(10), { updatedCount: 4, hasMore: true, sequence: 2 });
    const found = await database.collection('c').get('v0', { values: true, metadata: true });
    assert.deepEqual([found.metadata, found.vectors], ['{"n":1}', { dot: multiOf(vectors.dot) }]);
    await database.close();
  });

  it('seal a segment before their bytes are more than it may have', async () => {
    const limits = { segmentValueBytesMax: 4_000, multiValuesMax: 300, metadataBytesMax: 100 };
    const database = await openDatabase({ limits });
    await createCollection(database, false);
    const vectors = { dot: Array.from({ length: 100 }, () => [1, 2, 3]) };
    const rows = Array.from({ length: 10 }, (_, i): Row => {
      return { id: `v${i}`, values: [], vectors, metadata: '{}', tag: '' };
    });
    await database.collection('c').write(batchWith(rows), { mode: 'upsert' });
    const multiVector = [Float32Array.of(1, 0, 0)];
    const request = { multiVector, using: 'dot', topK: 20, explain: true };
    const { matches, explain } = await database.collection('c').query(request);
    assert.equal(matches.length, 10);
    // Three rows of 1 200 bytes each.
    assert.equal(explain!.segmentCount, 4);
    await database.close();
  });

  it('are searched by nothing else', async () => {
    const database = await openDatabase({});
    await createCollection(database, true);
    const row = { id: 'a', values: [1, 2], vectors: { dot: [[1, 2, 3]] }, metadata: '{}', tag: '' };
    await database.collection('c').write(batchWith([row]), { mode: 'upsert' });
    const query = (request: QueryRequest) => database.collection('c').query(request);
    const multiVector = [Float32Array.of(1, 2, 3)];
    for (const [request, message] of [
      [{ vector: multiVector[0], using: 'dot' }, /"dot" is a multi-vector/],
      [{ multiVector }, /Expected the name of a multi-vector/],
      [
        { multiVector, using: 'dot', metric: 'euclidean' },
        /cosine or dot for a multi-vector; found euclidean/,
      ],
      [{ multiVector, using: 'dot', scoreStats: {} }, /score_stats is for queries by vectors/],
      [{ id: 'a', using: 'cosine' }, /The vector "a" of collection "c" has no "cosine"/],
      [
        { multiVector: [Float32Array.of(1)], using: 'dot' },
        /has 1 elements; the dimension of "dot"/,
      ],
    ] as const) {
      await assert.rejects(query(request as QueryRequest), { message });
    }
    await database.close();
  });
});
