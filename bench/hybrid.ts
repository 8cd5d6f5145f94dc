// Hybrid queries compared with their parts, over a collection in this process with a pool of two threads: of
// WordNet's glosses and their vectors, or of random words and clusters. The kinds of queries are timed in
// turns. Results are checked against the fusion of complete rankings before anything is timed.
//
//   node dist/bench/hybrid.js                  smoke parameters: seconds, only checks the bench
//   node dist/bench/hybrid.js --full           the parameters of docs/performance.md
//   node dist/bench/hybrid.js --wordnet FILE --vectors FILE
//                 JSON array of objects with "gloss", and a .npy file of float32 with a row for each
//   node dist/bench/hybrid.js --out FILE       also writes the table as Markdown

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { QueryRequest } from '../src/database/api/query-api.js';
import type { CollectionHandle } from '../src/database/collection-handle.js';
import type { Database } from '../src/database/database.js';
import { batchOf, createRandom } from '../test/database/harness.js';
import { EMBEDDED_THREADS, percentiles, withDatabase } from './embedded.js';
import { describeMachine } from './engine/machine.js';
import { readNpy } from './engine/npy.js';
import { quantile } from './engine/timing.js';

const SMOKE = { rowCount: 3_000, dimension: 32, queryCount: 20, checkCount: 5 };
const FULL = { rowCount: 100_000, dimension: 768, queryCount: 200, checkCount: 5 };
const BATCH_ROWS = 2_048;
const CLUSTERS = 256;
const SEED = 7;
const K = 10;
const WORDS_PER_QUERY = 3;

const { values: args } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    wordnet: { type: 'string' },
    vectors: { type: 'string' },
    out: { type: 'string' },
  },
});
const { rowCount, dimension, queryCount, checkCount } = args.full ? FULL : SMOKE;

interface Documents {
  readonly texts: readonly string[];
  /** Row-major [texts, dimension]. */
  readonly values: Float32Array;
  readonly dimension: number;
}

interface Parts {
  readonly vector: Float32Array;
  readonly text: NonNullable<QueryRequest['text']>;
}

/** The kinds of queries that are timed, made from the two parts of a query. */
const KINDS: readonly { readonly name: string; readonly make: (parts: Parts) => QueryRequest }[] = [
  { name: 'vector', make: ({ vector }) => ({ vector, topK: K }) },
  { name: 'text of three words', make: ({ text }) => ({ text, topK: K }) },
  { name: 'both, rrf', make: (parts) => ({ fusion: fuse('rrf', parts), topK: K }) },
  { name: 'both, weighted', make: (parts) => ({ fusion: fuse('weighted', parts), topK: K }) },
  {
    name: 'both, rrf of the best 100 of each',
    make: (parts) => ({ fusion: fuse('rrf', parts, 100), topK: K }),
  },
  {
    name: 'vector among the best 100 by text',
    make: ({ vector, text }) => ({ vector, prefetch: { text, limit: 100 }, topK: K }),
  },
];

const documents = args.wordnet === undefined ? randomDocuments() : readDocuments(args.wordnet);
const lines: string[] = [];
await withDatabase('auto', async (database) => {
  const collection = await fill(database);
  const queries = createQueries();
  for (const parts of queries.slice(0, checkCount)) await check(collection, parts);
  const times = await timeInTurns(collection, queries);
  const sum = quantile(times[0]!, 0.5) + quantile(times[1]!, 0.5);
  for (const [i, { name }] of KINDS.entries()) {
    const ratio = i < 2 ? '' : `${(quantile(times[i]!, 0.5) / sum).toFixed(2)} ×`;
    lines.push(`| ${name} | ${percentiles(times[i]!)} | ${ratio} |`);
  }
});
const table = [
  `Hybrid bench, ${args.full ? 'full' : 'smoke'} parameters: ${documents.texts.length} × ${documents.dimension}, top ${K}, pool of ${EMBEDDED_THREADS}, seed ${SEED}`,
  describeMachine(),
  '',
  '| query | p50 / p99 in ms | p50 to the sum of vector and text |',
  '| --- | --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) writeFileSync(args.out, table);

function fuse(kind: 'rrf' | 'weighted', { vector, text }: Parts, limit?: number) {
  const parts = [
    { vector, weight: 1, limit },
    { text, weight: 1, limit },
  ];
  return { kind, rankConstant: 60, normalize: 'max', parts } as const;
}

async function fill(database: Database): Promise<CollectionHandle> {
  const { texts, values, dimension } = documents;
  await database.createCollection({
    id: 'bench',
    vectors: { '': { kind: 'dense', dimension, metric: 'cosine' } },
    description: null,
    labels: {},
    text: { fields: ['gloss'], language: null, stopWords: [], k1: 1.2, b: 0.75 },
  });
  const collection = database.collection('bench');
  for (let start = 0; start < texts.length; start += BATCH_ROWS) {
    const rows = texts.slice(start, start + BATCH_ROWS).map((gloss, i) => ({
      id: String(start + i).padStart(7, '0'),
      values: Array.from(values.subarray((start + i) * dimension, (start + i + 1) * dimension)),
      metadata: JSON.stringify({ gloss }),
    }));
    await collection.write(batchOf(rows), { mode: 'insert' });
  }
  return collection;
}

/** Creates vectors near rows, each with words from the text of its row. */
function createQueries(): Parts[] {
  const random = createRandom(SEED + 1);
  const { texts, values, dimension } = documents;
  return Array.from({ length: queryCount }, () => {
    const row = Math.floor(random() * texts.length);
    const words = texts[row]!.split(/\W+/).filter((word) => word.length > 2);
    const chosen = Array.from(
      { length: WORDS_PER_QUERY },
      () => words[Math.floor(random() * words.length)] ?? 'none',
    );
    const vector = values
      .slice(row * dimension, (row + 1) * dimension)
      .map((value) => value + (random() - 0.5) * 0.02);
    return { vector, text: { query: chosen.join(' '), match: 'any' } };
  });
}

/** Requires the fused result to be that of complete rankings. */
async function check(collection: CollectionHandle, parts: Parts): Promise<void> {
  const scores = new Map<string, number>();
  for (const part of [{ vector: parts.vector }, { text: parts.text }]) {
    let cursor: string | undefined;
    let rank = 0;
    do {
      const page: QueryRequest = cursor === undefined ? { ...part, limit: 1_000 } : { cursor };
      const { matches, nextCursor } = await collection.query(page);
      for (const { id } of matches) scores.set(id, (scores.get(id) ?? 0) + 1 / (60 + ++rank));
      cursor = nextCursor;
    } while (cursor !== undefined);
  }
  const expected = [...scores]
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .slice(0, K)
    .map(([id, score]) => ({ id, score: Math.fround(score) }));
  const { matches } = await collection.query({ fusion: fuse('rrf', parts), topK: K });
  assert.deepEqual(
    matches.map(({ id, score }) => ({ id, score })),
    expected,
  );
}

/** Returns the milliseconds of each query of each kind. */
async function timeInTurns(
  collection: CollectionHandle,
  queries: readonly Parts[],
): Promise<number[][]> {
  const times: number[][] = KINDS.map(() => []);
  for (const parts of queries) {
    for (const [i, { make }] of KINDS.entries()) {
      await new Promise((resolve) => setImmediate(resolve));
      const startedAt = performance.now();
      await collection.query(make(parts));
      times[i]!.push(performance.now() - startedAt);
    }
  }
  return times;
}

function randomDocuments(): Documents {
  const random = createRandom(SEED);
  const centers = Float32Array.from({ length: CLUSTERS * dimension }, () => random() - 0.5);
  const values = new Float32Array(rowCount * dimension);
  const texts = Array.from({ length: rowCount }, (_, row) => {
    const center = Math.floor(random() * CLUSTERS) * dimension;
    for (let i = 0; i < dimension; i++) {
      values[row * dimension + i] = centers[center + i]! + (random() - 0.5) * 0.7;
    }
    const length = 4 + Math.floor(random() * 16);
    return Array.from({ length }, () => `w${Math.floor(random() ** 3 * 20_000)}`).join(' ');
  });
  return { texts, values, dimension };
}

function readDocuments(path: string): Documents {
  const glosses = (JSON.parse(readFileSync(path, 'utf8')) as { gloss: string }[]).map(
    ({ gloss }) => gloss,
  );
  if (args.vectors === undefined) throw new Error('expected --vectors beside --wordnet');
  const { values, rowCount: found, dimension: width } = readNpy(args.vectors);
  const count = Math.min(found, glosses.length);
  return { texts: glosses.slice(0, count), values, dimension: width };
}
