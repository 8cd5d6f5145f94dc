// A real server process that is killed with SIGKILL while collections are cloned, aliases switched, collections deleted
// and expiring vectors written. After each restart, the aliases point to a complete generation and its predecessor, and
// nothing remains of interrupted operations. The nightly run does more rounds.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyDirectory } from '../../src/offline.js';
import { createRandom, testSeed } from '../database/harness.js';
import { IS_NIGHTLY } from '../support/nightly.js';
import { createCaller, type Reply, startServerProcess } from '../support/server-process.js';

const ROUNDS = IS_NIGHTLY ? 20 : 8;
const ROW_COUNT = 600;
const EXPIRES_AT = '2199-01-31T12:00:00.000Z';

type Call = ReturnType<typeof createCaller>['call'];

const collectionOf = (generation: number) => `g${generation}`;

async function succeed(calling: Promise<Reply>): Promise<Reply> {
  const reply = await calling;
  assert.equal(reply.status, 200, reply.text);
  return reply;
}

/** Fills the first generation, which both `live` and `previous` point to. */
async function begin(call: Call): Promise<void> {
  await succeed(call('POST', '/v1/collections', { id: 'g0', dimension: 4, metric: 'dot' }));
  const vectors = Array.from({ length: ROW_COUNT }, (_, i) => ({
    id: `v${i}`,
    values: [i, 1, 2, 3],
  }));
  await succeed(call('POST', '/v1/collections/g0/vectors', { vectors }));
  await succeed(call('POST', '/v1/aliases', switchTo(0)));
}

function switchTo(generation: number): object {
  const previous = Math.max(0, generation - 1);
  return {
    aliases: [
      { name: 'live', collection: collectionOf(generation) },
      { name: 'previous', collection: collectionOf(previous) },
    ],
  };
}

/** Creates the next generation and deletes the one before the previous. */
async function advance(call: Call, generation: number): Promise<void> {
  const next = generation + 1;
  await succeed(call('POST', '/v1/collections/live/clone', { id: collectionOf(next) }));
  const marker = { id: `m${next}`, values: [next, 0, 0, 0], expires_at: EXPIRES_AT };
  await succeed(call('POST', `/v1/collections/${collectionOf(next)}/vectors`, marker));
  await succeed(call('POST', '/v1/aliases', switchTo(next)));
  if (generation === 0) return;
  await succeed(call('DELETE', `/v1/collections/${collectionOf(generation - 1)}`));
}

/** Checks the state after a restart and removes what interrupted steps left. Returns the generation. */
async function check(call: Call, acknowledged: number): Promise<number> {
  const live = (await succeed(call('GET', '/v1/collections/live'))).json<{ id: string }>().id;
  const generation = Number(live.slice(1));
  assert.ok(generation === acknowledged || generation === acknowledged + 1, `${live} is live`);
  const previous = (await succeed(call('GET', '/v1/aliases/previous'))).json<{
    collection: string;
  }>().collection;
  assert.equal(previous, collectionOf(Math.max(0, generation - 1)));

  const ids = Array.from({ length: generation }, (_, i) => `m${i + 1}`);
  const counted = await succeed(call('POST', '/v1/collections/live/count', {}));
  assert.equal(counted.json<{ count: number }>().count, ROW_COUNT + generation);
  if (generation > 0) {
    const fetched = await succeed(call('POST', '/v1/collections/live/vectors/fetch', { ids }));
    const { vectors } = fetched.json<{ vectors: { id: string; expires_at: string }[] }>();
    assert.deepEqual(
      vectors.map(({ id, expires_at }) => [id, expires_at]),
      ids.map((id) => [id, EXPIRES_AT]),
    );
  }
  const listed = (await succeed(call('GET', '/v1/collections'))).json<{
    collections: { id: string; status: string }[];
  }>().collections;
  for (const { id, status } of listed) {
    assert.equal(status, 'ready', id);
    if (id !== live && id !== previous) await succeed(call('DELETE', `/v1/collections/${id}`));
  }
  return generation;
}

it(`a killed server switches aliases all or nothing and leaves no partial clone (${ROUNDS} rounds)`, async (t) => {
  const seed = testSeed();
  t.diagnostic(`seed ${seed}`);
  const random = createRandom(seed);
  const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-kill-switch-'));
  const settings = {
    SAGITTA_ENGINE: 'reference',
    SAGITTA_SEGMENT_ROWS_MAX: '256',
    SAGITTA_THREADS: '1',
  };
  let acknowledged = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const server = await startServerProcess({ dataDirectory, settings });
      const { call: send, close } = createCaller(server.url);
      let sentCount = 0;
      const call: Call = (...request) => {
        sentCount++;
        return send(...request);
      };
      if (round === 0) await begin(call);
      else acknowledged = await check(call, acknowledged);

      let isDying = false;
      const work = async () => {
        while (!isDying) {
          try {
            await advance(call, acknowledged);
            acknowledged++;
          } catch (error) {
            if (!isDying) throw error;
          }
        }
      };
      // Counts requests, not time, so that the kill comes at the same points on a slow machine.
      const killAtCount = sentCount + 4 + Math.floor(random() * 24);
      const enough = async () => {
        while (sentCount < killAtCount) await sleep(1);
      };
      const working = work();
      await Promise.race([enough(), working]);
      isDying = true;
      await server.kill();
      await working;
      close();
    }
    const server = await startServerProcess({ dataDirectory, settings });
    const { call, close } = createCaller(server.url);
    acknowledged = await check(call, acknowledged);
    close();
    await server.stop();
    assert.ok(
      acknowledged >= ROUNDS,
      `expected at least ${ROUNDS} generations, found ${acknowledged}`,
    );
    assert.deepEqual((await verifyDirectory(dataDirectory)).findings, []);
  } finally {
    await rm(dataDirectory, { recursive: true, force: true });
  }
});
