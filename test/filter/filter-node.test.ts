// Filter texts, the keys of cached results: equal only for filters with the same meaning.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import type { JsonObject } from '../../src/common/types.js';
import { filterText } from '../../src/filter/filter-node.js';
import { parseFilter } from '../../src/filter/parse.js';

const textFor = (filter: JsonObject) =>
  filterText(parseFilter(filter, { limits: DEFAULT_LIMITS, hasText: true }));

test('filters that differ in order and repetition have equal texts', () => {
  const text = textFor({ a: 1, b: { $gt: 2, $lt: 9 } });
  assert.equal(textFor({ b: { $lt: 9, $gt: 2 }, a: 1 }), text);
  assert.equal(textFor({ $and: [{ b: { $gt: 2 } }, { a: 1 }, { b: { $lt: 9 } }] }), text);
  assert.equal(textFor({ $and: [{ a: 1 }, { b: { $gt: 2, $lt: 9 } }, { a: 1 }] }), text);
  assert.equal(textFor({ $or: [{ a: 1 }, { b: 2 }] }), textFor({ $or: [{ b: 2 }, { a: 1 }] }));
  assert.equal(textFor({ a: -0 }), textFor({ a: 0 }));
});

test('filters with different meanings have different texts', () => {
  const filters: readonly JsonObject[] = [
    {},
    { a: 1 },
    { a: '1' },
    { a: true },
    { a: null },
    { b: 1 },
    { a: { $ne: 1 } },
    { a: { $in: [1] } },
    { a: { $in: ['1'] } },
    { a: { $in: [1, '1'] } },
    { a: { $gte: 1 } },
    { a: { $contains: 1 } },
    { a: { $contains_any: [1] } },
    { a: { $contains_all: [1] } },
    { a: { $exists: true } },
    { a: { $prefix: '1' } },
    { a: { $eq: '1', $case: 'insensitive' } },
    { a: { $regex: '1' } },
    { a: { $regex: '1', $case: 'insensitive' } },
    { a: { $size: 1 } },
    { a: { $size: { $gte: 1 } } },
    { a: { $elem_match: { $eq: 1 } } },
    { a: { $elem_match: { '': 1 } } },
    { $id: '1' },
    { a: 1, b: 2 },
    { a: 1, b: 3 },
    { $or: [{ a: 1 }, { b: 2 }] },
    { $not: { a: 1, b: 2 } },
    { $not: { $or: [{ a: 1 }, { b: 2 }] } },
    { $or: [{ a: 1, b: 2 }, { c: 3 }] },
    { $or: [{ a: 1 }, { b: 2, c: 3 }] },
    { $or: [{ a: 1 }, { b: 2 }], c: 3 },
    { $or: [{ a: 1 }, { $or: [{ b: 2 }, { c: 3 }] }] },
    { 'a","$eq': 1 },
    { a: '"],["$eq","b"' },
    { a: 'x),|(' },
  ];
  const texts = filters.map(textFor);
  assert.equal(new Set(texts).size, filters.length, texts.join('\n'));
});
