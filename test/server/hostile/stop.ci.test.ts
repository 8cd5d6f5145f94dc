// SIGTERM while many clients write and query: accepted requests are finished, later ones get 503, no acknowledged write
// is missing after the next start, and the process exits with code 0.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createCaller,
  type ServerProcess,
  startServerProcess,
} from '../../support/server-process.js';
import { eventually } from '../../support/waiting.js';

const CLIENTS = 32;
const ROUNDS = 3;
const DIMENSION = 8;
const LOAD_MS = 700;
/** Writes that were acknowledged in each round. */
const WRITES_MIN = 20;
const END_MS_MAX = 60_000;

it(`a server that is told to stop under load finishes what it accepted (${ROUNDS} rounds)`, async (t) => {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-stop-'));
  const settings = {
    SAGITTA_ENGINE: 'reference',
    SAGITTA_THREADS: '1',
    SAGITTA_LOG_LEVEL: 'error',
  };
  const acknowledged: string[] = [];
  let next = 0;
  let server: ServerProcess | undefined;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      server = await startServerProcess({ dataDirectory, settings });
      const { child } = server;
      const { call, close } = createCaller(server.url, CLIENTS);
      if (round === 0) {
        await call('POST', '/v1/collections', { id: 's', dimension: DIMENSION, metric: 'dot' });
      }
      const statuses = new Map<string, number>();
      let isStopping = false;
      let refusedBeforeStop = 0;
      const work = async (client: number) => {
        while (true) {
          const id = `v${next++}`;
          const isWrite = client % 2 === 0;
          const values = Array.from({ length: DIMENSION }, (_, i) => i + next);
          let status: string;
          try {
            const reply = isWrite
              ? await call('POST', '/v1/collections/s/vectors', { id, values })
              : await call('POST', '/v1/collections/s/query', { vector: values });
            status = String(reply.status);
            if (isWrite && reply.status === 200) acknowledged.push(id);
            if (reply.status === 503) assert.equal(reply.json<{ code: string }>().code, 'stopping');
          } catch (error) {
            status = (error as NodeJS.ErrnoException).code ?? 'error';
          }
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          if (status === '200') continue;
          if (!isStopping) refusedBeforeStop++;
          return;
        }
      };
      const working = Promise.all(Array.from({ length: CLIENTS }, (_, client) => work(client)));
      await sleep(LOAD_MS);
      const enough = (round + 1) * WRITES_MIN;
      await eventually('acknowledged writes', () => acknowledged.length >= enough);
      const ended = once(child, 'exit');
      const startMs = performance.now();
      isStopping = true;
      child.kill('SIGTERM');
      const [code] = (await ended) as [number | null];
      const tookMs = performance.now() - startMs;
      await working;
      close();
      t.diagnostic(`${JSON.stringify(Object.fromEntries(statuses))}, ${Math.round(tookMs)} ms`);
      assert.equal(code, 0);
      assert.equal(refusedBeforeStop, 0);
      assert.ok(tookMs < END_MS_MAX, `${tookMs} ms`);
      // A client that was cut off had no accepted request: its connection had been refused or was idle.
      const known = ['200', '503', 'ECONNREFUSED', 'ECONNRESET'];
      assert.deepEqual(
        [...statuses.keys()].filter((status) => !known.includes(status)),
        [],
      );
    }

    server = await startServerProcess({ dataDirectory, settings });
    const { call, close } = createCaller(server.url);
    assert.ok(acknowledged.length > 50, `${acknowledged.length} writes`);
    for (let start = 0; start < acknowledged.length; start += 1_000) {
      const ids = acknowledged.slice(start, start + 1_000);
      const reply = await call('POST', '/v1/collections/s/vectors/fetch', { ids });
      assert.deepEqual(reply.json<{ not_found: string[] }>().not_found, []);
    }
    close();
    await server.stop();
  } finally {
    await server?.kill();
    await rm(dataDirectory, { recursive: true });
  }
});
