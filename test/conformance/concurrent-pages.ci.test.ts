// Pages under concurrent writes, over HTTP against a real server process. Walking by cursor returns the same as one
// large reply of the snapshot where the walk began, whatever others write meanwhile. A page requested again,
// concurrently and in any order, is always the same.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createRandom, testSeed } from '../database/harness.js';
import { createCaller, type ServerProcess, startServerProcess } from '../support/server-process.js';
import {
  type Call,
  listWalk,
  type Page,
  queryWalk,
  takePage,
  takePages,
  takeText,
} from './page-walk.js';
import { DIMENSION, RestlessWriter } from './restless-writer.js';

const PATH = '/v1/collections/restless';
const WRITERS = 3;
const ROUNDS = 2;
/** Number of clients that request the same page concurrently, each over its own connections. */
const CLIENTS = 5;

const VECTOR = [1, -2, 3, 0.5];
const WALKS = [
  queryWalk('a query through everything', PATH, { vector: VECTOR }),
  queryWalk('a query with another metric and a filter', PATH, {
    vector: VECTOR,
    metric: 'euclidean',
    filter: { n: { $gte: 10 }, owner: { $in: [0, 2] } },
  }),
  queryWalk('a sorted query', PATH, {
    vector: VECTOR,
    top_k: 400,
    sort: [
      { field: 'n', order: 'desc' },
      { field: 'score', order: 'asc' },
    ],
  }),
  listWalk('a list', PATH, {}),
  listWalk('a list with a filter', PATH, {
    filter: JSON.stringify({ n: { $lt: 40 } }),
    include_values: 'true',
  }),
] as const;

const seed = testSeed();
const random = createRandom(seed);
let dataDirectory: string;
let server: ServerProcess;
let clients: readonly ReturnType<typeof createCaller>[] = [];
let call: Call;
let writers: readonly RestlessWriter[];

before(async () => {
  console.log(`SAGITTA_TEST_SEED=${seed}`);
  dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-pages-'));
  // Segments are small, so that rows are sealed, written to files and compacted while pages are read.
  const settings = {
    SAGITTA_ENGINE: 'reference',
    SAGITTA_THREADS: '1',
    SAGITTA_SEGMENT_ROWS_MAX: '256',
  };
  server = await startServerProcess({ dataDirectory, settings });
  clients = Array.from({ length: CLIENTS }, () => createCaller(server.url, 4));
  call = clients[0]!.call;
  const collection = { id: 'restless', dimension: DIMENSION, metric: 'dot' };
  assert.equal((await call('POST', '/v1/collections', collection)).status, 200);
  writers = Array.from(
    { length: WRITERS },
    (_, owner) => new RestlessWriter({ call: clients[owner]!.call, path: PATH, owner, random }),
  );
  await Promise.all(writers.map((writer) => writer.fill()));
});

after(async () => {
  for (const client of clients) client.close();
  await server?.stop();
  await rm(dataDirectory, { recursive: true, force: true });
});

describe('pages during concurrent writes', () => {
  for (const walk of WALKS) {
    test(`${walk.name}, page by page, equals one large reply while others write`, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const whole = await walk.whole(call);
        const first = await takePage(call, walk.first(20 + Math.floor(random() * 30)));
        await whileRestless(async () => {
          const pages = await takePages(call, walk, first, someWrite);
          const records = pages.flatMap(({ page }) => page[walk.records] as unknown[]);
          assert.deepEqual(records, whole);
        });
      }
    });

    test(`${walk.name} returns the same pages to many clients in any order while others write`, async () => {
      const first = await takePage(call, walk.first(60));
      const pages = (await takePages(call, walk, first)).slice(1);
      assert.ok(pages.length > 4, 'the walk is too short to prove anything');
      await whileRestless(async () => {
        const shuffled = pages.toSorted(() => random() - 0.5);
        await Promise.all(
          [...shuffled, ...shuffled].map(async ({ cursor, page }, i) => {
            await someWrite();
            const again = await takePage(clients[i % CLIENTS]!.call, walk.next(cursor!));
            assert.deepEqual(withoutCursor(again), withoutCursor(page));
          }),
        );
      });
    });
  }

  test('a page that all clients request at once has the same bytes while others write', async () => {
    const first = await takePage(call, WALKS[0].first(25));
    await whileRestless(async () => {
      const bodies = await bodiesOfNext(first);
      await someWrite();
      bodies.push(...(await bodiesOfNext(first)));
      const withoutTokens = bodies.map((body) => body.replace(/"next_cursor":"[^"]*"/, ''));
      assert.equal(new Set(withoutTokens).size, 1);
    });
  });

  test('a page that all clients request at once has the same next_cursor', async () => {
    const bodies = await bodiesOfNext(await takePage(call, WALKS[0].first(25)));
    assert.equal(new Set(bodies).size, 1);
  });

  test('the collection holds exactly the acknowledged rows', async () => {
    const known = new Map(writers.flatMap(({ rows }) => [...rows]));
    const rows = await listWalk('', PATH, { include_values: 'true' }).whole(call);
    const found = new Map((rows as { id: string }[]).map((row) => [row.id, row]));
    assert.equal(found.size, rows.length, 'an id is listed twice');
    assert.deepEqual(found, known);
  });
});

/** Runs `work` while the writers write. They are paused before and after. */
async function whileRestless(work: () => Promise<void>): Promise<void> {
  for (const writer of writers) writer.resume();
  try {
    await work();
  } finally {
    await Promise.all(writers.map((writer) => writer.pause()));
  }
}

/** Resolves once any of the writers has written. */
async function someWrite(): Promise<void> {
  await Promise.race(writers.map((writer) => writer.nextWrite()));
}

/** Requests the page after this one from all clients at the same time. */
function bodiesOfNext(page: Page): Promise<string[]> {
  const request = WALKS[0].next(page.next_cursor);
  return Promise.all(clients.map((client) => takeText(client.call, request)));
}

function withoutCursor({ next_cursor, ...rest }: Page): object {
  return rest;
}
