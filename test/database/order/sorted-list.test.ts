// Sorted lists: any page of a snapshot equals a slice of a plain sort, during writes.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  isJsonNumber,
  parseExactJson,
  stringifyExactJson,
} from '../../../src/common/exact-json.js';
import { resolvePath } from '../../../src/common/metadata-path.js';
import type { Json, JsonObject } from '../../../src/common/types.js';
import type { ListRequest } from '../../../src/database/api/database-api.js';
import type { SortKey } from '../../../src/database/api/query-api.js';
import type { Database } from '../../../src/database/database.js';
import { RowOrders } from '../../../src/database/order/row-orders.js';
import { createInlinePool, type WorkerPool } from '../../../src/platform/pool.js';
import { createMemoryState } from '../../../src/storage/memory-store.js';
import {
  batchOf,
  createRandom,
  createTestClock,
  openDatabase,
  type TestVector,
  testSeed,
} from '../harness.js';

/** JSON texts, some of which compare equal and some differ only in the last byte, the kind or the sign. */
const VALUES = [
  '0',
  '-0',
  '1',
  '-1',
  '-1.5',
  '1e-300',
  '9007199254740993',
  '9007199254740992',
  '-1768907725507217522',
  '-1768907725507217523',
  '18446744073709551615',
  '1e999',
  '-1e999',
  '"a"',
  '"b"',
  '""',
  '"a\\u0000"',
  '"same prefix, then 1"',
  '"same prefix, then 2"',
  '"é"',
  '"\\ud83d\\ude00"',
  '"\\ufffd"',
  'true',
  'false',
  'null',
  '[1]',
  '{"x":1}',
];

function randomVectors(random: () => number, count: number, prefix: string): TestVector[] {
  const pick = () => VALUES[Math.floor(random() * VALUES.length)]!;
  return Array.from({ length: count }, (_, i) => {
    const members = [`"n":${Math.floor(random() * 9)}`];
    if (random() < 0.8) members.push(`"a":${pick()}`);
    if (random() < 0.8) members.push(`"nested":{"b":${pick()}}`);
    const id = `${prefix}${Math.floor(random() * 1e6)}-${i}`;
    return { id, values: [1, 2], metadata: `{${members.join(',')}}` };
  });
}

const classOf = (value: Json | undefined) =>
  ['number', 'string', 'boolean'].indexOf(typeof value === 'bigint' ? 'number' : typeof value) >>>
  0;

function compareValues(left: Json | undefined, right: Json | undefined): number {
  if (typeof left === 'string' && typeof right === 'string') {
    return Buffer.compare(Buffer.from(left), Buffer.from(right));
  }
  return left! < right! ? -1 : Number(left! > right!);
}

/** The ids in the order of a plain stable sort. */
function sortIds(rows: readonly TestVector[], sort: readonly SortKey[]): string[] {
  const documents = rows.map(({ id, metadata }) => {
    const document = parseExactJson(metadata) as JsonObject;
    return {
      id,
      values: sort.map(({ field }) => (field === '$id' ? id : resolvePath(document, field))),
    };
  });
  documents.sort((left, right) => {
    for (const [i, { order }] of sort.entries()) {
      const [a, b] = [left.values[i], right.values[i]];
      if (classOf(a) !== classOf(b)) return classOf(a) - classOf(b);
      if (classOf(a) > 2) continue;
      const ascending = compareValues(a, b);
      if (ascending !== 0) return order === 'asc' ? ascending : -ascending;
    }
    return 0;
  });
  return documents.map(({ id }) => id);
}

const ORDERS: readonly (readonly SortKey[])[] = [
  [{ field: 'a', order: 'asc' }],
  [{ field: 'a', order: 'desc' }],
  [{ field: '$id', order: 'desc' }],
  [
    { field: 'n', order: 'desc' },
    { field: 'nested.b', order: 'asc' },
    { field: '$id', order: 'asc' },
  ],
  [{ field: 'nowhere', order: 'desc' }],
];

const FILTERS: readonly {
  readonly filter: JsonObject | undefined;
  readonly passes: (metadata: JsonObject) => boolean;
}[] = [
  { filter: undefined, passes: () => true },
  { filter: { n: { $lt: 4 } }, passes: ({ n }) => Number(n) < 4 },
  {
    filter: { a: { $gte: 9_007_199_254_740_993n } },
    passes: ({ a }) => isJsonNumber(a) && a >= 9_007_199_254_740_993n,
  },
];

async function openFilled(
  rows: readonly TestVector[],
  options: Parameters<typeof openDatabase>[0] = {},
): Promise<Database> {
  const database = await openDatabase(options);
  const shape = {
    vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
    description: null,
    labels: {},
  } as const;
  await database.createCollection({ id: 'c', ...shape });
  await database.collection('c').write(batchOf(rows), { mode: 'upsert' });
  return database;
}

async function idsOf(database: Database, request: ListRequest) {
  const page = await database.collection('c').list(request);
  return { ...page, ids: page.vectors.map(({ id }) => id) };
}

describe('a sorted list', () => {
  for (const metadataColumnsMax of [256, 1]) {
    it(`has the order of a plain sort at every offset (${metadataColumnsMax} columns)`, async () => {
      const seed = testSeed();
      const rows = randomVectors(createRandom(seed), 300, 'v');
      const database = await openFilled(rows, { limits: { metadataColumnsMax } });
      for (const sort of ORDERS) {
        for (const { filter, passes } of FILTERS) {
          const passing = rows.filter(({ metadata }) =>
            passes(parseExactJson(metadata) as JsonObject),
          );
          const expected = sortIds(passing, sort);
          for (const offset of [undefined, 0, 1, 63, 64, 200, 299, 1_000]) {
            const page = await idsOf(database, { sort, filter, offset, limit: 40 });
            const start = offset ?? 0;
            const context = `seed ${seed}, ${stringifyExactJson({ sort, filter, offset })}`;
            assert.deepEqual(page.ids, expected.slice(start, start + 40), context);
            assert.equal(page.total, expected.length);
            assert.equal(page.hasMore, start + 40 < expected.length);
          }
        }
      }
      await database.close();
    });
  }

  it('stays one snapshot by its cursors, forwards and at offsets, under writes and restarts', async () => {
    const seed = testSeed();
    const random = createRandom(seed);
    const state = createMemoryState();
    const clock = createTestClock();
    const rows = randomVectors(random, 400, 'v');
    let database = await openFilled(rows, { state, clock });
    const sort = ORDERS[3]!;
    const expected = sortIds(rows, sort);
    let page = await idsOf(database, { sort, limit: 37 });
    const first = page.nextCursor;
    const found = [...page.ids];
    for (let round = 0; page.nextCursor !== undefined; round++) {
      clock.nowMs += 10_000;
      const gone = Array.from({ length: 30 }, () => rows[Math.floor(random() * rows.length)]!.id);
      await database.collection('c').delete({ kind: 'ids', ids: gone }, { dryRun: false });
      const more = batchOf(randomVectors(random, 70, `w${round}-`));
      await database.collection('c').write(more, { mode: 'upsert' });
      if (round === 4) {
        await database.close();
        database = await openDatabase({ state, clock });
      }
      const offset = Math.floor(random() * expected.length);
      const jump = await idsOf(database, { cursor: first, offset, limit: 12 });
      assert.deepEqual(jump.ids, expected.slice(offset, offset + 12), `seed ${seed}`);
      if (jump.nextCursor !== undefined) {
        const next = await idsOf(database, { cursor: jump.nextCursor });
        assert.deepEqual(next.ids, expected.slice(offset + 12, offset + 24), `seed ${seed}`);
      }
      page = await idsOf(database, { cursor: page.nextCursor });
      found.push(...page.ids);
    }
    assert.deepEqual(found, expected, `seed ${seed}`);
    await database.close();
  });

  it('refuses more vectors than it may sort, and continues its own request only', async () => {
    const rows = randomVectors(createRandom(1), 50, 'v');
    const database = await openFilled(rows, { limits: { sortedRowsMax: 49 } });
    const sort = ORDERS[0]!;
    await assert.rejects(database.collection('c').list({ sort }), (error: Error) =>
      /at most 49 vectors to sort; found 50/.test(error.message),
    );
    const page = await idsOf(database, { sort, filter: { n: { $gte: 1 } }, limit: 1 });
    const other = database.collection('c').list({ cursor: page.nextCursor, sort: ORDERS[1] });
    await assert.rejects(other, { code: 'cursor_mismatch' });
    await database.close();
  });
});

describe('a list in order of arrival', () => {
  it('has any page of the snapshot of a cursor, and goes on from there', async () => {
    const rows = randomVectors(createRandom(2), 300, 'v');
    const database = await openFilled(rows);
    const expected = rows.map(({ id }) => id);
    const first = await idsOf(database, { limit: 5 });
    const gone = expected.filter((_, i) => i % 3 === 0);
    await database.collection('c').delete({ kind: 'ids', ids: gone }, { dryRun: false });
    for (const offset of [0, 63, 64, 65, 290, 299, 300]) {
      const jump = await idsOf(database, { cursor: first.nextCursor, offset, limit: 4 });
      assert.deepEqual(jump.ids, expected.slice(offset, offset + 4));
      assert.equal(jump.total, 300);
      if (jump.nextCursor === undefined) continue;
      const next = await idsOf(database, { cursor: jump.nextCursor });
      assert.deepEqual(next.ids, expected.slice(offset + 4, offset + 8));
    }
    await database.close();
  });
});

describe('the orders that are kept', () => {
  const EMPTY = {
    columns: new Map(),
    isComplete: true,
    json: { offsets: new Int32Array(1), bytes: new Uint8Array() },
  };
  const targetOf = (rowCount: number) => ({
    rowCount,
    rows: null,
    metadata: {
      ...EMPTY,
      ids: { offsets: new Int32Array(rowCount + 1), bytes: new Uint8Array() },
    },
  });
  const keyOf = (sequence: number) => {
    return { incarnation: 'i', sequence, filter: null, sort: ORDERS[0]! };
  };

  function countingPool(): WorkerPool & { runCount: number } {
    const inline = createInlinePool();
    return {
      ...inline,
      runCount: 0,
      run(task, input) {
        this.runCount++;
        return inline.run(task, input);
      },
    };
  }

  it('are used again, and dropped by disuse', async () => {
    const pool = countingPool();
    const orders = new RowOrders({ pool, rowsMax: 10 });
    const open = (sequence: number) => orders.order(keyOf(sequence), [targetOf(4)], 4);
    await Promise.all([open(1), open(1)]);
    await open(2);
    await open(1);
    assert.equal(pool.runCount, 2, 'one run a snapshot');
    await open(3);
    await open(1);
    assert.equal(pool.runCount, 3, 'the second was used least recently');
    await open(2);
    assert.equal(pool.runCount, 4);
  });

  it('are not kept after a failure', async () => {
    const pool = countingPool();
    const inline = pool.run;
    const orders = new RowOrders({ pool, rowsMax: 10 });
    pool.run = async () => {
      throw new Error('no worker');
    };
    await assert.rejects(orders.order(keyOf(1), [targetOf(4)], 4), /no worker/);
    pool.run = inline;
    assert.deepEqual(await orders.order(keyOf(1), [targetOf(4)], 4), Uint32Array.of(0, 1, 2, 3));
  });
});
