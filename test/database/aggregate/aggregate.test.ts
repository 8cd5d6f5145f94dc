// Compares facets and stats of random metadata with brute force over the documents, for segments of several sizes,
// deleted rows, filters and paths without columns.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberOf, stringifyExactJson } from '../../../src/common/exact-json.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { resolvePath } from '../../../src/common/metadata-path.js';
import type { Json, JsonNumber, JsonObject } from '../../../src/common/types.js';
import { ExactSum, quotientOf } from '../../../src/database/aggregate/exact-sum.js';
import type {
  AggregateReply,
  Facet,
  FacetValue,
  Stats,
} from '../../../src/database/api/aggregate-api.js';
import type { Database } from '../../../src/database/database.js';
import { matchesDocument } from '../../../src/filter/operators.js';
import { parseFilter } from '../../../src/filter/parse.js';
import { batchOf, createRandom, openDatabase, testSeed } from '../harness.js';

const PATHS = ['kind', 'price', 'tags', 'a.b', 'mixed', 'nowhere'];
// biome-ignore format: a table
const VALUES: readonly Json[] = [
  'x', 'y', 'zebra', 'é', '😀', '', 0, -0, 1, 1.5, -3, 2 ** 53, true, false, null, {}, [], [null],
  [[1]], ['x', 'x', 'y'], [1, 1, 2, 'x'], [true, false, true], [{}, 5], 'a', 'b', 'c', 7, 8, 9, 1768907725507217522n, 1768907725507217523n, Number(1768907725507217408n),
  2n ** 64n - 1n, [1768907725507217523n, 1768907725507217522n], -(2n ** 53n) - 1n,
];

function randomDocument(random: () => number): JsonObject {
  const pick = () => VALUES[Math.floor(random() * VALUES.length)]!;
  const document: JsonObject = {};
  for (const path of ['kind', 'price', 'tags', 'mixed']) {
    if (random() < 0.8) document[path] = pick();
  }
  if (random() < 0.5) document.a = { b: pick() };
  return document;
}

/** The scalars of a document at a path. */
function valuesAt(document: JsonObject, path: string): FacetValue[] {
  const value = resolvePath(document, path);
  const values = Array.isArray(value) ? value : [value];
  return values.filter((one): one is FacetValue =>
    ['string', 'number', 'bigint', 'boolean'].includes(typeof one),
  );
}

const isNumber = (value: FacetValue) => typeof value === 'number' || typeof value === 'bigint';
const lesser = (a: JsonNumber, b: JsonNumber) => (a < b ? a : b);
const greater = (a: JsonNumber, b: JsonNumber) => (a > b ? a : b);

const rankOf = (value: FacetValue) => (isNumber(value) ? 0 : typeof value === 'string' ? 1 : 2);

function expectedFacet(documents: readonly JsonObject[], path: string, limit: number): Facet {
  const counts = new Map<FacetValue, number>();
  let missingCount = 0;
  for (const document of documents) {
    const distinct = new Set(valuesAt(document, path));
    if (distinct.size === 0) missingCount++;
    for (const value of distinct) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const values = [...counts]
    .map(([value, count]) => ({ value: value === 0 ? 0 : value, count }))
    .sort(
      (a, b) =>
        b.count - a.count ||
        rankOf(a.value) - rankOf(b.value) ||
        (typeof a.value === 'string'
          ? Buffer.compare(Buffer.from(a.value), Buffer.from(String(b.value)))
          : a.value < b.value
            ? -1
            : Number(a.value > b.value)),
    )
    .slice(0, limit);
  return { path, values, distinctCount: counts.size, missingCount };
}

function checkStats(found: Stats, documents: readonly JsonObject[]): void {
  const perDocument = documents.map((document) =>
    valuesAt(document, found.path).filter((value) => isNumber(value)),
  );
  const numbers = perDocument.flat();
  assert.equal(found.count, numbers.length);
  assert.equal(found.missingCount, perDocument.filter(({ length }) => length === 0).length);
  if (numbers.length === 0) {
    assert.deepEqual([found.min, found.sum, found.histogram], [undefined, undefined, undefined]);
    return;
  }
  const unsigned = (value: JsonNumber) => (value === 0 ? 0 : value);
  const min = unsigned(numbers.reduce(lesser));
  const max = unsigned(numbers.reduce(greater));
  assert.deepEqual([found.min, found.max], [min, max]);
  const { buckets, belowCount, aboveCount } = found.histogram!;
  // The nearest float64 around the numbers.
  assert.ok(buckets[0]!.from <= min && Number(min) - buckets[0]!.from <= 256);
  assert.ok(buckets.at(-1)!.to >= max && buckets.at(-1)!.to - Number(max) <= 2_048);
  // Not strict, because the least of 0 and -0 is either.
  if (typeof min === 'number') assert.ok(buckets[0]!.from === min);
  assert.deepEqual([belowCount, aboveCount], [0, 0]);
  for (const [i, { from, to, count }] of buckets.entries()) {
    const isLast = i === buckets.length - 1;
    const inside = numbers.filter((x) => x >= from && (x < to || (isLast && x === to)));
    assert.equal(count, inside.length);
  }
  // All numbers are halves of integers, which BigInt adds exactly.
  const halves = numbers.reduce<bigint>(
    (sum, x) => sum + (typeof x === 'bigint' ? x * 2n : BigInt(x * 2)),
    0n,
  );
  assert.equal(found.sum, halves % 2n === 0n ? numberOf(halves / 2n) : Number(halves) / 2);
  assert.equal(found.mean, quotientOf(halves << 1_073n, numbers.length));
}

const REQUEST = {
  facets: PATHS.map((path) => ({ path, limit: 5 })),
  stats: PATHS.map((path) => ({ path, histogram: { bucketCount: 4 } })),
};

function checkReply(reply: AggregateReply, documents: readonly JsonObject[]): void {
  assert.equal(reply.count, documents.length);
  assert.deepEqual(
    reply.facets,
    PATHS.map((path) => expectedFacet(documents, path, 5)),
  );
  for (const stats of reply.stats!) checkStats(stats, documents);
}

async function fill(
  database: Database,
  documents: readonly JsonObject[],
  deleted: readonly number[],
): Promise<void> {
  await database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: 1, metric: 'dot' } },
    description: null,
    labels: {},
  });
  const collection = database.collection('c');
  const vectors = documents.map((document, i) => ({
    id: `v${i}`,
    values: [i],
    metadata: stringifyExactJson(document),
  }));
  for (let start = 0; start < vectors.length; start += 50) {
    await collection.write(batchOf(vectors.slice(start, start + 50)), { mode: 'insert' });
  }
  if (deleted.length > 0) {
    const ids = deleted.map((i) => `v${i}`);
    await collection.delete({ kind: 'ids', ids }, { dryRun: false });
  }
}

test('facets and stats of random metadata are those of brute force', async () => {
  const seed = testSeed();
  console.log(`seed ${seed}`);
  const random = createRandom(seed);
  for (const limits of [{}, { metadataColumnsMax: 2 }, { segmentRowsMax: 1_000 }]) {
    const documents = Array.from({ length: 300 }, () => randomDocument(random));
    const deleted = documents.flatMap((_, i) => (random() < 0.1 ? [i] : []));
    const database = await openDatabase({ limits });
    try {
      await fill(database, documents, deleted);
      const live = documents.filter((_, i) => !deleted.includes(i));
      const collection = database.collection('c');
      checkReply(await collection.aggregate(REQUEST), live);
      for (const filter of [{ kind: 'x' }, { price: { $gte: 1 } }, { tags: 'none' }]) {
        const node = parseFilter(filter, { limits: DEFAULT_LIMITS, hasText: true });
        const matching = live.filter((document) => matchesDocument(node, document));
        checkReply(await collection.aggregate({ ...REQUEST, filter }), matching);
        const query = { vector: Float32Array.of(1), topK: 1, filter, ...REQUEST };
        const { total, ...reply } = await collection.query(query);
        checkReply({ ...reply, count: total! }, matching);
      }
    } finally {
      await database.close();
    }
  }
});

test('the count of a value is the number of vectors that its filter selects', async () => {
  const random = createRandom(5);
  const documents = Array.from({ length: 200 }, () => randomDocument(random));
  const database = await openDatabase({});
  try {
    await fill(database, documents, []);
    const collection = database.collection('c');
    const facets = PATHS.map((path) => ({ path, limit: 100 }));
    for (const { path, values } of (await collection.aggregate({ facets })).facets!) {
      for (const { value, count } of values) {
        assert.equal(await collection.count({ [path]: value }), count, `${path}: ${value}`);
      }
    }
  } finally {
    await database.close();
  }
});

test('a query by id leaves its vector out of facets and stats; later pages have none', async () => {
  const database = await openDatabase({});
  try {
    await fill(database, [{ kind: 'x', price: 1 }, { kind: 'x', price: 2 }, { kind: 'y' }], []);
    const collection = database.collection('c');
    const facets = [{ path: 'kind', limit: 5 }];
    const stats = [{ path: 'price' }];
    const reply = await collection.query({ id: 'v0', limit: 1, facets, stats });
    assert.deepEqual(reply.facets![0]!.values, [
      { value: 'x', count: 1 },
      { value: 'y', count: 1 },
    ]);
    assert.deepEqual(reply.stats, [
      { path: 'price', count: 1, missingCount: 1, min: 2, max: 2, sum: 2, mean: 2 },
    ]);
    const next = await collection.query({ cursor: reply.nextCursor! });
    assert.deepEqual([next.facets, next.stats], [undefined, undefined]);
  } finally {
    await database.close();
  }
});

test('a histogram has the bounds that are set, and counts what lies beyond', async () => {
  const database = await openDatabase({});
  try {
    const documents = [-5, 0, 0.5, 1, 2, 3, 4, 4.5].map((price) => ({ price }));
    await fill(database, documents, []);
    const collection = database.collection('c');
    const histogramOf = async (histogram: { bucketCount: number; min?: number; max?: number }) =>
      (await collection.aggregate({ stats: [{ path: 'price', histogram }] })).stats![0]!.histogram;
    assert.deepEqual(await histogramOf({ bucketCount: 2, min: 0, max: 4 }), {
      buckets: [
        { from: 0, to: 2, count: 3 },
        { from: 2, to: 4, count: 3 },
      ],
      belowCount: 1,
      aboveCount: 1,
    });
    // A range beyond all numbers gives a single empty bucket.
    assert.deepEqual(await histogramOf({ bucketCount: 3, min: 10 }), {
      buckets: [{ from: 10, to: 10, count: 0 }],
      belowCount: 8,
      aboveCount: 0,
    });
  } finally {
    await database.close();
  }
});

test('stats of scores are those of all rows that pass, or reach the threshold', async () => {
  const random = createRandom(testSeed());
  for (const metric of ['dot', 'cosine', 'euclidean'] as const) {
    const database = await openDatabase({});
    const documents = Array.from({ length: 200 }, (_, i) => ({ n: i % 3 }));
    await fill(database, documents, [5]);
    const collection = database.collection('c');
    const vector = Float32Array.of(50 + Math.floor(random() * 100));
    for (const scoreThreshold of [undefined, metric === 'dot' ? 5_000 : 0.01]) {
      const query = { vector, metric, filter: { n: { $lt: 2 } }, scoreThreshold };
      const { matches } = await collection.query({ ...query, limit: 1_000 });
      const scores = matches.map(({ score }) => score);
      const histogram = { bucketCount: 5 };
      const reply = await collection.query({ ...query, topK: 1, scoreStats: { histogram } });
      const { sum, mean, histogram: found, ...stats } = reply.scoreStats!;
      assert.ok(scores.length > 0);
      assert.deepEqual(stats, {
        count: scores.length,
        min: Math.min(...scores),
        max: Math.max(...scores),
      });
      assert.equal(sum, sumOf(scores));
      assert.ok(Math.abs(mean! - sum! / scores.length) <= 1e-12 * Math.abs(sum!));
      for (const [i, { from, to, count }] of found!.buckets.entries()) {
        const isLast = i === found!.buckets.length - 1;
        const inside = scores.filter((x) => x >= from && (x < to || (isLast && x === to)));
        assert.equal(count, inside.length);
      }
    }
    const other = await collection.query({ id: 'v7', metric, scoreStats: {} });
    assert.equal(other.scoreStats!.count, 198);
    assert.equal(other.scoreStats!.histogram, undefined);
    await database.close();
  }
});

/** Rounded once, like sums of stats. */
function sumOf(values: readonly number[]): number {
  const sum = new ExactSum();
  for (const value of values) sum.add(value);
  return quotientOf(sum.total, 1);
}

test('numbers beyond float64 count as the greatest one', async () => {
  const database = await openDatabase({});
  try {
    await fill(database, [{}], []);
    const metadata = '{"price": 1e999}';
    const batch = batchOf([{ id: 'huge', values: [1], metadata }]);
    await database.collection('c').write(batch, { mode: 'insert' });
    const reply = await database.collection('c').aggregate({
      facets: [{ path: 'price', limit: 1 }],
      stats: [{ path: 'price' }],
    });
    assert.deepEqual(reply.facets![0]!.values, [{ value: Number.MAX_VALUE, count: 1 }]);
    assert.equal(reply.stats![0]!.mean, Number.MAX_VALUE);
  } finally {
    await database.close();
  }
});
