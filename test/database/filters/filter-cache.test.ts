// The filter cache gives the same answers as no cache over random histories, evaluates once for all readers, keeps its
// bound, and never changes a result.

import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { hasBit } from '../../../src/common/bitmap.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { silentLogger } from '../../../src/common/logger.js';
import type { JsonObject } from '../../../src/common/types.js';
import { takeSnapshot } from '../../../src/database/collection/snapshot.js';
import { Database } from '../../../src/database/database.js';
import { FilterCache, type FilterTarget } from '../../../src/database/filters/filter-cache.js';
import { createWordsColumns } from '../../../src/database/filters/words-columns.js';
import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import type { FilterInput } from '../../../src/filter/evaluate-task.js';
import { matchesDocument } from '../../../src/filter/operators.js';
import { parseFilter } from '../../../src/filter/parse.js';
import type { TextIndexes } from '../../../src/inverted/text-index.js';
import { createInlinePool, type Task, type WorkerPool } from '../../../src/platform/pool.js';
import { Segment } from '../../../src/segment/segment.js';
import { createMemoryState, createMemoryStore } from '../../../src/storage/memory-store.js';
import { utf8Of, viewOf } from '../../filter/view-of.js';
import { IS_NIGHTLY } from '../../support/nightly.js';
import { batchOf, createRandom, createTestClock, openDatabase, testSeed } from '../harness.js';

const SEED = testSeed();
const STEPS = IS_NIGHTLY ? 250 : 100;

const node = (filter: JsonObject) => parseFilter(filter, { limits: DEFAULT_LIMITS, hasText: true });

function createCache(options: { pool?: WorkerPool; bytesMax?: number } = {}): FilterCache {
  return new FilterCache({ pool: createInlinePool(), bytesMax: 1 << 20, ...options });
}

describe('cached filter results', () => {
  for (const bytesMax of [1 << 20, 6_000, 0]) {
    for (let round = 0; round < (IS_NIGHTLY ? 4 : 1); round++) {
      const seed = SEED + round;
      it(`are those of a fresh evaluation at every sequence of a random history (at most ${bytesMax} bytes, seed ${seed})`, () =>
        runHistory(seed, bytesMax));
    }
  }

  it('are the same object for the same rows, at any sequence', async () => {
    const cache = createCache();
    const segment = createSegment(100, { isSealed: true });
    const filter = node({ a: { $lt: 50 } });
    const ask = async (sequence: number) => {
      const { views: parts } = takeSnapshot([segment], sequence);
      return (await cache.filter(parts, filter))[0]!;
    };
    const first = await ask(1);
    assert.equal(first.visibleCount, 50);
    assert.equal((await ask(7)).rows, first.rows);
    segment.markDeleted(3, 8);
    const after = await ask(8);
    assert.equal(after.visibleCount, 49);
    assert.equal((await ask(9)).rows, after.rows);
    assert.equal((await ask(7)).rows, first.rows);
    assert.equal(first.visibleCount, 50);
    assert.deepEqual([cache.hitCount, cache.missCount], [4, 1]);
  });

  it('are shared by filters that differ in the order of their members only', async () => {
    const cache = createCache();
    const { views: parts } = takeSnapshot([createSegment(100)], 1);
    const [first] = await cache.filter(parts, node({ a: { $gte: 10, $lt: 20 }, b: 1 }));
    const [second] = await cache.filter(parts, node({ b: 1, a: { $lt: 20, $gte: 10 } }));
    assert.equal(second!.rows, first!.rows);
    const [third] = await cache.filter(parts, node({ b: 2, a: { $lt: 20, $gte: 10 } }));
    assert.notEqual(third!.rows, first!.rows);
  });

  it('need no bitmap when all visible rows match', async () => {
    const cache = createCache();
    const segment = createSegment(100);
    const filter = node({ a: { $gte: 0 } });
    const [all] = await cache.filter(takeSnapshot([segment], 1).views, filter);
    assert.deepEqual([all!.rows, all!.visibleCount], [null, 100]);
    segment.markDeleted(99, 2);
    const { views: parts } = takeSnapshot([segment], 2);
    const [visible] = await cache.filter(parts, filter);
    assert.deepEqual([visible!.rows, visible!.visibleCount], [parts[0]!.rows, 99]);
  });

  it('are extended when a segment grows: earlier rows are not evaluated again', async () => {
    const cache = createCache();
    const filter = node({ a: 1 });
    const texts = Array.from({ length: 100 }, (_, row) => `{"a":${row % 2}}`);
    const before = targetOf(texts.slice(0, 70));
    const [first] = await cache.filter([before], filter);
    // Rows of whole bitmap words are made invalid, so that parsing them again would fail.
    const after = targetOf(texts.map((text, row) => (row < 64 ? 'no JSON' : text)));
    const [second] = await cache.filter([after], filter);
    assert.deepEqual([first!.visibleCount, second!.visibleCount], [35, 50]);
    assert.deepEqual(rowsOf(second!), outlierRows(100));
    // A reader with an earlier view still gets its rows.
    const [third] = await cache.filter([before], filter);
    assert.equal(third!.rows, first!.rows);
    assert.deepEqual(rowsOf(third!), outlierRows(70));
  });

  it('are removed with their segment', async () => {
    const cache = createCache();
    const filter = node({ a: 1 });
    const here = targetOf(['{"a":1}'], 'here');
    const gone = targetOf(['{"a":1}'], 'gone');
    await cache.filter([here, gone], filter);
    const bytesOfBoth = cache.bytesUsed;
    cache.forget('gone');
    cache.forget('never seen');
    assert.equal(cache.bytesUsed, bytesOfBoth / 2);
    await cache.filter([here, gone], filter);
    assert.deepEqual([cache.hitCount, cache.missCount], [1, 3]);
  });

  it('stay within their bytes: the least recently used are evicted', async () => {
    const bytesMax = 20_000;
    const cache = createCache({ bytesMax });
    const { views: parts } = takeSnapshot([createSegment(4_000)], 1);
    const often = node({ a: { $lt: 5 } });
    const [first] = await cache.filter(parts, often);
    for (let i = 0; i < 200; i++) {
      const [some] = await cache.filter(parts, node({ a: { $lt: 10 + i } }));
      assert.equal(some!.visibleCount, 10 + i);
      assert.ok(cache.bytesUsed > 0 && cache.bytesUsed <= bytesMax, String(cache.bytesUsed));
      const [again] = await cache.filter(parts, often);
      assert.equal(again!.rows, first!.rows, `after ${i} others`);
    }
    const missCount = cache.missCount;
    await cache.filter(parts, node({ a: { $lt: 209 } }));
    assert.equal(cache.missCount, missCount, 'the last one is there');
    await cache.filter(parts, node({ a: { $lt: 10 } }));
    assert.equal(cache.missCount, missCount + 1, 'the first one has left');
    cache.forget(parts[0]!.segment.key);
    assert.equal(cache.bytesUsed, 0);
  });
});

describe('an evaluation', () => {
  it('is shared by equal filters that arrive while it is under way', async () => {
    const { pool, inputs, finish } = createHeldPool();
    const cache = createCache({ pool });
    const target = targetOf(bigTexts());
    const answers = [1, 2, 3].map(() => cache.filter([target], node({ a: 1 })));
    await turn();
    assert.equal(inputs.length, 1);
    finish();
    const found = await Promise.all(answers);
    assert.ok(found.every(([part]) => part!.rows === found[0]![0]!.rows));
    assert.deepEqual([cache.hitCount, cache.missCount], [2, 1]);
  });

  it('continues for the other readers when one of them aborts', async () => {
    const { pool, inputs, finish } = createHeldPool();
    const cache = createCache({ pool });
    const target = targetOf(bigTexts());
    const impatient = new AbortController();
    const left = cache.filter([target], node({ a: 1 }), impatient.signal);
    const stayed = cache.filter([target], node({ a: 1 }), new AbortController().signal);
    await turn();
    const reason = new Error('the client went away');
    impatient.abort(reason);
    await assert.rejects(left, (error) => error === reason);
    assert.equal(Atomics.load(inputs[0]!.views[0]!.stop, 0), 0);
    finish();
    assert.deepEqual(rowsOf((await stayed)[0]!), outlierRows(300));
    assert.equal(inputs.length, 1);
  });

  it('is stopped when nobody waits for it, and started again for the next reader', async () => {
    const { pool, inputs, finish } = createHeldPool();
    const cache = createCache({ pool });
    const target = targetOf(bigTexts());
    const controllers = [new AbortController(), new AbortController()];
    const answers = controllers.map(({ signal }) => cache.filter([target], node({ a: 1 }), signal));
    await turn();
    for (const [i, controller] of controllers.entries()) {
      controller.abort(new Error(`gone ${i}`));
      await assert.rejects(answers[i]!, { message: `gone ${i}` });
    }
    assert.equal(Atomics.load(inputs[0]!.views[0]!.stop, 0), 1);
    const later = cache.filter([target], node({ a: 1 }));
    await turn();
    assert.equal(inputs.length, 2);
    finish();
    assert.deepEqual(rowsOf((await later)[0]!), outlierRows(300));
  });

  it('is not started for a request that was aborted', async () => {
    const cache = createCache();
    const signal = AbortSignal.abort(new Error('too late'));
    const answer = cache.filter([targetOf(bigTexts())], node({ a: 1 }), signal);
    await assert.rejects(answer, { message: 'too late' });
    assert.equal(cache.missCount, 0);
  });

  it('that fails rejects all readers and is not cached', async () => {
    const { pool, finish } = createHeldPool();
    const cache = createCache({ pool });
    const broken = targetOf(bigTexts().map((text, row) => (row === 150 ? 'no JSON' : text)));
    const answers = [1, 2].map(() => cache.filter([broken], node({ a: 1 })));
    await turn();
    finish();
    for (const answer of answers) await assert.rejects(answer, SyntaxError);
    const repaired = cache.filter([targetOf(bigTexts())], node({ a: 1 }));
    await turn();
    finish();
    assert.deepEqual(rowsOf((await repaired)[0]!), outlierRows(300));
  });

  it('that started before rows were added is not used for them', async () => {
    const { pool, inputs, finish } = createHeldPool();
    const cache = createCache({ pool });
    const texts = bigTexts(600);
    const early = cache.filter([targetOf(texts.slice(0, 300))], node({ a: 1 }));
    await turn();
    const late = cache.filter([targetOf(texts)], node({ a: 1 }));
    await turn();
    assert.equal(inputs.length, 1);
    finish();
    assert.deepEqual(rowsOf((await early)[0]!), outlierRows(300));
    await turn();
    assert.deepEqual(
      inputs.map(({ views }) => views.map(({ rowCount }) => rowCount)),
      [[300], [600 - 288]],
    );
    finish();
    assert.deepEqual(rowsOf((await late)[0]!), outlierRows(600));
  });
});

describe('a database', () => {
  it('stops evaluating a filter when its request is aborted', async () => {
    const { pool, inputs } = createHeldPool();
    const database = await Database.open({
      store: createMemoryStore({ state: createMemoryState() }),
      engine: createReferenceEngine({ pool: createInlinePool() }),
      engineReason: 'test',
      pool,
      limits: { ...DEFAULT_LIMITS, metadataColumnsMax: 1 },
      clock: createTestClock(),
      logger: silentLogger,
    });
    await database.loaded;
    await database.createCollection(SPACE);
    await database.collection('c').write(batchOf(vectors(0, 300)), { mode: 'upsert' });
    const controller = new AbortController();
    const query = { vector: Float32Array.of(1), topK: 1, filter: { b: 1 } };
    const reply = database.collection('c').query(query, { signal: controller.signal });
    await turn();
    assert.equal(inputs.length, 1);
    controller.abort(new Error('the deadline has passed'));
    await assert.rejects(reply, { message: 'the deadline has passed' });
    assert.equal(Atomics.load(inputs[0]!.views[0]!.stop, 0), 1);
  });

  it('keeps results through writes, and removes those of segments that are gone', async () => {
    const clock = createTestClock();
    const limits = { segmentRowsMax: 64, retentionMs: 60_000 };
    const database = await openDatabase({ clock, limits });
    await database.createCollection(SPACE);
    const count = () => database.collection('c').count({ b: 1 });
    await database.collection('c').write(batchOf(vectors(0, 128)), { mode: 'upsert' });
    assert.equal(await count(), 64);
    assert.equal(database.filterCacheUse.missCount, 2);
    for (let i = 0; i < 128; i++) {
      clock.nowMs += 1_000;
      if (i % 3 === 0) await database.collection('c').deleteVector(`v${i}`);
      assert.equal(await count(), 64 - Math.floor((i + 3) / 6), `after v${i}`);
    }
    assert.equal(database.filterCacheUse.missCount, 2);
    const { bytesUsed } = database.filterCacheUse;
    clock.nowMs += 120_000;
    // Fills a segment, whose checkpoint compacts the first of two segments with many ended rows.
    await database.collection('c').write(batchOf(vectors(200, 264)), { mode: 'upsert' });
    for (let i = 0; i < 1_000 && database.filterCacheUse.bytesUsed === bytesUsed; i++) await turn();
    assert.equal(database.filterCacheUse.bytesUsed, bytesUsed / 2);
    assert.equal(await count(), 43 + 32);
    await database.collection('c').drop();
    assert.equal(database.filterCacheUse.bytesUsed, 0);
    await database.close();
  });
});

const SPACE = {
  id: 'c',
  vectors: { '': { kind: 'dense', dimension: 1, metric: 'dot' } },
  description: null,
  labels: {},
} as const;

const vectors = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => ({
    id: `v${from + i}`,
    values: [from + i],
    metadata: `{"a":${from + i},"b":${(from + i) % 2}}`,
  }));

const FILTERS: readonly JsonObject[] = [
  { tag: 'red' },
  { tag: { $ne: 'red' } },
  { number: { $gte: 3, $lt: 8 } },
  { tag: { $in: ['green', 'blue'] }, number: { $lt: 5 } },
  { late: true },
  { number: { $gte: 0 } },
  { tag: 'nobody' },
  {},
];

/** Appends, deletes and seals at random, and filters at the newest and at older sequences. */
async function runHistory(seed: number, bytesMax: number): Promise<void> {
  const random = createRandom(seed);
  const below = (n: number) => Math.floor(random() * n);
  const cache = createCache({ bytesMax });
  const filters = FILTERS.map(node);
  const segments: Segment[] = [];
  const documents = new Map<Segment, JsonObject[]>();
  const handedOut = new Map<Uint32Array, Uint32Array>();
  let sequence = 0;
  for (let step = 0; step < STEPS; step++) {
    sequence++;
    let segment = segments.at(-1);
    if (segment === undefined || segment.isSealed) {
      segment = createSegment(0, { key: `s${segments.length}` });
      segments.push(segment);
      documents.set(segment, []);
    }
    const added = Array.from({ length: below(40) }, (): JsonObject => {
      const document: JsonObject = { tag: ['red', 'green', 'blue'][below(3)]!, number: below(10) };
      // A path that no earlier row had.
      return step > STEPS / 3 && below(4) === 0 ? { ...document, late: true } : document;
    });
    if (added.length > 0) {
      const batch = batchOf(
        added.map((document, i) => ({
          id: `${step} ${i}`,
          values: [0],
          metadata: JSON.stringify(document),
        })),
      );
      segment.append(batch, 0, batch.count, sequence);
      documents.get(segment)!.push(...added);
    }
    if (below(3) === 0) {
      const worn = segments[below(segments.length)]!;
      for (let i = below(30); i > 0 && worn.rowCount > 0; i--) {
        const row = below(worn.rowCount);
        if (worn.deletedSequence(row) === Number.POSITIVE_INFINITY) worn.markDeleted(row, sequence);
      }
    }
    if (segment.rowCount > 300) segment.seal();
    if (below(20) === 0) cache.forget(segments[below(segments.length)]!.key);
    const asked = Array.from({ length: 3 }, (_, i) => (i === 0 ? sequence : 1 + below(sequence)));
    await Promise.all(
      asked.map(async (at) => {
        const filter = filters[below(filters.length)]!;
        const { views: parts } = takeSnapshot(segments, at);
        for (const part of await cache.filter(parts, filter)) {
          const expected = documents
            .get(part.segment)!
            .flatMap((document, row) =>
              part.segment.insertedSequence(row) <= at &&
              part.segment.deletedSequence(row) > at &&
              matchesDocument(filter, document)
                ? [row]
                : [],
            );
          assert.deepEqual(rowsOf(part), expected, `${part.segment.key} at ${at} of ${sequence}`);
          assert.equal(part.visibleCount, expected.length);
          const words = part.rows?.words;
          if (words !== undefined && !handedOut.has(words)) handedOut.set(words, words.slice());
        }
      }),
    );
    assert.ok(cache.bytesUsed <= bytesMax);
  }
  for (const [words, copy] of handedOut) assert.deepEqual(words, copy, 'a bitmap was changed');
  if (bytesMax === 1 << 20) assert.ok(cache.hitCount > 2 * cache.missCount, 'too few hits to tell');
}

function createSegment(
  rowCount: number,
  options: { key?: string; isSealed?: boolean } = {},
): Segment {
  const key = options.key ?? 'segment';
  const bounds = { rowsMax: 10_000, columnsMax: 16 };
  const segment = Segment.createActive({ key, number: 1, ...bounds });
  if (rowCount > 0) segment.append(batchOf(vectors(0, rowCount)), 0, rowCount, 1);
  if (options.isSealed === true) segment.seal();
  return segment;
}

/** A segment view without columns whose rows are all visible. */
function targetOf(texts: readonly string[], key = 'segment'): FilterTarget {
  const rowCount = texts.length;
  const metadata = { ...viewOf([]), rowCount, isComplete: false, json: utf8Of(texts) };
  return { segment: { key }, metadata, rowCount, rows: null, visibleCount: rowCount };
}

/** Enough rows of JSON for the pool to evaluate them. */
const bigTexts = (count = 300) => Array.from({ length: count }, (_, row) => `{"a":${row % 2}}`);

const outlierRows = (end: number) => Array.from({ length: end >>> 1 }, (_, i) => 2 * i + 1);

function rowsOf({ rows, rowCount }: Pick<FilterTarget, 'rows' | 'rowCount'>): number[] {
  if (rows !== null) assert.equal(rows.length, rowCount);
  const all = Array.from({ length: rowCount }, (_, row) => row);
  return rows === null ? all : all.filter((row) => hasBit(rows, row));
}

/** A pool that runs no task before `finish`. */
function createHeldPool() {
  const inputs: FilterInput[] = [];
  let held: (() => void)[] = [];
  const pool: WorkerPool = {
    threadCount: 1,
    async run<Input, Output>(task: Task<Input, Output>, input: Input): Promise<Output> {
      inputs.push(input as FilterInput);
      await new Promise<void>((resolve) => held.push(resolve));
      return task.run(input);
    },
    async close() {},
  };
  const finish = () => {
    for (const release of held) release();
    held = [];
  };
  return { pool, inputs, finish };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a filter on words finds no collection when it was deleted meanwhile', async () => {
  const words = createWordsColumns({} as TextIndexes, () => undefined);
  const cache = new FilterCache({ pool: createInlinePool(), bytesMax: 0, words });
  const view = viewOf(['{}']);
  const segment = { key: 'gone/1' };
  const target = { segment, metadata: view, rowCount: 1, rows: null, visibleCount: 1 };
  await assert.rejects(cache.filter([target], node({ $text: { $match: 'x' } })), {
    code: 'collection_not_found',
  });
});
