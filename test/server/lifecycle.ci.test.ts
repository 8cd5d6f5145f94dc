// A service that stops while a slow client reads a large reply.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stopApp } from '../../src/server/app.js';
import { createFilledService } from './harness.js';
import { exchange, listen } from './wire.js';

/** A deadline that a busy machine does not exceed by accident. */
const DEADLINE_MS = 120_000;
const STOP_MS_MAX = 60_000;

describe('the running application', () => {
  it('closes a connection as soon as a slow client has read its reply', async () => {
    const service = await createFilledService();
    const port = await listen(service);
    const metadata = { text: 'x'.repeat(40_000) };
    const vectors = new Array(400).fill({ values: [1, 2, 3], metadata });
    await service.call('POST', '/collections/c/vectors', { body: { vectors } });
    const body = '{"vector":[1,2,3],"top_k":1000,"include_metadata":true}';
    let stopping: Promise<void> | undefined;
    let stoppedMs = 0;
    const text = await exchange(port, (socket) => {
      socket.write(
        `POST /collections/c/query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      // The headers were sent with keep-alive; the rest of the reply waits for the reader.
      socket.once('data', () => {
        socket.pause();
        const start = performance.now();
        stopping = stopApp(service.app, { deadlineMs: DEADLINE_MS }).then(() => {
          stoppedMs = performance.now() - start;
        });
        setTimeout(() => socket.resume(), 50);
      });
    });
    await stopping;
    const [head = '', reply = ''] = text.split('\r\n\r\n');
    assert.match(head, /connection: keep-alive/i);
    assert.equal(JSON.parse(reply).matches.length, 403);
    assert.ok(stoppedMs > 40 && stoppedMs < STOP_MS_MAX, `${stoppedMs}`);
  });
});
