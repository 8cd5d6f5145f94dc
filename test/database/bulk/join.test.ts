// Compares joins with brute force that shares no code with the engines, over data with ties, deletions and several
// segments.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import type { Metric, Utf8Column } from '../../../src/common/types.js';
import type { JoinRequest } from '../../../src/database/bulk/join.js';
import type { JoinChunk } from '../../../src/database/bulk/join-chunks.js';
import type { Database } from '../../../src/database/database.js';
import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { laneSum, trueScore } from '../../../src/tools/selftest/truth.js';
import { placeOf } from '../../support/issues.js';
import { eventually } from '../../support/waiting.js';
import { dense } from '../../vector-columns.js';
import {
  batchOf,
  createRandom,
  openDatabase,
  type TestVector,
  testSeed,
  VALUE_METRICS,
} from '../harness.js';

const DIMENSION = 5;

interface FoundRow {
  readonly id: string;
  readonly matches: { id: string; score: number; distance?: number; metadata?: string }[];
}

describe('a join', () => {
  it('equals brute force for all metrics, bounds and filters, after deletions', async () => {
    const seed = testSeed();
    const random = createRandom(seed);
    const database = await openDatabase({});
    const rows = await fill(database, 'a', 50, random);
    const others = await fill(database, 'b', 80, random);
    for (const metric of VALUE_METRICS) {
      for (const other of ['a', 'b']) {
        const requests: JoinRequest[] = [
          { topK: 3 },
          { topK: 1_000 },
          { topK: 4, scoreThreshold: metric === 'euclidean' ? 0.3 : 0.25 },
          { scoreThreshold: metric === 'euclidean' ? 0.25 : 0 },
          { scoreThreshold: -1e9 },
          { topK: 5, filter: { n: { $lt: 50 } }, withFilter: { kind: 'x' } },
          { topK: 2, withFilter: { kind: 'nothing' } },
          { topK: 2, excludeSelf: other === 'b' },
        ];
        for (const request of requests) {
          const whole = { ...request, metric, includeMetadata: true };
          const found = await joined(database, 'a', { ...whole, with: other });
          const expected = bruteForce(rows, other === 'a' ? rows : others, {
            ...whole,
            excludeSelf: request.excludeSelf ?? other === 'a',
          });
          assert.deepEqual(found, expected, `seed ${seed} ${other} ${JSON.stringify(whole)}`);
        }
      }
    }
    await database.close();
  });

  it('gives each pair once on request, with the row that came first', async () => {
    const seed = testSeed();
    const database = await openDatabase({ limits: { segmentRowsMax: 64 } });
    const rows = await fill(database, 'a', 300, createRandom(seed));
    const orders = new Map(rows.map(({ id }, order) => [id, order]));
    for (const bounds of [
      {},
      { filter: { n: { $lt: 200 } }, withFilter: { n: { $gte: 100 } } },
      { filter: { kind: 'x' } },
      { withFilter: { kind: 'x' } },
      { sample: { count: 90, seed: 1 } },
      { withSample: { count: 90, seed: 1 } },
      { sample: { count: 90, seed: 1 }, withSample: { count: 90, seed: 1 } },
    ]) {
      const request = { scoreThreshold: 4, ...bounds };
      const isFirst = new Map<string, boolean>();
      for (const [one, other] of pairsOf(await joined(database, 'a', request))) {
        const isEarlier = orders.get(one)! < orders.get(other)!;
        const pair = isEarlier ? `${one} ${other}` : `${other} ${one}`;
        // A pair that only its later row finds stays with that row.
        isFirst.set(pair, isFirst.get(pair) === true || isEarlier);
      }
      const expected = [...isFirst].map(([pair, isEarlier]) =>
        isEarlier ? pair : pair.split(' ').reverse().join(' '),
      );
      const pairs = pairsOf(await joined(database, 'a', { ...request, unorderedPairs: true }));
      assert.deepEqual(
        pairs.map((pair) => pair.join(' ')).toSorted(),
        expected.toSorted(),
        `seed ${seed} ${JSON.stringify(bounds)}`,
      );
      assert.ok(pairs.length > 10);
    }
    await database.close();
  });

  it('gives all matches that reach a threshold, however many, in chunks of bounded length', async () => {
    const random = createRandom(7);
    const database = await openDatabase({ limits: { segmentRowsMax: 4_096 } });
    const rows = await fill(database, 'a', 120, random, { metadataBytes: 1_000 });
    const request = { scoreThreshold: -1e9, metric: 'dot', includeMetadata: true } as const;
    const chunks: JoinChunk[] = [];
    const join = await database.collection('a').join(request);
    for await (const chunk of join.chunks()) chunks.push(chunk);
    assert.ok(chunks.some(({ isOpen }) => isOpen) && chunks.some(({ isContinued }) => isContinued));
    for (const { metadata, matchIds } of chunks) {
      assert.ok(metadata!.bytes.length + matchIds.bytes.length < 3 * 1024 * 1024);
    }
    const found = toRows(chunks);
    assert.equal(found.length, rows.length);
    assert.ok(found.every(({ matches }) => matches.length === rows.length - 1));
    assert.deepEqual(
      found[100],
      bruteForce(rows.slice(100, 101), rows, { ...request, excludeSelf: true })[0],
    );
    await database.close();
  });

  it('answers from its snapshots while rows are written, deleted and compacted', async () => {
    const random = createRandom(11);
    const database = await openDatabase({});
    const rows = await fill(database, 'a', 400, random);
    const expected = bruteForce(rows, rows, { topK: 4, metric: 'cosine', excludeSelf: true });
    const join = await database.collection('a').join({ topK: 4, metric: 'cosine' });
    const chunks: JoinChunk[] = [];
    let round = 0;
    for await (const chunk of join.chunks()) {
      chunks.push(chunk);
      await database
        .collection('a')
        .delete(round++ === 0 ? { kind: 'filter', filter: { kind: 'x' } } : { kind: 'all' }, {
          dryRun: false,
        });
      await fill(database, 'a', 50, random);
    }
    assert.ok(chunks.length > 1, 'the rows came in several groups');
    assert.deepEqual(toRows(chunks), expected);
    await database.close();
  });

  it('has no match for a zero vector under cosine', async () => {
    const database = await openDatabase({});
    await create(database, 'a', 'dot', 2);
    const batch = batchOf([
      { id: 'zero', values: [0, 0], metadata: '{}' },
      { id: 'x', values: [1, 0], metadata: '{}' },
    ]);
    await database.collection('a').write(batch, { mode: 'upsert' });
    assert.deepEqual(await joined(database, 'a', { topK: 5, metric: 'cosine' }), [
      { id: 'zero', matches: [] },
      { id: 'x', matches: [{ id: 'zero', score: 0 }] },
    ]);
    assert.equal((await joined(database, 'a', { topK: 5 }))[0]!.matches.length, 1);
    await database.close();
  });

  it('aborts its searches when its reader stops or its signal aborts', async () => {
    const pool = createInlinePool();
    const engine = createReferenceEngine({ pool });
    const signals: AbortSignal[] = [];
    const unloaded: string[] = [];
    const database = await openDatabase({
      engine: {
        ...engine,
        search(queries, options) {
          if (queries.length > 1) signals.push(options!.signal!);
          return engine.search(queries, options);
        },
        unload: (key) => unloaded.push(key),
      },
    });
    await fill(database, 'a', 900, createRandom(3));
    const chunks = (await database.collection('a').join({ topK: 1 })).chunks();
    assert.equal((await chunks.next()).done, false);
    assert.equal(database.scanStats.joinCount, 1);
    assert.ok(database.scanStats.joinRowsLeft > 0);
    await chunks.return(undefined);
    assert.equal(database.scanStats.joinCount, 0);
    assert.equal(database.scanStats.joinRowsLeft, 0);
    assert.equal(unloaded.length, 0, 'segments that are there stay loaded');

    const controller = new AbortController();
    const join = await database.collection('a').join({ topK: 1 }, { signal: controller.signal });
    const aborted = join.chunks();
    await aborted.next();
    controller.abort(new Error('gone'));
    await assert.rejects(async () => {
      for await (const _ of aborted);
    }, /gone/);
    assert.equal(database.scanStats.joinCount, 0);

    const last = (await database.collection('a').join({ topK: 1 })).chunks();
    await last.next();
    await database.collection('a').drop();
    const before = unloaded.length;
    await last.return(undefined);
    assert.ok(unloaded.length > before, 'what was searched after it was gone is unloaded again');
    assert.ok(signals.length > 0);
    await database.close();
  });

  it('waits when the queue is full after its first chunk, and is rejected before', async () => {
    const pool = createInlinePool();
    const engine = createReferenceEngine({ pool });
    let gate: Promise<void> | null = null;
    let heldCount = 0;
    let searchedCount = 0;
    const database = await openDatabase({
      limits: { queuedQueriesMax: 1 },
      engine: {
        ...engine,
        async search(queries, options) {
          if (gate !== null) heldCount++;
          await gate;
          const hits = await engine.search(queries, options);
          searchedCount++;
          return hits;
        },
      },
    });
    await fill(database, 'a', 900, createRandom(3));
    const chunks = (await database.collection('a').join({ topK: 1 })).chunks();
    let rowCount = (await chunks.next()).value!.rowCount;
    await eventually('the group ahead is searched', () => searchedCount === 2);
    let open = () => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const query = () => database.collection('a').query({ id: 'v0', topK: 1 });
    // One group is in the engine and one waits, so that the queue is full for a third.
    const others = [query()];
    await eventually('a query is in the engine', () => heldCount === 1);
    others.push(query());
    await eventually('another one waits', () => database.queuedQueryCount === 1);
    const refused = (await database.collection('a').join({ topK: 1 })).chunks();
    await assert.rejects(refused.next(), { code: 'overloaded' });
    const rest = (async () => {
      for await (const chunk of chunks) rowCount += chunk.rowCount;
    })();
    await new Promise((resolve) => setTimeout(resolve, 60));
    open();
    await Promise.all([...others, rest]);
    assert.equal(rowCount, 720);
    await database.close();
  });

  it('rejects invalid requests before it searches', async () => {
    const database = await openDatabase({});
    await create(database, 'a', 'dot', 2);
    await create(database, 'b', 'dot', 3);
    const refused = (request: JoinRequest, code: string, place: string) =>
      assert.rejects(database.collection('a').join(request), (error) => {
        assert.ok(error instanceof SagittaError);
        assert.deepEqual([error.code, placeOf(error.issues[0]!)], [code, place]);
        return true;
      });
    await refused({}, 'invalid_request', '/top_k');
    await refused({ topK: 10_001 }, 'limit_exceeded', '/top_k');
    await refused({ topK: 1, with: 'b' }, 'dimension_mismatch', '/with');
    const unorderedPairs = true;
    await refused({ topK: 1, unorderedPairs }, 'invalid_request', '/unordered_pairs');
    const refusedOther = { scoreThreshold: 1, with: 'c', unorderedPairs };
    await create(database, 'c', 'dot', 2);
    await refused(refusedOther, 'invalid_request', '/unordered_pairs');
    await refused({ topK: 1, filter: { x: { $no: 1 } } }, 'invalid_filter', '/filter/x/$no');
    await refused({ topK: 1, withFilter: { $or: 1 } }, 'invalid_filter', '/with_filter/$or');
    await assert.rejects(database.collection('a').join({ topK: 1, with: 'd' }), /"d"/);
    assert.deepEqual(await joined(database, 'a', { topK: 1 }), []);
    await database.close();
  });
});

async function create(
  database: Database,
  id: string,
  metric: Metric,
  dimension: number,
): Promise<void> {
  const vectors = { '': { ...dense(dimension), metric } };
  const input = { id, vectors, description: null, labels: {} };
  await database.createCollection(input, { ifNotExists: true });
}

/** Writes rows of small integers, so that scores tie, and deletes every fifth. Returns the others. */
async function fill(
  database: Database,
  id: string,
  count: number,
  random: () => number,
  { metadataBytes = 0 } = {},
): Promise<TestVector[]> {
  await create(database, id, 'dot', DIMENSION);
  const rows = Array.from({ length: count }, (_, n): TestVector => {
    const values = Array.from({ length: DIMENSION }, () => Math.round(random() * 4 - 2));
    if (!values.some((value) => value !== 0)) values[0] = 1;
    const kind = random() < 0.5 ? 'x' : 'y';
    const metadata = {
      n,
      kind,
      ...(metadataBytes === 0 ? {} : { pad: 'p'.repeat(metadataBytes) }),
    };
    return { id: `v${n}`, values, metadata: JSON.stringify(metadata) };
  });
  for (let at = 0; at < count; at += 100) {
    await database.collection(id).write(batchOf(rows.slice(at, at + 100)), { mode: 'upsert' });
  }
  if (metadataBytes > 0) return rows;
  const gone = rows.filter((_, n) => n % 5 === 2);
  const ids = gone.map((row) => row.id);
  await database.collection(id).delete({ kind: 'ids', ids }, { dryRun: false });
  return rows.filter((_, n) => n % 5 !== 2);
}

async function joined(database: Database, id: string, request: JoinRequest): Promise<FoundRow[]> {
  const chunks: JoinChunk[] = [];
  const join = await database.collection(id).join(request);
  for await (const chunk of join.chunks()) chunks.push(chunk);
  const rows = toRows(chunks);
  assert.equal(rows.length, join.rowCount);
  return rows;
}

function pairsOf(rows: readonly FoundRow[]): [id: string, matchId: string][] {
  return rows.flatMap(({ id, matches }) =>
    matches.map((match): [string, string] => [id, match.id]),
  );
}

function toRows(chunks: readonly JoinChunk[]): FoundRow[] {
  const rows: FoundRow[] = [];
  let isOpen = false;
  for (const chunk of chunks) {
    assert.equal(chunk.isContinued, isOpen);
    for (let i = 0; i < chunk.rowCount; i++) {
      const id = textAt(chunk.ids, i);
      if (i === 0 && chunk.isContinued) {
        assert.equal(rows.at(-1)!.id, id);
        assert.equal(rows.at(-1)!.matches.length, chunk.precedingMatchCount);
      } else {
        rows.push({ id, matches: [] });
      }
      for (let at = chunk.offsets[i]!; at < chunk.offsets[i + 1]!; at++) {
        rows.at(-1)!.matches.push({
          id: textAt(chunk.matchIds, at),
          score: chunk.scores[at]!,
          ...(chunk.distances === null ? {} : { distance: chunk.distances[at]! }),
          ...(chunk.metadata === null ? {} : { metadata: textAt(chunk.metadata, at) }),
        });
      }
    }
    isOpen = chunk.isOpen;
  }
  assert.equal(isOpen, false);
  return rows;
}

function textAt({ offsets, bytes }: Utf8Column, at: number): string {
  return Buffer.from(bytes.subarray(offsets[at]!, offsets[at + 1]!)).toString();
}

function bruteForce(
  rows: readonly TestVector[],
  searched: readonly TestVector[],
  { topK, scoreThreshold, filter, withFilter, excludeSelf, metric, includeMetadata }: JoinRequest,
): FoundRow[] {
  const passes = ({ metadata }: TestVector, by: JoinRequest['filter']) => {
    const { n, kind } = JSON.parse(metadata) as { n: number; kind: string };
    const { n: bound, kind: wanted = kind } = (by ?? {}) as { n?: { $lt: number }; kind?: string };
    return kind === wanted && n < (bound?.$lt ?? Number.POSITIVE_INFINITY);
  };
  const targets = searched
    .filter((row) => passes(row, withFilter))
    .map((row) => ({ ...row, values: Float32Array.from(row.values) }));
  return rows
    .filter((row) => passes(row, filter))
    .map(({ id, values }) => {
      const query = Float32Array.from(values);
      const square = laneSum(query, query);
      const matches = targets
        .filter((target) => !(excludeSelf && target.id === id))
        .map((target) => ({ ...target, raw: trueScore(metric!, query, target.values, square) }))
        .sort((a, b) => b.raw - a.raw || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)))
        .map((match) => {
          const distance = Math.sqrt(Math.abs(match.raw));
          const score = Math.fround(metric === 'euclidean' ? 1 / (1 + distance) : match.raw);
          return {
            id: match.id,
            score,
            ...(metric === 'euclidean' ? { distance: Math.fround(distance) } : {}),
            ...(includeMetadata ? { metadata: match.metadata } : {}),
          };
        })
        .filter(({ score }) => scoreThreshold === undefined || score >= scoreThreshold)
        .slice(0, topK);
      return { id, matches };
    });
}
