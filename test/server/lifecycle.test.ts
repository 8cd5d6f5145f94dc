import assert from 'node:assert/strict';
import { Agent, request as sendRequest } from 'node:http';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { stopApp } from '../../src/server/app.js';
import { createFilledService, holdQueries } from './harness.js';
import { exchange, listen } from './wire.js';

/** A deadline that a busy machine does not exceed by accident. */
const DEADLINE_MS = 120_000;
const STOP_MS_MAX = 60_000;

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

function query(
  port: number,
  agent: Agent,
  options: { signal?: AbortSignal } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = sendRequest(
      {
        port,
        agent,
        method: 'POST',
        path: '/collections/c/query',
        headers: { 'content-type': 'application/json' },
        ...options,
      },
      (reply) => {
        let text = '';
        reply.on('data', (chunk) => {
          text += chunk;
        });
        reply.on('end', () => resolve({ status: reply.statusCode!, headers: reply.headers, text }));
      },
    );
    request.on('error', reject);
    request.end('{"vector":[1,2,3]}');
  });
}

describe('the running application', () => {
  it('finishes accepted requests when it stops, and closes all connections', async () => {
    const service = await createFilledService();
    const port = await listen(service);
    const agent = new Agent({ keepAlive: true });
    // An idle connection, and one with a request in progress.
    assert.equal((await query(port, agent)).headers.connection, 'keep-alive');
    const { arrived, release } = holdQueries(service);
    const running = query(port, agent);
    await arrived;
    const start = performance.now();
    const stopping = stopApp(service.app, { deadlineMs: DEADLINE_MS });
    await assert.rejects(query(port, new Agent()), /ECONNREFUSED/);
    setTimeout(release, 50);
    const { status, headers } = await running;
    assert.deepEqual([status, headers.connection], [200, 'close']);
    await stopping;
    assert.ok(performance.now() - start < STOP_MS_MAX, 'it waited for the deadline');
    agent.destroy();
  });

  it('refuses requests on open connections while it stops', async () => {
    const service = await createFilledService();
    const port = await listen(service);
    const { arrived, release } = holdQueries(service);
    const head = 'GET /collections/c HTTP/1.1\r\nhost: localhost\r\n\r\n';
    const body = '{"vector":[1,2,3]}';
    const text = exchange(port, (socket) => {
      socket.write(
        `POST /collections/c/query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      void arrived.then(() => {
        void stopApp(service.app, { deadlineMs: DEADLINE_MS });
        socket.write(head);
        setTimeout(release, 50);
      });
    });
    const replies = (await text).split(/(?=HTTP\/1\.1)/);
    assert.match(replies[0] ?? '', /^HTTP\/1\.1 200 OK/);
    // The first reply closes the connection; the pipelined request may or may not get a reply.
    if (replies.length > 1) assert.match(replies[1] ?? '', /^HTTP\/1\.1 503 .*stopping/s);
  });

  it('cuts off requests that are not finished by the deadline', async () => {
    const service = await createFilledService();
    const port = await listen(service);
    const { arrived, release } = holdQueries(service);
    const running = query(port, new Agent());
    const outcome = assert.rejects(running, /socket hang up|ECONNRESET/);
    await arrived;
    const start = performance.now();
    await stopApp(service.app, { deadlineMs: 100 });
    const stoppedMs = performance.now() - start;
    assert.ok(stoppedMs >= 90 && stoppedMs < STOP_MS_MAX, `${stoppedMs}`);
    await outcome;
    release();
  });

  it('aborts the search when the client disconnects', { timeout: 60_000 }, async () => {
    const service = await createFilledService();
    const port = await listen(service);
    const controller = new AbortController();
    const aborted = new Promise<void>((resolve) => {
      service.hooks.beforeSearch = (signal) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => {
            resolve();
            reject(signal.reason as Error);
          });
          controller.abort();
        });
    });
    const running = query(port, new Agent(), { signal: controller.signal });
    await assert.rejects(running);
    await aborted;
    const { text } = await service.call('GET', '/metrics');
    assert.match(text, /route="\/collections\/\{id\}\/query",status="closed"\} 1/);
    await service.close();
  });

  it('does not abort a request while its reply is sent', async () => {
    const service = await createFilledService();
    const port = await listen(service);
    const signals: (AbortSignal | undefined)[] = [];
    service.hooks.beforeSearch = async (signal) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.equal(signal?.aborted, false);
      signals.push(signal);
    };
    assert.equal((await query(port, new Agent())).status, 200);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(signals[0]?.aborted, false);
    await service.close();
  });

  it('replies with a problem document to invalid HTTP and to headers that are too long', async () => {
    const service = await createFilledService();
    const port = await listen(service);
    const garbage = await exchange(port, (socket) => socket.write('GARBAGE\r\n\r\n'));
    assert.match(garbage, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.match(garbage, /x-request-id: /);
    assert.equal(JSON.parse(garbage.split('\r\n\r\n')[1] ?? '').code, 'invalid_request');
    const long = await exchange(port, (socket) =>
      socket.write(`GET /x?${'y'.repeat(200_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`),
    );
    assert.equal(JSON.parse(long.split('\r\n\r\n')[1] ?? '').code, 'limit_exceeded');
    await service.close();
  });

  it('lets a client finish a body that is too large and read the error, and keeps the connection', async () => {
    const service = await createFilledService({
      limits: { ...DEFAULT_LIMITS, bodyBytesMax: 10_000 },
    });
    const port = await listen(service);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let connectionCount = 0;
    service.app.server.on('connection', () => connectionCount++);
    const send = (byteCount: number, isChunked: boolean) =>
      new Promise<Answer>((resolve, reject) => {
        const request = sendRequest({
          port,
          agent,
          method: 'POST',
          path: '/collections/c/query',
          headers: {
            'content-type': 'application/json',
            ...(isChunked ? {} : { 'content-length': byteCount }),
          },
        });
        request.on('error', reject);
        request.on('response', (reply) => {
          let text = '';
          reply.on('data', (chunk) => {
            text += chunk;
          });
          reply.on('end', () =>
            resolve({ status: reply.statusCode!, headers: reply.headers, text }),
          );
        });
        const chunk = Buffer.alloc(100_000, ' ');
        for (let sent = 0; sent < byteCount; sent += chunk.length) request.write(chunk);
        request.end();
      });
    for (const isChunked of [false, true]) {
      const { status, text } = await send(8_000_000, isChunked);
      assert.equal(status, 413, text);
      assert.equal(JSON.parse(text).code, 'payload_too_large');
    }
    assert.equal((await query(port, agent)).status, 200);
    assert.equal(connectionCount, 1);
    agent.destroy();
    await service.close();
  });
});
