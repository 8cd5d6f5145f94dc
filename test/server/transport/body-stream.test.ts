// Streamed bodies over real connections: slow, idle and disconnecting clients, clients that do not
// stop sending, and backpressure.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { eventually, withResolvers } from '../../support/waiting.js';
import { createFilledService, type Service } from '../harness.js';
import { openSession, startSecureService } from '../secure-service.js';
import { exchange, headOf, listen, metricOf, pause, repliesIn } from '../wire.js';

const PATH = '/collections/c/vectors';
const STREAM = { 'content-type': 'application/x-ndjson', 'transfer-encoding': 'chunked' };

const bytesReserved = (service: Service) => metricOf(service, 'sagitta_http_body_bytes_in_flight');
const line = (id: string) => `${JSON.stringify({ id, values: [1, 2, 3] })}\n`;
/** A chunk of the chunked transfer coding. */
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const END = '0\r\n\r\n';
/** NDJSON with `count` rows of a kilobyte. */
const kilobytes = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, i) => {
    return `${JSON.stringify({ id: `${prefix}${i}`, values: [1, 2, 3], metadata: { t: 'x'.repeat(960) } })}\n`;
  }).join('');

async function start(limits: Partial<typeof DEFAULT_LIMITS | Record<string, number>> = {}) {
  const all = { ...DEFAULT_LIMITS, ...limits };
  const service = await createFilledService({ limits: all });
  return { service, port: await listen(service) };
}

/** Starts a stream and collects the reply. */
function begin(port: number, headers: Readonly<Record<string, string | number>> = STREAM) {
  const socket = connect(port, '127.0.0.1');
  const begun = { socket, text: '', isClosed: false };
  socket.on('data', (data) => {
    begun.text += data;
  });
  socket.on('close', () => {
    begun.isClosed = true;
  });
  socket.on('error', () => {});
  socket.write(headOf('POST', PATH, headers));
  return begun;
}

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

  it('is not idle while the service processes it', async () => {
    const { service, port } = await start({ stalledMsMax: 1_500 });
    service.hooks.beforeCommit = () => pause(2_000);
    const batches = [0, 1].map((batch) => chunk(kilobytes(1_000, `${batch}-`))).join('');
    const text = await exchange(port, (socket) => {
      socket.write(headOf('POST', PATH, { ...STREAM, connection: 'close' }) + batches + END);
    });
    assert.match(text, /^HTTP\/1.1 200 .*"upserted_count":2000,/s);
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
    // Far more than the socket buffers hold.
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

  it('is refused at the limit on the memory of all bodies', async () => {
    const { service, port } = await start({ bodyBytesInFlightMax: 3_000_000 });
    const half = Array.from({ length: 3 }, () => begin(port));
    // Less than an ingest batch each: none is written before its end.
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
