// Compares queries by examples and diversified queries with results computed row by row from the definitions,
// for random examples, filters, pages, metrics and segments.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import type { Metric } from '../../../src/common/types.js';
import type {
  DiscoverRequest,
  Example,
  Match,
  QueryRequest,
  RecommendRequest,
} from '../../../src/database/api/query-api.js';
import type { CollectionHandle } from '../../../src/database/collection-handle.js';
import { IS_NIGHTLY } from '../../support/nightly.js';
import { batchOf, createRandom, openDatabase, testSeed, VALUE_METRICS } from '../harness.js';

const COUNT = 400;
const DIMENSION = 4;

type Random = () => number;

interface Row {
  readonly id: string;
  readonly values: readonly number[];
  readonly n: number;
}

/** Multiples of 1/8, so that many scores are equal and sums are exact. */
function randomValues(random: Random): number[] {
  const values = Array.from({ length: DIMENSION }, () => Math.round((random() - 0.5) * 16) / 8);
  return values.some((value) => value !== 0) ? values : [1, 0, 0, 0];
}

async function fill(random: Random, metric: Metric, limits: object) {
  const database = await openDatabase({ limits });
  await database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: DIMENSION, metric } },
    description: null,
    labels: {},
  });
  const collection = database.collection('c');
  const rows = Array.from({ length: COUNT }, (_, i): Row => {
    return { id: `v${i}`, values: randomValues(random), n: i % 10 };
  });
  const vectors = rows.map(({ id, values, n }) => ({ id, values, metadata: `{"n":${n}}` }));
  for (let start = 0; start < COUNT; start += 100) {
    await collection.write(batchOf(vectors.slice(start, start + 100)), { mode: 'insert' });
  }
  await collection.delete({ kind: 'ids', ids: ['v3', 'v77'] }, { dryRun: false });
  const live = rows.filter(({ id }) => id !== 'v3' && id !== 'v77');
  return { database, collection, rows: live };
}

const dot = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((sum, value, i) => sum + value * b[i]!, 0);

/** The public score. Values are multiples of 1/8, so that each sum is exact in any order. */
function scoreOf(metric: Metric, a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (metric === 'dot') return dot(a, b);
  if (metric === 'cosine') {
    const cosine = dot(a, b) / (Math.sqrt(dot(a, a)) * Math.sqrt(dot(b, b)));
    return Math.max(-1, Math.min(1, cosine));
  }
  return 1 / (1 + Math.sqrt(dot(a, a) - 2 * dot(a, b) + dot(b, b)));
}

const flat = (x: number) => x / (1 + Math.abs(x));
const unit = (x: number) => (1 + flat(x)) / 2;

function recommendScore(
  { strategy }: RecommendRequest,
  positive: readonly number[],
  negative: readonly number[],
): number {
  if (strategy === 'sum_scores') {
    return [...positive, ...negative.map((score) => -score)].reduce((a, b) => a + b, 0);
  }
  const p = Math.max(...positive, Number.NEGATIVE_INFINITY);
  const n = Math.max(...negative, Number.NEGATIVE_INFINITY);
  return p > n ? unit(p) : -unit(n);
}

interface Ranked {
  readonly id: string;
  readonly score: number;
}

/** The whole ranking of a query by examples. */
function rank(
  rows: readonly Row[],
  { metric, request }: { metric: Metric; request: QueryRequest },
): Ranked[] {
  const valuesOf = (example: Example) =>
    typeof example === 'string' ? rows.find(({ id }) => id === example)!.values : example;
  const { recommend, discover } = request;
  const score = ({ values }: Row): number => {
    const one = (example: Example) => scoreOf(metric, valuesOf(example), values);
    if (recommend !== undefined) {
      return recommendScore(recommend, recommend.positive.map(one), recommend.negative.map(one));
    }
    const pairs = discover!.context.map(({ positive, negative }) => one(positive) - one(negative));
    if (discover!.target === undefined) {
      return pairs.reduce((sum, difference) => sum + flat(Math.min(0, difference)), 0);
    }
    const side = pairs.reduce((sum, difference) => sum + Math.sign(difference), 0);
    return side + unit(one(discover!.target));
  };
  const { includeExamples } = (recommend ?? discover)!;
  const excluded = includeExamples ? [] : examplesOf(request);
  const highestN = (request.filter as { n?: { $lt: number } } | undefined)?.n?.$lt ?? 10;
  return rows
    .filter(({ id, n }) => n < highestN && !excluded.includes(id))
    .map((row) => ({ id: row.id, score: score(row) }))
    .sort((a, b) => b.score - a.score || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)));
}

function examplesOf({ recommend, discover }: QueryRequest): Example[] {
  const pairs = discover?.context.flatMap(({ positive, negative }) => [positive, negative]) ?? [];
  return [
    ...(recommend?.positive ?? []),
    ...(recommend?.negative ?? []),
    ...pairs,
    ...(discover?.target === undefined ? [] : [discover.target]),
  ];
}

function randomExample(random: Random): Example {
  if (random() < 0.5) return Float32Array.from(randomValues(random));
  return `v${100 + Math.floor(random() * 200)}`;
}

function randomRequest(random: Random): Pick<QueryRequest, 'recommend' | 'discover' | 'filter'> {
  const list = (countMin: number) =>
    Array.from({ length: countMin + Math.floor(random() * 3) }, () => randomExample(random));
  const filter = random() < 0.4 ? { filter: { n: { $lt: 1 + Math.floor(random() * 9) } } } : {};
  const includeExamples = random() < 0.3;
  if (random() < 0.5) {
    const strategy = random() < 0.6 ? 'best_score' : 'sum_scores';
    const hasPositive = random() < 0.8;
    const positive = hasPositive ? list(1) : [];
    const negative = list(hasPositive ? 0 : 1);
    return { recommend: { positive, negative, strategy, includeExamples }, ...filter };
  }
  const hasTarget = random() < 0.6;
  const context = list(hasTarget ? 0 : 1).map((positive) => ({
    positive,
    negative: randomExample(random),
  }));
  const target: Pick<DiscoverRequest, 'target'> = hasTarget
    ? { target: randomExample(random) }
    : {};
  return { discover: { ...target, context, includeExamples }, ...filter };
}

const shown = (ranked: readonly (Ranked | Match)[]) =>
  ranked.map(({ id, score }) => ({ id, score: Math.fround(score) }));

async function readPages(
  collection: CollectionHandle,
  request: QueryRequest,
  afterPage: () => Promise<void> = async () => {},
): Promise<Match[]> {
  const matches: Match[] = [];
  let reply = await collection.query(request);
  for (;;) {
    matches.push(...reply.matches);
    if (reply.nextCursor === undefined) return matches;
    await afterPage();
    reply = await collection.query({ cursor: reply.nextCursor });
  }
}

describe('a query by examples', () => {
  it('ranks all vectors by the definition, for any strategy, metric, filter and page', async () => {
    const seed = testSeed();
    console.log(`seed ${seed}`);
    const random = createRandom(seed);
    for (const metric of VALUE_METRICS) {
      const limits = random() < 0.5 ? { segmentRowsMax: 1_000 } : {};
      const { database, collection, rows } = await fill(random, metric, limits);
      for (let round = 0; round < (IS_NIGHTLY ? 40 : 8); round++) {
        const request = randomRequest(random);
        const expected = rank(rows, { metric, request });
        const topK = 1 + Math.floor(random() * 30);
        const first = await collection.query({ ...request, topK });
        assert.deepEqual(shown(first.matches), shown(expected.slice(0, topK)));
        assert.equal(first.total, expected.length);
        assert.ok(first.matches.every(({ distance }) => distance === undefined));
        const paged = await readPages(collection, { ...request, limit: 37 });
        assert.deepEqual(shown(paged), shown(expected));
        const threshold = Math.fround(expected[5]?.score ?? 0);
        const range = await collection.query({ ...request, scoreThreshold: threshold, limit: 500 });
        const inRange = expected.filter(({ score }) => Math.fround(score) >= threshold);
        assert.deepEqual(shown(range.matches), shown(inRange));
      }
      await database.close();
    }
  });

  it('gives pages of its first snapshot while examples are deleted', async () => {
    const { database, collection, rows } = await fill(createRandom(3), 'dot', {});
    const recommend = {
      positive: ['v10', 'v11'],
      negative: ['v12'],
      strategy: 'best_score',
      includeExamples: false,
    } as const;
    let next = 10;
    const pages = await readPages(collection, { recommend, limit: 50 }, async () => {
      await collection.delete({ kind: 'ids', ids: [`v${next++}`] }, { dryRun: false });
    });
    const expected = rank(rows, { metric: 'dot', request: { recommend } });
    assert.deepEqual(shown(pages), shown(expected));
    await database.close();
  });

  it('searches with the average of examples, which the cursor keeps', async () => {
    const { database, collection } = await fill(createRandom(4), 'cosine', {});
    const positive = [Float32Array.of(3, 0, 0, 0), Float32Array.of(0, 0.5, 0, 0), 'v20'];
    const negative = [Float32Array.of(0, 0, 2, 0)];
    const { values } = await collection.get('v20', { values: true, metadata: false });
    const length = Math.sqrt(dot(values!, values!));
    const average = Float32Array.from(values!, (value, i) => {
      const positives = ((i === 0 ? 1 : 0) + (i === 1 ? 1 : 0) + value / length) / 3;
      return positives + (positives - (i === 2 ? 1 : 0));
    });
    const recommend = {
      positive,
      negative,
      strategy: 'average_vector',
      includeExamples: false,
    } as const;
    const plain = await collection.query({ vector: average, limit: 500 });
    const expected = plain.matches.filter(({ id }) => id !== 'v20');
    const found = await readPages(collection, { recommend, limit: 90 });
    assert.deepEqual(
      found.map(({ id }) => id),
      expected.map(({ id }) => id),
    );
    const reply = await collection.query({ recommend, limit: 5 });
    const repeated = await collection.query({ recommend, cursor: reply.nextCursor });
    assert.deepEqual(shown(repeated.matches), shown(found.slice(5, 10)));
    const other = { ...recommend, negative: [] };
    await assert.rejects(collection.query({ recommend: other, cursor: reply.nextCursor }), {
      code: 'cursor_mismatch',
    });
    await database.close();
  });

  it('is grouped, sorted and counted like any other', async () => {
    const { database, collection, rows } = await fill(createRandom(5), 'euclidean', {});
    const recommend = {
      positive: ['v20', 'v21'],
      negative: ['v30'],
      strategy: 'best_score',
      includeExamples: false,
    } as const;
    const expected = rank(rows, { metric: 'euclidean', request: { recommend } });
    const groupOf = (id: string) => Number(id.slice(1)) % 10;
    const firstOfGroups = new Map(expected.toReversed().map((row) => [groupOf(row.id), row]));
    const grouped = await collection.query({ recommend, groupBy: 'n', topK: 4 });
    const best = expected.filter((row) => firstOfGroups.get(groupOf(row.id)) === row).slice(0, 4);
    assert.deepEqual(shown(grouped.matches), shown(best));
    const sorted = await collection.query({
      recommend,
      sort: [{ field: 'score', order: 'asc' }],
      topK: 7,
      facets: [{ path: 'n', limit: 10 }],
      scoreStats: {},
    });
    assert.deepEqual(
      new Set(sorted.matches.map(({ id }) => id)),
      new Set(expected.slice(0, 7).map(({ id }) => id)),
    );
    assert.equal(sorted.matches[0]!.score, Math.fround(expected[6]!.score));
    const counted = sorted.facets![0]!.values.reduce((sum, { count }) => sum + count, 0);
    assert.equal(counted, rows.length - 3);
    assert.equal(sorted.scoreStats!.count, expected.length);
    assert.equal(sorted.scoreStats!.max, Math.fround(expected[0]!.score));
    assert.equal(sorted.scoreStats!.min, Math.fround(expected.at(-1)!.score));
    await database.close();
  });

  it('names the example that is wrong', async () => {
    const { database, collection } = await fill(createRandom(6), 'cosine', {});
    const query = (positive: readonly Example[]) =>
      collection.query({
        recommend: { positive, negative: [], strategy: 'best_score', includeExamples: false },
      });
    const issueOf = async (promise: Promise<unknown>) => {
      const error = (await promise.catch((reason: unknown) => reason)) as SagittaError;
      const [{ code, location }] = error.issues as [SagittaError['issues'][number]];
      return { code, location };
    };
    const path = ['recommend', 'positive', 1];
    for (const [example, code] of [
      ['none', 'vector_not_found'],
      [Float32Array.of(1), 'dimension_mismatch'],
      [new Float32Array(DIMENSION), 'invalid_vector'],
    ] as const) {
      const issue = await issueOf(query(['v1', example]));
      assert.deepEqual(issue, { code, location: { kind: 'field', path } });
    }
    await database.close();
  });

  it('is not answered after its signal has aborted', async () => {
    const { database, collection } = await fill(createRandom(7), 'dot', {});
    const recommend = {
      positive: ['v20'],
      negative: [],
      strategy: 'best_score',
      includeExamples: false,
    } as const;
    const signal = AbortSignal.abort(new Error('gone'));
    await assert.rejects(collection.query({ recommend }, { signal }), { message: 'gone' });
    await database.close();
  });
});

/** The greedy choice that `diversify.ts` defines. */
function diversify(
  candidates: readonly (Ranked & { readonly values: ArrayLike<number> })[],
  { metric, lambda }: { metric: Metric; lambda: number },
): Ranked[] {
  const chosen = candidates.slice(0, 1);
  while (chosen.length < candidates.length) {
    const rest = candidates.filter((candidate) => !chosen.includes(candidate));
    const marginOf = ({ values, score }: (typeof rest)[number]) =>
      lambda * score -
      (1 - lambda) * Math.max(...chosen.map((one) => scoreOf(metric, one.values, values)));
    const values = rest.map(marginOf);
    chosen.push(rest[values.indexOf(Math.max(...values))]!);
  }
  return chosen;
}

describe('a diversified query', () => {
  it('chooses greedily among its candidates, for any lambda, metric and page', async () => {
    const seed = testSeed();
    console.log(`seed ${seed}`);
    const random = createRandom(seed);
    for (const metric of VALUE_METRICS) {
      const { database, collection, rows } = await fill(random, metric, {});
      const valuesOf = new Map(rows.map(({ id, values }) => [id, values]));
      for (let round = 0; round < 12; round++) {
        const vector = Float32Array.from(randomValues(random));
        const filter = { n: { $lt: 1 + Math.floor(random() * 9) } };
        const lambda = [0, 1, 0.5, random()][round % 4]!;
        const candidateCount = 1 + Math.floor(random() * 60);
        const nearest = await collection.query({ vector, filter, topK: candidateCount });
        const candidates = nearest.matches.map(({ id }) => {
          const values = valuesOf.get(id)!;
          return { id, values, score: scoreOf(metric, vector, values) };
        });
        const expected = diversify(candidates, { metric, lambda });
        const request = { vector, filter, diversity: { lambda, candidateCount } };
        const topK = Math.min(candidateCount, 7);
        const whole = await collection.query({ ...request, topK });
        assert.deepEqual(shown(whole.matches), shown(expected.slice(0, topK)));
        assert.deepEqual(
          shown(await readPages(collection, { ...request, limit: 4 })),
          shown(expected),
        );
        const part = await collection.query({ ...request, offset: 3, limit: 2 });
        assert.deepEqual(shown(part.matches), shown(expected.slice(3, 5)));
      }
      await database.close();
    }
  });

  it('begins with the same matches however many it returns', async () => {
    const { database, collection } = await fill(createRandom(8), 'dot', {});
    const vector = Float32Array.of(1, 0, 0, 0);
    const diversity = { lambda: 0.5, candidateCount: 390 };
    const first = await collection.query({ vector, diversity, topK: 5 });
    const all = await collection.query({ vector, diversity, topK: 390 });
    assert.deepEqual(shown(all.matches.slice(0, 5)), shown(first.matches));
    assert.equal(new Set(all.matches.map(({ id }) => id)).size, 390);
    await database.close();
  });

  it('diversifies the result of examples by their scores', async () => {
    const { database, collection, rows } = await fill(createRandom(9), 'cosine', {});
    const recommend = {
      positive: ['v20'],
      negative: ['v21'],
      strategy: 'sum_scores',
      includeExamples: false,
    } as const;
    const candidates = rank(rows, { metric: 'cosine', request: { recommend } })
      .slice(0, 50)
      .map((row) => ({ ...row, values: rows.find(({ id }) => id === row.id)!.values }));
    const diversity = { lambda: 0.3, candidateCount: 50 };
    const reply = await collection.query({ recommend, diversity, topK: 10 });
    const expected = diversify(candidates, { metric: 'cosine', lambda: 0.3 });
    assert.deepEqual(shown(reply.matches), shown(expected.slice(0, 10)));
    await database.close();
  });
});
