// Queries by words over a collection in this process, with a pool of two threads: of WordNet's glosses with
// --wordnet FILE, otherwise of random words; and the same queries over sparse vectors of the weights that BM25
// gives the words. Results are checked against the scores of every document before anything is timed. SQLite's
// FTS5, through Python, answers the same queries in the same run.
//
//   node dist/bench/text.js                   smoke parameters: seconds, only checks the bench
//   node dist/bench/text.js --full            the parameters of docs/performance.md
//   node dist/bench/text.js --wordnet FILE    JSON array of objects with "gloss", from make_wordnet.py
//   node dist/bench/text.js --out FILE        also writes the table as Markdown

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/common/clock.js';
import { DEFAULT_LIMITS } from '../src/common/limits.js';
import { silentLogger } from '../src/common/logger.js';
import type { SparseVector } from '../src/common/vectors.js';
import type { QueryRequest } from '../src/database/api/query-api.js';
import type { CollectionHandle } from '../src/database/collection-handle.js';
import { Database } from '../src/database/database.js';
import { createReferenceEngine } from '../src/engine/core/reference-engine.js';
import { analyzerOf } from '../src/inverted/analyzer.js';
import { lengthNorms, termScore, termWeight } from '../src/inverted/bm25.js';
import { createThreadPool } from '../src/platform/pool.js';
import { createMemoryState, createMemoryStore } from '../src/storage/memory-store.js';
import { batchOf, createRandom } from '../test/database/harness.js';
import { columnOf, dense, sparse } from '../test/vector-columns.js';
import { describeMachine, ROOT } from './engine/machine.js';
import { quantile } from './engine/timing.js';

const SMOKE = { documentCount: 5_000, queryCount: 50, checkCount: 20 };
const FULL = { documentCount: 120_000, queryCount: 150, checkCount: 10 };
const THREADS = 2;
const BATCH_ROWS = 8_192;
const SEED = 5;
const K = 10;
const SETTINGS = { fields: ['gloss'], language: null, stopWords: [], k1: 1.2, b: 0.75 };
/** The kinds of queries that are measured, by their number of words. */
const KINDS = [
  { name: 'one word of a gloss', wordCount: 1 },
  { name: 'three words of a gloss', wordCount: 3 },
  { name: 'a whole gloss', wordCount: Number.POSITIVE_INFINITY },
];

const { values: args } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    wordnet: { type: 'string' },
    out: { type: 'string' },
  },
});
const { documentCount, queryCount, checkCount } = args.full ? FULL : SMOKE;
const documents = args.wordnet === undefined ? randomTexts() : readGlosses(args.wordnet);
const terms = documents.map(termsOf);
/** The index of each word in sparse vectors. */
const indexOf = new Map([...new Set(terms.flat())].sort().map((term, index) => [term, index]));
const vectors = weightVectors();
const pool = createThreadPool({
  threadCount: THREADS,
});
const database = await Database.open({
  store: createMemoryStore({ state: createMemoryState() }),
  engine: createReferenceEngine({ pool }),
  engineReason: 'bench',
  pool,
  limits: DEFAULT_LIMITS,
  clock: systemClock,
  logger: silentLogger,
});
const lines: string[] = [];
let checksum = 0;
try {
  await database.loaded;
  const collection = await createCollection();
  const startedAt = performance.now();
  await collection.query({ text: { query: 'a', match: 'any' } });
  const indexMs = performance.now() - startedAt;
  const sparseStartedAt = performance.now();
  await collection.query({ sparse: vectors[0]!, using: 'words' });
  const sparseIndexMs = performance.now() - sparseStartedAt;
  const queries = KINDS.map(({ wordCount }) => randomQueries(wordCount));
  for (const some of queries) {
    await check(collection, some.slice(0, checkCount));
    await checkSparse(collection, some.slice(0, checkCount));
  }
  const peer = runPeer(queries);
  for (const [i, { name }] of KINDS.entries()) {
    const own = await measure(collection, queries[i]!, (query) => ({
      text: { query, match: 'any' },
    }));
    const sparse = await measure(collection, queries[i]!, (query) => ({
      sparse: queryVector(query),
      using: 'words',
    }));
    const ratio =
      peer === null ? '' : `${(quantile(peer[i]!, 0.5) / quantile(own, 0.5)).toFixed(1)} ×`;
    const theirs = peer === null ? 'not available' : percentiles(peer[i]!);
    const sparseShare = `${(quantile(sparse, 0.5) / quantile(own, 0.5)).toFixed(2)} ×`;
    lines.push(
      `| ${name} | ${percentiles(own)} | ${theirs} | ${ratio} | ${percentiles(sparse)} | ${sparseShare} |`,
    );
    console.error(lines.at(-1));
  }
  lines.push(
    '',
    `The index of words was built in ${Math.round(indexMs)} ms, that of sparse vectors in ${Math.round(sparseIndexMs)} ms. Checksum ${checksum.toFixed(3)}.`,
  );
} finally {
  await database.close();
  await pool.close();
}
const table = [
  `Text bench, ${args.full ? 'full' : 'smoke'} parameters: ${documents.length} documents, top ${K} of queries with any of their words, pool of ${THREADS}, seed ${SEED}`,
  describeMachine(),
  '',
  '| query | p50 / p99 in ms | SQLite FTS5 | p50 of FTS5 to ours | as sparse vectors | p50 to that by words |',
  '| --- | --- | --- | --- | --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) writeFileSync(args.out, table);

async function createCollection(): Promise<CollectionHandle> {
  const shape = {
    vectors: { '': { ...dense(1), metric: 'dot' }, words: sparse },
    description: null,
    labels: {},
  } as const;
  await database.createCollection({ id: 'bench', ...shape, text: SETTINGS });
  const collection = database.collection('bench');
  for (let start = 0; start < documents.length; start += BATCH_ROWS) {
    const rows = documents.slice(start, start + BATCH_ROWS).map((gloss, i) => ({
      id: idOf(start + i),
      values: [1],
      metadata: JSON.stringify({ gloss }),
    }));
    const words = columnOf('words', sparse, vectors.slice(start, start + rows.length));
    await collection.write(batchOf(rows, [words]), { mode: 'insert' });
  }
  return collection;
}

/** Returns ids in the order of the documents. */
function idOf(index: number): string {
  return String(index).padStart(7, '0');
}

async function measure(
  collection: CollectionHandle,
  queries: readonly string[],
  requestOf: (query: string) => QueryRequest,
) {
  const milliseconds: number[] = [];
  for (const request of queries.map(requestOf)) {
    const startedAt = performance.now();
    const { matches } = await collection.query({ ...request, topK: K });
    milliseconds.push(performance.now() - startedAt);
    checksum += matches[0]!.score;
  }
  return milliseconds;
}

/** Compares ids and scores with those computed over all documents. */
async function check(collection: CollectionHandle, queries: readonly string[]): Promise<void> {
  for (const query of queries) {
    const reply = await collection.query({ text: { query, match: 'any' }, topK: K });
    const found = reply.matches.map(({ id, score }) => ({ id, score }));
    assert.deepEqual(found, bruteForce(query), query);
  }
}

/** Compares ids and scores of sparse vectors with those computed over all of them. */
async function checkSparse(
  collection: CollectionHandle,
  queries: readonly string[],
): Promise<void> {
  for (const query of queries) {
    const sparse = queryVector(query);
    const reply = await collection.query({ sparse, using: 'words', topK: K });
    const weights = new Map(Array.from(sparse.indices, (index, i) => [index, sparse.values[i]!]));
    const scored = vectors.map(({ indices, values }, row) => {
      let score = 0;
      for (const [i, index] of indices.entries()) score += (weights.get(index) ?? 0) * values[i]!;
      return { row, score };
    });
    const best = scored
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score || a.row - b.row)
      .slice(0, K);
    assert.deepEqual(
      reply.matches.map(({ id, score }) => ({ id, score })),
      best.map(({ row, score }) => ({ id: idOf(row), score: Math.fround(score) })),
      query,
    );
  }
}

/** Returns the weights that BM25 gives the words of each document, by the index of the word. */
function weightVectors(): SparseVector[] {
  const containing = new Map<string, number>();
  for (const words of terms) {
    for (const term of new Set(words)) containing.set(term, (containing.get(term) ?? 0) + 1);
  }
  const averageLength = terms.reduce((sum, { length }) => sum + length, 0) / terms.length;
  return terms.map((words) =>
    vectorOf(words, (term, count) => {
      const containingCount = containing.get(term)!;
      const statistics = { documentCount: terms.length, containingCount };
      const norms = lengthNorms(words.length, averageLength, SETTINGS);
      return termScore(termWeight(statistics, 1, SETTINGS), count, norms[words.length]!);
    }),
  );
}

function queryVector(query: string): SparseVector {
  return vectorOf(termsOf(query), (_term, count) => count);
}

function vectorOf(
  words: readonly string[],
  weightOf: (term: string, count: number) => number,
): SparseVector {
  const distinct = [...new Set(words)].sort((a, b) => indexOf.get(a)! - indexOf.get(b)!);
  const counted = distinct.map((term) => weightOf(term, words.filter((w) => w === term).length));
  return {
    indices: Uint32Array.from(distinct, (term) => indexOf.get(term)!),
    values: Float32Array.from(counted),
  };
}

function bruteForce(query: string): { id: string; score: number }[] {
  const lengthSum = terms.reduce((sum, { length }) => sum + length, 0);
  const inQuery = termsOf(query);
  const distinct = [...new Set(inQuery)].sort();
  const counts = distinct.map((term) =>
    terms.map((words) => words.reduce((count, word) => count + Number(word === term), 0)),
  );
  const scores = new Float64Array(terms.length);
  for (const [i, term] of distinct.entries()) {
    const containing = counts[i]!.filter((count) => count > 0).length;
    const idf = Math.log(1 + (terms.length - containing + 0.5) / (containing + 0.5));
    const weight = inQuery.filter((word) => word === term).length * (idf * (SETTINGS.k1 + 1));
    for (const [row, count] of counts[i]!.entries()) {
      if (count === 0) continue;
      const { length } = terms[row]!;
      const share = length / (lengthSum / terms.length);
      scores[row]! += weight / (1 + (SETTINGS.k1 * (1 - SETTINGS.b + SETTINGS.b * share)) / count);
    }
  }
  return [...scores.keys()]
    .filter((row) => scores[row]! > 0)
    .sort((a, b) => scores[b]! - scores[a]! || a - b)
    .slice(0, K)
    .map((row) => ({ id: idOf(row), score: Math.fround(scores[row]!) }));
}

/** Returns the milliseconds of each query of each kind, or null without Python or FTS5. */
function runPeer(queries: readonly (readonly string[])[]): number[][] | null {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-bench-'));
  try {
    const request = join(folder, 'request.json');
    const words = queries.map((some) => some.map((query) => [...new Set(termsOf(query))]));
    writeFileSync(request, JSON.stringify({ documents, queries: words, k: K }));
    const script = join(ROOT, 'bench', 'peers', 'sqlite_fts5.py');
    const { status, stdout, stderr } = spawnSync('python3', [script, request], {
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
    if (status === 0) return JSON.parse(stdout);
    console.error(`SQLite FTS5 did not run: ${stderr}`);
    return null;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function termsOf(text: string): string[] {
  const found: string[] = [];
  analyzerOf(SETTINGS).visitTerms(text, (term) => found.push(term));
  return found;
}

function randomQueries(wordCount: number): string[] {
  const random = createRandom(SEED + 1);
  return Array.from({ length: queryCount }, () => {
    const words = terms[Math.floor(random() * terms.length)]!;
    if (wordCount >= words.length) return words.join(' ');
    const chosen = Array.from(
      { length: wordCount },
      () => words[Math.floor(random() * words.length)],
    );
    return chosen.join(' ');
  });
}

/** Few words are frequent and most are rare, as in a language. */
function randomTexts(): string[] {
  const random = createRandom(SEED);
  return Array.from({ length: documentCount }, () => {
    const length = 4 + Math.floor(random() * 16);
    const words = Array.from({ length }, () => `w${Math.floor(30_000 ** random())}`);
    return words.join(' ');
  });
}

function readGlosses(path: string): string[] {
  const records = JSON.parse(readFileSync(path, 'utf8')) as { readonly gloss: string }[];
  return records
    .map(({ gloss }) => gloss)
    .filter((gloss) => /\w/.test(gloss))
    .slice(0, documentCount);
}

function percentiles(milliseconds: readonly number[]): string {
  return [0.5, 0.99].map((share) => quantile(milliseconds, share).toFixed(2)).join(' / ');
}
