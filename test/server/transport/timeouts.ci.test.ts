// Clients that stop reading a large reply.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { exchange, pause, repliesIn } from '../wire.js';
import { HANG_MS, query, start } from './slow-clients.js';

const matchCountIn = (text: string) => JSON.parse(repliesIn(text)[0]?.body ?? '').matches.length;

describe('slow clients', () => {
  it('are cut off when they stop reading a reply, and only then', { timeout: 90_000 }, async () => {
    const stalledMsMax = 300;
    const { service, port } = await start({ stalledMsMax });
    const metadata = { text: 'x'.repeat(40_000) };
    const vectors = new Array(400).fill({ values: [1, 2, 3], metadata });
    await service.call('POST', '/collections/c/vectors', { body: { vectors } });
    const body = '{"vector":[1,2,3],"top_k":1000,"include_metadata":true}';
    const large = query({ 'content-length': body.length, connection: 'close' }) + body;
    const ask = (onFirst: (socket: Socket) => void) => {
      let closedAtMs = 0;
      const gone = new Promise<void>((resolve) => {
        service.app.server.once('connection', (socket) => {
          socket.once('close', () => {
            closedAtMs = performance.now();
            resolve();
          });
        });
      });
      const text = exchange(port, (socket) => {
        socket.write(large);
        socket.once('data', () => onFirst(socket));
      }).catch(() => '');
      return { gone, text, closedAtMs: () => closedAtMs };
    };

    // The search takes longer than the stall timeout, which does not apply to it.
    service.hooks.beforeSearch = () => pause(2.5 * stalledMsMax);
    const slowSearch = ask(() => {});
    assert.equal(matchCountIn(await slowSearch.text), 403);

    // A client that reads in portions, in all for longer than the stall timeout. The portions are
    // large, since socket buffers hide small ones.
    service.hooks.beforeSearch = () => Promise.resolve();
    const sipping = ask((socket) => {
      let taken = 0;
      socket.on('data', (chunk) => {
        taken += chunk.length;
        if (taken < 2_000_000) return;
        taken = 0;
        socket.pause();
        setTimeout(() => socket.resume(), 100);
      });
    });
    assert.equal(matchCountIn(await sipping.text), 403);

    let pausedAtMs = 0;
    const stalled = ask((socket) => {
      socket.pause();
      pausedAtMs = performance.now();
      void stalled.gone.then(() => socket.destroy());
    });
    await stalled.gone;
    const stalledMs = stalled.closedAtMs() - pausedAtMs;
    assert.ok(stalledMs >= 0.9 * stalledMsMax && stalledMs < HANG_MS, `${stalledMs}`);
    await service.close();
  });
});
