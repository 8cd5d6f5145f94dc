import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { groupSchedule, SimilarPairs } from '../src/views/duplicates/similar-pairs.js';

/** Pairs a–b 0.99, b–c 0.95, d–e 0.97 and the vector f without any, as a join returns them. */
function samplePairs(rowCount = 6): SimilarPairs {
  const rows = [
    { id: 'a', matches: [{ id: 'b', score: 0.99 }] },
    {
      id: 'b',
      matches: [
        { id: 'a', score: 0.99 },
        { id: 'c', score: 0.95 },
      ],
    },
    { id: 'd', matches: [{ id: 'e', score: 0.97 }] },
    { id: 'f', matches: [] },
    { id: 'e', matches: [{ id: 'd', score: 0.97 }] },
    { id: 'c', matches: [{ id: 'b', score: 0.95 }] },
  ];
  const pairs = new SimilarPairs();
  for (const row of rows.slice(0, rowCount)) pairs.addRow(row);
  return pairs;
}

function idsOf(pairs: SimilarPairs, threshold: number): string[] {
  return pairs
    .groups(threshold, 'largest')
    .map(({ members }) => members.map(({ id }) => id).join(''));
}

describe('similar pairs', () => {
  test('vectors connected by a chain of pairs form a group, and the largest group is first', () => {
    const pairs = samplePairs();
    assert.deepEqual(idsOf(pairs, 0.9), ['abc', 'de']);
    assert.equal(pairs.pairCount, 3, 'each pair counts once, though both of its rows have it');
    assert.equal(pairs.rowCount, 6);
  });

  test('a higher threshold breaks chains without another join', () => {
    assert.deepEqual(idsOf(samplePairs(), 0.96), ['ab', 'de']);
    assert.deepEqual(idsOf(samplePairs(), 0.98), ['ab']);
    assert.deepEqual(idsOf(samplePairs(), 1), []);
  });

  test('members are in insertion order, with their highest score in the group', () => {
    const [group] = samplePairs().groups(0.9, 'largest');
    assert.deepEqual(group!.members, [
      { id: 'a', score: 0.99 },
      { id: 'b', score: 0.99 },
      { id: 'c', score: 0.95 },
    ]);
  });

  test('groups in the order found stay in their places while rows arrive', () => {
    const idsAfter = (rowCount: number) =>
      samplePairs(rowCount)
        .groups(0.96, 'found')
        .map(({ members }) => members[0]!.id);
    assert.deepEqual(idsAfter(1), ['a']);
    assert.deepEqual(idsAfter(3), ['a', 'd']);
    assert.deepEqual(idsAfter(6), ['a', 'd']);
    const pairs = new SimilarPairs();
    for (const [id, ...others] of ['xy', 'abc']) {
      pairs.addRow({ id: id!, matches: others.map((other) => ({ id: other, score: 1 })) });
    }
    assert.deepEqual(
      pairs.groups(1, 'found').map(({ members }) => members.length),
      [2, 3],
    );
    assert.deepEqual(
      pairs.groups(1, 'largest').map(({ members }) => members.length),
      [3, 2],
    );
  });

  test('a member whose row has not arrived, because the join was stopped, comes last', () => {
    assert.deepEqual(idsOf(samplePairs(2), 0.9), ['abc']);
  });

  test('a group falls apart when the member that connects it is removed', () => {
    const pairs = samplePairs();
    pairs.remove(['b']);
    assert.deepEqual(idsOf(pairs, 0.9), ['de']);
  });

  test('pairs beyond the first allocation are kept', () => {
    const pairs = new SimilarPairs();
    const count = 5_000;
    for (let row = 0; row < count; row++) {
      const matches = [{ id: String((row + 1) % count), score: 0.9 }];
      pairs.addRow({ id: String(row), matches });
    }
    assert.equal(pairs.groups(0.9, 'found')[0]!.members.length, count);
  });
});

test('groups are formed again when there are more pairs and enough rows', () => {
  const isDue = groupSchedule();
  assert.equal(isDue({ rowCount: 200, pairCount: 0 }), false);
  assert.equal(isDue({ rowCount: 400, pairCount: 3 }), true);
  assert.equal(isDue({ rowCount: 410, pairCount: 4 }), false, 'too few rows');
  assert.equal(isDue({ rowCount: 600, pairCount: 3 }), false, 'no more pairs');
  assert.equal(isDue({ rowCount: 600, pairCount: 4 }), true);
});
