import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { CommitTimings } from '../../src/database/api/database-api.js';
import type { Database } from '../../src/database/database.js';
import type { Engine } from '../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { withResolvers } from '../support/waiting.js';
import { batchOf, openDatabase } from './harness.js';
import { createRecorder } from './recorder.js';

const vectors = (from: number, to: number) =>
  batchOf(
    Array.from({ length: to - from }, (_, i) => ({
      id: `v${from + i}`,
      values: [from + i, 1],
      metadata: JSON.stringify({ even: (from + i) % 2 === 0 }),
    })),
  );

const INPUT = {
  id: 'c',
  vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
  description: null,
  labels: {},
} as const;

describe('the observer of a database', () => {
  const observer = createRecorder();
  let database: Database;
  before(async () => {
    database = await openDatabase({ observer, limits: { retentionMs: 1 } });
    await database.createCollection(INPUT);
  });
  after(() => database.close());

  it('receives the results of writes, and their commits', async () => {
    observer.clear();
    const timings: CommitTimings[] = [];
    await database.collection('c').write(vectors(0, 10), {
      mode: 'upsert',
      onCommitted: (found) => timings.push(found),
    });
    await database.collection('c').write(vectors(8, 13), { mode: 'upsert' });
    await database.collection('c').patch('v0', { metadata: '{"a":1}' });
    await database.collection('c').deleteVector('v12');
    await database.collection('c').delete({ kind: 'ids', ids: ['v11', 'no'] }, { dryRun: false });
    await database.collection('c').delete({ kind: 'all' }, { dryRun: true });
    await assert.rejects(database.collection('c').write(vectors(0, 1), { mode: 'insert' }));
    const inserted = { kind: 'inserted' };
    const updated = { kind: 'updated' };
    assert.deepEqual(observer.of('sagitta_vectors_written_total'), [
      [10, inserted],
      [0, updated],
      [3, inserted],
      [2, updated],
      [0, inserted],
      [1, updated],
    ]);
    assert.deepEqual(observer.of('sagitta_vectors_deleted_total'), [1, 1]);
    assert.deepEqual(observer.of('sagitta_writes_committed_total'), [1, 1, 1, 1, 1]);
    assert.equal(observer.of('sagitta_commit_seconds').length, 5);
    assert.equal(timings.length, 1);
    assert.ok(timings[0]!.waitMs >= 0 && timings[0]!.commitMs >= 0);
  });

  it('receives every query with its phases and its work, and the batch', async () => {
    observer.clear();
    const filter = { $and: [{ even: true }, { even: { $ne: 3 } }] };
    const request = { vector: Float32Array.of(1, 1), topK: 3, filter };
    const reply = await database.collection('c').query(request);
    const { rowsScanned, candidatesRescored } = reply.work;
    assert.deepEqual(observer.of('sagitta_queries_total'), [1]);
    assert.deepEqual(observer.of('sagitta_rows_scanned_total'), [rowsScanned]);
    assert.deepEqual(observer.of('sagitta_rows_rescored_total'), [candidatesRescored]);
    const { startedAtMs, ...phases } = reply.timings;
    assert.deepEqual(
      observer.of('sagitta_query_phase_seconds'),
      Object.entries(phases).map(([name, milliseconds]) => [
        milliseconds / 1000,
        { phase: name.replace('Ms', '') },
      ]),
    );
    assert.ok(startedAtMs > 0 && Object.values(phases).every((milliseconds) => milliseconds >= 0));
    assert.deepEqual(Object.keys(phases), ['filterMs', 'waitMs', 'searchMs', 'assembleMs']);
    assert.equal(reply.work.conditionCount, 2);
    // v0, v2 … v10, since the patch of v0 did not change the field.
    assert.deepEqual([reply.work.rowsPassedFilter, reply.work.rowsScanned], [6, 6]);
    assert.equal(reply.explain, undefined);
    const explained = await database.collection('c').query({ ...request, explain: true });
    assert.equal(explained.explain?.rowsScanned, explained.work.rowsScanned);
    assert.deepEqual(observer.of('sagitta_engine_batch_queries'), [1, 1]);
  });

  it('receives one batch for the queries that waited together, and sees the queue', async () => {
    const recorder = createRecorder();
    const inner = createReferenceEngine({ pool: createInlinePool() });
    const { promise: gate, resolve: open } = withResolvers();
    const engine: Engine = {
      name: inner.name,
      rowEncoder: null,
      async search(queries, options) {
        await gate;
        return inner.search(queries, options);
      },
      unload: (key) => inner.unload(key),
      bytesUsed: (key) => inner.bytesUsed(key),
      close: () => inner.close(),
    };
    const busy = await openDatabase({ observer: recorder, engine });
    await busy.createCollection(INPUT);
    await busy.collection('c').write(vectors(0, 3), { mode: 'upsert' });
    const query = () => busy.collection('c').query({ vector: Float32Array.of(1, 0) });
    const startedAtMs = performance.now();
    const first = query();
    await settle();
    const others = [query(), query(), query()];
    await settle();
    assert.equal(busy.queuedQueryCount, 3);
    // Longer than the first query can have waited, on a machine of any speed.
    const until = 2 * performance.now() - startedAtMs;
    while (performance.now() < until) await settle();
    open();
    const [alone, ...rest] = await Promise.all([first, ...others]);
    assert.deepEqual(recorder.of('sagitta_engine_batch_queries'), [1, 3]);
    assert.equal(busy.queuedQueryCount, 0);
    const least = Math.min(...rest.map(({ timings }) => timings.waitMs));
    assert.ok(least > alone!.timings.waitMs, `${least}`);
    await busy.close();
  });

  it('receives what became of cursors', async () => {
    observer.clear();
    const vector = Float32Array.of(1, 1);
    const page = await database.collection('c').query({ vector, limit: 2 });
    await database.collection('c').query({ cursor: page.nextCursor, limit: 1_000 });
    const list = await database.collection('c').list({ limit: 2 });
    await assert.rejects(database.collection('c').query({ cursor: list.nextCursor! }));
    await assert.rejects(database.collection('c').list({ cursor: 'nonsense' }));
    await assert.rejects(database.collection('c').list({ limit: 1_000_000 }));
    assert.deepEqual(observer.of('sagitta_cursors_issued_total'), [1, 1]);
    assert.deepEqual(observer.of('sagitta_cursors_resumed_total'), [1]);
    assert.deepEqual(observer.of('sagitta_cursors_refused_total'), [
      [1, { code: 'cursor_mismatch' }],
      [1, { code: 'cursor_invalid' }],
    ]);
  });

  it('receives what became of idempotency keys', async () => {
    observer.clear();
    const reply = { status: 200, headers: {}, body: '{}' };
    const run = (payloadDigest: string, work: () => Promise<typeof reply>) =>
      database.runIdempotent({ scope: 's', key: 'k', payloadDigest }, work);
    let inner: unknown;
    await run('1', async () => {
      inner = await run('1', async () => reply).catch((error: unknown) => error);
      return reply;
    });
    assert.equal((inner as { code: string }).code, 'idempotency_in_flight');
    await run('1', async () => reply);
    await assert.rejects(run('2', async () => reply));
    await assert.rejects(
      database.runIdempotent({ scope: 's', key: 'k2', payloadDigest: '1' }, async () => {
        throw new Error('no reply');
      }),
    );
    assert.deepEqual(observer.of('sagitta_idempotent_requests_total'), [
      [1, { outcome: 'idempotency_in_flight' }],
      [1, { outcome: 'kept' }],
      [1, { outcome: 'replayed' }],
      [1, { outcome: 'idempotency_key_reused' }],
    ]);
  });

  it('receives checkpoints, compactions and the rows that were removed', async () => {
    const clock = { nowMs: Date.UTC(2026, 0, 1), now: () => clock.nowMs };
    const recorder = createRecorder();
    const worn = await openDatabase({
      observer: recorder,
      clock,
      limits: { retentionMs: 1_000 },
    });
    await worn.createCollection(INPUT);
    await worn.collection('c').write(vectors(0, 64), { mode: 'upsert' });
    const ids = Array.from({ length: 40 }, (_, i) => `v${i}`);
    await worn.collection('c').delete({ kind: 'ids', ids }, { dryRun: false });
    assert.deepEqual(worn.storageUse().rowCount, 64);
    assert.ok(worn.storageUse().logBytes > 0);
    // Each full segment causes a checkpoint, and the one after the retention compacts the segment with ended rows.
    for (let i = 1; i <= 3; i++) {
      clock.nowMs += 5_000;
      await worn.collection('c').write(vectors(i * 64, (i + 1) * 64), { mode: 'upsert' });
      await settle();
    }
    assert.ok(recorder.of('sagitta_checkpoint_seconds').length >= 1);
    assert.equal(recorder.of('sagitta_compaction_seconds').length, 1);
    assert.deepEqual(recorder.of('sagitta_rows_compacted_total'), [40]);
    assert.equal(worn.storageUse().rowCount, 64 * 4 - 40);
    assert.deepEqual(recorder.of('sagitta_maintenance_failures_total'), []);
    await worn.close();
  });
});

/** Lets background maintenance finish, which runs on this thread. */
async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
}
