// Pages of queries and lists: all pages together equal one big answer during writes, and a cursor
// continues only its own request.

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import type { QueryReply, QueryRequest } from '../../../src/database/api/query-api.js';
import type { Database } from '../../../src/database/database.js';
import { createMemoryState } from '../../../src/storage/memory-store.js';
import { placeOf } from '../../support/issues.js';
import {
  batchOf,
  createRandom,
  createTestClock,
  openDatabase,
  type TestVector,
  testSeed,
} from '../harness.js';

const COUNT = 500;
const DIMENSION = 8;

function vectorsOf(seed: number, count: number, prefix = 'v'): TestVector[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, (_, i) => ({
    id: `${prefix}${i}`,
    // Few distinct values, so that scores tie.
    values: Array.from({ length: DIMENSION }, () => Math.floor(random() * 3) + 1),
    metadata: JSON.stringify({ group: i % 5, name: `n${(i * 7919) % COUNT}` }),
  }));
}

async function createFilled(options: Parameters<typeof openDatabase>[0] = {}): Promise<Database> {
  const database = await openDatabase(options);
  await database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'cosine' } },
    description: null,
    labels: {},
  });
  await database.collection('c').write(batchOf(vectorsOf(1, COUNT)), { mode: 'upsert' });
  return database;
}

const QUERY = Float32Array.from([1, 2, 3, 1, 2, 3, 1, 2]);
const idsOf = (reply: QueryReply) => reply.matches.map(({ id }) => id);

async function walk(
  database: Database,
  first: QueryRequest,
  between: () => Promise<unknown> = async () => {},
): Promise<QueryReply[]> {
  const pages: QueryReply[] = [await database.collection('c').query(first)];
  while (pages.at(-1)!.nextCursor !== undefined) {
    await between();
    pages.push(await database.collection('c').query({ cursor: pages.at(-1)!.nextCursor }));
  }
  return pages;
}

describe('pages of a query', () => {
  for (const metric of ['cosine', 'dot', 'euclidean'] as const) {
    for (const filter of [undefined, { group: { $in: [1, 3] } }]) {
      it(`walk the whole view in the order of one big query (${metric}, ${filter ? 'filtered' : 'all'})`, async () => {
        const database = await createFilled();
        const big = await database
          .collection('c')
          .query({ vector: QUERY, topK: COUNT, metric, filter });
        const pages = await walk(database, { vector: QUERY, limit: 37, metric, filter });
        assert.deepEqual(
          pages.flatMap(({ matches }) => matches),
          big.matches,
        );
        assert.equal(pages[0]!.total, filter ? 200 : COUNT);
        assert.ok(pages.slice(1).every(({ total }) => total === undefined));
        assert.ok(pages.slice(0, -1).every(({ hasMore }) => hasMore));
        assert.equal(pages.at(-1)!.hasMore, false);
        await database.close();
      });
    }
  }

  it('stay the same while vectors are inserted, updated, deleted, compacted and reloaded', async () => {
    const seed = testSeed();
    const random = createRandom(seed);
    const state = createMemoryState();
    const clock = createTestClock();
    let database = await createFilled({ state, clock });
    const expected = idsOf(await database.collection('c').query({ vector: QUERY, topK: COUNT }));
    let page = await database.collection('c').query({ vector: QUERY, limit: 20 });
    const found = idsOf(page);
    for (let round = 0; page.nextCursor !== undefined; round++) {
      clock.nowMs += 20_000;
      await database.collection('c').write(batchOf(vectorsOf(seed + round, 80, `w${round % 3}-`)), {
        mode: 'upsert',
      });
      const ids = Array.from({ length: 15 }, () => `v${Math.floor(random() * COUNT)}`);
      await database.collection('c').delete({ kind: 'ids', ids }, { dryRun: false });
      await database
        .collection('c')
        .write(batchOf(vectorsOf(seed - round, 30)), { mode: 'upsert' });
      if (round % 7 === 3) {
        await database.close();
        database = await openDatabase({ state, clock });
      }
      const { nextCursor } = page;
      const again = await Promise.all([
        database.collection('c').query({ cursor: nextCursor }),
        database.collection('c').query({ cursor: nextCursor }),
      ]);
      page = again[0];
      assert.deepEqual(again[1].matches, page.matches, 'the same page twice');
      found.push(...idsOf(page));
    }
    assert.deepEqual(found, expected, `seed ${seed}`);
    await database.close();
  });

  for (const metric of ['cosine', 'dot', 'euclidean'] as const) {
    it(`of a range go through everything with at least the score (${metric})`, async () => {
      const database = await createFilled();
      const all = (await database.collection('c').query({ vector: QUERY, topK: COUNT, metric }))
        .matches;
      const scores = [...new Set(all.map(({ score }) => score))];
      assert.ok(scores.length < all.length, 'scores tie');
      for (const place of [0, 3, Math.floor(scores.length / 2), scores.length - 1]) {
        const scoreThreshold = scores[place]!;
        const expected = all.filter(({ score }) => score >= scoreThreshold);
        for (const limit of [undefined, 7, expected.length]) {
          const request = { vector: QUERY, metric, scoreThreshold, limit };
          if (limit !== undefined && limit > 1_000) continue;
          const pages = await walk(database, request);
          assert.deepEqual(
            pages.flatMap(({ matches }) => matches),
            expected,
          );
          assert.equal(pages.length, Math.ceil(expected.length / (limit ?? 100)));
          assert.equal(pages.at(-1)!.hasMore, false);
        }
      }
      const above = Math.fround(scores[0]! * (scores[0]! > 0 ? 1.01 : 0.99));
      const none = await database
        .collection('c')
        .query({ vector: QUERY, metric, scoreThreshold: above });
      assert.deepEqual([none.matches, none.hasMore], [[], false]);
      const bounded = await database.collection('c').query({
        vector: QUERY,
        metric,
        scoreThreshold: scores.at(-1)!,
        topK: 10,
      });
      assert.deepEqual([bounded.matches, bounded.hasMore], [all.slice(0, 10), false]);
      await database.close();
    });
  }

  it('end at top_k, whatever the page size', async () => {
    const database = await createFilled();
    const big = await database.collection('c').query({ vector: QUERY, topK: 45 });
    assert.equal(big.matches.length, 45);
    assert.equal(big.nextCursor, undefined);
    const pages = await walk(database, { vector: QUERY, topK: 45, limit: 20 });
    assert.deepEqual(
      pages.map(({ matches }) => matches.length),
      [20, 20, 5],
    );
    assert.deepEqual(pages.flatMap(idsOf), idsOf(big));
    await database.close();
  });

  it('start at an offset, with the total', async () => {
    const database = await createFilled();
    const big = idsOf(await database.collection('c').query({ vector: QUERY, topK: COUNT }));
    for (const offset of [0, 1, 99, 470, 499, 500, 5_000]) {
      const page = await database.collection('c').query({ vector: QUERY, limit: 50, offset });
      assert.deepEqual(idsOf(page), big.slice(offset, offset + 50));
      assert.equal(page.total, COUNT);
      assert.equal(page.hasMore, offset + 50 < COUNT);
    }
    const capped = await database
      .collection('c')
      .query({ vector: QUERY, topK: 10, limit: 8, offset: 5 });
    assert.deepEqual(idsOf(capped), big.slice(5, 10));
    assert.equal(capped.hasMore, false);
    await database.close();
  });

  it('leave out the stored vector that the query names by its id, on every page', async () => {
    const database = await createFilled();
    const pages = await walk(database, { id: 'v7', limit: 100 });
    const ids = pages.flatMap(idsOf);
    assert.equal(ids.length, COUNT - 1);
    assert.ok(!ids.includes('v7'));
    assert.equal(pages[0]!.total, COUNT - 1);
    await database.close();
  });

  it('sort the nearest in another order', async () => {
    const database = await createFilled();
    const nearest = await database.collection('c').query({
      vector: QUERY,
      topK: 60,
      includeMetadata: true,
    });
    const sort = [
      { field: 'group', order: 'desc' },
      { field: 'name', order: 'asc' },
    ] as const;
    const pages = await walk(database, { vector: QUERY, topK: 60, limit: 25, sort });
    const expected = nearest.matches
      .map(({ id, metadata }) => ({
        id,
        ...(JSON.parse(metadata!) as { group: number; name: string }),
      }))
      .sort((a, b) => b.group - a.group || (a.name < b.name ? -1 : 1))
      .map(({ id }) => id);
    assert.deepEqual(pages.flatMap(idsOf), expected);
    for (const field of ['id', '$id']) {
      const byId = { vector: QUERY, topK: 60, sort: [{ field, order: 'desc' }] } as const;
      assert.deepEqual(
        idsOf(await database.collection('c').query(byId)),
        idsOf(nearest).toSorted().toReversed(),
      );
    }
    await database.close();
  });

  it('have only matches with at least the threshold, the threshold included', async () => {
    const database = await createFilled();
    const big = await database.collection('c').query({ vector: QUERY, topK: COUNT });
    const scoreThreshold = big.matches[99]!.score;
    const expected = big.matches.filter(({ score }) => score >= scoreThreshold);
    assert.ok(expected.length >= 100 && expected.length < COUNT);
    const pages = await walk(database, { vector: QUERY, limit: 40, scoreThreshold });
    assert.deepEqual(
      pages.flatMap(({ matches }) => matches),
      expected,
    );
    await database.close();
  });

  it('are a prefix of one another: top 10 of top 100', async () => {
    const database = await createFilled();
    const ten = await database.collection('c').query({ vector: QUERY, topK: 10 });
    const hundred = await database.collection('c').query({ vector: QUERY, topK: 100 });
    assert.deepEqual(ten.matches, hundred.matches.slice(0, 10));
    await database.close();
  });
});

describe('a cursor', () => {
  let database: Database;
  let cursor: string;
  const clock = createTestClock();
  before(async () => {
    database = await createFilled({ clock });
    const first = await database.collection('c').query({
      vector: QUERY,
      limit: 10,
      topK: 50,
      filter: { group: 1, name: { $ne: 'x' } },
      includeMetadata: true,
    });
    cursor = first.nextCursor!;
  });

  it('may be sent alone, or with the fields of its first page in any order of members', async () => {
    const alone = await database.collection('c').query({ cursor });
    const repeated = await database.collection('c').query({
      cursor,
      vector: QUERY,
      topK: 50,
      filter: { name: { $ne: 'x' }, group: 1 },
      metric: 'cosine',
    });
    assert.deepEqual(repeated.matches, alone.matches);
    assert.ok(alone.matches.every(({ metadata }) => metadata !== undefined));
  });

  const others: [string, QueryRequest][] = [
    ['/vector', { vector: new Float32Array(DIMENSION).fill(1) }],
    ['/id', { id: 'v1' }],
    ['/top_k', { topK: 51 }],
    ['/filter', { filter: { group: 2, name: { $ne: 'x' } } }],
    ['/metric', { metric: 'dot' }],
    ['/sort', { sort: [{ field: 'name', order: 'asc' }] }],
    ['/score_threshold', { scoreThreshold: 0.5 }],
  ];
  for (const [place, other] of others) {
    it(`is refused with another ${place.slice(1)}`, async () => {
      await assert.rejects(
        database.collection('c').query({ cursor, ...other }),
        (error: unknown) => {
          const { code, issues } = error as SagittaError;
          assert.equal(code, 'cursor_mismatch');
          assert.equal(placeOf(issues[0]!), place);
          return true;
        },
      );
    });
  }

  it('is rejected when a single character of it is changed', async () => {
    for (let i = 0; i < cursor.length; i += 7) {
      const changed = cursor.slice(0, i) + (cursor[i] === 'A' ? 'B' : 'A') + cursor.slice(i + 1);
      await assert.rejects(database.collection('c').query({ cursor: changed }), {
        code: 'cursor_invalid',
      });
    }
    for (const token of [
      '',
      'x',
      'AAAA',
      cursor.slice(0, -4),
      `${cursor}AAAA`,
      '🐬',
      `${cursor}=`,
    ]) {
      await assert.rejects(database.collection('c').query({ cursor: token }), {
        code: 'cursor_invalid',
      });
    }
  });

  it('is rejected by a service of the same data with another key', async () => {
    const state = createMemoryState();
    const input = {
      id: 'c',
      vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
      description: null,
      labels: {},
    } as const;
    const tokens: string[] = [];
    for (const key of [1, 2]) {
      const cursorKey = (stored: Uint8Array) => stored.map((byte) => byte ^ key);
      const keyed = await openDatabase({ state, clock, cursorKey });
      if (key === 1) {
        await keyed.createCollection(input);
        await keyed.collection('c').write(batchOf(vectorsOf(3, 2)), { mode: 'upsert' });
      }
      await keyed.loaded;
      for (const token of tokens) {
        await assert.rejects(keyed.collection('c').list({ cursor: token }), {
          code: 'cursor_invalid',
        });
      }
      const page = await keyed.collection('c').list({ limit: 1 });
      tokens.push(page.nextCursor!);
      await keyed.collection('c').list({ cursor: page.nextCursor! });
      await keyed.close();
    }
  });

  it('is rejected by another data directory, another collection and another incarnation', async () => {
    const other = await createFilled({ clock });
    await assert.rejects(other.collection('c').query({ cursor }), { code: 'cursor_invalid' });
    await other.close();
    const input = {
      vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'cosine' } },
      description: null,
      labels: {},
    } as const;
    await database.createCollection({ ...input, id: 'd' });
    await assert.rejects(database.collection('d').query({ cursor }), { code: 'cursor_invalid' });
    const gone = await database.collection('d').query({ vector: QUERY, limit: 1 });
    assert.equal(gone.nextCursor, undefined);
    await database.collection('d').write(batchOf(vectorsOf(3, 5)), { mode: 'upsert' });
    const { nextCursor } = await database.collection('d').query({ vector: QUERY, limit: 1 });
    await database.collection('d').drop();
    await database.createCollection({ ...input, id: 'd' });
    await assert.rejects(database.collection('d').query({ cursor: nextCursor }), {
      code: 'cursor_invalid',
    });
  });

  it('of a list is rejected by a query, and the other way round', async () => {
    const list = await database.collection('c').list({ limit: 5 });
    await assert.rejects(database.collection('c').query({ cursor: list.nextCursor }), {
      code: 'cursor_mismatch',
    });
    await assert.rejects(database.collection('c').list({ cursor }), { code: 'cursor_mismatch' });
  });

  it('expires with the retention of its snapshot, however many pages were read', async () => {
    const second = await database.collection('c').query({ cursor });
    clock.nowMs += 14 * 60_000;
    const third = await database.collection('c').query({ cursor: second.nextCursor });
    clock.nowMs += 2 * 60_000;
    await assert.rejects(database.collection('c').query({ cursor: third.nextCursor }), {
      code: 'cursor_expired',
    });
  });
});

describe('lists', () => {
  it('continue by offset with a total, or by cursor without one', async () => {
    const database = await createFilled();
    const page = await database.collection('c').list({ limit: 10, offset: 495 });
    assert.deepEqual(
      page.vectors.map(({ id }) => id),
      ['v495', 'v496', 'v497', 'v498', 'v499'],
    );
    assert.equal(page.total, COUNT);
    assert.equal(page.hasMore, false);
    const filtered = await database.collection('c').list({
      limit: 3,
      offset: 50,
      filter: { group: 2 },
    });
    assert.deepEqual(
      filtered.vectors.map(({ id }) => id),
      ['v252', 'v257', 'v262'],
    );
    assert.equal(filtered.total, 100);
    assert.ok(filtered.nextCursor);
    const next = await database.collection('c').list({ cursor: filtered.nextCursor });
    assert.deepEqual(
      next.vectors.map(({ id }) => id),
      ['v267', 'v272', 'v277'],
    );
    assert.equal(next.total, undefined);
    await database.close();
  });

  it('read their snapshot to the end while writes go on', async () => {
    const database = await createFilled();
    let page = await database.collection('c').list({ limit: 60 });
    const listed = page.vectors.map(({ id }) => id);
    while (page.nextCursor !== undefined) {
      await database
        .collection('c')
        .write(batchOf(vectorsOf(listed.length, 50)), { mode: 'upsert' });
      await database
        .collection('c')
        .delete({ kind: 'ids', ids: ['v3', 'v490'] }, { dryRun: false });
      page = await database.collection('c').list({ cursor: page.nextCursor });
      listed.push(...page.vectors.map(({ id }) => id));
    }
    assert.deepEqual(
      listed,
      Array.from({ length: COUNT }, (_, i) => `v${i}`),
    );
    await database.close();
  });
});

it('a cursor is little longer than what it has to contain', async () => {
  const database = await createFilled();
  const cursorOf = async (request: QueryRequest) => {
    const { nextCursor } = await database.collection('c').query({ limit: 10, ...request });
    return nextCursor!.length;
  };
  // 29 bytes of the seal, 32 of the vector, 22 of the incarnation, 16 of numbers; in base64.
  assert.ok((await cursorOf({ vector: QUERY })) < 250);
  const filter = { name: { $in: Array.from({ length: 500 }, (_, i) => `n${i}`) } };
  assert.ok((await cursorOf({ vector: QUERY, filter })) < 0.7 * JSON.stringify(filter).length);
});
