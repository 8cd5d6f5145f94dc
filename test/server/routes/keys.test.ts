// API keys over HTTP: requests and replies, and that a secret is returned once and never logged.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { SCOPES } from '../../../src/common/access.js';
import type { Logger } from '../../../src/common/logger.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { createTestClock, openDatabase } from '../../database/harness.js';
import { createService, expectProblem, type Reply, type Service } from '../harness.js';

const clock = createTestClock();
let service: Service;
let logged: string[];
beforeEach(async () => {
  const database = await openDatabase({ clock });
  logged = [];
  const log = (details: object, message: string) => {
    logged.push(`${JSON.stringify(details)} ${message}`);
  };
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  const authenticator = new Authenticator({ apiKeys: database.apiKeys });
  service = await createService({ database, authenticator, logger });
});
afterEach(() => service.close());

const INPUT = { owner: 'search', scopes: ['vectors:read:catalog-*', 'collections:read'] };

/** Calls as the administrator, once there is one. */
let admin: string | undefined;
beforeEach(() => {
  admin = undefined;
});
const call = (method: string, url: string, body?: unknown, key = admin): Promise<Reply> =>
  service.call(method, url, {
    ...(body === undefined ? {} : { body }),
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
  });
const create = async (body: object = INPUT) => {
  const { status, json, text } = await call('POST', '/keys', body);
  assert.equal(status, 200, text);
  return json as { id: string; key: string };
};

/** Anyone can create the first key; later ones require an administrator. */
async function lock(): Promise<void> {
  admin = (await create({ owner: 'ops', scopes: ['admin'] })).key;
}

describe('the routes of keys', () => {
  it('create the first key without a credential, and no further key', async () => {
    assert.equal((await call('GET', '/collections')).status, 200);
    await lock();
    await expectProblem(call('GET', '/collections', undefined, ''), 401, 'credentials_invalid');
    const anonymous = service.call('POST', '/keys', { body: INPUT });
    await expectProblem(anonymous, 401, 'credentials_missing');
    assert.equal((await call('GET', '/collections')).status, 200);
  });

  it('show a key once, and its record from then on', async () => {
    await lock();
    const reply = await call('POST', '/keys', {
      ...INPUT,
      expires_at: '2999-01-01T02:00:00+02:00',
    });
    assert.equal(reply.headers['cache-control'], 'no-store');
    const { key, ...record } = reply.json;
    assert.match(key, new RegExp(`^sk_${record.id}_[0-9A-Za-z]{43}$`));
    assert.deepEqual(record, {
      ...INPUT,
      id: record.id,
      allowed_origins: null,
      rate_limit: null,
      created_at: record.created_at,
      expires_at: '2999-01-01T00:00:00.000Z',
      rotated_at: null,
      revoked_at: null,
    });
    assert.equal(Date.parse(record.created_at), clock.nowMs);

    const shown = await call('GET', `/keys/${record.id}`);
    assert.equal(shown.headers['cache-control'], 'no-store');
    assert.deepEqual(shown.json, record);
    const list = await call('GET', '/v1/keys');
    assert.equal(list.json.keys.length, 2);
    assert.deepEqual(list.json.keys[1], record);
    for (const { text } of [shown, list]) assert.ok(!text.includes(key.split('_')[2]));
  });

  it('rotate a key, with and without grace', async () => {
    await lock();
    const { id, key: first } = await create();
    const rotate = async (body: object) => (await call('POST', `/keys/${id}/rotate`, body)).json;
    const { key: second, rotated_at } = await rotate({});
    assert.ok(rotated_at);
    assert.equal((await call('GET', '/collections', undefined, second)).status, 200);
    const old = call('GET', '/collections', undefined, first);
    await expectProblem(old, 401, 'credentials_invalid');
    const { key: third } = await rotate({ grace_seconds: 60 });
    for (const key of [second, third]) {
      assert.equal((await call('GET', '/collections', undefined, key)).status, 200);
    }
    for (const grace_seconds of [-1, 1.5, '60', 2_592_001]) {
      const calling = call('POST', `/keys/${id}/rotate`, { grace_seconds });
      const code = grace_seconds === 2_592_001 ? 'limit_exceeded' : 'invalid_request';
      await expectProblem(calling, 400, code, '/grace_seconds');
    }
  });

  it('revoke a key repeatedly without an error', async () => {
    await lock();
    const { id, key } = await create();
    const { json } = await call('DELETE', `/keys/${id}`);
    assert.ok(json.revoked_at);
    assert.deepEqual((await call('DELETE', `/keys/${id}`)).json, json);
    const refused = call('GET', '/collections', undefined, key);
    await expectProblem(refused, 401, 'credentials_invalid');
    await expectProblem(call('POST', `/keys/${id}/rotate`, {}), 404, 'key_not_found');
  });

  it('make no first key that locks everybody out, and say why', async () => {
    const expires_at = '2999-01-01T00:00:00Z';
    for (const [input, pointers] of [
      [INPUT, ['/scopes']],
      [{ owner: 'ops', scopes: ['admin:catalog-*'] }, ['/scopes']],
      [{ owner: 'ops', scopes: ['admin'], expires_at }, ['/expires_at']],
      [{ owner: 'ops', scopes: ['admin'], allowed_origins: ['http://a'] }, ['/allowed_origins']],
      [{ owner: 'ops', scopes: ['admin'], rate_limit: { per_second: 9 } }, ['/rate_limit']],
      [{ ...INPUT, expires_at }, ['/scopes', '/expires_at']],
    ] as const) {
      const reply = await expectProblem(call('POST', '/keys', input), 409, 'would_lock_out');
      const found = reply.json.errors.map(({ pointer }: Fault) => pointer);
      assert.deepEqual(found, pointers, reply.text);
    }
    assert.deepEqual((await call('GET', '/keys')).json, { keys: [] });
    await lock();
    await create();
    await create({ owner: 'temporary', scopes: ['admin'], expires_at });
  });

  it('make one first key of two that are asked for at the same time', async () => {
    const input = { owner: 'ops', scopes: ['admin'] };
    const replies = await Promise.all([call('POST', '/keys', input), call('POST', '/keys', input)]);
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 401]);
    assert.equal(service.database.apiKeys.list().length, 1);
  });

  it('keep the last valid key that can make others', async () => {
    await lock();
    const [{ id }] = (await call('GET', '/keys')).json.keys;
    await create({ owner: 'part', scopes: ['admin:catalog-*'] });
    await create({ owner: 'page', scopes: ['admin'], allowed_origins: ['http://a'] });
    await create({ owner: 'slow', scopes: ['admin'], rate_limit: { per_second: 0.001 } });
    const later = '2999-01-01T00:00:00Z';
    await create({ owner: 'till then', scopes: ['admin'], expires_at: later });
    const soon = new Date(clock.nowMs + 1_000).toISOString();
    const other = await create({ owner: 'short', scopes: ['admin'], expires_at: soon });
    clock.nowMs += 1_000;
    const reply = await expectProblem(call('DELETE', `/keys/${id}`), 409, 'would_lock_out');
    assert.match(
      reply.json.detail,
      /First make another key with the scope admin .* to replace its secret/,
    );
    const rotation = `/keys/${id}/rotate`;
    for (const body of [{}, { grace_seconds: 59 }]) {
      const refused = await expectProblem(call('POST', rotation, body), 409, 'would_lock_out');
      assert.match(refused.json.detail, /grace_seconds to at least 60; .* first make another key/);
    }
    admin = (await call('POST', rotation, { grace_seconds: 60 })).json.key;
    // Expired keys can be revoked, and so can the last one when there is another.
    assert.equal((await call('DELETE', `/keys/${other.id}`)).status, 200);
    await create({ owner: 'next', scopes: ['collections:read', 'admin'] });
    admin = (await call('POST', rotation, {})).json.key;
    assert.equal((await call('DELETE', `/keys/${id}`)).status, 200);
  });

  it('keep the last key that is left to manage the service, also with an expiry', async () => {
    const expiresAt = '2999-01-01T00:00:00.000Z';
    const { apiKeys } = service.database;
    const made = await apiKeys.create({ owner: 'a', scopes: ['admin'], expiresAt });
    const other = await apiKeys.create({ owner: 'b', scopes: ['admin'], expiresAt });
    admin = made.key;
    assert.equal((await call('DELETE', `/keys/${other.record.id}`)).status, 200);
    const path = `/keys/${made.record.id}`;
    await expectProblem(call('DELETE', path), 409, 'would_lock_out');
    await expectProblem(call('POST', `${path}/rotate`, {}), 409, 'would_lock_out');
  });

  it('revoke the last key where other credentials may manage keys', async () => {
    const { database } = service;
    const { record, key } = await database.apiKeys.create({
      ...INPUT,
      scopes: ['admin'],
      expiresAt: null,
    });
    const tokens = { verify: () => assert.fail('an API key was sent') };
    const authenticator = new Authenticator({ apiKeys: database.apiKeys, tokens });
    const other = await createService({ database, authenticator });
    const headers = { authorization: `Bearer ${key}` };
    assert.equal((await other.call('DELETE', `/keys/${record.id}`, { headers })).status, 200);
    await other.app.close();
  });

  it('require a credential even after the last key has been revoked', async () => {
    await lock();
    const [{ id }] = (await call('GET', '/keys')).json.keys;
    await service.database.apiKeys.revoke(id);
    for (const key of [undefined, admin]) {
      const { status } = await service.call('GET', '/collections', {
        headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
      });
      assert.equal(status, 401);
    }
  });

  it('report an unknown id as not found', async () => {
    await lock();
    for (const [method, url, body] of [
      ['GET', '/keys/nope'],
      ['GET', '/keys/__proto__'],
      ['DELETE', '/keys/nope'],
      ['POST', '/keys/nope/rotate', {}],
    ] as const) {
      await expectProblem(call(method, url, body), 404, 'key_not_found');
    }
  });

  it('name what is wrong with a request, and what is expected', async () => {
    await lock();
    for (const [change, pointer, pattern] of [
      [{ scopes: ['vectors:read', 'admin', 'vectors:all'] }, '/scopes/2', /"vectors:all"/],
      [{ scopes: ['metrics:read:a*'] }, '/scopes/0', /metrics:read/],
      [{ scopes: ['vectors:read:a b'] }, '/scopes/0', /pattern of collections/],
      [{ scopes: [''] }, '/scopes/0', /found ""/],
      [{ scopes: [] }, '/scopes', /at least 1/],
      [{ scopes: 'admin' }, '/scopes', /an array/],
      [{ scopes: [1] }, '/scopes/0', /string/],
      [{ owner: '' }, '/owner', /at least 1/],
      [{ owner: 'a\nb' }, '/owner', /printable/],
      [{ owner: undefined }, '/owner', /required/],
      [{ expires_at: 'soon' }, '/expires_at', /datetime/],
      [{ expires_at: '2020-01-01T00:00:00Z' }, '/expires_at', /in the future/],
      [{ allowed_origins: [] }, '/allowed_origins', /at least 1/],
      [{ allowed_origins: ['*'] }, '/allowed_origins/0', /as browsers send it/],
      [
        { allowed_origins: ['https://A.example/'] },
        '/allowed_origins/0',
        /https:\/\/a\.example; found/,
      ],
      [{ allowed_origins: ['http://a', 'null'] }, '/allowed_origins/1', /found "null"/],
      [{ rate_limit: 5 }, '/rate_limit', /an object/],
      [{ rate_limit: {} }, '/rate_limit/per_second', /required/],
      [{ rate_limit: { per_second: 0 } }, '/rate_limit/per_second', /at least 0\.001/],
      [{ rate_limit: { per_second: 0.0009 } }, '/rate_limit/per_second', /at least 0\.001/],
      [{ rate_limit: { per_second: 1, burst: 0.5 } }, '/rate_limit/burst', /integer/],
      [{ rate_limit: { per_second: 1, rate: 1 } }, '/rate_limit/rate', /nothing named/],
      [{ id: 'x' }, '/id', /nothing named/],
      [{ idempotency_key: 'x' }, '/idempotency_key', /nothing named/],
    ] as const) {
      const reply = await call('POST', '/keys', { ...INPUT, ...change });
      assert.equal(reply.status, 400, JSON.stringify(change));
      const item = reply.json.errors.find((error: Fault) => error.pointer === pointer);
      assert.ok(item, `${JSON.stringify(change)}: ${reply.text}`);
      assert.match(item.detail, pattern);
    }
    const bad = await call('POST', '/keys', { ...INPUT, scopes: ['x'] });
    for (const scope of SCOPES) assert.ok(bad.json.detail.includes(scope), scope);
    const long = call('POST', '/keys', { ...INPUT, owner: 'x'.repeat(257) });
    await expectProblem(long, 400, 'limit_exceeded', '/owner');
    assert.equal((await call('GET', '/keys')).json.keys.length, 1);
  });

  it('store no reply under an idempotency key, because it contains a secret', async () => {
    await lock();
    const headers = { 'idempotency-key': 'k', authorization: `Bearer ${admin}` };
    const replies = [];
    for (let attempt = 0; attempt < 2; attempt++) {
      replies.push(await service.call('POST', '/keys', { body: INPUT, headers }));
    }
    assert.notEqual(replies[0]!.json.key, replies[1]!.json.key);
  });

  it('bind a key to web pages, except where no key is needed', async () => {
    await lock();
    const page = 'https://app.example.org';
    const made = await call('POST', '/keys', {
      ...INPUT,
      allowed_origins: [page, 'http://localhost:5173'],
    });
    const { id, key } = made.json;
    const ask = (url: string, origin?: string) =>
      service.call('GET', url, {
        headers: { authorization: `Bearer ${key}`, ...(origin === undefined ? {} : { origin }) },
      });
    for (const origin of [page, 'http://localhost:5173']) {
      assert.equal((await ask('/collections', origin)).status, 200);
    }
    for (const origin of [undefined, '', 'null', 'https://other.example', `${page}:8443`]) {
      const reply = await expectProblem(ask('/collections', origin), 403, 'origin_not_allowed');
      assert.match(
        reply.json.detail,
        /web pages of https:\/\/app\.example\.org, http:\/\/localhost:5173 only/,
      );
      assert.equal((await ask('/livez', origin)).status, 200);
    }
    const { json } = await ask('/principal', page);
    assert.deepEqual(json.key.allowed_origins, [page, 'http://localhost:5173']);
    const rotated = await call('POST', `/keys/${id}/rotate`, {});
    assert.deepEqual(rotated.json.allowed_origins, made.json.allowed_origins);
  });

  it('give a key a rate of its own, which its holders share', async () => {
    await lock();
    const made = await call('POST', '/keys', {
      ...INPUT,
      rate_limit: { per_second: 0.001, burst: 2 },
    });
    assert.deepEqual(made.json.rate_limit, { per_second: 0.001, burst: 2 });
    const ask = () => call('GET', '/collections', undefined, made.json.key);
    const first = await ask();
    assert.equal(first.headers['ratelimit-policy'], '"read";q=2;w=2000');
    assert.equal((await ask()).status, 200);
    await expectProblem(ask(), 429, 'rate_limited');
    assert.equal((await call('GET', '/collections')).status, 200);
    const plain = await call('POST', '/keys', { ...INPUT, rate_limit: { per_second: 2.5 } });
    assert.deepEqual(plain.json.rate_limit, { per_second: 2.5, burst: 3 });
  });

  it('write no key to the log', async () => {
    await lock();
    const { id, key } = await create();
    await call('POST', `/keys/${id}/rotate`, {});
    await call('GET', '/collections', undefined, key);
    await call('POST', '/keys', { ...INPUT, scopes: [key] });
    // A whole key instead of its id.
    await call('GET', `/keys/${key}`);
    await call('DELETE', `/keys/${key}`);
    assert.match(logged.join('\n'), new RegExp(`"audit":"key.create".*"target":"${id}"`));
    assert.ok(logged.length > 0);
    const text = logged.join('\n');
    for (const each of [admin!, key]) assert.ok(!text.includes(each.split('_')[2]!), text);
  });
});

interface Fault {
  readonly pointer: string;
}
