// Streamed bodies over real connections: slow, idle and disconnecting clients, endless streams, and backpressure.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { eventually } from '../../support/waiting.js';
import { exchange, headOf, metricOf, pause, repliesIn } from '../wire.js';
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

describe('a streamed body', () => {
  it('may take longer than other bodies while it makes progress', async () => {
    const { service, port } = await start({ arrivalMsMax: 150, stalledMsMax: 60_000 });
    const text = await exchange(port, async (socket) => {
      socket.write(headOf('POST', PATH, { ...STREAM, connection: 'close' }));
      for (let i = 0; i < 8; i++) {
        await pause(50);
        socket.write(chunk(line(`slow-${i}`)));
      }
      socket.write(END);
    });
    assert.match(text, /^HTTP\/1.1 200 .*"upserted_count":8,/s);
    assert.equal(await bytesReserved(service), 0);
  });

  it('is aborted when it is idle, with the count of rows written', async () => {
    const { service, port } = await start({ stalledMsMax: 1_000 });
    const lines = Array.from({ length: 1_500 }, (_, i) => line(`idle-${i}`)).join('');
    const begun = begin(port);
    begun.socket.write(chunk(lines));
    await eventually('a reply', () => begun.text.includes('}'));
    const [reply] = repliesIn(begun.text);
    const { code, committed_count } = JSON.parse(reply!.body);
    assert.deepEqual([reply!.status, code, committed_count], [504, 'deadline_exceeded', 1_000]);
    assert.equal(await service.database.collection('c').count(undefined), 1_003);
    assert.equal(await bytesReserved(service), 0);
    begun.socket.destroy();
  });

  it('whose sender disconnects leaves whole batches and no reservation', async () => {
    const { service, port } = await start();
    const begun = begin(port);
    const lines = Array.from({ length: 2_500 }, (_, i) => line(`gone-${i}`)).join('');
    begun.socket.write(chunk(lines));
    await eventually('two units', async () => {
      return (await service.database.collection('c').count(undefined)) === 2_003;
    });
    assert.ok((await bytesReserved(service)) > 0, 'the third unit waits for its end');
    begun.socket.destroy();
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    assert.equal(await service.database.collection('c').count(undefined), 2_003);
    await eventually('no stream', async () => {
      return (await metricOf(service, 'sagitta_streams_in_flight')) === 0;
    });
  });

  it('gets 100 Continue if its headers are accepted, and not if they are refused', async () => {
    const { port } = await start();
    const headers = { ...STREAM, expect: '100-continue' };
    const invited = begin(port, headers);
    await eventually('an invitation', () => invited.text.includes('100 Continue'));
    invited.socket.write(chunk(line('a')) + END);
    await eventually('a reply', () => invited.text.includes('"upserted_count":1'));
    invited.socket.destroy();
    const refused = begin(port, { ...headers, accept: 'text/html' });
    await eventually('a refusal', () => refused.isClosed);
    assert.match(refused.text, /^HTTP\/1.1 406 /);
  });

  it('that is refused lets its sender finish and read the error', async () => {
    const { service, port } = await start();
    const bad = '{"id":"bad","values":[1]}\n';
    // Far more than fits into the socket buffers.
    const rest = kilobytes(1_000, 'rest-');
    const begun = begin(port);
    begun.socket.write(chunk(bad.repeat(1_000)));
    for (let i = 0; i < 30; i++) {
      if (!begun.socket.write(chunk(rest))) await once(begun.socket, 'drain');
    }
    begun.socket.write(END);
    await eventually('a reply', () => begun.text.includes('}'));
    const [reply] = repliesIn(begun.text);
    const { code, committed_count } = JSON.parse(reply!.body);
    assert.deepEqual([reply!.status, code, committed_count], [400, 'dimension_mismatch', 0]);
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    // The connection can be used again.
    begun.text = '';
    begun.socket.write(headOf('GET', '/livez'));
    await eventually('another reply', () => begun.text.includes('200 OK'));
    begun.socket.destroy();
  });

  it('is refused at the limit on the memory of all bodies', async () => {
    const { service, port } = await start({ bodyBytesInFlightMax: 3_000_000 });
    const half = Array.from({ length: 3 }, () => begin(port));
    // Each is shorter than an ingest batch, so that none is written before its end.
    const lines = `${'x'.repeat(1_400)}`.repeat(1_000);
    for (const { socket } of half) socket.write(chunk(lines));
    await eventually('a refusal', () => half.some(({ text }) => text.includes('"overloaded"')));
    assert.ok((await bytesReserved(service)) <= 3_000_000);
    const refused = half.find(({ text }) => text.includes('"overloaded"'));
    assert.match(refused!.text, /^HTTP\/1.1 503 .*retry-after: 1/is);
    for (const { socket } of half) socket.destroy();
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
  });

  it('waits for the rate limit rather than being refused', async () => {
    const { port } = await start({ writeRateMax: 4_000, writeBurstMax: 1_500 });
    const lines = Array.from({ length: 3_000 }, (_, i) => line(`rate-${i}`)).join('');
    const startedAt = performance.now();
    const text = await exchange(port, (socket) => {
      socket.write(headOf('POST', PATH, { ...STREAM, connection: 'close' }) + chunk(lines) + END);
    });
    assert.match(text, /^HTTP\/1.1 200 .*"upserted_count":3000,/s);
    assert.ok(performance.now() - startedAt >= 300, 'it had to wait');
  });

  it('ends when the service stops, with the count of rows written', async () => {
    const { service, port } = await start();
    let isStopping = false;
    service.hooks.beforeCommit = async () => {
      if (isStopping) throw new SagittaError('stopping', 'The service is stopping.');
    };
    const begun = begin(port);
    begun.socket.write(chunk(Array.from({ length: 1_000 }, (_, i) => line(`${i}`)).join('')));
    await eventually(
      'a unit',
      async () => (await service.database.collection('c').count(undefined)) > 3,
    );
    isStopping = true;
    begun.socket.write(chunk(Array.from({ length: 1_000 }, (_, i) => line(`n${i}`)).join('')));
    await eventually('a reply', () => begun.text.includes('}'));
    const [reply] = repliesIn(begun.text);
    assert.deepEqual([reply!.status, JSON.parse(reply!.body).committed_count], [503, 1_000]);
    begun.socket.destroy();
  });
});
