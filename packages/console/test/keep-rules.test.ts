import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/common/types.js';
import { compareMetadata } from '../src/views/duplicates/compare-metadata.js';
import { groupsAsCsv, groupsAsNdjson } from '../src/views/duplicates/export-groups.js';
import { idsToDelete, type KeepRule, keptIn } from '../src/views/duplicates/keep-rules.js';

const group = {
  members: ['a', 'b', 'c'].map((id, at) => ({ id, score: 0.9 + at / 100 })),
};
const metadata = new Map<string, JsonObject>([
  ['a', { meta: { year: 2020 } }],
  ['b', { meta: { year: 2024 } }],
  ['c', {}],
]);
const keep = (rule: KeepRule, choice?: string | null) =>
  keptIn(group, rule, new Map(choice === undefined ? [] : [['a', choice]]), metadata);

describe('the member to keep in a group', () => {
  test('is the one that was written first or last', () => {
    assert.equal(keep({ kind: 'first' }), 'a');
    assert.equal(keep({ kind: 'last' }), 'c');
  });

  test('is the one with the greatest or least value of a metadata path', () => {
    assert.equal(keep({ kind: 'greatest', path: 'meta.year' }), 'b');
    assert.equal(keep({ kind: 'least', path: 'meta.year' }), 'a');
    assert.equal(keep({ kind: 'greatest', path: 'nowhere' }), 'a', 'without values, the first');
  });

  test('is well defined for mixed strings and numbers', () => {
    const mixed = new Map<string, JsonObject>([
      ['a', { at: 5 }],
      ['b', { at: '2026-01-02' }],
      ['c', { at: '2026-01-03' }],
    ]);
    assert.equal(keptIn(group, { kind: 'greatest', path: 'at' }, new Map(), mixed), 'c');
    assert.equal(keptIn(group, { kind: 'least', path: 'at' }, new Map(), mixed), 'a');
  });

  test('respects the exact order of integers beyond 2^53 and other numbers', () => {
    const posts = new Map<string, JsonObject>([
      ['a', { post: 2 ** 53 }],
      ['b', { post: 2n ** 53n + 1n }],
      ['c', { post: 5 }],
    ]);
    assert.equal(keptIn(group, { kind: 'greatest', path: 'post' }, new Map(), posts), 'b');
    assert.equal(keptIn(group, { kind: 'least', path: 'post' }, new Map(), posts), 'c');
  });

  test('is the user’s choice, unless that member has left the group', () => {
    assert.equal(keep({ kind: 'first' }, 'c'), 'c');
    assert.equal(keep({ kind: 'first' }, null), null);
    assert.equal(keep({ kind: 'first' }, 'gone'), 'a');
  });

  test('is spared when the others are deleted; groups that are kept or undecided stay complete', () => {
    assert.deepEqual(
      idsToDelete([group], () => 'b'),
      ['a', 'c'],
    );
    assert.deepEqual(
      idsToDelete([group], () => null),
      [],
    );
    assert.deepEqual(
      idsToDelete([group], () => undefined),
      [],
    );
  });
});

describe('comparison of metadata', () => {
  test('paths that differ come first, including those that some vectors lack', () => {
    const compared = compareMetadata([
      { same: 'x', nested: { year: 1 }, tags: ['a'] },
      { same: 'x', nested: { year: '1' }, tags: ['a'], extra: null },
    ]);
    assert.deepEqual(compared, [
      { path: 'nested.year', values: ['1', '1'], isDifferent: true },
      { path: 'extra', values: [undefined, 'null'], isDifferent: true },
      { path: 'same', values: ['x', 'x'], isDifferent: false },
      { path: 'tags', values: ['["a"]', '["a"]'], isDifferent: false },
    ]);
  });
});

test('integers beyond 2^53 are compared, shown and exported with all their digits', () => {
  const [one, other] = [1768907725507217522n, 1768907725507217523n];
  assert.deepEqual(compareMetadata([{ post: one }, { post: other }]), [
    { path: 'post', values: [`${one}`, `${other}`], isDifferent: true },
  ]);
  const posts = new Map<string, JsonObject>([['a', { posts: [one] }]]);
  const groups = [{ group, kept: null }];
  assert.match(groupsAsNdjson(groups, posts)[0]!, /"metadata":\{"posts":\[1768907725507217522\]\}/);
  assert.match(groupsAsCsv(groups, posts)[1]!, /"\{""posts"":\[1768907725507217522\]\}"/);
});

describe('export of groups', () => {
  test('NDJSON has one line per group, CSV one per vector', () => {
    const groups = [{ group, kept: 'b' }];
    const [line] = groupsAsNdjson(groups, metadata).map((text) => JSON.parse(text));
    assert.deepEqual(line.vectors[1], {
      id: 'b',
      score: 0.91,
      is_kept: true,
      metadata: { meta: { year: 2024 } },
    });
    const lines = groupsAsCsv(groups, metadata);
    assert.equal(lines[0], 'group,id,is_kept,score,metadata\r\n');
    assert.equal(lines[1], '1,a,false,0.9,"{""meta"":{""year"":2020}}"\r\n');
    assert.equal(lines.length, 4);
  });
});
