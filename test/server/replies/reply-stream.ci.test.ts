// Large replies whose clients stop reading, and failures over HTTP/2.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { stopApp } from '../../../src/server/app.js';
import { eventually } from '../../support/waiting.js';
import { openSession, startSecureService } from '../secure-service.js';
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

describe('a reply that is made while it is sent', { timeout: 60_000 }, () => {
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
    // As many requests are answered meanwhile as a group has queries: a service that did not wait for its
    // client would have searched the next group.
    for (let before = 0; before < groupCount; ) {
      before = groupCount;
      for (let i = 0; i < 256; i++) await bytesReserved(service);
    }
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
});
