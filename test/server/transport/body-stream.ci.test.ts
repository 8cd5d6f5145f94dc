// Streamed bodies of many megabytes, over HTTP/2, and with a slow service.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { eventually, withResolvers } from '../../support/waiting.js';
import { openSession, startSecureService } from '../secure-service.js';
import { exchange, headOf, pause } from '../wire.js';
import {
  begin,
  bytesReserved,
  chunk,
  END,
  kilobytes,
  line,
  PATH,
  STREAM,
  start,
} from './streamed-bodies.js';

/** Writes until the service stops reading or all bytes are written. Returns the bytes written. */
async function writeUntilStuck(socket: Socket, piece: string, bytesMax: number): Promise<number> {
  let count = 0;
  while (count < bytesMax) {
    count += piece.length;
    if (socket.write(piece)) continue;
    const isStuck = await Promise.race([
      once(socket, 'drain').then(() => false),
      pause(400).then(() => true),
    ]);
    if (isStuck) break;
  }
  return count;
}

describe('a streamed body', () => {
  it('is not idle while the service processes it', async () => {
    const { service, port } = await start({ stalledMsMax: 1_500 });
    service.hooks.beforeCommit = () => pause(2_000);
    const batches = [0, 1].map((batch) => chunk(kilobytes(1_000, `${batch}-`))).join('');
    const text = await exchange(port, (socket) => {
      socket.write(headOf('POST', PATH, { ...STREAM, connection: 'close' }) + batches + END);
    });
    assert.match(text, /^HTTP\/1.1 200 .*"upserted_count":2000,/s);
  });

  it('is read no faster than it is written, and its memory is counted', async () => {
    const { service, port } = await start();
    const { promise: gate, resolve: open } = withResolvers();
    service.hooks.beforeCommit = () => gate;
    const begun = begin(port);
    const megabyte = chunk(kilobytes(1_000, 'm-'));
    const taken = await writeUntilStuck(begun.socket, megabyte, 200_000_000);
    assert.ok(taken < 60_000_000, `${taken} bytes were taken`);
    const held = await bytesReserved(service);
    assert.ok(held > 1_000_000 && held < 40_000_000, `${held} bytes are held`);
    open();
    begun.socket.write(END);
    await eventually('a reply', () => begun.text.includes('upserted_count'));
    assert.equal(await bytesReserved(service), 0);
    begun.socket.destroy();
  });

  it('works over HTTP/2', async () => {
    const limits = { ...DEFAULT_LIMITS, stalledMsMax: 2_000 };
    const secure = await startSecureService({ limits });
    const session = await openSession(secure.url, { ca: secure.authority.cert });
    const send = (chunks: readonly string[], isEnded = true) =>
      new Promise<{ status: number; text: string }>((resolve, reject) => {
        const stream = session.request({
          ':method': 'POST',
          ':path': PATH,
          'content-type': 'application/x-ndjson',
        });
        let status = 0;
        let text = '';
        stream.on('response', (headers) => {
          status = Number(headers[':status']);
        });
        stream.on('data', (data) => {
          text += data;
        });
        stream.on('error', reject).on('end', () => resolve({ status, text }));
        for (const text of chunks) stream.write(text);
        if (isEnded) stream.end();
      });
    const whole = await send([kilobytes(1_000, 'a'), kilobytes(1_000, 'b'), line('c')]);
    assert.equal(whole.status, 200, whole.text);
    assert.equal(JSON.parse(whole.text).upserted_count, 2_001);
    const idle = await send([line('idle')], false);
    assert.deepEqual([idle.status, JSON.parse(idle.text).code], [504, 'deadline_exceeded']);
    const bad = await send([
      '{"values":[1]}\n'.repeat(1_000),
      ...Array(6).fill(kilobytes(1_000, 'd')),
    ]);
    assert.deepEqual([bad.status, JSON.parse(bad.text).code], [400, 'dimension_mismatch']);
    assert.equal(await bytesReserved(secure.service), 0);
    session.destroy();
    await secure.close();
  });
});
