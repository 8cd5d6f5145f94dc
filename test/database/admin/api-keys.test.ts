// API keys over a store: their validity, their form on disk, and their state after a restart.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { holdsScopeOn } from '../../../src/common/access.js';
import { type ErrorCode, SagittaError } from '../../../src/common/errors.js';
import type { ApiKeyInput } from '../../../src/database/admin/api-keys.js';
import { API_KEYS_MAX, ApiKeys } from '../../../src/database/admin/api-keys.js';
import { keys as layout } from '../../../src/database/layout/keys.js';
import { createMemoryState, createMemoryStore } from '../../../src/storage/memory-store.js';
import { openStore } from '../../../src/storage/open-store.js';
import { placeOf } from '../../support/issues.js';
import { createTestClock } from '../harness.js';

const INPUT: ApiKeyInput = { owner: 'tests', scopes: ['vectors:read:catalog-*'], expiresAt: null };
const HOUR_MS = 3_600_000;

function createKeys(options: { failing?: () => boolean } = {}) {
  const state = createMemoryState();
  const clock = createTestClock();
  const store = createMemoryStore({
    state,
    async beforeCommit() {
      if (options.failing?.()) throw new SagittaError('storage_full', 'The disk is full.');
    },
  });
  const reopen = () => new ApiKeys({ store: createMemoryStore({ state }), clock });
  return { state, clock, store, apiKeys: new ApiKeys({ store, clock }), reopen };
}

function assertRefused(apiKeys: ApiKeys, key: string): void {
  assert.throws(
    () => apiKeys.verify(key),
    (error) => {
      assert.ok(error instanceof SagittaError && error.code === 'credentials_invalid');
      // The error reveals neither what is wrong nor what was sent.
      assert.equal(
        error.message,
        'The API key is not valid: there is no such key, or it has expired or was revoked.',
      );
      return true;
    },
  );
}

const fails = (code: ErrorCode, pattern = /./) => ({ code, message: pattern });

describe('an API key', () => {
  it('is a principal with its scopes, and is listed without its secret', async () => {
    const { apiKeys } = createKeys();
    assert.equal(apiKeys.isInUse, false);
    const { record, key } = await apiKeys.create(INPUT);
    assert.match(key, /^sk_[0-9A-Za-z]{16}_[0-9A-Za-z]{43}$/);
    assert.equal(key.split('_')[1], record.id);
    const principal = apiKeys.verify(key);
    assert.equal(principal.id, `key:${record.id}`);
    assert.ok(holdsScopeOn(principal, 'vectors:read', 'catalog-1'));
    assert.ok(!holdsScopeOn(principal, 'vectors:read', 'orders'));
    assert.ok(!holdsScopeOn(principal, 'vectors:write', 'catalog-1'));
    assert.deepEqual(record, {
      id: record.id,
      owner: 'tests',
      scopes: ['vectors:read:catalog-*'],
      allowedOrigins: null,
      rateLimit: null,
      createdAt: '2026-01-01T00:00:00.000Z',
      expiresAt: null,
      rotatedAt: null,
      revokedAt: null,
    });
    assert.deepEqual(apiKeys.list(), [record]);
    assert.deepEqual(apiKeys.get(record.id), record);
    assert.equal(apiKeys.isInUse, true);
  });

  it('is rejected when any part of it is changed', async () => {
    const { apiKeys } = createKeys();
    const { key } = await apiKeys.create(INPUT);
    const { key: other } = await apiKeys.create(INPUT);
    const [, id, secret] = key.split('_');
    const [, otherId] = other.split('_');
    for (let at = 0; at < key.length; at++) {
      const changed = key[at] === 'x' ? 'y' : 'x';
      assertRefused(apiKeys, key.slice(0, at) + changed + key.slice(at + 1));
    }
    for (const bad of [
      '',
      'sk_',
      'sk__',
      `sk_${id}`,
      `sk_${id}_`,
      `sk_${otherId}_${secret}`,
      `sk_unknownunknown01_${secret}`,
      `${key}=`,
      ` ${key}`,
      `${key}\n`,
      key.toUpperCase(),
      key.slice(0, -1),
      `${key}${key}`,
      'sk___proto___x',
    ]) {
      assertRefused(apiKeys, bad);
    }
    assert.ok(apiKeys.verify(key));
  });

  it('is rejected from its expiry on', async () => {
    const { apiKeys, clock } = createKeys();
    const expiresAt = new Date(clock.nowMs + HOUR_MS).toISOString();
    const { key, record } = await apiKeys.create({ ...INPUT, expiresAt });
    assert.equal(record.expiresAt, expiresAt);
    clock.nowMs += HOUR_MS - 1;
    assert.ok(apiKeys.verify(key));
    clock.nowMs += 1;
    assertRefused(apiKeys, key);
    assert.equal(apiKeys.isInUse, true);
    await assert.rejects(
      apiKeys.rotate(record.id, { graceMs: 0 }),
      fails('key_not_found', /has expired/),
    );
  });

  it('is rejected for good once it is revoked', async () => {
    const { apiKeys, clock, reopen } = createKeys();
    const { key, record } = await apiKeys.create(INPUT);
    clock.nowMs += HOUR_MS;
    const revoked = await apiKeys.revoke(record.id);
    assert.equal(revoked.revokedAt, '2026-01-01T01:00:00.000Z');
    assertRefused(apiKeys, key);
    assertRefused(reopen(), key);
    // The service stays closed after its last key was revoked.
    assert.equal(apiKeys.isInUse, true);
    assert.equal(reopen().isInUse, true);
    clock.nowMs += HOUR_MS;
    assert.deepEqual(await apiKeys.revoke(record.id), revoked);
    await assert.rejects(
      apiKeys.rotate(record.id, { graceMs: 0 }),
      fails('key_not_found', /revoked/),
    );
    assert.deepEqual(apiKeys.list(), [revoked]);
  });

  it('has a new secret when it is rotated, and the old one stays valid for the grace period', async () => {
    const { apiKeys, clock, reopen } = createKeys();
    const { key: first, record } = await apiKeys.create(INPUT);
    const { key: second, record: rotated } = await apiKeys.rotate(record.id, { graceMs: 0 });
    assert.notEqual(second, first);
    assert.equal(rotated.id, record.id);
    assert.equal(rotated.rotatedAt, '2026-01-01T00:00:00.000Z');
    assertRefused(apiKeys, first);
    assert.equal(apiKeys.verify(second).id, `key:${record.id}`);

    const { key: third } = await apiKeys.rotate(record.id, { graceMs: HOUR_MS });
    for (const instance of [apiKeys, reopen()]) {
      for (const key of [second, third]) assert.ok(instance.verify(key));
      assertRefused(instance, first);
    }
    clock.nowMs += HOUR_MS;
    for (const instance of [apiKeys, reopen()]) {
      assertRefused(instance, second);
      assert.ok(instance.verify(third));
    }
    const { key: fourth } = await apiKeys.rotate(record.id, { graceMs: HOUR_MS });
    await apiKeys.revoke(record.id);
    for (const key of [third, fourth]) assertRefused(apiKeys, key);
  });

  it('is not found under an id that was never created', async () => {
    const { apiKeys } = createKeys();
    await apiKeys.create(INPUT);
    for (const id of ['', 'x', '__proto__', 'constructor']) {
      assert.throws(() => apiKeys.get(id), fails('key_not_found'));
      await assert.rejects(apiKeys.revoke(id), fails('key_not_found'));
      await assert.rejects(apiKeys.rotate(id, { graceMs: 0 }), fails('key_not_found'));
    }
  });

  it('is not created from invalid input, and all issues are reported', async () => {
    const { apiKeys, clock } = createKeys();
    const creating = apiKeys.create({
      owner: 'a\u0007',
      scopes: ['vectors:read', 'vectors:delete', 'metrics:read:a'],
      expiresAt: new Date(clock.nowMs).toISOString(),
    });
    await assert.rejects(
      async () => creating,
      (error) => {
        assert.ok(error instanceof SagittaError);
        assert.deepEqual(error.issues.map(placeOf), [
          '/owner',
          '/scopes/1',
          '/scopes/2',
          '/expires_at',
        ]);
        assert.match(error.issues[1]!.detail, /collections:read, .*admin.*found "vectors:delete"/);
        return true;
      },
    );
    for (const bad of [
      { owner: '' },
      { owner: 'x'.repeat(257) },
      { scopes: [] },
      { expiresAt: 'tomorrow' },
      { expiresAt: '2025-12-31T00:00:00Z' },
    ]) {
      await assert.rejects(
        async () => apiKeys.create({ ...INPUT, ...bad }),
        fails('invalid_request'),
      );
    }
    const scopes = Array.from({ length: 65 }, () => 'admin');
    await assert.rejects(async () => apiKeys.create({ ...INPUT, scopes }), fails('limit_exceeded'));
    assert.equal(apiKeys.isInUse, false);
  });
});

describe('API keys together', () => {
  it('are listed in the order of creation, also after a restart', async () => {
    const { apiKeys, reopen } = createKeys();
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, at) => apiKeys.create({ ...INPUT, owner: `${at}` })),
    );
    await apiKeys.rotate(made[3]!.record.id, { graceMs: 0 });
    const owners = Array.from({ length: 20 }, (_, at) => `${at}`);
    for (const instance of [apiKeys, reopen()]) {
      assert.deepEqual(
        instance.list().map(({ owner }) => owner),
        owners,
      );
    }
    assert.equal(new Set(made.map(({ key }) => key)).size, 20);
  });

  it('change one at a time: a rotation and a revocation at once both take effect', async () => {
    const { apiKeys, reopen } = createKeys();
    const { record } = await apiKeys.create(INPUT);
    const [{ key }, revoked] = await Promise.all([
      apiKeys.rotate(record.id, { graceMs: HOUR_MS }),
      apiKeys.revoke(record.id),
    ]);
    for (const instance of [apiKeys, reopen()]) {
      assertRefused(instance, key);
      assert.deepEqual(instance.get(record.id), revoked);
    }
    assert.ok(revoked.rotatedAt !== null && revoked.revokedAt !== null);
  });

  it('stay as they are when a change cannot be stored', async () => {
    let isFull = false;
    const { apiKeys, reopen } = createKeys({ failing: () => isFull });
    const { record, key } = await apiKeys.create(INPUT);
    isFull = true;
    await assert.rejects(apiKeys.create(INPUT), fails('storage_full'));
    await assert.rejects(apiKeys.rotate(record.id, { graceMs: 0 }), fails('storage_full'));
    await assert.rejects(apiKeys.revoke(record.id), fails('storage_full'));
    for (const instance of [apiKeys, reopen()]) {
      assert.ok(instance.verify(key));
      assert.deepEqual(instance.list(), [record]);
    }
    isFull = false;
    await apiKeys.revoke(record.id);
    assertRefused(apiKeys, key);
  });

  it('are limited in number, and a new one replaces one that is no longer valid', async () => {
    const state = createMemoryState();
    const store = createMemoryStore({ state });
    const clock = createTestClock();
    const first = new ApiKeys({ store, clock });
    const { record } = await first.create(INPUT);
    const [stored] = [...store.list(layout.apiKeys)];
    const entry = JSON.parse(Buffer.from(stored!.value).toString());
    const operations = Array.from({ length: API_KEYS_MAX - 1 }, (_, at) => {
      const id = `copy${String(at).padStart(12, '0')}`;
      const value = Buffer.from(JSON.stringify({ ...entry, id, number: at + 2 }));
      return { kind: 'put', key: layout.apiKey(id), value } as const;
    });
    await store.commit(operations);
    const apiKeys = new ApiKeys({ store, clock });
    await assert.rejects(apiKeys.create(INPUT), fails('limit_exceeded', /at most 10000/));
    await apiKeys.revoke('copy000000000007');
    const { record: made } = await apiKeys.create(INPUT);
    for (const instance of [apiKeys, new ApiKeys({ store, clock })]) {
      const ids = instance.list().map(({ id }) => id);
      assert.equal(ids.length, API_KEYS_MAX);
      assert.equal(ids[0], record.id);
      assert.equal(ids.at(-1), made.id);
      assert.ok(!ids.includes('copy000000000007'));
    }
  });

  it('with a damaged record keep the service from starting, and are named', async () => {
    for (const [damage, pattern] of [
      ['{"id":', /is not valid JSON/],
      ['null', /is not an object/],
      [{ formatVersion: 2 }, /format version is 2, and this version reads 1/],
      [{ allowedOrigins: undefined }, /member allowedOrigins/],
      [{ allowedOrigins: [] }, /member allowedOrigins/],
      [{ allowedOrigins: ['*'] }, /member allowedOrigins/],
      [{ rateLimit: undefined }, /member rateLimit/],
      [{ rateLimit: { perSecond: 1 } }, /member rateLimit/],
      [{ rateLimit: { perSecond: 0, burst: 1 } }, /member rateLimit/],
      [{ digest: 'abc' }, /member digest/],
      [{ previous: { digest: 'abc', untilMs: 1 } }, /member previous/],
      [{ scopes: ['all'] }, /member scopes/],
      [{ scopes: 'admin' }, /member scopes/],
      [{ revokedAtMs: undefined }, /member revokedAtMs/],
      [{ expiresAtMs: '1' }, /member expiresAtMs/],
      [{ owner: 1 }, /member owner/],
      [{ id: 'another' }, /the id of another key/],
    ] as const) {
      const { store, apiKeys, reopen } = createKeys();
      const { record } = await apiKeys.create(INPUT);
      const key = layout.apiKey(record.id);
      const entry = JSON.parse(Buffer.from(store.get(key)!).toString());
      const text = typeof damage === 'string' ? damage : JSON.stringify({ ...entry, ...damage });
      await store.commit([{ kind: 'put', key, value: Buffer.from(text) }]);
      assert.throws(reopen, fails('data_corrupt', pattern));
      assert.throws(reopen, fails('data_corrupt', new RegExp(`The stored API key ${record.id} `)));
    }
  });

  it('keep their origins and rate after a rotation and a restart', async () => {
    const { apiKeys, reopen } = createKeys();
    const allowedOrigins = ['https://app.example.org', 'http://localhost:5173'];
    const { record } = await apiKeys.create({
      ...INPUT,
      allowedOrigins,
      rateLimit: { perSecond: 2.5 },
    });
    assert.deepEqual(record.allowedOrigins, allowedOrigins);
    assert.deepEqual(record.rateLimit, { perSecond: 2.5, burst: 3 });
    const { key } = await apiKeys.rotate(record.id, { graceMs: 0 });
    for (const instance of [apiKeys, reopen()]) {
      const { rotatedAt: _, ...others } = instance.get(record.id);
      assert.deepEqual({ ...others, rotatedAt: null }, record);
      const principal = instance.verify(key);
      assert.deepEqual(principal.allowedOrigins, allowedOrigins);
      assert.deepEqual(principal.rateLimit, { perSecond: 2.5, burst: 3 });
    }
  });

  it('have no restrictions unless they are given some', async () => {
    const { apiKeys, reopen } = createKeys();
    const { record, key } = await apiKeys.create(INPUT);
    assert.deepEqual(reopen().get(record.id), record);
    assert.deepEqual([record.allowedOrigins, record.rateLimit], [null, null]);
    assert.equal(reopen().verify(key).rateLimit, null);
  });

  it('leave only digests of their secrets on disk, and exist after a restart', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sagitta-keys-'));
    try {
      const clock = createTestClock();
      let store = await openStore({ directory });
      const apiKeys = new ApiKeys({ store, clock });
      const { key, record } = await apiKeys.create(INPUT);
      const rotated = await apiKeys.rotate(record.id, { graceMs: HOUR_MS });
      await store.close();
      store = await openStore({ directory });
      const reopened = new ApiKeys({ store, clock });
      for (const each of [key, rotated.key]) {
        assert.equal(reopened.verify(each).id, `key:${record.id}`);
      }
      await store.close();
      const journal = join(directory, 'journal');
      const names = await readdir(journal);
      const files = await Promise.all(names.map((name) => readFile(join(journal, name))));
      const bytes = Buffer.concat(files);
      for (const each of [key, rotated.key]) {
        const secret = each.split('_')[2]!;
        assert.ok(!bytes.includes(secret), 'a secret is on disk');
        assert.ok(bytes.includes(createHash('sha256').update(secret).digest('hex')));
      }
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
