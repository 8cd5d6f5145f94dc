// Scopes and globs: parsing grants, what a grant includes, and globs that would cause backtracking.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  administrationEndsAtMs,
  EVERYBODY,
  holdsScope,
  holdsScopeEverywhere,
  holdsScopeOn,
  matchesGlob,
  maySeeCollection,
  NOBODY,
  type Principal,
  parseGrant,
  SCOPES,
} from '../../src/common/access.js';
import { testSeed } from '../support/random.js';

const principal = (...scopes: string[]): Principal => ({
  id: 'key:test',
  grants: scopes.map((scope) => {
    const grant = parseGrant(scope);
    assert.ok(grant, scope);
    return grant;
  }),
});

test('a grant is a scope with a glob of collections, or without one for all collections', () => {
  for (const scope of SCOPES) {
    assert.deepEqual(parseGrant(scope), { scope, collections: '*' });
  }
  assert.deepEqual(parseGrant('vectors:read:catalog-*'), {
    scope: 'vectors:read',
    collections: 'catalog-*',
  });
  assert.deepEqual(parseGrant('admin:a'), { scope: 'admin', collections: 'a' });
  assert.deepEqual(parseGrant('collections:write:?.b_c'), {
    scope: 'collections:write',
    collections: '?.b_c',
  });
});

test('text that is not a scope is not a grant', () => {
  for (const text of [
    '',
    ' ',
    '*',
    'vectors',
    'vectors:',
    'vectors:read:',
    'vectors:reads',
    'Vectors:Read',
    ' vectors:read',
    'vectors:read ',
    'vectors:read:a b',
    'vectors:read:a:b',
    'vectors:read:a/b',
    'vectors:read:[a]',
    'vectors:read:\n',
    'vectors:read:ä',
    `vectors:read:${'a'.repeat(129)}`,
    'metrics:read:catalog-*',
    'administrator',
    '__proto__',
    'constructor',
  ]) {
    assert.equal(parseGrant(text), null, JSON.stringify(text));
  }
});

test('a glob matches the whole id, `*` any characters and `?` one', () => {
  for (const [glob, text, expected] of [
    ['*', '', true],
    ['*', 'anything', true],
    ['a', 'a', true],
    ['a', 'A', false],
    ['a', 'ab', false],
    ['a', 'ba', false],
    ['a*', 'a', true],
    ['a*', 'abc', true],
    ['a*', 'ba', false],
    ['*a', 'ba', true],
    ['*a', 'ab', false],
    ['?', 'a', true],
    ['?', '', false],
    ['?', 'ab', false],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-b-b-', false],
    ['**', 'x', true],
    ['.', 'x', false],
    ['a.c', 'abc', false],
    ['catalog-*', 'catalog-', true],
    ['catalog-*', 'catalog', false],
    ['*-eu', 'catalog-eu-eu', true],
  ] as const) {
    assert.equal(matchesGlob(glob, text), expected, `${glob} ${text}`);
  }
});

test('a glob matches like the equivalent regular expression', () => {
  const seed = testSeed();
  const characters = (...choices: string[]) =>
    fc.array(fc.constantFrom(...choices), { maxLength: 9 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(characters('a', 'b', '.', '*', '?'), characters('a', 'b', '.'), (glob, text) => {
      const pattern = glob.replaceAll('.', '\\.').replace(/\*+/g, '.*').replaceAll('?', '.');
      assert.equal(matchesGlob(glob, text), new RegExp(`^${pattern}$`).test(text));
    }),
    { seed, numRuns: 2_000 },
  );
});

test('no glob takes exponential time', () => {
  const id = 'a'.repeat(127);
  const globs = [
    `${'*a'.repeat(63)}*b`,
    `${'a*'.repeat(64)}`,
    `${'*?'.repeat(63)}b`,
    `*${'a'.repeat(100)}b`,
  ];
  const startedAt = performance.now();
  for (let round = 0; round < 100; round++) {
    for (const glob of globs) matchesGlob(glob, `${id}${round % 10}`);
  }
  // 400 matches of at most 128 × 128 steps each; naive backtracking would not finish the first.
  assert.ok(performance.now() - startedAt < 30_000);
});

test('admin includes every scope, and no other scope includes another', () => {
  for (const held of SCOPES) {
    for (const asked of SCOPES) {
      const expected = held === asked || held === 'admin';
      assert.equal(holdsScope(principal(held), asked), expected, `${held} ${asked}`);
      assert.equal(holdsScopeOn(principal(held), asked, 'c'), expected, `${held} ${asked}`);
      assert.equal(holdsScopeEverywhere(principal(held), asked), expected, `${held} ${asked}`);
    }
  }
});

test('a glob limits a scope to its collections, even the scope admin', () => {
  for (const scope of ['vectors:read', 'admin']) {
    const limited = principal(`${scope}:catalog-*`);
    assert.ok(holdsScope(limited, 'vectors:read'));
    assert.ok(holdsScopeOn(limited, 'vectors:read', 'catalog-1'));
    assert.ok(!holdsScopeOn(limited, 'vectors:read', 'orders'));
    assert.ok(!holdsScopeEverywhere(limited, 'vectors:read'));
    assert.ok(!holdsScopeEverywhere(limited, 'admin'));
    assert.ok(maySeeCollection(limited, 'catalog-1'));
    assert.ok(!maySeeCollection(limited, 'orders'));
  }
});

test('a scope of the service makes no collection visible, and the anonymous principal has no scope', () => {
  assert.ok(!maySeeCollection(principal('metrics:read'), 'c'));
  assert.ok(!maySeeCollection(NOBODY, 'c'));
  for (const scope of SCOPES) {
    assert.ok(!holdsScope(NOBODY, scope));
    assert.ok(holdsScopeEverywhere(EVERYBODY, scope));
  }
});

test('administration ends with the last key of an administrator that programs can use', () => {
  const nowMs = Date.parse('2026-01-01T00:00:00Z');
  const terms = { allowed_origins: null, rate_limit: null, expires_at: null, revoked_at: null };
  const usable = { scopes: ['admin'], ...terms };
  const soon = { ...usable, expires_at: '2026-02-01T00:00:00Z' };
  const later = {
    ...usable,
    scopes: ['metrics:read', 'admin:*'],
    expires_at: '2026-03-01T00:00:00Z',
  };
  const useless = [
    { ...usable, scopes: ['admin:catalog-*', 'vectors:write'] },
    { ...usable, allowed_origins: ['https://app.example.org'] },
    { ...usable, rate_limit: { per_second: 1, burst: 1 } },
    { ...usable, revoked_at: '2025-01-01T00:00:00Z' },
    { ...usable, expires_at: '2026-01-01T00:00:00Z' },
  ];
  assert.equal(administrationEndsAtMs([], nowMs), -Infinity);
  assert.equal(administrationEndsAtMs(useless, nowMs), -Infinity);
  const end = Date.parse('2026-03-01T00:00:00Z');
  assert.equal(administrationEndsAtMs([later, ...useless, soon], nowMs), end);
  assert.equal(administrationEndsAtMs([soon, usable, later], nowMs), Infinity);
});
