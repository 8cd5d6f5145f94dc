// Replies that are made while they are sent, by the example of many queries: how they fail before
// their first byte and after it, and what becomes of them when their client does.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { createMetrics } from '../../../src/platform/metrics.js';
import { stopApp } from '../../../src/server/app.js';
import { eventually } from '../../support/waiting.js';
import { countPins, createFilledService, type Service } from '../harness.js';
import { openSession, startSecureService } from '../secure-service.js';
import { exchange, headOf, listen, metricOf, repliesIn } from '../wire.js';

const pins = countPins();

const PATH = '/collections/c/query/batch';
const NDJSON = 'application/x-ndjson';
const ARROW = 'application/vnd.apache.arrow.stream';
/** In three groups, of 256, 256 and 88. */
const BODY = JSON.stringify({ queries: new Array(600).fill({ vector: [1, 0.5, 0] }) });
const JSON_BODY = { 'content-type': 'application/json', 'content-length': BODY.length };

const bytesReserved = (service: Service) => metricOf(service, 'sagitta_http_reply_bytes_in_flight');
/** The reading of it is one. */
const underWay = (service: Service) => metricOf(service, 'sagitta_http_requests_in_flight');

/** Everything that the service gives, until it closes. */
const ask = (port: number, accept: string) =>
  exchange(port, (socket) => {
    socket.write(headOf('POST', PATH, { ...JSON_BODY, accept, connection: 'close' }) + BODY);
  });

/** Whole replies in chunks end with the empty chunk. */
const isWhole = (text: string) => text.endsWith('\r\n0\r\n\r\n');

/** The group of that number and all after it fail. */
function failFrom(service: Service, number: number): void {
  let count = 0;
  service.hooks.beforeSearch = async () => {
    if (count++ >= number) throw new SagittaError('collection_not_found', 'It was deleted.');
  };
}

/** 40 MB of replies, in four groups. */
async function createLarge(
  options: Parameters<typeof createFilledService>[0] = {},
): Promise<{ service: Service; port: number; body: string }> {
  const service = await createFilledService({ metrics: createMetrics(), ...options });
  const metadata = { text: 'x'.repeat(40_000) };
  const vectors = [{ id: 'large', values: [9, 9, 9], metadata }];
  await service.call('POST', '/collections/c/vectors', { body: { vectors } });
  const query = { vector: [1, 2, 3], top_k: 1, include_metadata: true };
  const body = JSON.stringify({ queries: new Array(1_024).fill(query) });
  return { service, port: await listen(service), body };
}

function openLarge(port: number, body: string): Socket {
  const socket = connect(port, '127.0.0.1', () => {
    const head = { 'content-type': 'application/json', 'content-length': body.length };
    socket.write(headOf('POST', PATH, head) + body);
  });
  socket.on('error', () => {});
  return socket;
}

describe('a reply that is made while it is sent', { timeout: 60_000 }, () => {
  it('is received completely', async () => {
    const service = await createFilledService();
    const port = await listen(service);
    for (const accept of ['application/json', NDJSON, ARROW]) {
      const text = await ask(port, accept);
      assert.ok(text.startsWith('HTTP/1.1 200 '), text.slice(0, 200));
      assert.ok(isWhole(text), accept);
    }
    assert.deepEqual([await bytesReserved(service), pins.count], [0, 0]);
    await service.close();
  });

  it('is a problem reply with its own status if it fails before the first chunk', async () => {
    const service = await createFilledService();
    const port = await listen(service);
    for (const accept of ['application/json', NDJSON, ARROW]) {
      failFrom(service, 0);
      const [reply] = repliesIn(await ask(port, accept));
      assert.equal(reply!.status, 404);
      assert.match(reply!.head, /application\/problem\+json/);
      assert.equal(JSON.parse(reply!.body).code, 'collection_not_found');
    }
    assert.deepEqual([await bytesReserved(service), pins.count], [0, 0]);
    await service.close();
  });

  it('is cut if it fails later, and NDJSON ends with the error', async () => {
    const service = await createFilledService({ metrics: createMetrics() });
    const port = await listen(service);
    for (const accept of ['application/json', NDJSON, ARROW]) {
      failFrom(service, 2);
      const text = await ask(port, accept);
      assert.ok(text.startsWith('HTTP/1.1 200 '), accept);
      assert.ok(!isWhole(text), `${accept} must not look whole`);
      assert.equal(text.includes('"error":'), accept === NDJSON, text);
      if (accept !== NDJSON) continue;
      const lines = text.match(/^\{.*\}$/gm)!.map((line) => JSON.parse(line));
      assert.deepEqual(
        lines.map((line) => line.query_index ?? line.error.code),
        [...Array(512).keys(), 'collection_not_found'],
      );
      assert.equal(lines.at(-1).error.status, 404);
      assert.equal(lines.at(-1).error.instance, PATH);
    }
    const { body } = await service.app.inject('/metrics');
    assert.match(body, /sagitta_http_refusals_total\{code="collection_not_found"\} 3/);
    assert.deepEqual([await bytesReserved(service), pins.count], [0, 0]);
    await service.close();
  });

  it('reports its failure over HTTP/2, where only its stream ends', async () => {
    const secure = await startSecureService();
    failFrom(secure.service, 2);
    const session = await openSession(secure.url, { ca: secure.authority.cert });
    const stream = session.request({
      ':method': 'POST',
      ':path': PATH,
      'content-type': 'application/json',
      accept: NDJSON,
    });
    stream.end(BODY);
    stream.setEncoding('utf8');
    let text = '';
    stream.on('data', (chunk) => {
      text += chunk;
    });
    await assert.rejects(once(stream, 'end'), 'it must not end as if it were whole');
    assert.match(text, /"error":\{.*"code":"collection_not_found"/);
    secure.service.hooks.beforeSearch = async () => {};
    const next = session.request({
      ':method': 'POST',
      ':path': PATH,
      'content-type': 'application/json',
    });
    next.end(BODY);
    assert.equal((await once(next, 'response'))[0][':status'], 200);
    next.resume();
    await once(next, 'end');
    session.close();
    await secure.close();
  });

  it('is produced no faster than the client reads', async () => {
    const { service, port, body } = await createLarge();
    let groupCount = 0;
    service.hooks.beforeSearch = async () => {
      groupCount++;
    };
    const socket = openLarge(port, body);
    socket.pause();
    await eventually('a group is searched', () => groupCount > 0);
    let before = -1;
    await eventually('no further group is searched', async () => {
      if (before === groupCount) return true;
      before = groupCount;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return false;
    });
    assert.ok(groupCount < 4, `${groupCount} groups ran ahead of the client`);
    const held = await bytesReserved(service);
    assert.ok(held > 0 && held < 10_000_000, `${held} bytes are held`);
    let byteCount = 0;
    socket.on('data', (chunk) => {
      byteCount += chunk.length;
    });
    socket.resume();
    await eventually('the whole reply has arrived', () => byteCount > 40_000_000);
    assert.equal(groupCount, 4);
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    socket.destroy();
    await stopApp(service.app, { deadlineMs: 0 });
  });

  it('ends when its client disconnects, and aborts the search', async () => {
    const { service, port, body } = await createLarge();
    let groupCount = 0;
    let signal: AbortSignal | undefined;
    service.hooks.beforeSearch = async (given) => {
      if (groupCount++ === 0) return;
      signal = given;
      await new Promise((resolve) => given?.addEventListener('abort', resolve));
    };
    const socket = openLarge(port, body);
    socket.resume();
    await eventually('the second group is searched', () => signal !== undefined);
    assert.ok(pins.count > 0);
    socket.destroy();
    await eventually('it is over', async () => (await underWay(service)) === 1);
    await eventually('the snapshot is released', () => pins.count === 0);
    assert.equal(signal?.aborted, true);
    assert.equal(await bytesReserved(service), 0);
    await stopApp(service.app, { deadlineMs: 0 });
  });

  it('is cut when its client reads nothing for too long', async () => {
    const limits = { ...DEFAULT_LIMITS, stalledMsMax: 200 };
    const { service, port, body } = await createLarge({ limits });
    const socket = openLarge(port, body);
    await once(socket, 'data');
    socket.pause();
    await eventually('it is over', async () => (await underWay(service)) === 1);
    assert.deepEqual([await bytesReserved(service), pins.count], [0, 0]);
    socket.destroy();
    await stopApp(service.app, { deadlineMs: 0 });
  });

  it('waits for slow work even if its client may stall only briefly', async () => {
    const limits = { ...DEFAULT_LIMITS, stalledMsMax: 100 };
    const service = await createFilledService({ limits });
    const port = await listen(service);
    let count = 0;
    service.hooks.beforeSearch = () =>
      new Promise((resolve) => setTimeout(resolve, count++ < 2 ? 0 : 250));
    assert.ok(isWhole(await ask(port, 'application/json')));
    await service.close();
  });
});
