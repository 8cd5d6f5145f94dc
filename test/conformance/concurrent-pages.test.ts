// Pages under concurrent writes, over HTTP against a real server process: a walk by cursor equals
// one big answer of the snapshot that it began at, whatever others write meanwhile; pages may be
// asked for again, at once and in any order, and are always the same.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/types.js';
import { createRandom, testSeed } from '../database/harness.js';
import { createCaller, type ServerProcess, startServerProcess } from '../server-process.js';
import { RestlessWriter } from './restless-writers.js';

const PATH = '/v1/collections/restless';
const WRITERS = 3;
const ROUNDS = 3;
/** Clients that ask for the same page at once, each over connections of its own. */
const CLIENTS = 5;
/** So that a walk lasts long enough for writes to come between its pages. */
const WRITES_MIN = 10;

interface Page extends JsonObject {
  next_cursor: string;
  has_more: boolean;
}

/** A walk, and how to ask for the whole of it in as few requests as the contract allows. */
interface Walk {
  readonly name: string;
  readonly records: 'matches' | 'vectors';
  first(limit: number): Request;
  next(cursor: string): Request;
  /** What the first page alone says beside its records. */
  readonly whole: () => Promise<{ records: unknown[]; sequence?: number }>;
}

interface Request {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
}

const seed = testSeed();
const random = createRandom(seed);
let dataDirectory: string;
let server: ServerProcess;
let clients: ReturnType<typeof createCaller>[];
let writers: RestlessWriter[];

before(async () => {
  console.log(`SAGITTA_TEST_SEED=${seed}`);
  dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-pages-'));
  server = await startServerProcess({
    dataDirectory,
    // Small segments: rows are sealed, checkpointed and compacted while pages are read.
    settings: {
      SAGITTA_ENGINE: 'reference',
      SAGITTA_THREADS: '1',
      SAGITTA_SEGMENT_ROWS_MAX: '256',
    },
  });
  clients = Array.from({ length: CLIENTS }, () => createCaller(server.url, 4));
  await ask({
    method: 'POST',
    path: '/v1/collections',
    body: { id: 'restless', dimension: 4, metric: 'dot' },
  });
  writers = Array.from(
    { length: WRITERS },
    (_, owner) => new RestlessWriter({ call: clients[owner]!.call, path: PATH, owner, random }),
  );
  await Promise.all(writers.map((writer) => writer.fill()));
});

after(async () => {
  for (const client of clients) client.close();
  await server.stop();
  await rm(dataDirectory, { recursive: true, force: true });
});

const vector = [1, -2, 3, 0.5];
const WALKS: readonly Walk[] = [
  queryWalk('a query through everything', { vector }),
  queryWalk('a query with a filter, by distance', {
    vector,
    metric: 'euclidean',
    filter: { n: { $gte: 10 }, owner: { $in: [0, 2] } },
  }),
  queryWalk('a sorted query', {
    vector,
    top_k: 400,
    sort: [
      { field: 'n', order: 'desc' },
      { field: 'score', order: 'asc' },
    ],
  }),
  listWalk('a list', {}),
  listWalk('a list with a filter', { filter: JSON.stringify({ n: { $lt: 40 } }) }),
];

describe('pages while others write', () => {
  for (const walk of WALKS) {
    test(`${walk.name} by cursor equals one big answer`, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const whole = await whileQuiet(walk.whole);
        const limit = 20 + Math.floor(random() * 30);
        const first = await whileQuiet(() => ask(walk.first(limit)));
        assert.equal(first.sequence, whole.sequence, 'something wrote while nobody should');
        const { writes, result } = await whileRestless(() => takePages(walk, first));
        assert.ok(writes >= WRITES_MIN, `only ${writes} writes came between the pages`);
        const records = result.flatMap(({ page }) => page[walk.records] as unknown[]);
        assert.deepEqual(records, whole.records);
      }
    });

    test(`${walk.name}: pages asked for again, by several clients and in any order, are the same`, async () => {
      const first = await whileQuiet(() => ask(walk.first(60)));
      const pages = await whileQuiet(() => takePages(walk, first));
      await whileRestless(async () => {
        const later = pages.slice(1).sort(() => random() - 0.5);
        await Promise.all(
          later.map(async ({ cursor, page }, i) => {
            const { call } = clients[i % CLIENTS]!;
            assert.deepEqual(
              withoutCursor(await ask(walk.next(cursor!), call)),
              withoutCursor(page),
            );
          }),
        );
        const { cursor } = later[0]!;
        const bodies = await Promise.all(
          clients.map(async ({ call }) => textOf(walk.next(cursor!), call)),
        );
        assert.equal(new Set(bodies.map(dropCursor)).size, 1);
      });
    });
  }

  test('the same page has the same bytes, the cursor in it included', async () => {
    const first = await ask(WALKS[0]!.first(25));
    const next = WALKS[0]!.next(first.next_cursor);
    const bodies = await Promise.all(clients.map(({ call }) => textOf(next, call)));
    assert.equal(new Set(bodies).size, 1);
  });

  test('what the writers know is what is there', async () => {
    await whileQuiet(async () => {
      const known = new Map(writers.flatMap(({ rows }) => [...rows]));
      const { records } = await listWalk('', { include_values: 'true' }).whole();
      const found = new Map((records as { id: string }[]).map((row) => [row.id, row]));
      assert.equal(found.size, records.length, 'an id is listed twice');
      assert.deepEqual(found, known);
    });
  });
});

function queryWalk(name: string, query: JsonObject): Walk {
  const path = `${PATH}/query`;
  const body = { include_metadata: true, ...query };
  return {
    name,
    records: 'matches',
    first: (limit) => ({ method: 'POST', path, body: { ...body, limit } }),
    next: (cursor) => ({ method: 'POST', path, body: { cursor } }),
    async whole() {
      const page = await ask({ method: 'POST', path, body: { top_k: 10_000, ...body } });
      assert.equal(page.has_more, false);
      return { records: page.matches as unknown[], sequence: Number(page.sequence) };
    },
  };
}

function listWalk(name: string, query: Readonly<Record<string, string>>): Walk {
  const at = (page: Readonly<Record<string, string>>): Request => ({
    method: 'GET',
    path: `${PATH}/vectors?${new URLSearchParams({ ...query, ...page })}`,
  });
  return {
    name,
    records: 'vectors',
    first: (limit) => at({ limit: String(limit) }),
    next: (cursor) => ({ method: 'GET', path: `${PATH}/vectors?cursor=${cursor}` }),
    async whole() {
      const records: unknown[] = [];
      for (;;) {
        const page = await ask(at({ limit: '1000', offset: String(records.length) }));
        records.push(...(page.vectors as unknown[]));
        if (!page.has_more) return { records };
      }
    },
  };
}

/** All pages from a first one on, each with the cursor that it was asked for with. */
async function takePages(
  walk: Walk,
  first: Page,
): Promise<{ cursor: string | undefined; page: Page }[]> {
  const pages: { cursor: string | undefined; page: Page }[] = [{ cursor: undefined, page: first }];
  for (let page = first; page.has_more; ) {
    const cursor: string = page.next_cursor;
    page = await ask(walk.next(cursor));
    pages.push({ cursor, page });
  }
  return pages;
}

async function whileQuiet<Result>(work: () => Promise<Result>): Promise<Result> {
  return work();
}

/** Runs the work while the writers write, and says how often they wrote. */
async function whileRestless<Result>(
  work: () => Promise<Result>,
): Promise<{ result: Result; writes: number }> {
  const count = () => writers.reduce((sum, { writeCount }) => sum + writeCount, 0);
  const before = count();
  for (const writer of writers) writer.resume();
  try {
    const result = await work();
    return { result, writes: count() - before };
  } finally {
    await Promise.all(writers.map((writer) => writer.pause()));
  }
}

async function textOf({ method, path, body }: Request, call = clients[0]!.call): Promise<string> {
  const reply = await call(method, path, body);
  assert.equal(reply.status, 200, reply.text);
  return reply.text;
}

async function ask(request: Request, call = clients[0]!.call): Promise<Page> {
  return JSON.parse(await textOf(request, call)) as Page;
}

function withoutCursor({ next_cursor, ...rest }: Page): JsonObject {
  return rest;
}

function dropCursor(text: string): string {
  return text.replace(/"next_cursor":"[^"]*",/, '');
}
