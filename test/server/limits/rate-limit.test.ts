import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OPERATOR, type Principal } from '../../../src/common/access.js';
import type { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { type RateKind, RateLimiter, rateKindOf } from '../../../src/server/limits/rate-limit.js';
import { createFilledService, createService, expectProblem, type Reply } from '../harness.js';
import { exchange, headOf, listen, repliesIn } from '../wire.js';

const LIMITS = { readRateMax: 10, readBurstMax: 20, writeRateMax: 2, writeBurstMax: 5 };

function createLimiter(limits: Partial<typeof LIMITS> = {}) {
  const clock = { nowMs: 1_000_000 };
  const limiter = new RateLimiter({
    limits: { ...LIMITS, ...limits },
    nowMs: () => clock.nowMs,
  });
  /** Charges one request. Returns Retry-After if it is refused, else 0. */
  const ask = (cost: number, kind: RateKind = 'read', principalId = 'p'): number => {
    try {
      const allowance = limiter.allowanceOf(kind, { id: principalId });
      allowance?.charge(1);
      allowance?.charge(cost);
      return 0;
    } catch (error) {
      assert.equal((error as SagittaError).code, 'rate_limited');
      return (error as SagittaError).retryAfterSeconds!;
    }
  };
  return { limiter, clock, ask };
}

describe('token buckets', () => {
  it('allow a burst, and then the rate', () => {
    const { clock, ask } = createLimiter();
    for (let i = 0; i < 20; i++) assert.equal(ask(1), 0, `request ${i}`);
    assert.equal(ask(1), 1);
    clock.nowMs += 99;
    assert.equal(ask(1), 1);
    clock.nowMs += 1;
    assert.equal(ask(1), 0);
    assert.equal(ask(1), 1);
    clock.nowMs += 500;
    for (let i = 0; i < 5; i++) assert.equal(ask(1), 0, `request ${i} half a second later`);
    assert.equal(ask(1), 1);
  });

  it('have limits of their own where the principal has', () => {
    const { limiter, clock, ask } = createLimiter({ readRateMax: 0 });
    const own = { id: 'own', rateLimit: { perSecond: 0.5, burst: 2 } };
    const askOwn = () => limiter.allowanceOf('read', own)!.charge(1);
    askOwn();
    askOwn();
    assert.throws(askOwn, /limit 0\.5 per second, burst 2\)\. Retry after 2 s/);
    const allowance = limiter.allowanceOf('read', own)!;
    assert.deepEqual([allowance.policy, allowance.state], ['"read";q=2;w=4', '"read";r=0;t=4']);
    // Writes have a bucket of the same size, and others the limits of the service.
    limiter.allowanceOf('write', own)!.charge(2);
    assert.throws(() => limiter.allowanceOf('write', own)!.charge(1), /burst 2/);
    assert.equal(limiter.allowanceOf('read', { id: 'p' }), null);
    for (let i = 0; i < 5; i++) assert.equal(ask(1, 'write'), 0);
    clock.nowMs += 2_000;
    askOwn();
    assert.throws(askOwn, /burst 2/);
  });

  it('hold no more than the burst', () => {
    const { clock, ask } = createLimiter();
    assert.equal(ask(20), 0);
    clock.nowMs += 3_600_000;
    assert.equal(ask(20), 0);
    assert.equal(ask(1), 1);
  });

  it('charge the whole cost of a request once', () => {
    const { limiter, ask } = createLimiter();
    const allowance = limiter.allowanceOf('read', { id: 'p' })!;
    allowance.charge(1);
    allowance.charge(15);
    allowance.charge(15);
    allowance.charge(0);
    assert.equal(allowance.state, '"read";r=5;t=2');
    assert.equal(ask(5), 0);
    assert.equal(ask(1), 1);
  });

  it('allow a cost above the burst from a full bucket, which is then in debt', () => {
    const { clock, ask, limiter } = createLimiter();
    assert.equal(ask(100), 0);
    assert.equal(limiter.allowanceOf('read', { id: 'p' })!.state, '"read";r=0;t=10');
    // The debt is 80, and one more token is needed.
    assert.equal(ask(1), 9);
    clock.nowMs += 8_000;
    assert.equal(ask(1), 1);
    clock.nowMs += 1_000;
    assert.equal(ask(1), 0);
    // 9 tokens are available; all 20 are needed.
    assert.equal(ask(100), 2);
  });

  it('grant a refused request after the time in Retry-After', () => {
    for (const [rate, burst] of [
      [3, 7],
      [7, 100],
      [1, 1],
      [1_000_003, 17],
    ] as const) {
      const { clock, ask } = createLimiter({ readRateMax: rate, readBurstMax: burst });
      for (const cost of [1, burst, 3 * burst, 2, burst, burst]) {
        // The first wait may be for the headers only: the cost of the body is not known then.
        const waits: number[] = [];
        for (let seconds = ask(cost); seconds > 0; seconds = ask(cost)) {
          if (waits.push(seconds) > 2) break;
          clock.nowMs += 1_000 * seconds;
        }
        assert.ok(waits.length <= 2, `cost ${cost} at ${rate} a second: waits of ${waits} s`);
      }
    }
  });

  it('are separate for reads and writes, and for each principal', () => {
    const { ask } = createLimiter();
    assert.equal(ask(20, 'read'), 0);
    assert.equal(ask(1, 'read'), 1);
    assert.equal(ask(5, 'write'), 0);
    assert.equal(ask(3, 'write'), 1);
    assert.equal(ask(20, 'read', 'q'), 0);
    assert.equal(ask(5, 'write', 'q'), 0);
  });

  it('do not limit a rate of 0', () => {
    const { limiter, ask } = createLimiter({ writeRateMax: 0 });
    assert.equal(limiter.allowanceOf('write', { id: 'p' }), null);
    for (let i = 0; i < 100; i++) assert.equal(ask(1_000_000, 'write'), 0);
    assert.equal(ask(21), 0);
    assert.equal(ask(1), 1);
  });

  it('are removed when full', () => {
    const { limiter, clock, ask } = createLimiter();
    for (let i = 0; i < 20_000; i++) {
      ask(1, 'read', `principal ${i}`);
      // A bucket is full again after 100 ms, in which 100 principals make requests.
      clock.nowMs += 1;
    }
    assert.ok(limiter.bucketCount <= 1_200, `${limiter.bucketCount} buckets`);
    // Buckets in debt are kept.
    ask(100, 'read', 'debtor');
    for (let i = 0; i < 5_000; i++) {
      ask(1, 'read', `another ${i}`);
      clock.nowMs += 1;
    }
    // Retry-After was 9 s, of which 5 have passed.
    assert.equal(ask(1, 'read', 'debtor'), 4);
  });

  it('are selected by the scope of the route', () => {
    const kindOf = (scope: 'vectors:read' | 'vectors:write' | 'admin' | 'metrics:read') =>
      rateKindOf({ scope, on: 'service' });
    assert.deepEqual(
      [kindOf('vectors:read'), kindOf('vectors:write'), kindOf('admin'), kindOf('metrics:read')],
      ['read', 'write', 'write', null],
    );
    assert.deepEqual([rateKindOf('public'), rateKindOf('anyone')], [null, null]);
  });
});

describe('rate limits over HTTP', () => {
  const limitsOf = (limits: Partial<typeof LIMITS> = {}) => ({
    ...DEFAULT_LIMITS,
    ...LIMITS,
    ...limits,
  });
  const createLimited = async (limits: Partial<typeof LIMITS> = {}) => {
    const clock = { nowMs: 5_000 };
    const nowMs = () => clock.nowMs;
    const service = await createFilledService({ limits: limitsOf(limits), nowMs });
    // The collection and its vectors were charged before.
    clock.nowMs += 60_000;
    return { service, clock };
  };
  const left = (reply: Reply) => /;r=(\d+);/.exec(reply.headers.ratelimit ?? '')?.[1];

  it('are in the headers of every reply', async () => {
    const { service } = await createLimited();
    const get = await service.call('GET', '/collections/c');
    assert.equal(get.headers['ratelimit-policy'], '"read";q=20;w=2');
    assert.equal(get.headers.ratelimit, '"read";r=19;t=1');
    const unchanged = await service.call('GET', '/collections/c', {
      headers: { 'if-none-match': get.headers.etag! },
    });
    assert.equal(unchanged.status, 304);
    assert.equal(left(unchanged), '18');
    const missing = await service.call('GET', '/collections/none');
    assert.deepEqual([missing.status, left(missing)], [404, '17']);
    const write = await service.call('DELETE', '/collections/c/vectors/a');
    assert.equal(write.headers['ratelimit-policy'], '"write";q=5;w=3');
    assert.equal(write.headers.ratelimit, '"write";r=4;t=1');
    for (const path of ['/limits', '/livez', '/readyz', '/metrics']) {
      const { headers } = await service.call('GET', path);
      assert.deepEqual([headers.ratelimit, headers['ratelimit-policy']], [undefined, undefined]);
    }
    await service.close();
  });

  it('charge vectors and queries rather than requests', async () => {
    const { service } = await createLimited();
    const vector = (id: string) => ({ id, values: [1, 2, 3] });
    const post = (path: string, body: object) =>
      service.call('POST', `/collections/c/${path}`, { body });
    const writes = await post('vectors', { vectors: ['p', 'q', 'r'].map(vector) });
    assert.equal(left(writes), '2');
    assert.equal(left(await post('vectors/delete', { ids: ['p', 'q'] })), '0');
    assert.equal(left(await post('query', { vector: [1, 0, 0] })), '19');
    assert.equal(left(await post('vectors/fetch', { ids: ['a', 'b', 'x', 'y'] })), '15');
    assert.equal(left(await post('count', {})), '14');
    assert.equal(left(await service.call('GET', '/collections/c/vectors')), '13');
    await service.close();
  });

  it('charge rows with values, and matches with metadata', async () => {
    const { service } = await createLimited({ readBurstMax: 1_000 });
    let before = 1_000;
    const costOf = (reply: Reply) => {
      const cost = before - Number(left(reply));
      before -= cost;
      return cost;
    };
    const list = (query: string) => service.call('GET', `/collections/c/vectors?${query}`);
    assert.equal(costOf(await list('limit=50')), 1);
    assert.equal(costOf(await list('limit=50&include_values=true')), 50);
    assert.equal(costOf(await list('include_values=true')), DEFAULT_LIMITS.pageLimitDefault);
    const query = (body: object) =>
      service.call('POST', '/collections/c/query', { body: { vector: [1, 0, 0], ...body } });
    assert.equal(costOf(await query({ top_k: 70, include_values: false })), 1);
    assert.equal(costOf(await query({ top_k: 70, include_values: 'base64' })), 70);
    assert.equal(costOf(await query({ include_values: true })), DEFAULT_LIMITS.topKDefault);
    assert.equal(costOf(await query({ top_k: 100, include_metadata: true })), 1);
    assert.equal(costOf(await query({ top_k: 201, include_metadata: true })), 3);
    assert.equal(costOf(await query({ top_k: 70, limit: 20, include_values: true })), 20);
    await service.close();
  });

  it('refuse with Retry-After and without an effect', async () => {
    const { service, clock } = await createLimited();
    const write = (count: number) => {
      const vectors = Array.from({ length: count }, (_, i) => ({ id: `w${i}`, values: [1, 2, 3] }));
      return service.call('POST', '/collections/c/vectors', { body: { vectors } });
    };
    assert.equal((await write(4)).status, 200);
    const { commitCount } = service;
    const refused = await expectProblem(write(3), 429, 'rate_limited');
    assert.equal(refused.headers['retry-after'], '2');
    assert.equal(refused.headers.ratelimit, '"write";r=0;t=3');
    assert.equal(refused.json.retryable, true);
    assert.match(refused.json.detail, /costs 3 writes.*limit 2 per second, burst 5/);
    await expectProblem(service.call('DELETE', '/collections/c/vectors/a'), 429, 'rate_limited');
    assert.equal(service.commitCount, commitCount);
    clock.nowMs += 2_000;
    assert.equal((await write(3)).status, 200);
    await service.close();
  });

  it('store no refusal under an idempotency key', async () => {
    const { service, clock } = await createLimited();
    const write = () =>
      service.call('POST', '/collections/c/vectors', {
        body: {
          idempotency_key: 'k',
          vectors: ['1', '2', '3', '4', '5'].map((id) => ({ id, values: [1, 2, 3] })),
        },
      });
    await service.call('DELETE', '/collections/c/vectors/a');
    await expectProblem(write(), 429, 'rate_limited');
    clock.nowMs += 10_000;
    const written = await write();
    assert.deepEqual([written.status, written.json.inserted_count], [200, 5]);
    // A replay does no work and costs one request.
    clock.nowMs += 1_000;
    const replay = await write();
    assert.deepEqual([replay.headers['idempotent-replayed'], left(replay)], ['true', '1']);
    await service.close();
  });

  it('apply per principal, across connections', async () => {
    const principal = (id: string): Principal => ({ ...OPERATOR, id });
    const service = await createService({
      limits: limitsOf(),
      nowMs: () => 0,
      authenticator: new Authenticator({
        tokens: { verify: (token) => principal(`token:${token}`) },
      }),
    });
    const get = (token: string) =>
      service.call('GET', '/collections', { headers: { authorization: `Bearer ${token}` } });
    for (let i = 0; i < 20; i++) assert.equal((await get('ann')).status, 200);
    await expectProblem(get('ann'), 429, 'rate_limited');
    assert.equal(left(await get('bob')), '19');
    // Unauthenticated requests have no bucket.
    const unknown = await service.call('GET', '/collections');
    assert.deepEqual([unknown.status, unknown.headers.ratelimit], [401, undefined]);
    await service.close();
  });

  it('refuse a request before its body is read', async () => {
    const { service } = await createLimited({ writeBurstMax: 4 });
    const port = await listen(service);
    for (let i = 0; i < 4; i++) await service.call('DELETE', '/collections/c/vectors/a');
    const head = headOf('POST', '/collections/c/vectors', {
      'content-type': 'application/json',
      'content-length': 1_000_000,
    });
    // No byte of the body is sent before the reply arrives.
    const text = await exchange(port, (socket) => {
      socket.write(head);
      socket.once('data', () => socket.destroy());
    });
    assert.equal(repliesIn(text)[0]?.status, 429);
    assert.match(text, /\r\nretry-after: 1\r\n/i);
    await service.close();
  });
});
