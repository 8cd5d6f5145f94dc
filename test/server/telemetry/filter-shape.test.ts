// Filters in the slow query log.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { filterShape } from '../../../src/server/telemetry/filter-shape.js';

it('the shape of a filter has its operators, and neither values nor paths', () => {
  for (const [filter, expected] of [
    [{ name: 'secret' }, '{f1:?}'],
    [{ 'a.b': { $gte: 1, $lt: 2 }, c: null }, '{f1:{$gte:?,$lt:?},f2:?}'],
    [
      { $or: [{ a: { $in: ['x', 'y'] } }, { $not: { b: true } }, { a: 1 }] },
      '{$or:[{f1:{$in:[2]}},{$not:{f2:?}},{f1:?}]}',
    ],
    [{ '$Secret 7': 1 }, '{f1:?}'],
  ] as const) {
    assert.equal(filterShape(filter as never), expected);
  }
});

it('the shape of a long or deep filter is cut', () => {
  const long = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, { $eq: i }]));
  assert.ok(filterShape(long).length <= 501);
  let deep: never | object = { a: 1 };
  for (let i = 0; i < 10_000; i++) deep = { $not: deep };
  assert.ok(filterShape(deep as never).length <= 501);
});
