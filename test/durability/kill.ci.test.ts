// A real server process that is killed with SIGKILL at random moments while several clients write. After each restart,
// every acknowledged write exists, no batch exists in part, and idempotency keys return the same replies as before. The
// nightly run does more rounds.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom, testSeed } from '../database/harness.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { createCaller, startServerProcess } from '../support/server-process.js';

const ROUNDS = IS_NIGHTLY ? 20 : 8;
const CLIENTS = 6;
const DIMENSION = 16;
const BATCH_ROWS_MAX = 24;

interface Sent {
  readonly key: string;
  readonly body: string;
  readonly ids: readonly string[];
  readonly deletes: boolean;
  reply: string | undefined;
}

it(`a killed server loses no acknowledged write and keeps no partial batch (${ROUNDS} rounds)`, async (t) => {
  const seed = testSeed();
  t.diagnostic(`seed ${seed}`);
  const random = createRandom(seed);
  const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-kill-'));
  // Segments are small, so that checkpoints and compactions are running when the process dies.
  const settings = {
    SAGITTA_ENGINE: 'reference',
    SAGITTA_SEGMENT_ROWS_MAX: '256',
    SAGITTA_THREADS: '1',
  };
  const history: Sent[] = [];
  let batchNumber = 0;
  let cutOffCount = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const server = await startServerProcess({ dataDirectory, settings });
      const { call, close } = createCaller(server.url);
      if (round === 0) {
        const created = await call('POST', '/v1/collections', {
          id: 'k',
          dimension: DIMENSION,
          metric: 'dot',
          vectors: { odd: { dimension: 2, metric: 'dot' } },
          sparse_vectors: { third: {} },
        });
        assert.equal(created.status, 200);
      } else {
        await verify(call, history);
      }

      let isDying = false;
      const write = async () => {
        const number = batchNumber++;
        const previous = history.filter((sent) => !sent.deletes && sent.reply !== undefined);
        const deletes = previous.length > 10 && random() < 0.15;
        const ids = deletes
          ? previous[Math.floor(random() * previous.length)]!.ids
          : Array.from(
              { length: 1 + Math.floor(random() * BATCH_ROWS_MAX) },
              (_, i) => `b${number}-${i}`,
            );
        const body = deletes
          ? JSON.stringify({ ids })
          : JSON.stringify({
              vectors: ids.map((id, i) => ({
                id,
                values: Array.from({ length: DIMENSION }, (_, d) => number + i / 8 + d),
                vectors: namedOf(number, i),
                sparse_vectors: sparseOf(number, i),
                metadata: { batch: number, row: i, of: ids.length },
              })),
            });
        const sent: Sent = { key: `key-${number}`, body, ids, deletes, reply: undefined };
        if (deletes && history.some((other) => other.deletes && other.ids === ids)) return;
        history.push(sent);
        const path = `/v1/collections/k/vectors${deletes ? '/delete' : ''}`;
        const reply = await call('POST', path, body, { 'idempotency-key': sent.key });
        assert.equal(reply.status, 200, reply.text);
        sent.reply = reply.text;
      };
      const clients = Array.from({ length: CLIENTS }, async () => {
        while (!isDying) {
          try {
            await write();
          } catch (error) {
            if (!isDying) throw error;
          }
        }
      });
      // Counts writes, not time, so that the kill interrupts writes just as often on a slow machine.
      const killAtCount = history.length + 8 + Math.floor(random() * 40);
      const enough = async () => {
        while (history.length < killAtCount) await sleep(2);
      };
      // A failing client ends the wait.
      await Promise.race([enough(), Promise.all(clients)]);
      isDying = true;
      await server.kill();
      await Promise.all(clients);
      close();
      cutOffCount += history.filter(({ reply }) => reply === undefined).length;
    }
    const server = await startServerProcess({ dataDirectory, settings });
    const { call, close } = createCaller(server.url);
    await verify(call, history);
    close();
    await server.stop();
    t.diagnostic(`${history.length} writes, ${cutOffCount} of them cut off by a kill`);
    assert.ok(
      history.length > ROUNDS * 5,
      `expected more than ${ROUNDS * 5} writes, found ${history.length}`,
    );
    assert.ok(cutOffCount > 0, 'expected a kill to interrupt a write');
  } finally {
    await rm(dataDirectory, { recursive: true, force: true });
  }
});

interface Stored {
  readonly id: string;
  readonly vectors: object;
  readonly sparse_vectors: object;
  readonly metadata: { readonly batch: number; readonly row: number };
}

/** Adds the named vector to every other row. */
function namedOf(batch: number, row: number): object {
  return row % 2 === 1 ? { odd: [batch, row] } : {};
}

/** Adds the sparse vector to every third row. */
function sparseOf(batch: number, row: number): object {
  return row % 3 === 2 ? { third: { indices: [row, 1_000 + batch], values: [0.5, row] } } : {};
}

type Call = ReturnType<typeof createCaller>['call'];

async function verify(call: Call, history: Sent[]): Promise<void> {
  const deleted = new Set(
    history
      .filter(({ deletes, reply }) => deletes && reply !== undefined)
      .flatMap(({ ids }) => ids),
  );
  const perhapsDeleted = new Set(
    history
      .filter(({ deletes, reply }) => deletes && reply === undefined)
      .flatMap(({ ids }) => ids),
  );
  for (const sent of history) {
    if (sent.deletes) continue;
    const { vectors, not_found } = (
      await call('POST', '/v1/collections/k/vectors/fetch', { ids: sent.ids })
    ).json<{ vectors: Stored[]; not_found: string[] }>();
    const isWhole = vectors.length === 0 || not_found.length === 0;
    assert.ok(isWhole, `a partial batch: ${vectors.length} of ${sent.ids.length}`);
    for (const { id, vectors: named, sparse_vectors: sparse, metadata } of vectors) {
      assert.deepEqual(named, namedOf(metadata.batch, metadata.row), id);
      assert.deepEqual(sparse, sparseOf(metadata.batch, metadata.row), id);
    }
    if (sent.ids.some((id) => perhapsDeleted.has(id))) continue;
    if (deleted.has(sent.ids[0]!)) {
      assert.equal(vectors.length, 0, 'a deleted batch came back');
    } else if (sent.reply !== undefined) {
      assert.equal(vectors.length, sent.ids.length, `an acknowledged batch is gone: ${sent.key}`);
    }
  }
  // Repeating the last few keys replays acknowledged writes and applies interrupted ones exactly once.
  for (const sent of history.slice(-8)) {
    const path = `/v1/collections/k/vectors${sent.deletes ? '/delete' : ''}`;
    const reply = await call('POST', path, sent.body, { 'idempotency-key': sent.key });
    assert.equal(reply.status, 200);
    if (sent.reply === undefined) {
      sent.reply = reply.text;
      continue;
    }
    assert.equal(reply.text, sent.reply, 'a replay returns the original reply');
    assert.equal(reply.headers['idempotent-replayed'], 'true');
  }
}
