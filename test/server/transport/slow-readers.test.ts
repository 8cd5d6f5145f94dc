import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect as connectHttp2, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { startSlowReaderTimeout } from '../../../src/server/transport/connections.js';
import { startSecureService } from '../secure-service.js';
import { headOf } from '../wire.js';

describe('clients that read a reply slowly but steadily', { timeout: 120_000 }, () => {
  it('lose their HTTP/1.1 connection when the whole reply takes too long', async () => {
    const body = 'x'.repeat(30_000_000);
    const server = createServer((_request, response) => {
      response.end(body);
      // The timeout for 64 KB, so that the test takes seconds rather than minutes.
      startSlowReaderTimeout(response, 65_536, 200);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const startMs = performance.now();
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(headOf('GET', '/'));
    let taken = 0;
    // The reply makes progress far more often than the stall timeout.
    socket.on('data', (chunk) => {
      taken += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), 20);
    });
    const [connection] = await once(server, 'connection');
    await once(connection, 'close');
    const ms = performance.now() - startMs;
    assert.ok(ms >= 1_150 && ms < 60_000, `${ms}`);
    assert.ok(taken > 0 && taken < body.length, `${taken}`);
    socket.destroy();
    server.close();
  });

  it('keep it if they are fast enough, also with a pipelined reply that waits', async () => {
    const server = createServer((request, response) => {
      // The first reply takes longer than the timeout of one.
      setTimeout(
        () => {
          response.end('done');
          startSlowReaderTimeout(response, 4, 10);
        },
        request.url === '/first' ? 1_500 : 0,
      );
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(headOf('GET', '/first') + headOf('GET', '/', { connection: 'close' }));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    await once(socket, 'close');
    assert.equal(text.match(/done/g)?.length, 2);
    server.close();
  });

  it('lose their HTTP/2 stream, but not the connection', async () => {
    const secure = await startSecureService({ limits: { ...DEFAULT_LIMITS, stalledMsMax: 400 } });
    const session = connectHttp2(secure.url, {
      ca: secure.authority.cert,
      settings: { initialWindowSize: 0 },
    });
    await once(session, 'connect');
    // One more byte for each stream.
    let windowBytes = 0;
    const timer = setInterval(() => session.settings({ initialWindowSize: ++windowBytes }), 100);
    const arrived = once(secure.service.app.server, 'stream') as Promise<[ServerHttp2Stream]>;
    const stream = session.request({ ':path': '/limits' });
    stream.on('error', () => {});
    const startMs = performance.now();
    const [served] = await arrived;
    const closed = once(served, 'close');
    await once(stream, 'response');
    // Nothing is read, since the client would then send window updates by itself.
    stream.pause();
    let taken = 0;
    const look = setInterval(() => {
      taken = stream.readableLength;
    }, 50);
    await closed;
    clearInterval(timer);
    clearInterval(look);
    const ms = performance.now() - startMs;
    assert.equal(served.rstCode, 8, 'cancelled');
    assert.ok(ms >= 1_350 && ms < 60_000, `${ms}`);
    assert.ok(taken >= 1, `${taken}`);
    assert.equal(session.destroyed, false);
    session.destroy();
    await secure.close();
  });
});
