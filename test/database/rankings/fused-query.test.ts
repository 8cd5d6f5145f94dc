// Compares fused and prefetched queries with the definition, computed from the complete rankings of plain queries:
// for all kinds of vectors, texts and examples, with filters, pages, groups and later writes.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import type { JsonObject, VectorBatch } from '../../../src/common/types.js';
import type { MultiVector, SparseVector } from '../../../src/common/vectors.js';
import type {
  FusionPartRequest,
  FusionRequest,
  Match,
  QueryRequest,
} from '../../../src/database/api/query-api.js';
import type { CollectionHandle } from '../../../src/database/collection-handle.js';
import { IS_NIGHTLY } from '../../support/nightly.js';
import { columnsOf, dense, multi, sparse } from '../../vector-columns.js';
import { batchOf, createRandom, openDatabase, testSeed } from '../harness.js';

type Random = () => number;

const SHAPES = {
  image: { ...dense(4), metric: 'euclidean' },
  words: sparse,
  pages: { ...multi(4), metric: 'cosine' },
} as const;

const COUNT = 700;
const WORDS = ['ape', 'bee', 'cat', 'dog', 'elk', 'fox', 'gnu', 'hen'];
const QUERIES = IS_NIGHTLY ? 40 : 5;

function randomValues(random: Random): Float32Array {
  return Float32Array.from({ length: 4 }, () => Math.round((random() - 0.5) * 16) / 8 + 0.01);
}

function randomWords(random: Random): string {
  const count = Math.floor(random() * 5);
  return Array.from({ length: count }, () => WORDS[Math.floor(random() ** 2 * WORDS.length)]).join(
    ' ',
  );
}

interface Row {
  readonly id: string;
  readonly values: readonly number[];
  readonly metadata: string;
  readonly image: Float32Array | undefined;
  readonly words: SparseVector | undefined;
  readonly pages: MultiVector | undefined;
}

function randomSparse(random: Random): SparseVector {
  const indices = [0, 7, 9, 4_000].filter(() => random() < 0.4);
  return {
    indices: Uint32Array.from([...indices, 5_000]),
    values: Float32Array.from([...indices, 5_000], () => Math.floor(random() * 9) - 3.5),
  };
}

function randomMulti(random: Random): MultiVector {
  const count = 1 + Math.floor(random() * 3);
  const values = Array.from({ length: count }, () => [...randomValues(random)]);
  return { dimension: 4, values: Float32Array.from(values.flat()) };
}

function rowOf(random: Random, id: string): Row {
  const maybe = <Value>(value: Value) => (random() < 0.6 ? value : undefined);
  return {
    id,
    values: [...randomValues(random)],
    metadata: JSON.stringify({ n: Math.floor(random() * 6), title: randomWords(random) }),
    image: maybe(randomValues(random)),
    words: maybe(randomSparse(random)),
    pages: maybe(randomMulti(random)),
  };
}

function rowsBatch(rows: readonly Row[]): VectorBatch {
  const vectors = rows.map(({ image, words, pages }) => ({ image, words, pages }));
  return batchOf(rows, columnsOf(SHAPES, vectors));
}

async function fill(random: Random) {
  const database = await openDatabase({});
  await database.createCollection({
    id: 'c',
    vectors: { '': { ...dense(4), metric: 'cosine' }, ...SHAPES },
    description: null,
    labels: {},
    text: { fields: ['title'], language: null, stopWords: [], k1: 1.2, b: 0.75 },
  });
  const collection = database.collection('c');
  for (let start = 0; start < COUNT; start += 100) {
    const rows = Array.from({ length: 100 }, (_, i) => rowOf(random, `v${start + i}`));
    await collection.write(rowsBatch(rows), { mode: 'insert' });
  }
  return { database, collection };
}

function randomPart(random: Random): FusionPartRequest {
  const weight = random() < 0.5 ? 1 : 0.1 + random() * 3;
  const filter = random() < 0.3 ? { filter: { n: { $gte: 2 } } } : {};
  const limit = random() < 0.3 ? { limit: 1 + Math.floor(random() * 100) } : {};
  const rest = { weight, ...filter, ...limit };
  switch (Math.floor(random() * 7)) {
    case 0:
      return { vector: randomValues(random), ...rest };
    case 1:
      return { vector: randomValues(random), using: 'image', ...rest };
    case 2:
      return { id: `v${Math.floor(random() * COUNT)}`, metric: 'dot', ...rest };
    case 3: {
      const positive = [randomValues(random), `v${Math.floor(random() * COUNT)}`];
      const options = { negative: [], strategy: 'best_score', includeExamples: false } as const;
      return { recommend: { positive, ...options }, ...rest };
    }
    case 4:
      return { sparse: randomSparse(random), using: 'words', ...rest };
    case 5: {
      const multiVector = [randomValues(random), randomValues(random)];
      return { multiVector, using: 'pages', ...rest };
    }
    default:
      return { text: { query: `${WORDS[0]} ${randomWords(random)}`, match: 'any' }, ...rest };
  }
}

const both = (...filters: (JsonObject | undefined)[]): { filter?: JsonObject } => {
  const given = filters.filter((filter) => filter !== undefined);
  return given.length === 0 ? {} : { filter: { $and: given } };
};

/** The complete ranking of a part, including the vectors that it names by id. */
async function rankingOf(
  collection: CollectionHandle,
  { weight: _weight, filter, limit = 10_000, ...part }: FusionPartRequest,
  queryFilter: JsonObject | undefined,
): Promise<readonly Match[]> {
  const { id, recommend, ...rest } = part;
  const [stored] =
    id === undefined
      ? []
      : (await collection.fetch([id], { values: true, metadata: false })).vectors;
  const request: QueryRequest = {
    ...rest,
    ...(stored && { vector: stored.values! }),
    ...(recommend && { recommend: { ...recommend, includeExamples: true } }),
    ...both(filter, queryFilter),
    topK: 10_000,
  };
  return (await collection.query(request)).matches.slice(0, limit);
}

async function fuse(
  collection: CollectionHandle,
  { kind, rankConstant, normalize, parts }: FusionRequest,
  filter: JsonObject | undefined,
): Promise<readonly { id: string; score: number }[]> {
  const scores = new Map<string, number>();
  const excluded = new Set<unknown>();
  for (const part of parts) {
    excluded.add(part.id);
    for (const example of part.recommend?.positive ?? []) excluded.add(example);
    const ranked = await rankingOf(collection, part, filter);
    const divisor = normalize === 'max' ? Math.abs(ranked[0]?.score ?? 1) || 1 : 1;
    for (const [i, { id, score }] of ranked.entries()) {
      const term =
        kind === 'rrf' ? part.weight / (rankConstant + i + 1) : part.weight * (score / divisor);
      scores.set(id, (scores.get(id) ?? 0) + term);
    }
  }
  return [...scores]
    .filter(([id]) => !excluded.has(id))
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .map(([id, score]) => ({ id, score: Math.fround(score) }));
}

function randomFusion(random: Random, kind: FusionRequest['kind']): FusionRequest {
  return {
    kind,
    rankConstant: 60,
    normalize: random() < 0.5 ? 'none' : 'max',
    parts: Array.from({ length: 2 + Math.floor(random() * 2) }, () => randomPart(random)),
  };
}

const plain = (matches: readonly Match[]) => matches.map(({ id, score }) => ({ id, score }));

async function pagesOf(
  collection: CollectionHandle,
  request: QueryRequest,
  between: () => Promise<unknown>,
) {
  const matches: Match[] = [];
  let reply = await collection.query(request);
  matches.push(...reply.matches);
  while (reply.nextCursor !== undefined) {
    await between();
    reply = await collection.query({ cursor: reply.nextCursor });
    matches.push(...reply.matches);
  }
  return matches;
}

describe('a fused query', () => {
  const seed = testSeed();
  it(`ranks by the sum over complete rankings, on stable pages (seed ${seed})`, async () => {
    const random = createRandom(seed);
    const { database, collection } = await fill(random);
    for (let n = 0; n < QUERIES; n++) {
      const fusion = randomFusion(random, 'rrf');
      const filter = random() < 0.4 ? { n: { $lte: 3 } } : undefined;
      const expected = await fuse(collection, fusion, filter);
      const { total } = await collection.query({ fusion, ...both(filter), topK: 1 });
      assert.equal(total, expected.length, JSON.stringify(fusion));
      const topK = 1 + Math.floor(random() * 60);
      const request = { fusion, ...both(filter), topK, limit: 1 + Math.floor(random() * 30) };
      const matches = await pagesOf(collection, request, () =>
        collection.write(rowsBatch([rowOf(random, `v${Math.floor(random() * COUNT)}`)]), {
          mode: 'upsert',
        }),
      );
      assert.deepEqual(plain(matches), expected.slice(0, topK), JSON.stringify(fusion));
    }
    await database.close();
  });

  it(`adds up weighted scores (seed ${seed})`, async () => {
    const random = createRandom(seed + 1);
    const { database, collection } = await fill(random);
    for (let n = 0; n < QUERIES; n++) {
      const fusion = randomFusion(random, 'weighted');
      const expected = new Map(
        (await fuse(collection, fusion, undefined)).map(({ id, score }) => [id, score]),
      );
      const { matches } = await collection.query({ fusion, topK: 40 });
      assert.equal(matches.length, Math.min(40, expected.size));
      const least = matches.at(-1)?.score ?? Number.POSITIVE_INFINITY;
      // Plain queries round the scores that are summed.
      for (const { id, score } of matches) assert.ok(isNear(score, expected.get(id)!), id);
      const given = new Set(matches.map(({ id }) => id));
      for (const [id, score] of expected) {
        if (!given.has(id)) assert.ok(score <= least || isNear(score, least), id);
      }
    }
    await database.close();
  });

  it('groups, sorts, facets and cuts off by the fused score', async () => {
    const random = createRandom(seed + 2);
    const { database, collection } = await fill(random);
    const fusion = randomFusion(random, 'rrf');
    const all = (await collection.query({ fusion, topK: 10_000, includeMetadata: true })).matches;
    const groupOf = ({ metadata }: Match) => (JSON.parse(metadata!) as { n: number }).n;
    const grouped = await collection.query({ fusion, groupBy: 'n', groupSize: 2, topK: 6 });
    const firsts = [...new Set(all.map(groupOf))];
    assert.deepEqual(
      plain(grouped.matches),
      firsts.flatMap((n) => plain(all.filter((match) => groupOf(match) === n).slice(0, 2))),
    );
    const threshold = all[17]!.score;
    const cut = await collection.query({ fusion, scoreThreshold: threshold, limit: 1_000 });
    assert.deepEqual(plain(cut.matches), plain(all.filter(({ score }) => score >= threshold)));
    const sorted = await collection.query({
      fusion,
      topK: 20,
      sort: [{ field: 'id', order: 'asc' }],
    });
    const ids = all.slice(0, 20).map(({ id }) => id);
    assert.deepEqual(
      sorted.matches.map(({ id }) => id),
      ids.sort(),
    );
    const { facets } = await collection.query({ fusion, facets: [{ path: 'n', limit: 10 }] });
    const counts = new Map(facets![0]!.values.map(({ value, count }) => [value, count]));
    for (const n of firsts) {
      assert.equal(counts.get(n), all.filter((match) => groupOf(match) === n).length);
    }
    await database.close();
  });

  it('is rejected with its issues and their locations', async () => {
    const { database, collection } = await fill(createRandom(seed + 3));
    const vector = Float32Array.of(1, 0, 0, 0);
    const options = { kind: 'rrf', rankConstant: 60, normalize: 'none' } as const;
    const query = (...parts: Omit<FusionPartRequest, 'weight'>[]): QueryRequest => ({
      fusion: { ...options, parts: parts.map((part) => ({ ...part, weight: 1 })) },
    });
    const cases: [QueryRequest, string, string][] = [
      [query({ vector }, {}), 'invalid_request', 'fusion/parts/1/vector'],
      [query({ vector }, { vector, id: 'v1' }), 'invalid_request', 'fusion/parts/1/id'],
      [
        query({ vector }, { vector: vector.slice(1) }),
        'dimension_mismatch',
        'fusion/parts/1/vector',
      ],
      [query({ vector }, { id: 'none' }), 'vector_not_found', 'fusion/parts/1/id'],
      [query({ vector }, { vector, using: 'x' }), 'invalid_request', 'fusion/parts/1/using'],
      [
        query({ vector, filter: { $no: 1 } }, { vector }),
        'invalid_filter',
        'fusion/parts/0/filter/$no',
      ],
      [{ ...query({ vector }, { vector }), vector }, 'invalid_request', 'fusion'],
      [{ ...query({ vector }, { vector }), metric: 'dot' }, 'invalid_request', 'metric'],
      [{ ...query({ vector }, { vector }), scoreStats: {} }, 'invalid_request', 'score_stats'],
      [{ ...query({ vector }, { vector }), diversity: { lambda: 1 } }, 'invalid_request', 'mmr'],
      [{ vector, prefetch: { limit: 10 } }, 'invalid_request', 'prefetch/vector'],
      [{ vector, prefetch: { id: 'none', limit: 10 } }, 'vector_not_found', 'prefetch/id'],
    ];
    for (const [request, code, path] of cases) {
      await assert.rejects(collection.query(request), (error: SagittaError) => {
        const { location } = error.issues[0]!;
        const found = location.kind === 'field' ? location.path.join('/') : '';
        assert.deepEqual([error.issues[0]!.code, found], [code, path]);
        return true;
      });
    }
    await database.close();
  });
});

describe('a prefetch', () => {
  const seed = testSeed();
  it(`restricts a query to the first rows of another ranking (seed ${seed})`, async () => {
    const random = createRandom(seed);
    const { database, collection } = await fill(random);
    for (let n = 0; n < QUERIES; n++) {
      const { weight: _weight, limit: _limit, ...first } = randomPart(random);
      const stage = random() < 0.3 ? { fusion: randomFusion(random, 'rrf') } : first;
      const filter = random() < 0.5 ? { n: { $lte: 3 } } : undefined;
      const limit = 1 + Math.floor(random() * 80);
      const firstStage = await collection.query({
        ...stage,
        ...both('filter' in stage ? stage.filter : undefined, filter),
        topK: limit,
      });
      const ids = firstStage.matches.map(({ id }) => id);
      const among = both(filter, { $id: { $in: ids } });
      const second: QueryRequest =
        random() < 0.3
          ? { fusion: randomFusion(random, 'rrf') }
          : { vector: randomValues(random), using: 'image' };
      const expected = await collection.query({ ...second, ...among, topK: 1_000 });
      const request = { ...second, ...both(filter), prefetch: { ...stage, limit }, topK: 1_000 };
      const matches = await pagesOf(collection, { ...request, limit: 7 }, async () => {});
      assert.deepEqual(plain(matches), plain(expected.matches), JSON.stringify(request));
      const { total } = await collection.query(request);
      assert.equal(total, expected.total);
    }
    await database.close();
  });
});

function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1e-5 * Math.max(1, Math.abs(a));
}
