import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { ReplyAdmission } from '../../../src/server/limits/reply-admission.js';
import { eventually } from '../../support/waiting.js';
import { startSecureService } from '../secure-service.js';
import { bytesReserved, fillWith, MATCHES, openWithoutWindow } from './unread-replies.js';

const isOverloaded = (error: SagittaError) =>
  error.code === 'overloaded' && error.retryAfterSeconds === 1;

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
  it('are refused above the limit over HTTP/2', async () => {
    // While a reply is being made, its matches count too.
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
});
