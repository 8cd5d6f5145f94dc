import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { searchPoints } from '../src/views/map/point-search.js';

const texts = {
  ids: ['n1', 'n2', 'n3', 'n4', 'dog', 'n5'],
  titles: ['Hot dog', 'dogma', 'underdog', 'cat', undefined, 'dog food'],
  bodies: [
    'hot dog\na sausage',
    'dogma',
    'underdog',
    'cat\nan animal unlike a dog, which purrs',
    '',
    '',
  ],
};

describe('the search for points', () => {
  test('ranks exact names, beginnings, words, parts and other texts', () => {
    const { points, count, best } = searchPoints(texts, ' DOG ');
    assert.deepEqual(points, [4, 5, 1, 0, 2, 3]);
    assert.equal(count, 6);
    assert.deepEqual(
      best.map(({ title }) => title),
      ['dog', 'dog food', 'dogma', 'Hot dog', 'underdog', 'cat'],
    );
  });

  test('shows an excerpt only if neither the title nor the id has the text', () => {
    const { best } = searchPoints(texts, 'unlike a');
    assert.equal(best.length, 1);
    assert.match(best[0]!.excerpt!, /^cat\nan animal unlike a|unlike a/);
    assert.equal(searchPoints(texts, 'n3').best[0]!.excerpt, undefined);
  });

  test('finds ids before the texts have been read, and nothing without a text', () => {
    const unread = { ...texts, titles: [], bodies: [] };
    assert.deepEqual(searchPoints(unread, 'n4').points, [3]);
    assert.equal(searchPoints(texts, '  ').count, 0);
    assert.equal(searchPoints(texts, 'zebra').count, 0);
  });

  test('counts all matches, but returns a bounded number', () => {
    const ids = Array.from({ length: 5_000 }, (_, at) => `id ${at}`);
    const { points, best, count } = searchPoints({ ids, titles: [], bodies: [] }, 'id');
    assert.deepEqual([points.length, best.length, count], [2_000, 8, 5_000]);
  });
});
