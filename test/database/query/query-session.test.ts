// Many queries from one snapshot: each gets the answer that it would get alone, during writes, deletions
// and compactions.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import type { Metric } from '../../../src/common/types.js';
import type {
  QueryReply,
  QueryRequest,
  QuerySession,
} from '../../../src/database/api/query-api.js';
import type { Database } from '../../../src/database/database.js';
import { placeOf } from '../../support/issues.js';
import { IS_NIGHTLY } from '../../support/nightly.js';
import { eventually } from '../../support/waiting.js';
import { withoutListenerWarnings } from '../../support/warnings.js';
import {
  batchOf,
  createRandom,
  createTestClock,
  openDatabase,
  type TestVector,
  testSeed,
} from '../harness.js';
import { createRecorder } from '../recorder.js';

const DIMENSION = 6;
const COUNT = 400;

function vectorsOf(random: () => number, count: number, prefix = 'v'): TestVector[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `${prefix}${i}`,
    // Few distinct values, so that scores tie.
    values: Array.from({ length: DIMENSION }, () => Math.floor(random() * 3) + 1),
    metadata: JSON.stringify({ group: i % 5, name: `n${(i * 7919) % COUNT}` }),
  }));
}

async function createFilled(
  random: () => number,
  options: Parameters<typeof openDatabase>[0] = {},
): Promise<Database> {
  const database = await openDatabase(options);
  const input = {
    vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'cosine' } },
    description: null,
    labels: {},
  } as const;
  await database.createCollection({ id: 'c', ...input });
  await database.collection('c').write(batchOf(vectorsOf(random, COUNT)), { mode: 'upsert' });
  return database;
}

function randomQuery(random: () => number): QueryRequest {
  const below = (n: number) => Math.floor(random() * n);
  const maybe = <Value>(value: Value) => (random() < 0.5 ? value : undefined);
  const isById = random() < 0.3;
  const vector = Float32Array.from({ length: DIMENSION }, () => below(5) + 1);
  const isSorted = random() < 0.2;
  return {
    ...(isById ? { id: `v${below(COUNT)}` } : { vector }),
    topK: maybe(1 + below(60)),
    limit: maybe(1 + below(20)),
    offset: maybe(below(30)),
    filter: maybe({ group: { $in: [below(5), 2] } }),
    metric: maybe((['cosine', 'dot', 'euclidean'] as Metric[])[below(3)]!),
    scoreThreshold: maybe(Math.fround(random())),
    includeMetadata: maybe(true),
    includeValues: maybe(true),
    ...(isSorted ? { topK: 1 + below(20) } : {}),
    sort: isSorted ? [{ field: 'name', order: 'asc' }] : undefined,
  };
}

/** Removes what differs from run to run: times, and the number of scored candidates. */
const contentOf = ({
  timings: _,
  work: { candidatesRescored: __, ...work },
  ...reply
}: QueryReply) => ({
  ...reply,
  work,
});

async function answerAll(session: QuerySession, requests: readonly QueryRequest[]) {
  const replies: QueryReply[] = [];
  for (const group of session.prepare(requests)) {
    assert.equal(group.firstIndex, replies.length);
    replies.push(...(await group.answer()));
  }
  return replies;
}

describe('queries of one session', () => {
  it('have the answers that each of them has alone, bit for bit', async () => {
    const seed = testSeed();
    const random = createRandom(seed);
    const database = await createFilled(random);
    const requests = Array.from({ length: IS_NIGHTLY ? 600 : 200 }, () => randomQuery(random));
    const alone: QueryReply[] = [];
    for (const request of requests) alone.push(await database.collection('c').query(request));
    const session = await database.collection('c').openQuerySession();
    const together = await answerAll(session, requests);
    assert.deepEqual(together.map(contentOf), alone.map(contentOf), `seed ${seed}`);
    // The next pages, by cursors in the same request.
    const cursors = together.flatMap(({ nextCursor }) =>
      nextCursor === undefined ? [] : [{ cursor: nextCursor }],
    );
    assert.ok(cursors.length > requests.length / 6);
    const next: QueryReply[] = [];
    for (const request of cursors) next.push(await database.collection('c').query(request));
    assert.deepEqual((await answerAll(session, cursors)).map(contentOf), next.map(contentOf));
    session.close();
    await database.close();
  });

  it('read one snapshot while rows are written, deleted and compacted', async () => {
    const seed = testSeed();
    const random = createRandom(seed);
    const clock = createTestClock();
    const database = await createFilled(random, { clock, limits: { retentionMs: 60_000 } });
    // The last row is in the segment that the next writes go to.
    const last = `v${COUNT - 1}`;
    const requests = [...Array.from({ length: 40 }, () => randomQuery(random)), { id: last }];
    const expected: QueryReply[] = [];
    for (const request of requests) expected.push(await database.collection('c').query(request));
    const session = await database.collection('c').openQuerySession();
    const replaced = { id: last, values: [9, 0, 0, 0, 0, 1], metadata: '{}' };
    await database.collection('c').write(batchOf([replaced]), { mode: 'upsert' });
    for (let round = 0; round < 12; round++) {
      // Far beyond the retention, with many checkpoints and compactions.
      clock.nowMs += 40_000;
      await database.collection('c').write(batchOf(vectorsOf(random, 90, `w${round % 2}-`)), {
        mode: 'upsert',
      });
      const changed = vectorsOf(random, COUNT).filter(() => random() < 0.2);
      await database.collection('c').write(batchOf(changed), { mode: 'upsert' });
      const ids = Array.from({ length: 20 }, () => `v${Math.floor(random() * COUNT)}`);
      await database.collection('c').delete({ kind: 'ids', ids }, { dryRun: false });
      const replies = await answerAll(session, requests);
      assert.deepEqual(
        replies.map(({ matches, total, hasMore, sequence }) => ({
          matches,
          total,
          hasMore,
          sequence,
        })),
        expected.map(({ matches, total, hasMore, sequence }) => ({
          matches,
          total,
          hasMore,
          sequence,
        })),
        `seed ${seed}, round ${round}`,
      );
    }
    await database.collection('c').delete({ kind: 'all' }, { dryRun: false });
    const [late] = await answerAll(session, [{ id: 'v7', topK: 3 }]);
    assert.equal(late!.matches.length, 3, 'also when nothing is left');
    session.close();
    await database.close();
  });

  it('keep compactions from removing rows until they are closed', async () => {
    const clock = createTestClock();
    const limits = { retentionMs: 1_000 };
    const database = await createFilled(createRandom(1), { clock, limits });
    const write = async () => {
      clock.nowMs += 10_000;
      await database.collection('c').write(batchOf(vectorsOf(createRandom(2), 300)), {
        mode: 'upsert',
      });
    };
    const session = await database.collection('c').openQuerySession();
    const first = await database.collection('c').query({ id: 'v0', limit: 5 });
    for (let i = 0; i < 8; i++) await write();
    const whileOpen = database.storageUse().rowCount;
    session.close();
    session.close();
    const rowCount = () => database.storageUse().rowCount;
    // Compactions run in the background, and each write may start one.
    await eventually('rows are removed', async () => {
      await write();
      return rowCount() < whileOpen;
    });
    await assert.rejects(database.collection('c').query({ cursor: first.nextCursor }), {
      code: 'cursor_expired',
    });
    await database.close();
  });

  it('add one listener to the signal of their request, however many filters they have', async () => {
    const database = await createFilled(createRandom(1));
    const { signal } = new AbortController();
    const session = await database.collection('c').openQuerySession({ signal });
    const vector = new Float32Array(DIMENSION).fill(1);
    const requests = Array.from({ length: 40 }, (_, i) => ({
      vector,
      topK: 1,
      filter: { name: `n${i}` },
    }));
    const replies = await withoutListenerWarnings(async () => {
      const groups = session.prepare(requests).map((group) => group.answer({ signal }));
      return (await Promise.all(groups)).flat();
    });
    assert.equal(replies.filter(({ matches }) => matches.length === 1).length, 40);
    session.close();
    await database.close();
  });

  it('report the issues of all of them before any search', async () => {
    const observer = createRecorder();
    const database = await createFilled(createRandom(1), { observer });
    const session = await database.collection('c').openQuerySession();
    const vector = new Float32Array(DIMENSION).fill(1);
    const bad: readonly QueryRequest[] = [
      { vector },
      { vector: new Float32Array(3) },
      { vector, filter: { group: { $no: 1 } } },
      { id: 'none' },
      { vector, cursor: 'x' },
      { vector: new Float32Array(DIMENSION) },
    ];
    assert.throws(
      () => session.prepare(bad, 100),
      (error: SagittaError) => {
        assert.equal(error.code, 'invalid_request');
        assert.deepEqual(
          error.issues.map((issue) => [placeOf(issue), issue.code]),
          [
            ['/101/vector', 'dimension_mismatch'],
            ['/102/filter/group/$no', 'invalid_filter'],
            ['/103/id', 'vector_not_found'],
            ['/104/cursor', 'cursor_invalid'],
            ['/105/vector', 'invalid_vector'],
          ],
        );
        return true;
      },
    );
    assert.throws(() => session.prepare([{ vector }, { id: 'none' }]), {
      code: 'vector_not_found',
      message: /no vector with the id "none"/,
    });
    assert.deepEqual(observer.of('sagitta_engine_batch_queries'), []);
    session.close();
    await database.close();
  });

  it('are searched in groups, and each filter is evaluated once', async () => {
    const observer = createRecorder();
    // Groups of 2 MB.
    const limits = { replyBytesInFlightMax: 32_000_000 };
    const database = await createFilled(createRandom(1), { observer, limits });
    const session = await database.collection('c').openQuerySession();
    const vector = new Float32Array(DIMENSION).fill(1);
    const missesBefore = database.filterCacheUse.missCount;
    const requests = Array.from({ length: 600 }, (_, i) => ({
      vector,
      filter: { group: { $gt: i % 2 } },
    }));
    await answerAll(session, requests);
    assert.deepEqual(observer.of('sagitta_engine_batch_queries'), [256, 256, 88]);
    assert.deepEqual(observer.of('sagitta_queries_total'), [256, 256, 88]);
    const { segmentCount } = database.storageUse();
    assert.equal(database.filterCacheUse.missCount - missesBefore, 2 * segmentCount);
    // Groups are bounded by the memory of their matches, and a query has no more matches than the collection has rows.
    const large = session.prepare(new Array(40).fill({ vector, topK: 10_000 }));
    for (const { count, matchBytes } of large) {
      assert.ok(matchBytes >= count * COUNT * 256);
      assert.ok(matchBytes <= 2_200_000);
    }
    assert.ok(large.length > (40 * COUNT * 256) / 2_200_000);
    session.close();
    await database.close();
  });

  it('fail when the collection is deleted, or replaced under the same id', async () => {
    const database = await createFilled(createRandom(1));
    const session = await database.collection('c').openQuerySession();
    const vector = new Float32Array(DIMENSION).fill(1);
    const [group] = session.prepare([{ vector }]);
    await database.collection('c').drop();
    await assert.rejects(group!.answer(), { code: 'collection_not_found' });
    const input = {
      vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
      description: null,
      labels: {},
    } as const;
    await database.createCollection({ id: 'c', ...input });
    await assert.rejects(group!.answer(), { code: 'collection_not_found' });
    assert.throws(() => session.prepare([{ id: 'v1' }]), { code: 'collection_not_found' });
    await database.close();
  });

  it('wait for the write that they must include', async () => {
    const database = await createFilled(createRandom(1));
    const collection = database.collection('c');
    const writing = collection.write(batchOf(vectorsOf(createRandom(3), 1, 'n')), {
      mode: 'upsert',
    });
    const session = await collection.openQuerySession({ minSequence: 2 });
    assert.equal(session.sequence, 2);
    await writing;
    await assert.rejects(collection.openQuerySession({ minSequence: 3 }), {
      code: 'invalid_request',
      message: /at most 2; found 3/,
    });
    session.close();
    await database.close();
  });
});
