import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { CollectionHandle } from '../../../src/database/collection-handle.js';
import { withResolvers } from '../../support/waiting.js';
import { createFilledService, expectProblem, type Reply, type Service } from '../harness.js';

let service: Service;
beforeEach(async () => {
  service = await createFilledService();
});
afterEach(() => service.close());

const WRITES: readonly [name: string, url: string, body: object][] = [
  ['creating a collection', '/collections', { id: 'new', dimension: 3 }],
  ['writing vectors', '/collections/c/vectors', { vectors: [{ values: [1, 2, 3] }] }],
  ['writing one vector', '/collections/c/vectors', { values: [1, 2, 3] }],
  ['deleting vectors', '/collections/c/vectors/delete', { ids: ['a'] }],
];

const post = (url: string, body: object, key?: string) =>
  service.call('POST', url, {
    body,
    ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
  });

function assertReplay(first: Reply, second: Reply): void {
  assert.equal(first.headers['idempotent-replayed'], undefined);
  assert.equal(second.headers['idempotent-replayed'], 'true');
  assert.deepEqual([second.status, second.text], [first.status, first.text]);
  assert.notEqual(second.headers['x-request-id'], first.headers['x-request-id']);
}

describe('an idempotency key', () => {
  for (const [name, url, body] of WRITES) {
    it(`executes ${name} once, with the key in the header, the body or both`, async () => {
      const before = service.commitCount;
      const first = await post(url, body, 'k1');
      assert.equal(first.status, 200);
      const second = await post(`/v1${url}`, body, 'k1');
      assertReplay(first, second);
      assert.equal(second.headers.location, first.headers.location);
      assert.equal(service.commitCount, before + 1);
      const inBody = { ...body, id: 'other', idempotency_key: 'k2' };
      if (!url.startsWith('/collections/')) {
        assertReplay(await post(url, inBody), await post(url, inBody));
      }
    });

    it(`distinguishes payloads of ${name}`, async () => {
      await post(url, body, 'k');
      await expectProblem(post(url, { ...body, x: 1 }, 'k'), 422, 'idempotency_key_reused');
      const withQuery = post(`${url}?y=1`, body, 'k');
      // Most routes do not know the parameter, and reject it before they check the key.
      assert.ok([400, 422].includes((await withQuery).status));
    });
  }

  it('has digests of the payload that stay the same, since they are on disk', async (t) => {
    const single = t.mock.method(service.database, 'runIdempotent');
    const streamed = t.mock.method(CollectionHandle.prototype, 'openWriteStream');
    const body = '{"id":"x","values":[1,2,3]}';
    for (const type of ['application/json', 'application/x-ndjson']) {
      const headers = { 'idempotency-key': type, 'content-type': type };
      const query = type === 'application/json' ? '' : '?mode=upsert';
      const url = `/collections/c/vectors${query}`;
      assert.equal((await service.call('POST', url, { body, headers })).status, 200);
    }
    const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
    const digests = [
      single.mock.calls[0]?.arguments[0].payloadDigest,
      streamed.mock.calls[0]?.arguments[0].idempotency?.payloadDigest,
    ];
    assert.deepEqual(digests, [
      digestOf(`[{"id":"c"},[],"${digestOf(body)}"]`),
      digestOf('["stream",{"id":"c"},[["mode","upsert"]],"application/x-ndjson"]'),
    ]);
  });

  it('may be in the body, or in both if they are equal', async () => {
    const body = { values: [1, 2, 3], id: 'x', idempotency_key: 'é k' };
    const url = '/collections/c/vectors';
    const first = await post(url, body);
    assertReplay(first, await post(url, body));
    const header = Buffer.from('é k').toString('latin1');
    assertReplay(first, await post(url, body, header));
    const other = post(url, body, 'k2');
    await expectProblem(other, 400, 'idempotency_key_mismatch', '/idempotency_key');
  });

  it('stores errors, whatever the reason', async () => {
    for (const [url, body, status] of [
      ['/collections', { id: 'c', dimension: 3 }, 409],
      ['/collections', { dimension: 'x' }, 400],
      ['/collections/c/vectors', { vectors: [{ values: [1] }] }, 400],
      ['/collections/none/vectors', { vectors: [{ values: [1] }] }, 404],
      ['/collections/none/vectors/delete', { all: true }, 404],
      ['/collections/c/vectors/delete', {}, 400],
    ] as const) {
      for (const keyed of [
        () => post(url, body, `header ${url} ${status}`),
        () => post(url, { ...body, idempotency_key: `body ${url} ${status}` }),
      ]) {
        const first = await keyed();
        assert.equal(first.status, status);
        assertReplay(first, await keyed());
      }
    }
  });

  it('does not store server errors, nor errors that a retry may not meet', async (t) => {
    for (const code of [
      'internal',
      'overloaded',
      'storage_full',
      'collection_unavailable',
    ] as const) {
      const { mock } = t.mock.method(CollectionHandle.prototype, 'write', () => {
        return Promise.reject(new SagittaError(code, 'not now'));
      });
      const body = { id: `at ${code}`, values: [1, 2, 3] };
      assert.ok((await post('/collections/c/vectors', body, code)).status >= 500);
      mock.restore();
      const again = await post('/collections/c/vectors', body, code);
      assert.deepEqual([again.status, again.headers['idempotent-replayed']], [200, undefined]);
    }
  });

  it('is in flight while its request runs', async () => {
    const { promise: gate, resolve: release } = withResolvers();
    const writing = new Promise<void>((resolve) => {
      service.hooks.beforeCommit = () => {
        resolve();
        return gate;
      };
    });
    const body = { id: 'slow', values: [1, 2, 3] };
    const first = post('/collections/c/vectors', body, 'k');
    await writing;
    const second = await expectProblem(
      post('/collections/c/vectors', body, 'k'),
      409,
      'idempotency_in_flight',
    );
    assert.equal(second.json.retryable, true);
    release();
    assertReplay(await first, await post('/collections/c/vectors', body, 'k'));
  });

  it('is separate for each route', async () => {
    const first = await post('/collections', { id: 'p', dimension: 3 }, 'k');
    const other = await post('/collections/c/vectors', { values: [1, 2, 3] }, 'k');
    assert.deepEqual([first.status, other.status], [200, 200]);
    assert.equal(other.headers['idempotent-replayed'], undefined);
    const elsewhere = post('/collections/p/vectors', { values: [1, 2, 3] }, 'k');
    await expectProblem(elsewhere, 422, 'idempotency_key_reused');
  });

  it('has 1 to 255 printable characters', async () => {
    for (const key of ['', 'a\nb', 7, null, ['k'], { a: 1 }]) {
      const body = { values: [1, 2, 3], idempotency_key: key };
      const calling = post('/collections/c/vectors', body);
      await expectProblem(calling, 400, 'invalid_request', '/idempotency_key');
    }
    const tooLong = 'x'.repeat(256);
    await expectProblem(
      post('/collections/c/vectors', { values: [1, 2, 3], idempotency_key: tooLong }),
      400,
      'limit_exceeded',
      '/idempotency_key',
    );
    await expectProblem(
      post('/collections/c/vectors', { values: [1, 2, 3] }, tooLong),
      400,
      'limit_exceeded',
    );
    const longest = { values: [1, 2, 3], idempotency_key: 'x'.repeat(255) };
    assert.equal((await post('/collections/c/vectors', longest)).status, 200);
  });
});
