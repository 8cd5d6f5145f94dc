import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Limits } from '../../../src/common/limits.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../../src/storage/memory-store.js';
import { createTestClock, openDatabase } from '../../database/harness.js';
import { createService, expectProblem, type Service } from '../harness.js';

const START = '2026-01-01T00:00:00.000Z';

interface AuditedService extends Service {
  /** Calls as the administrator. */
  ask(query?: string): ReturnType<Service['call']>;
  /** The operations of a reply, newest first. */
  operations(query?: string): Promise<string[]>;
}

/** A service with an administrator, whose key was created before the service started. */
async function openService(
  options: { state?: MemoryState; limits?: Partial<Limits> } = {},
): Promise<
  AuditedService & { key: string; id: string; clock: ReturnType<typeof createTestClock> }
> {
  const clock = createTestClock();
  const database = await openDatabase({ clock, ...options });
  const authenticator = new Authenticator({ apiKeys: database.apiKeys });
  const service = await createService({ database, authenticator });
  const made = await database.apiKeys.create({ owner: 'ops', scopes: ['admin'], expiresAt: null });
  const headers = { authorization: `Bearer ${made.key}`, 'x-request-id': 'r1' };
  const ask = (query = '') => service.call('GET', `/v1/audit${query}`, { headers });
  return {
    ...service,
    clock,
    key: made.key,
    id: made.record.id,
    ask,
    operations: async (query) =>
      (await ask(query)).json.events.map(({ operation }: { operation: string }) => operation),
    call: (method, url, { headers: others, ...rest } = {}) =>
      service.call(method, url, { ...rest, headers: { ...headers, ...others } }),
  };
}

/** Creates and deletes collections, with a refused attempt in between. */
async function change(service: AuditedService & { clock: { nowMs: number } }): Promise<void> {
  const create = (id: string) =>
    service.call('POST', '/collections', { body: { id, dimension: 2 } });
  await create('a');
  service.clock.nowMs += 1_000;
  await create('a');
  await create('b');
  service.clock.nowMs += 1_000;
  await service.call('DELETE', '/collections/a');
  await service.call('PUT', '/aliases/c', { body: { collection: 'b' } });
}

const ALL = [
  'alias.set',
  'collection.delete',
  'collection.create',
  'collection.create',
  'collection.create',
];

describe('the route of audit events', () => {
  const open = async (t: TestContext, options?: Parameters<typeof openService>[0]) => {
    const service = await openService(options);
    t.after(() => service.close());
    return service;
  };

  it('lists who did what to which object, when, and how it ended, newest first', async (t) => {
    const service = await open(t);
    assert.deepEqual((await service.ask()).json, {
      events: [],
      has_more: false,
      total: 0,
      since: null,
    });
    await change(service);
    const { json, headers } = await service.ask();
    assert.deepEqual(json.events.at(-1), {
      sequence: 1,
      time: START,
      operation: 'collection.create',
      outcome: 'succeeded',
      principal: `key:${service.id}`,
      client: '127.0.0.1',
      via: null,
      target: 'a',
      status: 200,
      request_id: 'r1',
      trace_id: null,
      unlogged_count: 0,
    });
    assert.deepEqual([json.events.length, json.total, json.since], [5, 5, START]);
    assert.equal(headers['cache-control'], 'no-store');
  });

  it('selects by principal, operation, outcome, target and time', async (t) => {
    const service = await open(t);
    await change(service);
    for (const [query, expected] of [
      ['', ALL],
      [`?principal=key:${service.id}`, ALL],
      ['?principal=anonymous', []],
      ['?operation=collection.delete', ['collection.delete']],
      ['?operation=collection', ALL.slice(1)],
      ['?operation=key', []],
      ['?outcome=refused', ['collection.create']],
      ['?outcome=failed', []],
      ['?target=a', ['collection.delete', 'collection.create', 'collection.create']],
      ['?target=a&outcome=succeeded', ['collection.delete', 'collection.create']],
      ['?since=2026-01-01T00:00:02Z', ALL.slice(0, 2)],
      ['?until=2026-01-01T00:00:01Z', ALL.slice(4)],
      ['?since=2026-01-01T02:00:01%2B02:00&until=2026-01-01T00:00:02Z', ALL.slice(2, 4)],
    ] as const) {
      assert.deepEqual(await service.operations(query), expected, query);
    }
    for (const query of ['?operation=collect', '?outcome=ok', '?since=today', '?limit=0']) {
      assert.equal((await service.ask(query)).status, 400, query);
    }
  });

  it('has pages, which new events do not shift', async (t) => {
    const service = await open(t);
    await change(service);
    const first = (await service.ask('?operation=collection&limit=3')).json;
    assert.deepEqual([first.events.length, first.has_more, first.total], [3, true, 4]);
    await service.call('DELETE', '/collections/none');
    const second = (await service.ask(`?cursor=${first.next_cursor}`)).json;
    const sequences = [...first.events, ...second.events].map(({ sequence }) => sequence);
    assert.deepEqual(sequences, [4, 3, 2, 1]);
    assert.deepEqual([second.has_more, second.next_cursor], [false, undefined]);
    const same = `?operation=collection&limit=1&cursor=${first.next_cursor}`;
    assert.equal((await service.ask(same)).json.events.length, 1);
    const other = service.ask(`?operation=key&cursor=${first.next_cursor}`);
    await expectProblem(other, 400, 'cursor_mismatch', '?operation');
    const forged = Buffer.from('{"before":"1"}').toString('base64url');
    for (const cursor of ['x', forged]) {
      await expectProblem(service.ask(`?cursor=${cursor}`), 400, 'cursor_invalid', '?cursor');
    }
  });

  it('keeps the newest events, also when the service starts again', async () => {
    const state = createMemoryState();
    const limits = { auditEventsMax: 3 };
    const first = await openService({ state, limits });
    await change(first);
    assert.deepEqual(await first.operations(), ALL.slice(0, 3));
    await first.close();
    const second = await openService({ state, limits });
    assert.deepEqual(await second.operations(), ALL.slice(0, 3));
    await second.call('DELETE', '/aliases/c');
    const { json } = await second.ask();
    assert.deepEqual(
      json.events.map(({ sequence }: { sequence: number }) => sequence),
      [6, 5, 4],
    );
    await second.close();
    const store = createMemoryStore({ state });
    assert.equal([...store.list(['audit'])].length, 3);
    const none = await openService({ state, limits: { auditEventsMax: 0 } });
    assert.deepEqual(await none.operations(), []);
    await none.close();
  });

  it('starts with what can be read when a stored event is damaged', async (t) => {
    const state = createMemoryState();
    const first = await openService({ state });
    await change(first);
    await first.close();
    const store = createMemoryStore({ state });
    const [damaged, ...rest] = [...store.list(['audit'])];
    const value = Buffer.from('{"sequence":1}');
    await store.commit([{ kind: 'put', key: damaged!.key, value }]);
    const second = await open(t, { state });
    assert.equal((await second.ask()).json.total, rest.length);
  });

  it('needs the scope admin, and neither lists secrets nor its own use', async (t) => {
    const service = await open(t);
    const made = await service.call('POST', '/keys', {
      body: { owner: 'site', scopes: ['metrics:read', 'collections:write'] },
    });
    const { json, text } = await service.ask();
    assert.deepEqual(
      json.events.map(({ target }: { target: string }) => target),
      [made.json.id],
    );
    assert.ok(!text.includes(made.json.key.split('_')[2]));
    const headers = { authorization: `Bearer ${made.json.key}` };
    await expectProblem(service.call('GET', '/audit', { headers }), 403, 'insufficient_scope');
    assert.equal((await service.ask()).json.total, 1);
  });
});
