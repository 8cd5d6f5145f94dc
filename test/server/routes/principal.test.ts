import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Principal } from '../../../src/common/access.js';
import { Authenticator, type TokenVerifier } from '../../../src/server/auth/authenticator.js';
import { createTestClock, openDatabase } from '../../database/harness.js';
import { createService, expectProblem } from '../harness.js';

async function openService(t: TestContext, tokens: TokenVerifier | null = null) {
  const database = await openDatabase({ clock: createTestClock() });
  const authenticator = new Authenticator({ apiKeys: database.apiKeys, tokens });
  const service = await createService({ database, authenticator });
  t.after(() => service.close());
  const ask = (credential?: string) =>
    service.call('GET', '/v1/principal', {
      headers: credential === undefined ? {} : { authorization: `Bearer ${credential}` },
    });
  return { database, ask };
}

describe('the route of the caller', () => {
  it('says that nobody needs a credential, and everybody may do everything', async (t) => {
    const { ask } = await openService(t);
    const { json, headers } = await ask();
    assert.deepEqual(json, {
      id: 'anonymous',
      kind: 'anonymous',
      grants: [{ scope: 'admin', collections: '*' }],
      credentials_required: false,
      backups_configured: true,
      key: null,
    });
    assert.equal(headers['cache-control'], 'no-store');
  });

  it('names the key that the caller presents, without its secret', async (t) => {
    const { database, ask } = await openService(t);
    const { key, record } = await database.apiKeys.create({
      owner: 'search',
      scopes: ['vectors:read:catalog-*', 'metrics:read'],
      expiresAt: '2100-01-01T00:00:00.000Z',
    });
    await expectProblem(ask(), 401, 'credentials_missing');
    const { json, text } = await ask(key);
    assert.deepEqual([json.id, json.kind], [`key:${record.id}`, 'key']);
    assert.deepEqual(json.grants, [
      { scope: 'vectors:read', collections: 'catalog-*' },
      { scope: 'metrics:read', collections: '*' },
    ]);
    assert.equal(json.credentials_required, true);
    assert.deepEqual([json.key.owner, json.key.expires_at], ['search', '2100-01-01T00:00:00.000Z']);
    assert.ok(!text.includes(key.split('_')[2]!));
    await database.apiKeys.revoke(record.id);
    await expectProblem(ask(key), 401, 'credentials_invalid');
  });

  it('names the subject of a token, even one that looks like a key', async (t) => {
    const principal: Principal = { id: 'token:key:x', grants: [] };
    const { ask } = await openService(t, { verify: () => principal });
    const { json } = await ask('a.b.c');
    assert.deepEqual([json.id, json.kind, json.key], ['token:key:x', 'token', null]);
    assert.deepEqual(json.grants, []);
  });
});
