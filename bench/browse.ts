// Reads of a table of a million rows: pages in order of arrival and sorted, by cursor and at random positions,
// from a collection in this process with a pool of two threads. Every thousandth row is deleted first, so that
// positions have to be counted. Orders are checked before they are timed.
//
//   node dist/bench/browse.js              smoke parameters: a second, only checks the bench
//   node dist/bench/browse.js --full       the parameters of docs/performance.md
//   node dist/bench/browse.js --out FILE   also writes the table as Markdown

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { ListReply, ListRequest } from '../src/database/api/database-api.js';
import type { CollectionHandle } from '../src/database/collection-handle.js';
import type { Database } from '../src/database/database.js';
import { batchOf, createRandom } from '../test/database/harness.js';
import { EMBEDDED_THREADS, percentiles, withDatabase } from './embedded.js';
import { describeMachine } from './engine/machine.js';

const SMOKE = { rowCount: 20_000, runCount: 3, pageCount: 20 };
const FULL = { rowCount: 1_000_000, runCount: 7, pageCount: 200 };
const BATCH_ROWS = 8_192;
const DIMENSION = 8;
const SEED = 17;
const PAGE_ROWS = 100;
const DELETED_EACH = 1_000;

const { values: args } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const { rowCount, runCount, pageCount } = args.full ? FULL : SMOKE;
const random = createRandom(SEED);
const lines: string[] = [];

const sortBy = (...fields: string[]): ListRequest => ({
  sort: fields.map((field) => ({ field, order: 'asc' })),
  limit: PAGE_ROWS,
});

await withDatabase('auto', async (database) => {
  const collection = await createCollection(database);
  const half = { price: { $lt: 50_000 } };
  await measurePlain(collection, 'all rows', {});
  await measurePlain(collection, 'half of the rows (filter cached)', { filter: half });
  await measureSorted(collection, 'by a number', sortBy('price'), comparePrices);
  await measureSorted(
    collection,
    'by one of 1 000 strings, then a number',
    sortBy('category', 'price'),
  );
  await measureSorted(collection, 'by distinct strings', sortBy('name'));
  await measureSorted(collection, 'by id', sortBy('$id'));
  await measureSorted(collection, 'by a number, half of the rows', {
    ...sortBy('price'),
    filter: half,
  });
});
const table = [
  `Browse bench, ${args.full ? 'full' : 'smoke'} parameters: ${rowCount} rows, pages of ${PAGE_ROWS}, pool of ${EMBEDDED_THREADS}, seed ${SEED}`,
  describeMachine(),
  '',
  '| list | first page in ms, p50 / p99 | next pages by cursor | pages at random offsets |',
  '| --- | --- | --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

async function measurePlain(
  collection: CollectionHandle,
  what: string,
  request: ListRequest,
): Promise<void> {
  const { total } = await collection.list({ ...request, offset: 0 });
  const first = await timeRuns(pageCount, () => collection.list({ ...request, offset: 0 }));
  const jumps = await timeRuns(pageCount, () =>
    collection.list({ ...request, offset: Math.floor(total! * (0.9 + random() * 0.09)) }),
  );
  const next = await timeCursors(collection, await collection.list(request));
  lines.push(
    `| in order of arrival, ${what} | ${percentiles(first)} | ${percentiles(next)} | ${percentiles(jumps)} (from 90 % on) |`,
  );
  console.error(lines.at(-1));
}

async function measureSorted(
  collection: CollectionHandle,
  what: string,
  request: ListRequest,
  check: (reply: ListReply) => void = () => {},
): Promise<void> {
  const firsts: number[] = [];
  let page: ListReply | undefined;
  for (let run = 0; run <= runCount; run++) {
    // A write creates another snapshot, whose order is not yet known.
    await collection.write(rowsFrom(rowCount + run, 1), { mode: 'upsert' });
    const startedAt = performance.now();
    page = await collection.list(request);
    if (run > 0) firsts.push(performance.now() - startedAt);
  }
  check(page!);
  const { nextCursor: cursor, total } = page!;
  const next = await timeCursors(collection, page!);
  const jumps = await timeRuns(pageCount, async () => {
    const offset = Math.floor(random() * (total! - PAGE_ROWS));
    const jump = await collection.list({ cursor, offset });
    check(jump);
    return jump;
  });
  lines.push(`| ${what} | ${percentiles(firsts)} | ${percentiles(next)} | ${percentiles(jumps)} |`);
  console.error(lines.at(-1));
}

async function timeCursors(collection: CollectionHandle, first: ListReply): Promise<number[]> {
  let page = first;
  return timeRuns(pageCount, async () => {
    page = await collection.list({ cursor: page.nextCursor });
    return page;
  });
}

async function timeRuns(count: number, run: () => Promise<ListReply>): Promise<number[]> {
  const milliseconds: number[] = [];
  for (let i = 0; i < count; i++) {
    const startedAt = performance.now();
    const { vectors } = await run();
    milliseconds.push(performance.now() - startedAt);
    assert.equal(vectors.length, PAGE_ROWS);
  }
  return milliseconds;
}

function comparePrices({ vectors }: ListReply): void {
  const prices = vectors.map(({ metadata }) => (JSON.parse(metadata!) as { price: number }).price);
  assert.deepEqual(
    prices,
    prices.toSorted((a, b) => a - b),
  );
}

async function createCollection(database: Database): Promise<CollectionHandle> {
  const shape = {
    vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
    description: null,
    labels: {},
  } as const;
  await database.createCollection({ id: 'bench', ...shape });
  const collection = database.collection('bench');
  for (let start = 0; start < rowCount; start += BATCH_ROWS) {
    const count = Math.min(BATCH_ROWS, rowCount - start);
    await collection.write(rowsFrom(start, count), { mode: 'insert' });
  }
  const ids = Array.from({ length: rowCount / DELETED_EACH }, (_, i) => `row-${i * DELETED_EACH}`);
  for (let start = 0; start < ids.length; start += 100) {
    const some = ids.slice(start, start + 100);
    await collection.delete({ kind: 'ids', ids: some }, { dryRun: false });
  }
  return collection;
}

function rowsFrom(start: number, count: number) {
  return batchOf(
    Array.from({ length: count }, (_, i) => {
      const price = Math.floor(random() * 100_000);
      const category = `category ${Math.floor(random() * 1_000)}`;
      return {
        id: `row-${start + i}`,
        values: Array.from({ length: DIMENSION }, () => random() - 0.5),
        metadata: JSON.stringify({ price, category, name: `name ${random()}` }),
      };
    }),
  );
}
