// Streams into a real server process that is killed or stopped, or whose client disconnects: the disk holds a prefix of
// the stream that is at least as long as acknowledged, and the same stream continues from there.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom, testSeed } from '../database/harness.js';
import { arrowStream } from '../server/ingest/streams.js';
import { createCaller, type ServerProcess, startServerProcess } from '../support/server-process.js';
import { eventually } from '../support/waiting.js';

const KILLS = 3;
const CLIENTS = 64;
const BATCH_ROWS = 500;
const DIMENSION = 32;
const SETTINGS = {
  SAGITTA_ENGINE: 'reference',
  SAGITTA_SEGMENT_ROWS_MAX: '4096',
  SAGITTA_THREADS: '2',
  SAGITTA_LOG_LEVEL: 'error',
  SAGITTA_WRITE_RATE_MAX: '0',
};

let dataDirectory: string;
before(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-streams-'));
});
after(() => rm(dataDirectory, { recursive: true, force: true }));

const start = () => startServerProcess({ dataDirectory, settings: SETTINGS });

/** Row `i` contains `i` in its values, which reveals its place in the stream. */
const batchOf = (batch: number, prefix: string) =>
  Array.from({ length: BATCH_ROWS }, (_, i) => {
    const row = batch * BATCH_ROWS + i;
    return { id: `${prefix}${row}`, values: new Array(DIMENSION).fill(row), metadata: '{}' };
  });
const streamOf = (batchCount: number, prefix = 'r') =>
  arrowStream(Array.from({ length: batchCount }, (_, batch) => batchOf(batch, prefix)));

function open(url: string, collection: string, key?: string): ClientRequest {
  return request(`${url}/v1/collections/${collection}/vectors`, {
    method: 'POST',
    agent: false,
    headers: {
      'content-type': 'application/vnd.apache.arrow.stream',
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
  });
}

/** Sends as fast as the server reads. Returns the reply, or undefined if the connection breaks. */
async function send(
  outgoing: ClientRequest,
  body: Buffer,
): Promise<{ status: number; json: Record<string, unknown> } | undefined> {
  const answered = once(outgoing, 'response').then(([reply]) => reply as IncomingMessage);
  answered.catch(() => {});
  try {
    for (let at = 0; at < body.length; at += 65_536) {
      if (!outgoing.write(body.subarray(at, at + 65_536))) {
        await Promise.race([once(outgoing, 'drain'), answered]);
      }
    }
    outgoing.end();
    const reply = await answered;
    let text = '';
    for await (const chunk of reply.setEncoding('utf8')) text += chunk;
    return { status: reply.statusCode!, json: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

async function create(server: ServerProcess, id: string): Promise<void> {
  const { call, close } = createCaller(server.url);
  const created = await call('POST', '/v1/collections', {
    id,
    dimension: DIMENSION,
    metric: 'dot',
  });
  assert.equal(created.status, 200, created.text);
  close();
}

async function countRows(server: ServerProcess, id: string): Promise<number> {
  const { call, close } = createCaller(server.url);
  const reply = await call('POST', `/v1/collections/${id}/count`, {});
  close();
  return reply.json<{ count: number }>().count;
}

/** Waits until at least this many rows exist. */
async function reach(server: ServerProcess, id: string, rowCount: number): Promise<void> {
  await eventually(`${rowCount} rows`, async () => (await countRows(server, id)) >= rowCount);
}

/** Returns the number of rows while nothing is written. Checks that they form whole batches from the first on. */
async function countBeginning(server: ServerProcess, id: string, prefix = 'r'): Promise<number> {
  const { call, close } = createCaller(server.url);
  const count = await countRows(server, id);
  assert.equal(count % BATCH_ROWS, 0, `expected whole batches, found ${count} rows`);
  const path = `/v1/collections/${id}/vectors`;
  for (const row of [0, count - 1].filter((known) => known >= 0 && count > 0)) {
    const found = await call('GET', `${path}/${prefix}${row}`);
    assert.equal(found.status, 200, `row ${row} of ${count}: ${found.text}`);
    assert.equal(found.json<{ values: number[] }>().values[DIMENSION - 1], row);
  }
  assert.equal((await call('GET', `${path}/${prefix}${count}`)).status, 404);
  close();
  return count;
}

it(`a stream resumes after its server is killed, without lost or duplicate rows (${KILLS} kills)`, async (t) => {
  const seed = testSeed();
  t.diagnostic(`seed ${seed}`);
  const random = createRandom(seed);
  const batchCount = 200;
  const body = streamOf(batchCount);
  const counts: number[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const server = await start();
    if (kill === 0) await create(server, 'k');
    else counts.push(await countBeginning(server, 'k'));
    const sending = send(open(server.url, 'k', 'key'), body);
    await reach(server, 'k', Math.min((counts.at(-1) ?? 0) + BATCH_ROWS, batchCount * BATCH_ROWS));
    await sleep(random() * 60);
    await server.kill();
    await sending;
  }
  const server = await start();
  const durable = await countBeginning(server, 'k');
  const reply = await send(open(server.url, 'k', 'key'), body);
  const rowCount = batchCount * BATCH_ROWS;
  assert.equal(reply?.status, 200, JSON.stringify(reply?.json));
  assert.deepEqual(reply?.json, {
    upserted_count: rowCount,
    inserted_count: rowCount,
    updated_count: 0,
    batch_count: batchCount,
    // If the last kill came too late, the reply belongs to an earlier attempt.
    resumed_count: durable === rowCount ? reply?.json.resumed_count : durable,
    sequence: batchCount,
  });
  assert.equal(await countBeginning(server, 'k'), rowCount);
  assert.ok(durable > 0, 'expected a kill to interrupt a stream');
  t.diagnostic(`durable after the kills: ${[...counts, durable].join(', ')}`);
  await server.stop();
});

it(`${CLIENTS} concurrent streams are all written completely and in order`, async () => {
  const server = await start();
  await create(server, 'many');
  const replies = await Promise.all(
    Array.from({ length: CLIENTS }, (_, client) =>
      send(open(server.url, 'many'), streamOf(4, `c${client}-`)),
    ),
  );
  for (const reply of replies) {
    assert.equal(reply?.status, 200, JSON.stringify(reply?.json));
    assert.equal(reply?.json.inserted_count, 4 * BATCH_ROWS);
  }
  const { call, close } = createCaller(server.url);
  const { text } = await call('POST', '/v1/collections/many/count', {});
  assert.equal(text, `{"count":${CLIENTS * 4 * BATCH_ROWS}}`);
  close();
  await server.stop();
});

it('a stream whose client disconnects leaves only whole batches', async () => {
  const server = await start();
  await create(server, 'gone');
  const outgoing = open(server.url, 'gone');
  outgoing.on('error', () => {});
  const body = streamOf(20);
  outgoing.write(body.subarray(0, Math.floor(body.length * 0.62)));
  await reach(server, 'gone', 12 * BATCH_ROWS);
  outgoing.destroy();
  await sleep(50);
  assert.equal(await countBeginning(server, 'gone'), 12 * BATCH_ROWS);
  await server.stop();
});

it('a stream to a server that stops ends with the number of durable rows', async () => {
  const server = await start();
  await create(server, 'stop');
  const outgoing = open(server.url, 'stop');
  const answered = once(outgoing, 'response').then(([reply]) => reply as IncomingMessage);
  outgoing.write(streamOf(10).subarray(0, -8));
  await reach(server, 'stop', 10 * BATCH_ROWS);
  const stopping = server.stop();
  await eventually('the server stops', () =>
    fetch(`${server.url}/readyz`).then(
      ({ status }) => status === 503,
      () => true,
    ),
  );
  // The server refuses the next batch.
  const all = streamOf(11);
  outgoing.write(all.subarray(streamOf(10).length - 8, -8));
  const reply = await answered;
  let text = '';
  for await (const chunk of reply.setEncoding('utf8')) text += chunk;
  const { code, committed_count } = JSON.parse(text);
  assert.deepEqual(
    [reply.statusCode, code, committed_count],
    [503, 'stopping', 10 * BATCH_ROWS],
    text,
  );
  outgoing.on('error', () => {});
  outgoing.destroy();
  await stopping;
  const again = await start();
  assert.equal(await countBeginning(again, 'stop'), 10 * BATCH_ROWS);
  await again.stop();
});
