// Facets, stats and grouped queries over a million rows of a collection in this process, with a pool of two threads.
// Results are checked before they are timed; grouped queries alternate with the same queries without groups.
//
//   node dist/bench/aggregate.js              smoke parameters: a second, only checks the bench
//   node dist/bench/aggregate.js --full       the parameters of docs/performance.md
//   node dist/bench/aggregate.js --out FILE   also writes the table as Markdown

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { AggregateReply, AggregateRequest } from '../src/database/api/aggregate-api.js';
import type { QueryReply } from '../src/database/api/query-api.js';
import type { CollectionHandle } from '../src/database/collection-handle.js';
import type { Database } from '../src/database/database.js';
import { batchOf, createRandom } from '../test/database/harness.js';
import { EMBEDDED_THREADS, percentiles, withDatabase } from './embedded.js';
import { describeMachine } from './engine/machine.js';
import { quantile } from './engine/timing.js';

const SMOKE = { rowCount: 50_000, runCount: 5 };
const FULL = { rowCount: 1_000_000, runCount: 30 };
/** Enough runs for every thread to compile its loops. */
const WARM_UP_RUNS = 5;
const BATCH_ROWS = 8_192;
const DIMENSION = 64;
const SEED = 11;

interface Document {
  readonly price: number;
  readonly year: number;
  readonly category: string;
  readonly name: string;
  readonly tags: readonly string[];
}

const { values: args } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const { rowCount, runCount } = args.full ? FULL : SMOKE;
const lines: string[] = [];
const documents = createDocuments();
await withDatabase('auto', async (database) => {
  const collection = await createCollection(database);
  await groupedQueries(collection);
  await aggregations(collection);
});
const table = [
  `Aggregate bench, ${args.full ? 'full' : 'smoke'} parameters: ${rowCount} rows, pool of ${EMBEDDED_THREADS}, seed ${SEED}`,
  describeMachine(),
  '',
  '| operation | p50 / p99 in ms | goal |',
  '| --- | --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

async function aggregations(collection: CollectionHandle): Promise<void> {
  const facet = (path: string): AggregateRequest => ({ facets: [{ path, limit: 10 }] });
  const distinct = new Set(documents.map(({ category }) => category)).size;
  const hasCategories = ({ facets }: AggregateReply) => {
    const [{ values, distinctCount }] = facets!;
    assert.equal(distinctCount, distinct);
    for (const { value, count } of values) {
      assert.equal(count, documents.filter(({ category }) => category === value).length);
    }
  };
  await measure(collection, 'facet of 1 000 strings', '20 ms', facet('category'), hasCategories);
  await measure(collection, 'facet of 50 numbers', '20 ms', facet('year'));
  await measure(collection, 'facet of arrays of two strings of 50', '', facet('tags'));
  await measure(
    collection,
    'facet of 1 000 strings, of half of the rows (filter cached)',
    '20 ms',
    { ...facet('category'), filter: { price: { $lt: 50_000 } } },
  );
  await measure(collection, 'facet of distinct numbers', '', facet('price'));
  await measure(collection, 'facet of strings that are all distinct', '', facet('name'));
  await measure(
    collection,
    'stats with a histogram of 20 buckets',
    '',
    { stats: [{ path: 'price', histogram: { bucketCount: 20 } }] },
    ({ stats }) =>
      assert.equal(
        stats![0]!.sum,
        documents.reduce((sum, { price }) => sum + price, 0),
      ),
  );
}

async function groupedQueries(collection: CollectionHandle): Promise<void> {
  await measureGroups(collection, 'group_by of 1 000 strings, 10 groups of 1', 'category', 1);
  await measureGroups(collection, 'group_by of 1 000 strings, 10 groups of 3', 'category', 3);
  await measureGroups(collection, 'group_by of 50 numbers, 10 groups of 3', 'year', 3);
  await measureGroups(collection, 'group_by of arrays of strings, 10 groups of 3', 'tags', 3);
}

/** Alternates with the plain query, so that both run under the same conditions. */
async function measureGroups(
  collection: CollectionHandle,
  what: string,
  groupBy: string,
  groupSize: number,
): Promise<void> {
  const random = createRandom(SEED + 2);
  const times: { readonly plain: number[]; readonly grouped: number[] } = {
    plain: [],
    grouped: [],
  };
  for (let i = -WARM_UP_RUNS; i < runCount; i++) {
    const vector = Float32Array.from({ length: DIMENSION }, () => random() - 0.5);
    const plainMs = await timeQuery(() => collection.query({ vector, topK: 10 }), 10);
    const grouped = { vector, topK: 10, groupBy, groupSize };
    const groupedMs = await timeQuery(() => collection.query(grouped), 10 * groupSize);
    if (i < 0) continue;
    times.plain.push(plainMs);
    times.grouped.push(groupedMs);
  }
  const ratio = quantile(times.grouped, 0.5) / quantile(times.plain, 0.5);
  lines.push(
    `| ${what} | ${percentiles(times.grouped)}; ${ratio.toFixed(2)} × the plain query (${percentiles(times.plain)}) | 1.5 × |`,
  );
  console.error(lines.at(-1));
}

async function timeQuery(run: () => Promise<QueryReply>, matchCount: number): Promise<number> {
  const startedAt = performance.now();
  const { matches } = await run();
  const milliseconds = performance.now() - startedAt;
  assert.equal(matches.length, matchCount);
  return milliseconds;
}

async function measure(
  collection: CollectionHandle,
  what: string,
  goal: string,
  request: AggregateRequest,
  check: (reply: AggregateReply) => void = () => {},
): Promise<void> {
  check(await collection.aggregate(request));
  const milliseconds: number[] = [];
  for (let i = -WARM_UP_RUNS; i < runCount; i++) {
    const startedAt = performance.now();
    await collection.aggregate(request);
    if (i >= 0) milliseconds.push(performance.now() - startedAt);
  }
  lines.push(`| ${what} | ${percentiles(milliseconds)} | ${goal} |`);
  console.error(lines.at(-1));
}

async function createCollection(database: Database): Promise<CollectionHandle> {
  await database.createCollection({
    id: 'bench',
    vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
    description: null,
    labels: {},
  });
  const collection = database.collection('bench');
  const random = createRandom(SEED + 1);
  for (let start = 0; start < rowCount; start += BATCH_ROWS) {
    const rows = documents.slice(start, start + BATCH_ROWS).map((document, i) => ({
      id: String(start + i),
      values: Array.from({ length: DIMENSION }, () => random() - 0.5),
      metadata: JSON.stringify(document),
    }));
    await collection.write(batchOf(rows), { mode: 'insert' });
  }
  return collection;
}

function createDocuments(): Document[] {
  const random = createRandom(SEED);
  return Array.from({ length: rowCount }, (_, i) => ({
    price: Math.floor(random() * 100_000),
    year: 1975 + Math.floor(random() * 50),
    category: `category ${Math.floor(random() * 1_000)}`,
    name: `name ${i}`,
    tags: [`tag ${Math.floor(random() * 50)}`, `tag ${Math.floor(random() * 50)}`],
  }));
}
