// Compares text queries with BM25 computed from the documents alone, over a random history of writes and deletions,
// with filters, pages, small segments and all settings.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import type { TextSettings } from '../../../src/common/text-settings.js';
import type { QueryReply, QueryRequest } from '../../../src/database/api/query-api.js';
import type { CollectionHandle } from '../../../src/database/collection-handle.js';
import type { Database } from '../../../src/database/database.js';
import { createMemoryState } from '../../../src/storage/memory-store.js';
import { IS_NIGHTLY } from '../../support/nightly.js';
import { batchOf, createRandom, openDatabase, testSeed } from '../harness.js';

const SEED = testSeed();
const STEPS = IS_NIGHTLY ? 12 : 9;
const SETTINGS: TextSettings = {
  fields: ['title', 'body.text'],
  language: null,
  stopWords: [],
  k1: 1.2,
  b: 0.75,
};

type Random = () => number;

interface TestDocument {
  readonly id: string;
  readonly words: readonly string[];
  readonly n: number;
}

/** A few words are in most documents, and most words in few documents. */
function randomWord(random: Random): string {
  return `w${Math.floor(random() ** 3 * 60)}`;
}

function randomDocument(random: Random, id: string): TestDocument {
  const length = random() < 0.1 ? 0 : Math.floor(random() ** 2 * 20);
  const words = Array.from({ length }, () => randomWord(random));
  return { id, words, n: Math.floor(random() * 4) };
}

function toVector({ id, words, n }: TestDocument) {
  const half = words.length >>> 1;
  const title = words.slice(0, half).join(' ');
  const text = [words.slice(half).join(', '), 17, null];
  return { id, values: [1, 0], metadata: JSON.stringify({ n, title, body: { text } }) };
}

/** BM25 by its definition, term by term in the order of their bytes. */
function bruteForce(
  documents: readonly TestDocument[],
  query: readonly string[],
  { k1, b }: TextSettings,
): Map<string, number> {
  const counted = documents.filter(({ words }) => words.length > 0);
  const lengthSum = counted.reduce((sum, { words }) => sum + words.length, 0);
  const terms = [...new Set(query)].sort();
  const scores = new Map<string, number>();
  for (const { id, words } of counted) {
    let score = 0;
    for (const term of terms) {
      const count = words.filter((word) => word === term).length;
      if (count === 0) continue;
      const containing = counted.filter((other) => other.words.includes(term)).length;
      const idf = Math.log(1 + (counted.length - containing + 0.5) / (containing + 0.5));
      const inQuery = query.filter((word) => word === term).length;
      const norm = k1 * (1 - b + b * (words.length / (lengthSum / counted.length)));
      score += (inQuery * (idf * (k1 + 1))) / (1 + norm / count);
    }
    if (score > 0) scores.set(id, score);
  }
  return scores;
}

function ranked(scores: ReadonlyMap<string, number>): { id: string; score: number }[] {
  return [...scores]
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .map(([id, score]) => ({ id, score: Math.fround(score) }));
}

async function create(database: Database, text: TextSettings = SETTINGS) {
  const shape = {
    vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
    description: null,
    labels: {},
  } as const;
  await database.createCollection({ id: 'c', ...shape, text });
  return database.collection('c');
}

const matchesOf = ({ matches }: QueryReply) => matches.map(({ id, score }) => ({ id, score }));

async function write(collection: CollectionHandle, documents: readonly TestDocument[]) {
  await collection.write(batchOf(documents.map(toVector)), { mode: 'upsert' });
}

async function runHistory(seed: number, settings: TextSettings): Promise<void> {
  const random = createRandom(seed);
  const state = createMemoryState();
  let database = await openDatabase({ state });
  await create(database, settings);
  const documents = new Map<string, TestDocument>();
  for (let step = 0; step < STEPS; step++) {
    const collection = database.collection('c');
    const written = Array.from({ length: 1 + Math.floor(random() * 60) }, () =>
      randomDocument(random, `d${Math.floor(random() * 200)}`),
    );
    for (const document of written) documents.set(document.id, document);
    await write(collection, [...new Map(written.map((one) => [one.id, one])).values()]);
    const gone = `d${Math.floor(random() * 200)}`;
    await collection.delete({ kind: 'ids', ids: [gone] }, { dryRun: false });
    documents.delete(gone);
    for (let i = 0; i < 4; i++)
      await checkQuery(collection, [...documents.values()], settings, random);
    if (step !== 7) continue;
    await database.close();
    database = await openDatabase({ state });
  }
  await database.close();
}

async function checkQuery(
  collection: CollectionHandle,
  documents: readonly TestDocument[],
  settings: TextSettings,
  random: Random,
): Promise<void> {
  const query = Array.from({ length: 1 + Math.floor(random() * 5) }, () => randomWord(random));
  const match = random() < 0.7 ? 'any' : 'all';
  const filter = random() < 0.5 ? undefined : { n: Math.floor(random() * 4) };
  const scores = bruteForce(documents, query, settings);
  const passing = documents.filter(
    ({ n, words }) =>
      (filter === undefined || n === filter.n) &&
      (match === 'any' || query.every((word) => words.includes(word))),
  );
  const passingIds = new Set(passing.map(({ id }) => id));
  const expected = ranked(scores).filter(({ id }) => passingIds.has(id));
  const request: QueryRequest = { text: { query: query.join(' '), match }, filter };
  const topK = 1 + Math.floor(random() * 20);
  const reply = await collection.query({ ...request, topK, explain: true });
  assert.deepEqual(matchesOf(reply), expected.slice(0, topK));
  assert.equal(reply.total, expected.length);
  assert.equal(reply.explain!.engine, 'text');
  assert.deepEqual(await readPages(collection, { ...request, limit: topK }), expected);
  await checkFilter(collection, documents, query, filter);
  const worst = expected.at(Math.floor(expected.length / 2));
  if (worst === undefined) return;
  const atLeast = await collection.query({ ...request, scoreThreshold: worst.score, limit: 1_000 });
  assert.deepEqual(
    matchesOf(atLeast),
    expected.filter(({ score }) => score >= worst.score),
  );
}

/** Rows with all words, and rows without. */
async function checkFilter(
  collection: CollectionHandle,
  documents: readonly TestDocument[],
  query: readonly string[],
  other: { readonly n: number } | undefined,
): Promise<void> {
  const filter = { ...other, $text: { $match: query.join(' ') } };
  const [passing, rest] = [true, false].map((isMatch) =>
    documents.filter(
      ({ words, n }) =>
        query.every((word) => words.includes(word)) === isMatch &&
        (other === undefined || n === other.n),
    ),
  );
  assert.equal(await collection.count(filter), passing!.length);
  const without = { ...other, $not: { $text: filter.$text } };
  const { vectors } = await collection.list({ filter: without, limit: 1_000 });
  assert.deepEqual(vectors.map(({ id }) => id).sort(), rest!.map(({ id }) => id).sort());
}

async function readPages(collection: CollectionHandle, request: QueryRequest) {
  const found = [];
  let page = await collection.query(request);
  found.push(...matchesOf(page));
  while (page.nextCursor !== undefined) {
    page = await collection.query({ cursor: page.nextCursor });
    found.push(...matchesOf(page));
  }
  return found;
}

describe('a text query', () => {
  for (let round = 0; round < (IS_NIGHTLY ? 12 : 1); round++) {
    const seed = SEED + round;
    const random = createRandom(seed);
    const settings = { ...SETTINGS, k1: [1.2, 0, 3][round % 3]!, b: random() < 0.5 ? 0.75 : 1 };
    it(`gives the scores of all rows, to the last bit, at any time of a random history (seed ${seed})`, () =>
      runHistory(seed, settings));
  }

  it('pages through the snapshot of its first page, whatever is written later', async () => {
    const collection = await create(await openDatabase({}));
    const random = createRandom(SEED);
    const documents = Array.from({ length: 150 }, (_, i) => randomDocument(random, `d${i}`));
    await write(collection, documents);
    const expected = ranked(bruteForce(documents, ['w0', 'w5'], SETTINGS));
    const first = await collection.query({ text: { query: 'w5 w0', match: 'any' }, limit: 7 });
    await write(
      collection,
      documents.slice(0, 90).map(({ id }) => ({ id, words: ['w0', 'w5', 'w5'], n: 0 })),
    );
    const rest = await readPages(collection, { cursor: first.nextCursor });
    assert.deepEqual([...matchesOf(first), ...rest], expected);
  });

  it('scores few of many rows when their bounds are low', async () => {
    const collection = await create(await openDatabase({ limits: { segmentRowsMax: 65_536 } }));
    const common = Array.from({ length: 20_000 }, (_, i) => ({
      id: `d${i}`,
      words: i >= 10_000 && i < 10_100 ? ['often'] : ['often', 'long', 'text', `x${i % 7}`],
      n: 0,
    }));
    await write(collection, common);
    const reply = await collection.query({
      text: { query: 'often', match: 'any' },
      topK: 10,
      explain: true,
    });
    assert.equal(reply.total, 20_000);
    assert.deepEqual(
      reply.matches.map(({ id }) => id),
      common.slice(10_000, 10_010).map(({ id }) => id),
    );
    assert.ok(reply.work.candidatesRescored <= 1_024, String(reply.work.candidatesRescored));
  });

  it('finds stems and leaves out stop words, in documents and in queries', async () => {
    const settings = { ...SETTINGS, language: 'english', stopWords: ['The'] } as const;
    const collection = await create(await openDatabase({}), settings);
    await write(collection, [
      { id: 'a', words: ['the', 'Running', 'dogs'], n: 0 },
      { id: 'b', words: ['the', 'cat'], n: 0 },
    ]);
    const idsOf = async (query: string) => {
      const reply = await collection.query({ text: { query, match: 'all' } });
      return reply.matches.map(({ id }) => id);
    };
    assert.deepEqual(await idsOf('the DOG runs'), ['a']);
    assert.deepEqual(await idsOf('cats!'), ['b']);
    assert.deepEqual(await idsOf('the'), []);
    assert.deepEqual(await idsOf('?'), []);
  });

  it('groups and facets the rows that match', async () => {
    const collection = await create(await openDatabase({}));
    await write(collection, [
      { id: 'a', words: ['fox', 'fox'], n: 1 },
      { id: 'b', words: ['fox', 'dog'], n: 1 },
      { id: 'c', words: ['fox', 'dog', 'cat'], n: 2 },
      { id: 'd', words: ['dog'], n: 3 },
    ]);
    const reply = await collection.query({
      text: { query: 'fox', match: 'any' },
      groupBy: 'n',
      facets: [{ path: 'n', limit: 10 }],
    });
    assert.deepEqual(
      reply.matches.map(({ id, group }) => [id, group]),
      [
        ['a', 1],
        ['c', 2],
      ],
    );
    assert.deepEqual(
      reply.facets![0]!.values.map(({ value, count }) => [value, count]),
      [
        [1, 2],
        [2, 1],
      ],
    );
  });

  it('is rejected with the issue', async () => {
    const database = await openDatabase({ limits: { textTermsMax: 2 } });
    const collection = await create(database);
    const shape = {
      vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
      description: null,
      labels: {},
    } as const;
    await database.createCollection({ id: 'plain', ...shape });
    const text = { query: 'a', match: 'any' } as const;
    const rejects = async (handle: CollectionHandle, request: QueryRequest) => {
      const error: SagittaError = await handle.query(request).then(
        () => assert.fail('it was answered'),
        (reason) => reason,
      );
      const [issue] = error.issues;
      return [issue!.code, issue!.location.path.join('.'), issue!.detail];
    };
    assert.deepEqual(await rejects(database.collection('plain'), { text }), [
      'invalid_request',
      'text',
      'Collection "plain" has no text index. Name the fields to search in "text" when a collection is created.',
    ]);
    assert.deepEqual(await rejects(collection, { text: { ...text, query: 'c b a' } }), [
      'limit_exceeded',
      'text',
      'Expected at most 2 different words; found 3.',
    ]);
    assert.deepEqual(await rejects(collection, { text, id: 'a' }), [
      'invalid_request',
      'text',
      'Expected one of vector, id, multi_vector, embed, text, sparse, recommend, discover, fusion; found id and text.',
    ]);
    const filter = { $text: { $match: 'a' } };
    const vector = Float32Array.of(1, 0);
    const plain = database.collection('plain');
    assert.deepEqual(await rejects(plain, { vector, filter }), [
      'invalid_filter',
      'filter.$text',
      '$text needs a text index, which the collection lacks. Name the fields to search in "text" when you create a collection.',
    ]);
    assert.deepEqual((await rejects(collection, { text, metric: 'dot' })).slice(0, 2), [
      'invalid_request',
      'metric',
    ]);
  });
});
