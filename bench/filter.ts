// Filters over the metadata of a million rows in segments: uncached on one thread, uncached in a pool of
// two threads, and cached. Counts are checked against a plain loop.
//
//   node dist/bench/filter.js                 smoke parameters: a second, only checks the bench
//   node dist/bench/filter.js --full          the parameters of docs/performance.md
//   node dist/bench/filter.js --out FILE      also writes the table as Markdown

import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { countBits } from '../src/common/bitmap.js';
import { DEFAULT_LIMITS } from '../src/common/limits.js';
import type { JsonObject } from '../src/common/types.js';
import { countVisible, takeSnapshot } from '../src/database/collection/snapshot.js';
import { FilterCache } from '../src/database/query/filter-cache.js';
import { evaluateFilter } from '../src/filter/evaluate.js';
import { selectRows } from '../src/filter/evaluate-task.js';
import type { FilterNode } from '../src/filter/filter-node.js';
import { parseFilter } from '../src/filter/parse.js';
import { createThreadPool } from '../src/platform/pool.js';
import { Segment } from '../src/segment/segment.js';
import { batchOf, createRandom } from '../test/database/harness.js';

const SMOKE = { rowCount: 100_000, runCount: 20 };
const FULL = { rowCount: 1_000_000, runCount: 300 };
/** Enough runs for every thread to compile its loops. */
const WARM_UP_RUNS = 30;
const THREADS = 2;
const BATCH_ROWS = 8_192;
const SEED = 11;

interface Document {
  readonly price: number;
  readonly category: string;
  readonly name: string;
  readonly tags: readonly string[];
  readonly discount?: number;
}

interface Predicate {
  readonly what: string;
  readonly filter: JsonObject;
  readonly keeps: (document: Document) => boolean;
}

const TEN = Array.from({ length: 10 }, (_, i) => `category ${i * 97}`);

const PREDICATES: readonly Predicate[] = [
  {
    what: 'integer range, half of the rows',
    filter: { price: { $gte: 25_000, $lt: 75_000 } },
    keeps: ({ price }) => price >= 25_000 && price < 75_000,
  },
  {
    what: 'integer range with one bound',
    filter: { price: { $gte: 90_000 } },
    keeps: ({ price }) => price >= 90_000,
  },
  {
    what: 'string equality, 1 of 1 000',
    filter: { category: 'category 7' },
    keeps: ({ category }) => category === 'category 7',
  },
  {
    what: 'string equality, all values distinct',
    filter: { name: 'name 4711' },
    keeps: ({ name }) => name === 'name 4711',
  },
  {
    what: '$in of 10 strings of 1 000',
    filter: { category: { $in: TEN } },
    keeps: ({ category }) => TEN.includes(category),
  },
  {
    what: '$and of an integer range and a string equality',
    filter: { $and: [{ price: { $gte: 25_000, $lt: 75_000 } }, { category: 'category 7' }] },
    keeps: ({ price, category }) => price >= 25_000 && price < 75_000 && category === 'category 7',
  },
  {
    what: 'integer range over a path that is missing in half of the rows',
    filter: { discount: { $gte: 20, $lt: 60 } },
    keeps: ({ discount }) => discount !== undefined && discount >= 20 && discount < 60,
  },
  {
    what: '$contains over arrays of two strings of 50',
    filter: { tags: { $contains: 'tag 7' } },
    keeps: ({ tags }) => tags.includes('tag 7'),
  },
];

const { values: args } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    out: { type: 'string' },
  },
});
const { rowCount, runCount } = args.full ? FULL : SMOKE;

const documents = createDocuments(rowCount);
const segments = createSegments(documents);
const views = segments.map((segment) => segment.metadataView());
const pool = createThreadPool({
  workerUrl: new URL('../src/worker.js', import.meta.url),
  threadCount: THREADS,
});
const lines: string[] = [];
try {
  for (const { what, filter, keeps } of PREDICATES) {
    const node = parseFilter(filter, DEFAULT_LIMITS);
    const expected = documents.filter(keeps).length;
    const oneThread = await measure(expected, async () => oneByOne(node));
    const throughPool = await measure(expected, () => inPool(node));
    const filters = new FilterCache({ pool, bytesMax: DEFAULT_LIMITS.filterCacheBytesMax });
    const fromCache = await measure(expected, () => cached(filters, node));
    lines.push(`| ${what} | ${expected} | ${oneThread} | ${throughPool} | ${fromCache} |`);
    console.error(lines.at(-1));
  }
} finally {
  await pool.close();
}
const table = [
  `Filter bench, ${args.full ? 'full' : 'smoke'} parameters: ${rowCount} rows in ${segments.length} segments, seed ${SEED}`,
  `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.version}; p50 / p99 of ${runCount} runs in ms`,
  '',
  `| predicate | rows | one thread | with a pool of ${THREADS} | cached |`,
  '| --- | --- | --- | --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

function oneByOne(node: FilterNode): number {
  let count = 0;
  for (const view of views) count += countBits(evaluateFilter(node, view));
  return count;
}

async function inPool(node: FilterNode): Promise<number> {
  let count = 0;
  for (const { rows } of selectRows(pool, node, views)) count += countBits((await rows)!);
  return count;
}

/** As a query does: the views of a snapshot, through the filter cache. */
async function cached(filters: FilterCache, node: FilterNode): Promise<number> {
  const { views } = takeSnapshot(segments, Number.MAX_SAFE_INTEGER);
  return countVisible(await filters.filter(views, node));
}

async function measure(expected: number, run: () => Promise<number>): Promise<string> {
  const milliseconds: number[] = [];
  for (let i = -WARM_UP_RUNS; i < runCount; i++) {
    const startedAt = performance.now();
    const count = await run();
    if (i >= 0) milliseconds.push(performance.now() - startedAt);
    if (count !== expected) throw new Error(`expected ${expected} rows, found ${count}`);
  }
  milliseconds.sort((a, b) => a - b);
  const at = (share: number) => milliseconds[Math.floor(milliseconds.length * share)]!.toFixed(3);
  return `${at(0.5)} / ${at(0.99)}`;
}

function createDocuments(count: number): Document[] {
  const random = createRandom(SEED);
  return Array.from({ length: count }, (_, i) => ({
    price: Math.floor(random() * 100_000),
    category: `category ${Math.floor(random() * 1_000)}`,
    name: `name ${i}`,
    tags: [`tag ${Math.floor(random() * 50)}`, `tag ${Math.floor(random() * 50)}`],
    ...(random() < 0.5 ? { discount: Math.floor(random() * 100) } : {}),
  }));
}

function createSegments(rows: readonly Document[]): Segment[] {
  const segments: Segment[] = [];
  for (let start = 0; start < rows.length; start += BATCH_ROWS) {
    const batch = batchOf(
      rows.slice(start, start + BATCH_ROWS).map((document, i) => ({
        id: String(start + i),
        values: [0],
        metadata: JSON.stringify(document),
      })),
    );
    let segment = segments.at(-1);
    if (segment === undefined || segment.isSealed) {
      segment = Segment.createActive({
        key: String(segments.length),
        number: segments.length,
        dimension: 1,
        rowsMax: DEFAULT_LIMITS.segmentRowsMax,
        columnsMax: DEFAULT_LIMITS.metadataColumnsMax,
      });
      segments.push(segment);
    }
    segment.append(batch, 0, batch.count, segments.length);
    if (segment.spareRowCount === 0) segment.seal();
  }
  segments.at(-1)?.seal();
  return segments;
}
