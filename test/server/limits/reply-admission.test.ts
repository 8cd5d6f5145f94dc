import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readlink } from 'node:fs/promises';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { ReplyAdmission } from '../../../src/server/limits/reply-admission.js';
import { eventually } from '../../support/waiting.js';
import { createFilledService, type Service } from '../harness.js';
import { startSecureService } from '../secure-service.js';
import { headOf, listen, metricOf } from '../wire.js';

const bytesReserved = (service: Service) => metricOf(service, 'sagitta_http_reply_bytes_in_flight');

const isOverloaded = (error: SagittaError) =>
  error.code === 'overloaded' && error.retryAfterSeconds === 1;

const MATCHES = '{"vector":[1,2,3],"top_k":1000,"include_metadata":true}';
const QUERY = { body: MATCHES, headers: { 'content-type': 'application/json' } };

/** The approximate size of the reply to a query, in megabytes. */
async function fillWith(service: Service, megabytes: number): Promise<void> {
  const metadata = { text: 'x'.repeat(40_000) };
  const vectors = new Array(megabytes * 25).fill({ values: [1, 2, 3], metadata });
  await service.call('POST', '/collections/c/vectors', { body: { vectors } });
}

describe('reply admission', () => {
  const LARGE = 40_000;

  it('admits replies up to the limit, and releases a reservation once', () => {
    const admission = new ReplyAdmission({ bytesMax: 100_000 });
    const [first, second, third] = [admission.open(), admission.open(), admission.open()];
    first.reserve('anonymous', LARGE);
    first.reserve('anonymous', 60_000);
    second.reserve('anonymous', LARGE);
    assert.throws(() => third.reserve('anonymous', 5_000), isOverloaded);
    assert.equal(admission.bytesInFlight, 100_000);
    first.release();
    first.release();
    assert.equal(admission.bytesInFlight, LARGE);
    third.reserve('anonymous', 5_000);
    second.release();
    third.release();
    assert.equal(admission.bytesInFlight, 0);
  });

  it('counts what a reply is made of beside its text', () => {
    const admission = new ReplyAdmission({ bytesMax: 100_000 });
    const [first, second] = [admission.open(), admission.open()];
    first.reserveWork('anonymous', 60_000, false);
    first.reserve('anonymous', 10_000);
    first.reserve('anonymous', 20_000);
    assert.equal(admission.bytesInFlight, 80_000);
    assert.throws(() => second.reserveWork('anonymous', 30_000, false), isOverloaded);
    first.reserveWork('anonymous', 50_000, false);
    assert.equal(admission.bytesInFlight, 70_000);
    second.reserveWork('anonymous', 30_000, false);
    first.release();
    second.release();
    assert.equal(admission.bytesInFlight, 0);
  });

  it('leaves a quarter of the limit to replies that are not streamed', () => {
    const admission = new ReplyAdmission({ bytesMax: 100_000 });
    const [first, second, third] = [admission.open(), admission.open(), admission.open()];
    first.reserveWork('anonymous', 50_000, true);
    assert.throws(() => second.reserveWork('anonymous', 30_000, true), isOverloaded);
    second.reserveWork('anonymous', 25_000, true);
    third.reserveWork('anonymous', 25_000, false);
    assert.equal(admission.bytesInFlight, 100_000);
  });

  it('always admits small replies, errors, and the only reply', () => {
    const admission = new ReplyAdmission({ bytesMax: 100_000 });
    const alone = admission.open();
    alone.reserve('key:a', 150_000);
    alone.reserve('key:a', 200_000);
    admission.open().reserve('key:a', 1_000);
    admission.open().reserveUnchecked('key:a', 50_000);
    assert.equal(admission.bytesInFlight, 251_000);
  });

  it('limits each principal to half', () => {
    const admission = new ReplyAdmission({ bytesMax: 100_000 });
    const first = admission.open();
    first.reserve('key:a', LARGE);
    assert.throws(() => admission.open().reserve('key:a', LARGE), /exceed its limit of 50000/);
    admission.open().reserve('key:b', LARGE);
    first.release();
    admission.open().reserve('key:a', LARGE);
  });

  it('stops producing a reply whose client has disconnected', () => {
    const place = new ReplyAdmission({ bytesMax: 100_000 }).open();
    place.reserve('key:a', LARGE);
    place.release();
    assert.throws(() => place.reserve('key:a', 50_000), { code: 'deadline_exceeded' });
  });
});

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

  it('are refused above the limit over HTTP/2', async () => {
    // While a reply is made, its matches count, too.
    const replyBytesInFlightMax = 6_000_000;
    const secure = await startSecureService({
      limits: { ...DEFAULT_LIMITS, replyBytesInFlightMax },
    });
    const { service } = secure;
    await fillWith(service, 1);
    const session = await openWithoutWindow(secure.url, secure.authority.cert);
    const statuses: (number | undefined)[] = [];
    for (let i = 0; i < 10; i++) {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/collections/c/query',
        'content-type': 'application/json',
      });
      stream.on('error', () => {});
      stream.end(MATCHES);
      const [head] = await once(stream, 'response');
      statuses.push(head[':status']);
    }
    assert.deepEqual(statuses, [200, 200, 200, 200, 503, 503, 503, 503, 503, 503]);
    const held = await bytesReserved(service);
    assert.ok(held > 4_000_000 && held <= replyBytesInFlightMax, `${held}`);
    session.destroy();
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    await secure.close();
  });

  it('above the limit refuse writes before they have an effect', async () => {
    const secure = await startSecureService({
      limits: { ...DEFAULT_LIMITS, replyBytesInFlightMax: 1_048_576 },
    });
    const { service } = secure;
    await fillWith(service, 2);
    const session = await openWithoutWindow(secure.url, secure.authority.cert);
    // The only reply may exceed the limit.
    const stream = session.request({ ':path': '/collections/c/vectors?limit=100' });
    stream.on('error', () => {});
    assert.equal((await once(stream, 'response'))[0][':status'], 200);
    const { commitCount } = service;
    const refused = await service.call('DELETE', '/collections/c/vectors/a');
    assert.deepEqual([refused.status, refused.json.code], [503, 'overloaded']);
    assert.equal(service.commitCount, commitCount);
    session.destroy();
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    assert.equal((await service.call('DELETE', '/collections/c/vectors/a')).status, 200);
    await secure.close();
  });

  it('of the documentation keep no files open', async () => {
    const secure = await startSecureService();
    const session = await openWithoutWindow(secure.url, secure.authority.cert);
    for (let i = 0; i < 20; i++) {
      const stream = session.request({ ':path': '/docs/static/swagger-ui-bundle.js' });
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

/** An HTTP/2 client with a flow control window of 0. */
async function openWithoutWindow(url: string, ca: string): Promise<ClientHttp2Session> {
  const session = connectHttp2(url, { ca, settings: { initialWindowSize: 0 } });
  session.on('error', () => {});
  await once(session, 'connect');
  return session;
}
