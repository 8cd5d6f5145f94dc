import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { parseGrant } from '../../../src/common/access.js';
import type { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { BodyAdmission } from '../../../src/server/limits/body-admission.js';
import { eventually, withResolvers } from '../../support/waiting.js';
import { createFilledService } from '../harness.js';
import { openSession, startSecureService } from '../secure-service.js';
import { exchange, headOf, listen, metricOf, repliesIn } from '../wire.js';
import { bytesReserved, createBounded, JSON_TYPE, post } from './body-requests.js';

setFlagsFromString('--expose-gc');

/** A query with a body of `byteCount` bytes. */
function queryOf(byteCount: number): string {
  const text = '{"vector":[1,2,3]}';
  return text + ' '.repeat(byteCount - text.length);
}

describe('body admission', () => {
  const isOverloaded = (error: SagittaError) => {
    return error.code === 'overloaded' && error.retryAfterSeconds === 1;
  };

  /** The reservation of a body of `byteCount` bytes, without a share unless a principal is given. */
  const holding = (
    admission: BodyAdmission,
    byteCount: number,
    principalId: string | null = null,
  ) => {
    const place = admission.open(principalId);
    place.reserveAtLeast(byteCount);
    return place;
  };

  it('admits bodies up to the limit, and releases a reservation once', () => {
    const admission = new BodyAdmission({ bytesMax: 100 });
    const first = holding(admission, 60);
    admission.check(null);
    const second = holding(admission, 40);
    assert.throws(() => admission.check(null), isOverloaded);
    assert.throws(() => holding(admission, 1), isOverloaded);
    assert.equal(admission.bytesInFlight, 100);
    first.release();
    first.release();
    assert.equal(admission.bytesInFlight, 40);
    second.release();
    assert.equal(admission.bytesInFlight, 0);
  });

  it('lets a body grow up to the limit', () => {
    const admission = new BodyAdmission({ bytesMax: 100 });
    const other = holding(admission, 50);
    const growing = admission.open(null);
    growing.reserveAtLeast(30);
    growing.reserveAtLeast(20);
    assert.equal(admission.bytesInFlight, 80);
    growing.reserveAtLeast(50);
    assert.throws(() => growing.reserveAtLeast(51), isOverloaded);
    assert.equal(admission.bytesInFlight, 100);
    growing.release();
    growing.reserveAtLeast(70);
    other.release();
    assert.equal(admission.bytesInFlight, 0);
  });

  it('admits a body of any length if there is no other', () => {
    const admission = new BodyAdmission({ bytesMax: 100 });
    const large = holding(admission, 500);
    assert.throws(() => holding(admission, 1), isOverloaded);
    large.reserveAtLeast(600);
    large.release();
    assert.equal(admission.bytesInFlight, 0);
  });

  it('gives memory to other bodies when work on a body has ended, not when its client is gone', () => {
    const admission = new BodyAdmission({ bytesMax: 100 });
    const first = admission.open(null);
    const second = admission.open(null);
    const ofFirst = first.allocate(300_000);
    const ofSecond = second.allocate(300_000);
    assert.ok(ofFirst.buffer instanceof SharedArrayBuffer);
    assert.equal(ofFirst.length, 300_000);
    assert.notEqual(ofFirst.buffer, ofSecond.buffer);
    first.release();
    assert.ok(![ofFirst.buffer, ofSecond.buffer].includes(admission.open(null).allocate(1).buffer));
    first.end();
    first.end();
    const third = admission.open(null);
    assert.equal(third.allocate(70_000).buffer, ofFirst.buffer);
    assert.notEqual(third.allocate(70_000).buffer, ofFirst.buffer);
  });

  it('limits each principal to half, and forgets principals without reservations', () => {
    const isOfShare = (error: SagittaError) =>
      isOverloaded(error) && error.message.includes('of this credential');
    const admission = new BodyAdmission({ bytesMax: 100 });
    const first = holding(admission, 30, 'key:a');
    const second = holding(admission, 20, 'key:a');
    assert.throws(() => admission.check('key:a'), isOfShare);
    assert.throws(() => first.reserveAtLeast(31), isOfShare);
    admission.check('key:b');
    const other = holding(admission, 50, 'key:b');
    assert.equal(admission.bytesInFlight, 100);
    other.release();
    second.release();
    // The only body of a principal may exceed its share. A second one is refused.
    first.reserveAtLeast(80);
    assert.throws(() => holding(admission, 1, 'key:a'), isOfShare);
    holding(admission, 20, 'key:b').release();
    first.release();
    first.release();
    assert.equal(admission.bytesInFlight, 0);
    assert.equal(admission.principalCount, 0);
  });
});

describe('bodies in flight over HTTP', () => {
  it('count from their first byte until the work on them ends', async () => {
    const service = await createBounded(10_000);
    const port = await listen(service);
    let release: (() => void) | undefined;
    service.hooks.beforeSearch = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    const body = queryOf(9_000);
    const text = exchange(port, (socket) => {
      socket.write(
        headOf('POST', '/collections/c/query', {
          ...JSON_TYPE,
          'content-length': body.length,
          connection: 'close',
        }) + body.slice(0, 5_000),
      );
      void eventually(
        'a part has arrived',
        async () => (await bytesReserved(service)) === 5_000,
      ).then(() => socket.write(body.slice(5_000)));
    });
    await eventually('the query runs', () => release !== undefined);
    assert.equal(await bytesReserved(service), 9_000);
    const refused = await service.call('POST', '/collections/c/query', { body: queryOf(2_000) });
    assert.deepEqual(
      [refused.status, refused.json.code, refused.headers['retry-after']],
      [503, 'overloaded', '1'],
    );
    release?.();
    assert.equal(repliesIn(await text)[0]?.status, 200);
    assert.equal(await bytesReserved(service), 0);
    await service.close();
  });

  it('are released when uploads are cut off, long or short, with Content-Length or chunked', async () => {
    const service = await createBounded(2_000_000);
    const port = await listen(service);
    const upload = (headers: Record<string, string | number>, first: string) =>
      new Promise<void>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => {
          socket.write(
            headOf('POST', '/collections/c/query', { ...JSON_TYPE, ...headers }) + first,
          );
        });
        socket.once('close', () => resolve());
        void eventually(
          'the body has arrived',
          async () => (await bytesReserved(service)) > 0,
        ).then(() => socket.destroy());
      });
    await upload({ 'content-length': 500_000 }, queryOf(100_000));
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    await upload({ 'transfer-encoding': 'chunked' }, `186a0\r\n${queryOf(100_000)}\r\n`);
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    await eventually('nothing is under way', async () => {
      // The scrape itself is one.
      return (await metricOf(service, 'sagitta_http_requests_in_flight')) === 1;
    });
    await service.close();
  });

  it('are released when the client of a pipelined request disconnects', async () => {
    const service = await createBounded(1_000_000);
    const port = await listen(service);
    const { promise: gate, resolve: release } = withResolvers();
    service.hooks.beforeSearch = () => gate;
    const body = queryOf(1_000);
    const one = headOf('POST', '/collections/c/query', { ...JSON_TYPE, 'content-length': 1_000 });
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`${(one + body).repeat(3)}${one} `),
    );
    await eventually(
      'all bodies have arrived',
      async () => (await bytesReserved(service)) === 3_001,
    );
    socket.destroy();
    release();
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    await eventually('nothing is under way', async () => {
      return (await metricOf(service, 'sagitta_http_requests_in_flight')) === 1;
    });
    await service.close();
  });

  it('count chunked bodies as they arrive, and let a refused client read the error', async () => {
    const service = await createBounded(1_000_000);
    const port = await listen(service);
    // Another body has reserved nearly everything.
    const other = connect(port, '127.0.0.1', () =>
      other.write(
        headOf('POST', '/collections/c/query', { ...JSON_TYPE, 'content-length': 900_001 }) +
          queryOf(900_000),
      ),
    );
    await eventually(
      'the memory is reserved',
      async () => (await bytesReserved(service)) === 900_000,
    );
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const refused = await post(port, agent, queryOf(4_000_000), { isChunked: true });
    assert.deepEqual([refused.status, refused.code, refused.retryAfter], [503, 'overloaded', '1']);
    assert.equal(await bytesReserved(service), 900_000);
    const small = await post(port, agent, queryOf(50_000), { isChunked: true });
    assert.equal(small.status, 200);
    assert.equal(small.socketId, refused.socketId, 'the connection stays');
    other.destroy();
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    agent.destroy();
    await service.close();
  });

  it('that are announced only reserve nothing', async () => {
    const service = await createBounded(2_000_000);
    const port = await listen(service);
    const announced = headOf('POST', '/collections/c/query', {
      ...JSON_TYPE,
      'content-length': 1_000_000,
    });
    const silent = Array.from({ length: 20 }, () => {
      const socket = connect(port, '127.0.0.1', () => socket.write(announced));
      return socket;
    });
    await eventually('all heads are there', async () => {
      return (await metricOf(service, 'sagitta_http_requests_in_flight')) === 21;
    });
    assert.equal(await bytesReserved(service), 0);
    const { status } = await service.call('POST', '/collections/c/query', {
      body: queryOf(500_000),
    });
    assert.equal(status, 200);
    for (const socket of silent) socket.destroy();
    await service.close();
  });

  it('of one credential leave room for those of others', async () => {
    let isInUse = false;
    const service = await createFilledService({
      limits: { ...DEFAULT_LIMITS, bodyBytesInFlightMax: 2_000_000 },
      authenticator: new Authenticator({
        apiKeys: {
          get isInUse() {
            return isInUse;
          },
          verify: (token) => ({
            id: `key:${token}`,
            grants: [parseGrant('vectors:read')!, parseGrant('metrics:read')!],
          }),
        },
      }),
    });
    const port = await listen(service);
    isInUse = true;
    const as = (name: string) => ({ authorization: `Bearer sk_${name}` });
    const bytesReservedNow = async () => {
      const { text } = await service.call('GET', '/metrics', { headers: as('watching') });
      return Number(/^sagitta_http_body_bytes_in_flight (\d+)$/m.exec(text)?.[1]);
    };
    const halfSent =
      headOf('POST', '/collections/c/query', {
        ...JSON_TYPE,
        ...as('greedy'),
        'content-length': 900_000,
      }) + queryOf(500_000);
    const sockets = [1, 2].map(() => {
      const socket = connect(port, '127.0.0.1', () => socket.write(halfSent));
      return socket;
    });
    await eventually(
      'half of the memory is reserved',
      async () => (await bytesReservedNow()) === 1_000_000,
    );
    const query = (name: string) =>
      service.call('POST', '/collections/c/query', { headers: as(name), body: queryOf(600_000) });
    const refused = await query('greedy');
    assert.deepEqual(
      [refused.status, refused.json.code, refused.headers['retry-after']],
      [503, 'overloaded', '1'],
    );
    assert.match(refused.json.detail, /of this credential are in progress/);
    assert.equal((await query('modest')).status, 200);
    for (const socket of sockets) socket.destroy();
    await eventually('nothing is reserved', async () => (await bytesReservedNow()) === 0);
    await service.close();
  });

  it('that are refused reserve nothing while their client continues to send', async () => {
    const secure = await startSecureService({
      limits: { ...DEFAULT_LIMITS, bodyBytesInFlightMax: 1_048_576 },
    });
    const { service } = secure;
    const session = await openSession(secure.url, { ca: secure.authority.cert });
    const beginUpload = () => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/collections/c/query',
        ...JSON_TYPE,
      });
      stream.write(queryOf(600_000));
      return stream;
    };
    beginUpload();
    await eventually(
      'one body has reserved much',
      async () => (await bytesReserved(service)) === 600_000,
    );
    const [headers] = await once(beginUpload(), 'response');
    assert.equal(headers[':status'], 503);
    assert.equal(await bytesReserved(service), 600_000);
    session.destroy();
    await eventually('nothing is reserved', async () => (await bytesReserved(service)) === 0);
    await secure.close();
  });

  it('above the size limit are 413 rather than 503', async () => {
    const service = await createFilledService({
      limits: { ...DEFAULT_LIMITS, bodyBytesMax: 5_000, bodyBytesInFlightMax: 2_000_000 },
    });
    const port = await listen(service);
    const agent = new Agent({ keepAlive: true });
    for (const isChunked of [false, true]) {
      const { status, code } = await post(port, agent, queryOf(6_000), { isChunked });
      assert.deepEqual([status, code], [413, 'payload_too_large']);
    }
    assert.equal(await bytesReserved(service), 0);
    agent.destroy();
    await service.close();
  });
});
