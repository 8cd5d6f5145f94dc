// Unread replies of many connections over HTTP/1.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readlink } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { eventually } from '../../support/waiting.js';
import { createFilledService } from '../harness.js';
import { startSecureService } from '../secure-service.js';
import { headOf, listen } from '../wire.js';
import { bytesReserved, fillWith, MATCHES, openWithoutWindow } from './unread-replies.js';

const QUERY = { body: MATCHES, headers: { 'content-type': 'application/json' } };

describe('unread replies', { timeout: 60_000 }, () => {
  it('are refused above the limit over HTTP/1, until others have been read', async () => {
    const replyBytesInFlightMax = 50_000_000;
    const service = await createFilledService({
      limits: { ...DEFAULT_LIMITS, replyBytesInFlightMax },
    });
    await fillWith(service, 15);
    const port = await listen(service);
    const sockets: Socket[] = [];
    for (let count = 1; count <= 2; count++) {
      const socket = connect(port, '127.0.0.1', () => {
        const length = { 'content-type': 'application/json', 'content-length': MATCHES.length };
        socket.write(headOf('POST', '/collections/c/query', length) + MATCHES);
      });
      sockets.push(socket);
      await eventually('it waits', async () => (await bytesReserved(service)) > count * 15_000_000);
    }
    const refused = await service.call('POST', '/collections/c/query', QUERY);
    assert.deepEqual(
      [refused.status, refused.json.code, refused.headers['retry-after']],
      [503, 'overloaded', '1'],
    );
    // Small replies are admitted.
    assert.equal((await service.call('GET', '/collections/c')).status, 200);
    for (const socket of sockets) socket.destroy();
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    assert.equal((await service.call('POST', '/collections/c/query', QUERY)).status, 200);
    assert.equal(await bytesReserved(service), 0);
    await service.close();
  });

  it('of the documentation keep no files open', async () => {
    const secure = await startSecureService();
    const session = await openWithoutWindow(secure.url, secure.authority.cert);
    for (let i = 0; i < 20; i++) {
      const stream = session.request({ ':path': '/docs/swagger-ui-bundle.js' });
      stream.on('error', () => {});
      assert.equal((await once(stream, 'response'))[0][':status'], 200);
    }
    const links = await Promise.all(
      (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
    );
    assert.deepEqual(
      links.filter((link) => link.includes('swagger-ui')),
      [],
    );
    assert.equal(await bytesReserved(secure.service), 0, 'all share one');
    session.destroy();
    await secure.close();
  });
});
