// Requests while collections are being loaded after a start.

import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { createStateOf, startDatabase, turns } from '../database/starting.js';
import { createService, expectProblem } from './harness.js';

const IDS = ['a', 'b', 'c', 'd'];

/** A service whose collections are loaded when the test releases their files. */
async function startService(t: TestContext) {
  const limits = { ...DEFAULT_LIMITS, requestMsMax: 10_000 };
  const { database, begun, release } = await startDatabase(await createStateOf(IDS), { limits });
  const service = await createService({ database, limits });
  t.after(async () => {
    t.mock.reset();
    release(...IDS);
    await service.close();
  });
  await turns();
  return { service, begun, release };
}

it('a service is ready while it loads collections, and says which are not', async (t) => {
  const { service, release } = await startService(t);
  const { status, json } = await service.call('GET', '/readyz');
  assert.deepEqual([status, json.status, json.collections_loading], [200, 'ready', 4]);
  const reasons = json.collections_not_ready.map(({ id, ...rest }: Record<string, string>) => [
    id,
    rest.status,
    rest.reason,
  ]);
  const waiting = 'It is waiting to be loaded, or its log is being read.';
  const begun = 'It is being loaded: 0 of 1 segments read; the log follows.';
  assert.deepEqual(reasons, [
    ['a', 'loading', begun],
    ['b', 'loading', begun],
    ['c', 'loading', waiting],
    ['d', 'loading', waiting],
  ]);
  const listed = await service.call('GET', '/collections');
  assert.deepEqual(
    listed.json.collections.map(({ status, vector_count: count }: Record<string, string>) => [
      status,
      count,
    ]),
    IDS.map(() => ['loading', 0]),
  );
  const metrics = async () => {
    const { text } = await service.call('GET', '/metrics');
    return ['loading', 'failed'].map(
      (what) => new RegExp(`^sagitta_collections_${what} (\\d+)$`, 'm').exec(text)?.[1],
    );
  };
  assert.deepEqual(await metrics(), ['4', '0']);
  release(...IDS);
  await service.database.loaded;
  assert.deepEqual(await metrics(), ['0', '0']);
  assert.deepEqual((await service.call('GET', '/readyz')).json, {
    status: 'ready',
    collections_loading: 0,
    collections_not_ready: [],
    problems: [],
  });
});

it('a request waits for its collection, and for no other one', async (t) => {
  const { service, begun, release } = await startService(t);
  const asked = [
    service.call('GET', '/collections/d'),
    service.call('GET', '/collections/d/vectors/v3'),
    service.call('POST', '/query', { body: { collection: 'd', vector: [1], top_k: 1 } }),
    service.call('POST', '/collections/d/vectors?mode=upsert', {
      body: '{"id":"line","values":[1]}\n',
      headers: { 'content-type': 'application/x-ndjson' },
    }),
    service.call('PATCH', '/collections/d', { body: { description: 'changed' } }),
  ];
  await turns();
  assert.deepEqual(begun, ['a', 'b', 'd']);
  release('d');
  const replies = await Promise.all(asked);
  assert.deepEqual(
    replies.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  );
  const [record, vector, found, written] = replies.map(({ json }) => json);
  assert.deepEqual([record.status, record.vector_count], ['ready', 70]);
  assert.deepEqual([vector.values, found.matches[0].id, written.inserted_count], [[3], 'v69', 1]);
  assert.equal(service.database.loadingCount, 3);
});

it('a request that has waited for long is answered with `starting`', async (t) => {
  const { service, release } = await startService(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const asked = [
    service.call('GET', '/collections/a/vectors/v3'),
    service.call('POST', '/collections/a/query', { body: { vector: [1] } }),
    service.call('DELETE', '/collections/a'),
  ];
  await turns();
  t.mock.timers.tick(9_000);
  for (const reply of asked) {
    const { headers, json } = await expectProblem(reply, 503, 'starting');
    assert.equal(headers['retry-after'], '1');
    assert.match(json.detail, /0 of 1 segments read/);
  }
  release('a');
  assert.equal((await service.call('GET', '/collections/a')).json.vector_count, 70);
});

it('an idempotent request is carried out once when its collection is loaded', async (t) => {
  const { service, release } = await startService(t);
  const write = () =>
    service.call('POST', '/collections/d/vectors', {
      body: { vectors: [{ id: 'once', values: [1] }] },
      headers: { 'idempotency-key': 'k' },
    });
  const first = write();
  await turns();
  await expectProblem(write(), 409, 'idempotency_in_flight');
  release('d');
  const { status, text } = await first;
  const second = await write();
  assert.deepEqual([status, second.status, second.text], [200, 200, text]);
  assert.equal(second.headers['idempotent-replayed'], 'true');
  assert.equal((await service.call('GET', '/collections/d')).json.vector_count, 71);
  // A refusal is not remembered: the next request is carried out.
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const rename = () =>
    service.call('POST', '/collections/c/rename', {
      body: { id: 'renamed' },
      headers: { 'idempotency-key': 'r' },
    });
  const refused = rename();
  await turns();
  t.mock.timers.tick(9_000);
  await expectProblem(refused, 503, 'starting');
  release('c');
  const renamed = await rename();
  assert.deepEqual([renamed.status, renamed.json.vector_count], [200, 70]);
});

it('requests that wait for collections are answered when the service stops', async (t) => {
  const { service, release } = await startService(t);
  const waiting = service.call('GET', '/collections/d/vectors/v3');
  await turns();
  const closed = service.database.close();
  release(...IDS);
  await expectProblem(waiting, 503, 'stopping');
  await closed;
});
