import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ApiKeyRecord } from '@sagitta/client';
import { auditRequestOf, NO_FILTER } from '../src/views/audit/audit-filter.js';
import { restoreCommand } from '../src/views/backups/restore-command.js';
import {
  firstKey,
  type KeyDraft,
  matchedBy,
  parseKey,
  statusOf,
  toggleScope,
} from '../src/views/keys/key-draft.js';

const NOW_MS = Date.parse('2026-11-23T00:00:00Z');

describe('a new key', () => {
  const draft: KeyDraft = {
    owner: ' search ',
    grants: [
      { scope: 'vectors:read', globs: 'catalog-*, docs' },
      { scope: 'metrics:read', globs: '' },
    ],
    days: '30',
    origins: '',
    rate: '',
    burst: '',
  };

  test('has one scope per glob, and expires after the given number of days', () => {
    assert.deepEqual(parseKey(draft, NOW_MS), {
      kind: 'valid',
      input: {
        owner: 'search',
        scopes: ['vectors:read:catalog-*', 'vectors:read:docs', 'metrics:read'],
        expires_at: '2026-12-23T00:00:00.000Z',
      },
    });
  });

  test('has the given origins and rate', () => {
    const origins = 'https://a.example, http://localhost:5173';
    const parsed = parseKey({ ...draft, origins, rate: '2.5', burst: '10' }, NOW_MS);
    assert.ok(parsed.kind === 'valid');
    assert.deepEqual(parsed.input.allowed_origins, ['https://a.example', 'http://localhost:5173']);
    assert.deepEqual(parsed.input.rate_limit, { per_second: 2.5, burst: 10 });
    const withoutBurst = parseKey({ ...draft, rate: '3' }, NOW_MS);
    assert.ok(withoutBurst.kind === 'valid');
    assert.deepEqual(withoutBurst.input.rate_limit, { per_second: 3 });
  });

  test('never expires without days', () => {
    const parsed = parseKey({ ...draft, days: '' }, NOW_MS);
    assert.equal(parsed.kind === 'valid' && 'expires_at' in parsed.input, false);
  });

  test('says what is wrong, by field', () => {
    const wrong = {
      owner: ' ',
      grants: [],
      days: '-1',
      origins: 'a.example',
      rate: '0',
      burst: '.5',
    };
    const parsed = parseKey(wrong, NOW_MS);
    assert.deepEqual(parsed.kind === 'invalid' && Object.keys(parsed.errors), Object.keys(wrong));
    const burst = parseKey({ ...draft, burst: '5' }, NOW_MS);
    assert.deepEqual(burst.kind === 'invalid' && burst.errors, {
      rate: 'Enter a rate as well.',
    });
    const glob = parseKey({ ...draft, grants: [{ scope: 'admin', globs: 'a/b' }] }, NOW_MS);
    assert.match((glob.kind === 'invalid' && glob.errors.grants) || '', /admin:a\/b/);
  });

  test('can manage the whole server and never expires if it is the first', () => {
    const parsed = parseKey(firstKey(' operations '), NOW_MS);
    assert.deepEqual(parsed, {
      kind: 'valid',
      input: { owner: 'operations', scopes: ['admin'] },
    });
  });

  test('scopes are in documented order', () => {
    const grants = toggleScope([{ scope: 'admin', globs: '' }], 'vectors:read', true);
    assert.deepEqual(
      grants.map(({ scope }) => scope),
      ['vectors:read', 'admin'],
    );
    assert.deepEqual(toggleScope(grants, 'admin', false), grants.slice(0, 1));
  });

  test('shows the existing collections that match', () => {
    const ids = ['catalog-a', 'catalog-b', 'docs', 'other'];
    assert.deepEqual(matchedBy('catalog-* docs', ids), ids.slice(0, 3));
    assert.deepEqual(matchedBy(' ', ids), ids);
    assert.deepEqual(matchedBy('none', ids), []);
  });
});

test('the status of a key is its most important state', () => {
  const status = (expiresAt: string | null, revokedAt: string | null = null) =>
    statusOf({ expires_at: expiresAt, revoked_at: revokedAt } as ApiKeyRecord, NOW_MS);
  assert.equal(status(null), 'active');
  assert.equal(status('2027-01-01T00:00:00Z'), 'active');
  assert.equal(status('2026-11-25T00:00:00Z'), 'expires soon');
  assert.equal(status('2026-11-23T00:00:00Z'), 'expired');
  assert.equal(status(null, '2026-11-01T00:00:00Z'), 'revoked');
});

describe('the audit filter', () => {
  test('sends the chosen values, with times in UTC', () => {
    const since = '2026-11-23T04:00';
    assert.deepEqual(
      auditRequestOf({ ...NO_FILTER, operation: 'collection', target: ' docs ', since }),
      { operation: 'collection', target: 'docs', since: new Date(since).toISOString() },
    );
  });

  test('leaves out empty fields and invalid times', () => {
    assert.deepEqual(auditRequestOf({ ...NO_FILTER, until: 'soon' }), {});
  });
});

test('the restore command quotes unusual names for the shell', () => {
  assert.match(restoreCommand('monday'), /BACKUP_DIR"\/monday --data-dir/);
  assert.match(restoreCommand("a b'c"), /\/'a b'\\''c' --data-dir/);
});
