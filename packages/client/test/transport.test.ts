// The client's requests, retries and errors.

import assert from 'node:assert/strict';
import { afterEach, it, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { mockClock } from '../../../test/support/mock-clock.js';
import {
  problem,
  type ScriptedReply,
  type ScriptedServer,
  startScriptedServer,
} from '../../../test/support/scripted-server.js';
import { withoutListenerWarnings } from '../../../test/support/warnings.js';
import {
  type Client,
  type ClientOptions,
  createClient,
  SagittaClientError,
} from '../src/client.js';

let server: ScriptedServer;

async function start(
  replies: readonly ScriptedReply[],
  options: Partial<ClientOptions> = {},
): Promise<Client> {
  server = await startScriptedServer(replies);
  return createClient({
    baseUrl: server.url,
    retry: { delayMsBase: 2, delayMsMax: 20 },
    random: () => 0,
    ...options,
  });
}

afterEach(() => server?.close());

const OK = { body: { upserted_count: 1, inserted_count: 1, updated_count: 0, sequence: 1 } };
const LOST = { isLost: true };
const BUSY = problem(503, 'overloaded', { retryable: true });

async function failureOf(work: Promise<unknown>): Promise<SagittaClientError> {
  const error = await work.then(
    () => assert.fail('expected a failure'),
    (found: unknown) => found,
  );
  assert.ok(error instanceof SagittaClientError, String(error));
  return error;
}

it('a write whose reply was lost is retried with the same idempotency key', async () => {
  const client = await start([LOST, LOST, OK]);
  await client.collection('docs').upsert([{ id: 'a', values: [1] }]);
  const keys = server.requests.map((request) => request.headers['idempotency-key']);
  assert.equal(keys.length, 3);
  assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
  assert.equal(new Set(keys).size, 1);
  assert.equal(new Set(server.requests.map((request) => request.body)).size, 1);
});

it('log positions from replies of a cluster are sent with the next requests', async () => {
  const client = await start([
    OK,
    { ...OK, headers: { 'sagitta-session': 'catalogue:3,a:7' } },
    { ...problem(404, 'vector_not_found'), headers: { 'sagitta-session': 'catalogue:2, b:1' } },
    { ...OK, headers: { 'sagitta-session': 'a:x,:,b:9007199254740993,c:5' } },
    { ...OK, headers: { 'sagitta-session': logs(40) } },
    OK,
  ]);
  const docs = client.collection('docs');
  for (let i = 0; i < 2; i++) await docs.upsert([{ id: 'a', values: [1] }]);
  await failureOf(docs.get('b'));
  for (let i = 0; i < 3; i++) await docs.upsert([{ id: 'a', values: [1] }]);
  const sent = server.requests.map(({ headers }) => headers['sagitta-session']);
  assert.deepEqual(sent.slice(0, 5), [
    undefined,
    undefined,
    'catalogue:3,a:7',
    'a:7,catalogue:3,b:1',
    'a:7,catalogue:3,b:1,c:5',
  ]);
  // Only the most recently seen logs are kept.
  assert.equal(sent[5], logs(40).split(',').slice(8).join(','));
  const other = createClient({ baseUrl: server.url });
  await other.collection('docs').upsert([{ id: 'a', values: [1] }]);
  assert.equal(server.requests.at(-1)!.headers['sagitta-session'], undefined);
});

const logs = (count: number) => Array.from({ length: count }, (_, i) => `log-${i}:${i}`).join(',');

it('each write has its own idempotency key, unless the caller passes one', async () => {
  const client = await start([OK]);
  const vectors = client.collection('docs');
  await vectors.upsert([{ id: 'a', values: [1] }]);
  await vectors.upsert([{ id: 'a', values: [1] }]);
  await vectors.deleteMany({ all: true });
  await vectors.upsert([{ id: 'a', values: [1] }], { idempotencyKey: 'mine' });
  const keys = server.requests.map((request) => request.headers['idempotency-key']);
  assert.equal(new Set(keys).size, 4);
  assert.equal(keys[3], 'mine');
});

it('retries while its first attempt is still being executed', async () => {
  const client = await start([LOST, problem(409, 'idempotency_in_flight'), OK]);
  await client.collection('docs').upsert([{ id: 'a', values: [1] }]);
  assert.equal(server.requests.length, 3);
});

it('reads and idempotent writes are retried when the connection breaks', async () => {
  const fine = { body: {} };
  const client = await start([LOST, fine, LOST, fine, LOST, fine, LOST, fine]);
  const vectors = client.collection('docs');
  await vectors.get('a');
  await vectors.query({ id: 'a' });
  await vectors.put({ id: 'a', values: [1] });
  await vectors.patch('a', { metadata: {} });
  assert.deepEqual(
    server.requests.map((request) => request.method),
    ['GET', 'GET', 'POST', 'POST', 'PUT', 'PUT', 'PATCH', 'PATCH'],
  );
});

it('creating and rotating a key is not retried after a lost reply', async () => {
  const client = await start([LOST, LOST, LOST, { body: {} }]);
  const { keys } = client;
  const making = keys.create({ owner: 'me', scopes: ['admin'] });
  assert.equal((await failureOf(making)).code, 'network_error');
  assert.equal((await failureOf(keys.rotate('a/b', { grace_seconds: 5 }))).code, 'network_error');
  await keys.revoke('a/b');
  assert.deepEqual(
    server.requests.map(({ method, url, body }) => [method, url, body]),
    [
      ['POST', '/v1/keys', '{"owner":"me","scopes":["admin"]}'],
      ['POST', '/v1/keys/a%2Fb/rotate', '{"grace_seconds":5}'],
      ['DELETE', '/v1/keys/a%2Fb', ''],
      ['DELETE', '/v1/keys/a%2Fb', ''],
    ],
  );
});

it('a request that is not idempotent is not retried after a lost reply', async () => {
  const client = await start([LOST]);
  const vectors = client.collection('docs');
  assert.equal((await failureOf(client.collections.delete('docs'))).code, 'network_error');
  const patching = vectors.patch('a', { metadata: {} }, { ifMatch: '"1"' });
  assert.equal((await failureOf(patching)).code, 'network_error');
  const dropping = client.collections.update('docs', { vectors: { title: null } });
  assert.equal((await failureOf(dropping)).code, 'network_error');
  assert.deepEqual(
    server.requests.map((request) => request.method),
    ['DELETE', 'PATCH', 'PATCH'],
  );
});

it('a vector is deleted once, even if replies are lost', async () => {
  const deleted = { body: { deleted_count: 1, sequence: 7 } };
  const client = await start([LOST, BUSY, deleted, { body: { deleted_count: 0, sequence: 7 } }]);
  const vectors = client.collection('docs');
  assert.deepEqual(await vectors.delete('a/b'), { id: 'a/b', deleted: true, sequence: 7 });
  const keys = server.requests.map((request) => request.headers['idempotency-key']);
  assert.equal(keys.length, 3);
  assert.equal(new Set(keys).size, 1);
  assert.deepEqual(server.requests[2]!.body, '{"ids":["a/b"]}');
  const error = await failureOf(vectors.delete('a/b'));
  assert.equal(error.code, 'vector_not_found');
  assert.equal(error.status, 404);
});

it('a server error is retried for reads and writes with a key only', async () => {
  const FAILED = problem(500, 'internal', { retryable: true });
  const fine = { body: { deleted: true } };
  const client = await start([FAILED, fine, FAILED, fine, FAILED, problem(507, 'storage_full')]);
  await client.limits();
  await client.collection('docs').upsert([{ id: 'a', values: [1] }]);
  assert.equal((await failureOf(client.collections.delete('docs'))).code, 'internal');
  assert.equal((await failureOf(client.limits())).code, 'storage_full');
  assert.equal(server.requests.length, 6);
});

it('an error page of a gateway is retried only for idempotent requests', async () => {
  const gateway = { status: 503, body: '<html>No server</html>' };
  const client = await start([gateway, { body: {} }, gateway]);
  await client.limits();
  const error = await failureOf(client.collections.delete('docs'));
  assert.equal(error.code, 'unexpected_reply');
  assert.equal(server.requests.length, 3);
});

it('429 and 503 are retried for every method', async () => {
  const client = await start([BUSY, problem(429, 'overloaded'), { body: { deleted: true } }]);
  await client.collections.delete('docs');
  assert.equal(server.requests.length, 3);
});

it('fails after the configured number of attempts', async () => {
  const client = await start([BUSY], { retry: { attemptsMax: 3, delayMsBase: 1 } });
  const error = await failureOf(client.limits());
  assert.equal(error.status, 503);
  assert.equal(error.retryable, true);
  assert.equal(server.requests.length, 3);
});

it('each wait is about twice the previous one, up to the maximum', async (t) => {
  const waits = await waitsOf(t, {}, { attemptsMax: 5, delayMsBase: 40, delayMsMax: 100 });
  assert.deepEqual(waits, [40, 80, 100, 100]);
});

it('waits for the time in Retry-After', async (t) => {
  const waits = await waitsOf(t, { 'retry-after': '1' }, { attemptsMax: 2, delayMsBase: 40 });
  assert.deepEqual(waits, [1_000]);
});

/** Milliseconds between the attempts of a call that always fails, on a mocked clock. */
async function waitsOf(
  t: TestContext,
  headers: Readonly<Record<string, string>>,
  retry: ClientOptions['retry'],
): Promise<number[]> {
  mockClock(t);
  const attemptedAt: number[] = [];
  const client = createClient({
    baseUrl: 'http://localhost',
    timeoutMs: Number.POSITIVE_INFINITY,
    retry: { ...retry },
    random: () => 0.999,
    fetch: async () => {
      attemptedAt.push(nowMs);
      return new Response(JSON.stringify(BUSY.body), { status: BUSY.status!, headers });
    },
  });
  let nowMs = 0;
  await settle(client.limits(), () => {
    nowMs++;
    t.mock.timers.tick(1);
  });
  return attemptedAt.slice(1).map((ms, index) => ms - attemptedAt[index]!);
}

/** Calls `tick` repeatedly until the promise has settled. */
async function settle(work: Promise<unknown>, tick: () => void): Promise<void> {
  let isSettled = false;
  const onSettled = (): void => {
    isSettled = true;
  };
  work.then(onSettled, onSettled);
  while (!isSettled) {
    await setImmediate();
    tick();
  }
}

it('does not wait for a long Retry-After but reports it', async () => {
  const refusal = (retryAfter: string) => ({ ...BUSY, headers: { 'retry-after': retryAfter } });
  const inAnHour = new Date(Date.now() + 3_600_000).toUTCString();
  const client = await start([refusal('31'), refusal(inAnHour), refusal('0.02'), { body: {} }]);
  assert.equal((await failureOf(client.limits())).retryAfterMs, 31_000);
  const { retryAfterMs } = await failureOf(client.limits());
  assert.ok(Math.abs(retryAfterMs! - 3_600_000) < 5_000, `${retryAfterMs}`);
  await client.limits();
  assert.equal(server.requests.length, 4);
});

it('a permanent error is not retried and carries all members of the reply', async () => {
  const item = { pointer: '/vectors/0/values', code: 'invalid_vector', detail: 'a hole' };
  const client = await start([
    problem(400, 'invalid_vector', { errors: [item], request_id: 'r-1' }),
  ]);
  const error = await failureOf(client.collection('docs').upsert([{ values: [1] }]));
  assert.equal(server.requests.length, 1);
  assert.equal(error.code, 'invalid_vector');
  assert.equal(error.status, 400);
  assert.equal(error.detail, 'detail of invalid_vector');
  assert.equal(error.message, error.detail);
  assert.deepEqual(error.items, [item]);
  assert.equal(error.requestId, 'r-1');
  assert.equal(error.retryable, false);
});

it('a reply from another service is an error that quotes its beginning', async () => {
  const client = await start(
    [
      { status: 502, body: '<html>Bad Gateway</html>' },
      { status: 200, body: '<html>Welcome</html>' },
    ],
    { retry: { attemptsMax: 1 } },
  );
  const gateway = await failureOf(client.limits());
  assert.equal(gateway.code, 'unexpected_reply');
  assert.equal(gateway.status, 502);
  assert.match(gateway.message, /Bad Gateway/);
  const welcome = await failureOf(client.limits());
  assert.equal(welcome.code, 'unexpected_reply');
  assert.match(welcome.message, /expected JSON .* found "<html>Welcome/);
});

it('a late reply is a timeout, by the setting of the client or of the call', async (t) => {
  mockClock(t);
  let attemptCount = 0;
  const client = createClient({
    baseUrl: 'http://localhost',
    timeoutMs: 40,
    retry: { attemptsMax: 2, delayMsBase: 1 },
    fetch: (_, init) => {
      attemptCount++;
      return new Promise((_resolve, reject) => {
        init!.signal!.addEventListener('abort', () => reject(init!.signal!.reason));
      });
    },
  });
  for (const [timeoutMs, message] of [
    [undefined, /within 40 ms/],
    [30, /within 30 ms/],
  ] as const) {
    const calling = client.limits(timeoutMs === undefined ? {} : { timeoutMs });
    const failing = failureOf(calling);
    await settle(failing, () => t.mock.timers.tick(1));
    const error = await failing;
    assert.equal(error.code, 'timeout');
    assert.match(error.message, message);
  }
  assert.equal(attemptCount, 4);
});

it('a signal aborts a call that waits for a reply or for the next attempt', async () => {
  const client = await start([{ isSilent: true }, BUSY], { retry: { delayMsBase: 60_000 } });
  for (const [at, call] of ['the reply', 'the next attempt'].entries()) {
    const controller = new AbortController();
    const calling = client.limits({ signal: controller.signal });
    await server.received(at + 1);
    controller.abort(new Error(`enough of waiting for ${call}`));
    await assert.rejects(calling, { message: `enough of waiting for ${call}` });
  }
  assert.equal(server.requests.length, 2);
});

it('sends the key as a bearer token and encodes ids', async () => {
  const client = await start([{ body: {} }], { apiKey: 'sk_1' });
  await client.collection('docs').get('a/b %ü?', { include_values: false });
  const [request] = server.requests;
  assert.equal(request!.headers.authorization, 'Bearer sk_1');
  assert.equal(
    request!.url,
    '/v1/collections/docs/vectors/a%2Fb%20%25%C3%BC%3F?include_values=false',
  );
});

it('accepts a base URL with a slash, /v1 or a path prefix', async () => {
  await start([{ body: {} }]);
  for (const path of ['', '/', '/v1', '/v1/', '/behind/a/gateway/']) {
    await createClient({ baseUrl: server.url + path }).limits();
  }
  assert.deepEqual(
    server.requests.map((request) => request.url),
    ['/v1/limits', '/v1/limits', '/v1/limits', '/v1/limits', '/behind/a/gateway/v1/limits'],
  );
});

it('rejects invalid URLs and ids before sending anything', async () => {
  const client = await start([{ body: {} }]);
  assert.throws(() => createClient({ baseUrl: 'localhost:8484' }), { code: 'invalid_argument' });
  for (const id of ['', '.', '..', '\ud800']) {
    await assert.rejects(async () => client.collection('docs').get(id), {
      code: 'invalid_argument',
    });
  }
  assert.equal(server.requests.length, 0);
});

it('many calls with one signal cause no warning, and all of them abort', async () => {
  const client = await start([{ isSilent: true }]);
  const controller = new AbortController();
  await withoutListenerWarnings(async () => {
    const calls = Array.from({ length: 32 }, (_, i) =>
      client.collection('docs').fetch([`v${i}`], {}, { signal: controller.signal }),
    );
    await server.received(32);
    controller.abort(new Error('enough'));
    for (const call of calls) await assert.rejects(call, { message: 'enough' });
  });
});

it('a list accepts a filter of any length, for a collection and for the default collection', async () => {
  const page = { body: { vectors: [], has_more: false } };
  const client = await start([page]);
  const filter = { n: { $in: Array.from({ length: 20_000 }, (_, n) => n) } };
  const collection = client.collection('docs');
  await collection.list({ filter });
  await client.defaultCollection.list({ filter });
  for await (const _ of collection.listAll({ filter, limit: 2 }));
  assert.deepEqual(
    server.requests.map(({ method, url }) => `${method} ${url}`),
    [
      'POST /v1/collections/docs/vectors/list',
      'POST /v1/vectors/list',
      'POST /v1/collections/docs/vectors/list',
    ],
  );
  assert.deepEqual(JSON.parse(server.requests[2]!.body), { filter, limit: 2 });
});

it('with exactIntegers, integers in metadata beyond the precision of numbers are bigints, and all else is a number', async () => {
  const vector =
    '{"id":"a","values":[9300000010000000300],"vectors":{"metadata":[9300000010000000300]},' +
    '"metadata":{"ids":[9007199254740993,-9007199254740993,18446744073709551615,7],"values":{"x":9007199254740993}}}';
  const page = `{"vectors":[${vector}],"not_found":[]}`;
  const readWith = async (options: Partial<ClientOptions>) => {
    const client = await start([{ body: page }], options);
    const [found] = (await client.collection('docs').fetch(['a'])).vectors;
    await server.close();
    return found;
  };
  const rounded = JSON.parse(vector) as { readonly values: readonly number[] };
  assert.deepEqual(await readWith({}), rounded);
  assert.deepEqual(await readWith({ exactIntegers: false }), rounded);
  assert.deepEqual(await readWith({ exactIntegers: true }), {
    ...rounded,
    metadata: {
      ids: [9007199254740993n, -9007199254740993n, 18446744073709551615n, 7],
      values: { x: 9007199254740993n },
    },
  });
});
