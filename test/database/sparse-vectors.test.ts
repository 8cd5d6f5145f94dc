// Compares sparse vectors in a database with brute force over plain rows, across restarts, checkpoints and compactions.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, VectorBatch } from '../../src/common/types.js';
import type { SparseVector } from '../../src/common/vectors.js';
import type { QueryReply, QueryRequest } from '../../src/database/api/query-api.js';
import type { Database } from '../../src/database/database.js';
import { createMemoryState } from '../../src/storage/memory-store.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { columnsOf, dense, sparse } from '../vector-columns.js';
import {
  batchOf,
  createRandom,
  createTestClock,
  openDatabase,
  type TestVector,
  testSeed,
} from './harness.js';

const SHAPES = { words: sparse, tags: sparse };
type Name = keyof typeof SHAPES;
const NAMES = Object.keys(SHAPES) as Name[];

/** Values by ascending index. */
type Elements = ReadonlyMap<number, number>;

interface Row extends TestVector {
  readonly tag: string;
  readonly sparse: Readonly<Partial<Record<Name, Elements>>>;
}

function vectorOf(elements: Elements): SparseVector {
  return {
    indices: Uint32Array.from(elements.keys()),
    values: Float32Array.from(elements.values()),
  };
}

function batchWith(rows: readonly Row[]): VectorBatch {
  return batchOf(
    rows,
    columnsOf(
      SHAPES,
      rows.map((row) => row.sparse),
    ),
  );
}

async function createCollection(database: Database, isWithoutUnnamed = false): Promise<void> {
  await database.createCollection({
    id: 'c',
    vectors: { ...(isWithoutUnnamed ? {} : { '': { ...dense(1), metric: 'dot' } }), ...SHAPES },
    description: null,
    labels: {},
  });
}

/** The sum of products in the order of the indices, in float64; null without a common index. */
function scoreOf(query: Elements, elements: Elements | undefined): number | null {
  let score: number | null = null;
  for (const [index, weight] of query) {
    const value = elements?.get(index);
    if (value !== undefined) score = (score ?? 0) + weight * value;
  }
  return score;
}

function bestOf(rows: Iterable<Row>, name: Name, query: Elements): { id: string; score: number }[] {
  const scored = [...rows].flatMap(({ id, sparse }) => {
    const score = scoreOf(query, sparse[name]);
    return score === null ? [] : [{ id, score }];
  });
  scored.sort((a, b) => b.score - a.score || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)));
  return scored.map(({ id, score }) => ({ id, score: Math.fround(score) }));
}

const INCLUDE = { values: true, metadata: true };

async function rowOf(database: Database, id: string): Promise<unknown> {
  const { values, sparseVectors, metadata } = await database.collection('c').get(id, INCLUDE);
  const sparse = Object.entries(sparseVectors!).map(([name, { indices, values }]) => {
    return [name, new Map(Array.from(indices, (index, i) => [index, values[i]!]))];
  });
  return { id, values: [...values!], sparse: Object.fromEntries(sparse), metadata };
}

const matchesOf = ({ matches }: QueryReply) => matches.map(({ id, score }) => ({ id, score }));

describe('sparse vectors', () => {
  it('agree with brute force through writes, patches, updates, deletes, restarts and compactions', async () => {
    const seed = testSeed();
    console.log(`seed ${seed}`);
    const random = createRandom(seed);
    const below = (n: number) => Math.floor(random() * n);
    const randomElements = (countMax: number): Elements => {
      const indices = Array.from({ length: 1 + below(countMax) }, () => below(12) * 7_000_003);
      const ascending = [...new Set(indices)].sort((a, b) => a - b);
      // Halves make sums exact, so that ties are real and products of both signs cancel.
      return new Map(ascending.map((index) => [index, (below(9) - 3.5) / 2 || 0.5]));
    };
    const randomRow = (): Row => {
      const tag = ['red', 'green'][below(2)]!;
      const sparse: Partial<Record<Name, Elements>> = {};
      for (const name of NAMES) if (random() < 0.7) sparse[name] = randomElements(5);
      const metadata = JSON.stringify({ tag });
      return { id: `v${below(300)}`, values: [below(9)], sparse, metadata, tag };
    };
    const state = createMemoryState();
    const clock = createTestClock();
    const open = () => openDatabase({ state, clock, limits: { retentionMs: 60_000 } });
    let database = await open();
    await createCollection(database);
    const model = new Map<string, Row>();
    for (let step = 0; step < (IS_NIGHTLY ? 60 : 20); step++) {
      const rows = Array.from({ length: 1 + below(60) }, randomRow);
      const distinct = [...new Map(rows.map((row) => [row.id, row])).values()];
      await database.collection('c').write(batchWith(distinct), { mode: 'upsert' });
      for (const row of distinct) model.set(row.id, row);
      const gone = `v${below(300)}`;
      await database.collection('c').delete({ kind: 'ids', ids: [gone] }, { dryRun: false });
      model.delete(gone);
      const patched = randomRow();
      const old = model.get(patched.id);
      if (old !== undefined) {
        const { words } = patched.sparse;
        await database.collection('c').patch(old.id, {
          vectors: new Map([['words', words === undefined ? null : vectorOf(words)]]),
        });
        const { words: _, ...kept } = old.sparse;
        model.set(old.id, { ...old, sparse: { ...kept, ...(words && { words }) } });
      }
      const changed = `v${below(300)}`;
      const metadata = '{"tag":"green","step":1}';
      await database
        .collection('c')
        .updateMetadata(
          { kind: 'ids', ids: [changed] },
          { change: { kind: 'replace', text: metadata } },
        );
      const before = model.get(changed);
      if (before !== undefined) model.set(changed, { ...before, metadata, tag: 'green' });
      const filter: JsonObject | undefined = random() < 0.5 ? { tag: 'red' } : undefined;
      const passing = [...model.values()].filter(
        ({ tag }) => filter === undefined || tag === 'red',
      );
      for (const using of NAMES) {
        const query = randomElements(8);
        const request = { sparse: vectorOf(query), using, filter };
        const reply = await database.collection('c').query({ ...request, topK: 7 });
        const expected = bestOf(passing, using, query);
        assert.deepEqual(matchesOf(reply), expected.slice(0, 7), `${using} at step ${step}`);
        assert.equal(reply.total, expected.length);
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
  });

  const CHAIN: readonly Row[] = Array.from({ length: 30 }, (_, i) => ({
    id: `v${String(i).padStart(2, '0')}`,
    values: [i],
    metadata: JSON.stringify({ kind: i % 3 }),
    tag: '',
    sparse:
      i % 5 === 4
        ? {}
        : {
            words: new Map(
              [
                [3, i % 4],
                [9, 1 - (i % 2)],
              ].filter(([, value]) => value !== 0) as [number, number][],
            ),
          },
  }));

  it('are searched page by page, from the snapshot of the first page', async () => {
    const database = await openDatabase({});
    await createCollection(database);
    const rows = CHAIN.map((row) => ({
      ...row,
      sparse: row.sparse.words?.size === 0 ? {} : row.sparse,
    }));
    await database.collection('c').write(batchWith(rows), { mode: 'upsert' });
    const query = new Map([
      [3, 1],
      [9, -2],
    ]);
    const expected = bestOf(rows, 'words', query);
    const sparse = vectorOf(query);
    const found: { id: string; score: number }[] = [];
    let request: QueryRequest = { sparse, using: 'words', limit: 4 };
    for (let page = 0; ; page++) {
      const reply = await database.collection('c').query(request);
      found.push(...matchesOf(reply));
      if (reply.nextCursor === undefined) break;
      // The same members may be repeated.
      request = { cursor: reply.nextCursor, ...(page === 0 ? { sparse, using: 'words' } : {}) };
      if (page > 0) continue;
      const late = { ...rows[0]!, id: `late${page}`, sparse: { words: new Map([[3, 100]]) } };
      await database.collection('c').write(batchWith([late]), { mode: 'upsert' });
    }
    assert.deepEqual(found, expected);
    const first = await database.collection('c').query({ sparse, using: 'words', limit: 1 });
    const other = { sparse: vectorOf(new Map([[3, 1]])), cursor: first.nextCursor! };
    await assert.rejects(database.collection('c').query(other), { code: 'cursor_mismatch' });
    await database.close();
  });

  it('go with groups, sorting, thresholds, facets and explain', async () => {
    const database = await openDatabase({});
    await createCollection(database, true);
    const rows = CHAIN.filter(({ sparse }) => sparse.words?.size !== 0).map((row) => ({
      ...row,
      values: [],
    }));
    await database.collection('c').write(batchWith(rows), { mode: 'upsert' });
    const query = new Map([
      [3, 1],
      [9, -2],
    ]);
    const all = bestOf(rows, 'words', query);
    const base = { sparse: vectorOf(query), using: 'words' };
    const kindOf = (id: string) => Number(id.slice(1)) % 3;
    const grouped = await database
      .collection('c')
      .query({ ...base, groupBy: 'kind', groupSize: 1 });
    const firsts = all.filter(
      ({ id }, i) => all.findIndex((m) => kindOf(m.id) === kindOf(id)) === i,
    );
    assert.deepEqual(matchesOf(grouped), firsts);
    const sorted = await database
      .collection('c')
      .query({ ...base, topK: 6, sort: [{ field: 'id', order: 'desc' }] });
    const best = all.slice(0, 6).sort((a, b) => (a.id < b.id ? 1 : -1));
    assert.deepEqual(matchesOf(sorted), best);
    const reaching = await database.collection('c').query({ ...base, scoreThreshold: 0 });
    assert.deepEqual(
      matchesOf(reaching),
      all.filter(({ score }) => score >= 0),
    );
    const { facets, explain } = await database
      .collection('c')
      .query({ ...base, facets: [{ path: 'kind', limit: 10 }], explain: true });
    const counted = facets![0]!.values.reduce((sum, { count }) => sum + count, 0);
    assert.equal(counted, all.length);
    assert.equal(explain!.engine, 'sparse');
    await database.close();
  });

  it('are ranked together with others, and count in the memory of the collection', async () => {
    const database = await openDatabase({});
    await createCollection(database);
    const rows = CHAIN.filter(({ sparse }) => sparse.words?.size !== 0);
    await database.collection('c').write(batchWith(rows), { mode: 'upsert' });
    const before = database.collection('c').record().memory.hostBytes;
    const query = new Map([[3, 1]]);
    const sparse = vectorOf(query);
    const fusion = {
      kind: 'rrf' as const,
      rankConstant: 60,
      normalize: 'none' as const,
      parts: [
        { sparse, using: 'words', weight: 1 },
        { vector: Float32Array.of(1), weight: 1 },
      ],
    };
    const { matches } = await database.collection('c').query({ fusion, topK: 30 });
    const rankOf = (ids: readonly string[], id: string) => ids.indexOf(id) + 1;
    const bySparse = bestOf(rows, 'words', query).map(({ id }) => id);
    const byVector = rows.map(({ id }) => id).reverse();
    const scores = rows.map(({ id }) => {
      const ranks = [rankOf(bySparse, id), rankOf(byVector, id)].filter((rank) => rank > 0);
      return { id, score: Math.fround(ranks.reduce((sum, rank) => sum + 1 / (60 + rank), 0)) };
    });
    assert.deepEqual(
      new Map(matches.map(({ id, score }) => [id, score])),
      new Map(scores.map(({ id, score }) => [id, score])),
    );
    assert.ok(database.collection('c').record().memory.hostBytes > before);
    await database.close();
  });

  it('that do not exist are refused with the names that exist', async () => {
    const database = await openDatabase({});
    await createCollection(database);
    const query = (request: QueryRequest) => database.collection('c').query(request);
    const sparse = vectorOf(new Map([[1, 1]]));
    await assert.rejects(query({ sparse, using: 'sound' }), {
      code: 'invalid_request',
      message: /no sparse vector "sound"; its names are "words", "tags"/,
    });
    await assert.rejects(query({ sparse }), {
      code: 'invalid_request',
      message: /Name the sparse vector of the collection to search in "using"; its names/,
    });
    await assert.rejects(query({ sparse, using: 'words', metric: 'cosine' }), {
      code: 'invalid_request',
      message: /metric is for queries by vectors; found it with sparse/,
    });
    await database.close();
  });
});
