// Replies that are produced while they are sent, with batches of queries as an example: errors before and after the
// first byte, and clients that disconnect.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { createMetrics } from '../../../src/platform/metrics.js';
import { stopApp } from '../../../src/server/app.js';
import { eventually } from '../../support/waiting.js';
import { createFilledService } from '../harness.js';
import { exchange, headOf, listen, repliesIn } from '../wire.js';
import {
  BODY,
  bytesReserved,
  createLarge,
  failFrom,
  NDJSON,
  openLarge,
  PATH,
  pins,
  underWay,
} from './streamed-replies.js';

const ARROW = 'application/vnd.apache.arrow.stream';
const JSON_BODY = { 'content-type': 'application/json', 'content-length': BODY.length };

/** All bytes that the service sends until it closes the connection. */
const ask = (port: number, accept: string) =>
  exchange(port, (socket) => {
    socket.write(headOf('POST', PATH, { ...JSON_BODY, accept, connection: 'close' }) + BODY);
  });

/** A complete chunked reply ends with an empty chunk. */
const isWhole = (text: string) => text.endsWith('\r\n0\r\n\r\n');

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
