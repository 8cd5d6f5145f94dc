// Parsing of filters: the resulting tree, and all reasons for rejection.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ISSUES_MAX, SagittaError, type ValidationIssue } from '../../src/common/errors.js';
import { DEFAULT_LIMITS, type Limits } from '../../src/common/limits.js';
import type { Json, JsonObject } from '../../src/common/types.js';
import { filterPaths } from '../../src/filter/filter-node.js';
import { parseFilter } from '../../src/filter/parse.js';
import { placeOf } from '../support/issues.js';

const parse = (filter: Json, limits: Partial<Limits> = {}) =>
  parseFilter(filter as JsonObject, {
    limits: { ...DEFAULT_LIMITS, ...limits },
    hasText: true,
  });

function findings(filter: Json, limits: Partial<Limits> = {}): readonly ValidationIssue[] {
  try {
    parse(filter, limits);
  } catch (error) {
    assert.ok(error instanceof SagittaError);
    assert.equal(error.code, 'invalid_filter');
    assert.ok(error.message.includes(error.issues[0].detail));
    return error.issues;
  }
  return [];
}

test('a filter becomes a flat tree of plain data', () => {
  const filter = { a: 1, $and: [{ b: { $gt: 2, $ne: 'x' } }, { $or: [{ c: null }, {}] }] };
  assert.deepEqual(parse(filter), {
    kind: 'and',
    children: [
      { kind: 'test', path: 'a', operator: '$eq', operand: 1 },
      { kind: 'test', path: 'b', operator: '$gt', operand: 2 },
      { kind: 'not', child: { kind: 'test', path: 'b', operator: '$eq', operand: 'x' } },
      {
        kind: 'or',
        children: [
          { kind: 'test', path: 'c', operator: '$eq', operand: null },
          { kind: 'and', children: [] },
        ],
      },
    ],
  });
});

test('a tree survives JSON and structured clone with any numbers and strings', () => {
  const node = parse({ a: { $in: [-0, 1e300, '\ud83d\ude00', null, true] }, ['__proto__']: -0 });
  assert.deepEqual(JSON.parse(JSON.stringify(node)), node);
  assert.deepEqual(structuredClone(node), node);
});

test('filterPaths returns each path once', () => {
  const filter = { a: 1, $or: [{ b: 1 }, { a: { $exists: true, $lt: 4 } }], $not: { 'c.d': 1 } };
  assert.deepEqual(filterPaths(parse(filter)), ['a', 'b', 'c.d']);
  assert.deepEqual(filterPaths(parse({})), []);
  const shape = { top_left: P(1, 1), bottom_right: P(0, 2) };
  assert.deepEqual(filterPaths(parse({ $id: 'x', a: { $geo_box: shape } })), ['a.lat', 'a.lon']);
  assert.deepEqual(filterPaths(parse({ a: { $elem_match: { b: 1 } } })), ['a']);
});

const P = (lat: number, lon: number) => ({ lat, lon });

const REFUSED: readonly {
  says: string;
  filter: Json;
  place: string;
  expected: RegExp;
  actual: string;
}[] = [
  {
    says: 'an unknown operator of a field',
    filter: { price: { $foo: 1 } },
    place: '/filter/price/$foo',
    expected: /^\$eq, \$ne, .*\$geo_polygon, .*\$match, \$not$/,
    actual: '$foo',
  },
  {
    says: 'an unknown operator beside fields',
    filter: { $nor: [{ a: 1 }] },
    place: '/filter/$nor',
    expected: /^\$and, \$or, \$not, \$id, \$text$/,
    actual: '$nor',
  },
  {
    says: 'an operator that an object inherits',
    filter: { a: { constructor: 1 } },
    place: '/filter/a/constructor',
    expected: /^\$eq, /,
    actual: 'constructor',
  },
  {
    says: 'a field operator beside fields',
    filter: { $gt: 5 },
    place: '/filter/$gt',
    expected: /\$and/,
    actual: '$gt',
  },
  {
    says: '$or inside a field',
    filter: { a: { $or: [{ $lt: 1 }, { $gt: 2 }] } },
    place: '/filter/a/$or',
    expected: /\$eq/,
    actual: '$or',
  },
  {
    says: 'an array as a plain value',
    filter: { a: ['x'] },
    place: '/filter/a',
    expected: /a string, a number, a boolean, null, or an object with operators/,
    actual: 'an array',
  },
  {
    says: 'an empty object as a value',
    filter: { a: {} },
    place: '/filter/a',
    expected: /at least one operator/,
    actual: 'an empty object',
  },
  {
    says: 'a filter that is no object',
    filter: { $and: [{ a: 1 }, 5] },
    place: '/filter/$and/1',
    expected: /an object/,
    actual: 'a number',
  },
  {
    says: '$and of an object',
    filter: { $and: { a: 1 } },
    place: '/filter/$and',
    expected: /a non-empty array of filters/,
    actual: 'an object',
  },
  {
    says: 'an empty $or',
    filter: { $or: [] },
    place: '/filter/$or',
    expected: /a non-empty array of filters/,
    actual: 'an empty array',
  },
  {
    says: 'an empty $and',
    filter: { $and: [] },
    place: '/filter/$and',
    expected: /a non-empty array of filters/,
    actual: 'an empty array',
  },
  {
    says: '$not of an array',
    filter: { $not: [{ a: 1 }] },
    place: '/filter/$not',
    expected: /an object/,
    actual: 'an array',
  },
  {
    says: '$not of a plain value inside a field',
    filter: { a: { $not: 5 } },
    place: '/filter/a/$not',
    expected: /an object with operators/,
    actual: 'a number',
  },
  {
    says: 'an empty $not inside a field',
    filter: { a: { $not: {} } },
    place: '/filter/a/$not',
    expected: /at least one operator/,
    actual: 'an empty object',
  },
  {
    says: '$eq of an array',
    filter: { a: { $eq: [1] } },
    place: '/filter/a/$eq',
    expected: /a string, a number, a boolean or null/,
    actual: 'an array',
  },
  {
    says: '$ne of an object',
    filter: { a: { $ne: { b: 1 } } },
    place: '/filter/a/$ne',
    expected: /or null/,
    actual: 'an object',
  },
  {
    says: 'a range of a boolean',
    filter: { a: { $gt: true } },
    place: '/filter/a/$gt',
    expected: /^a number or a string$/,
    actual: 'a boolean',
  },
  {
    says: 'a range of null',
    filter: { a: { $lte: null } },
    place: '/filter/a/$lte',
    expected: /^a number or a string$/,
    actual: 'null',
  },
  {
    says: 'a number beyond float64',
    filter: { a: JSON.parse('1e999') },
    place: '/filter/a',
    expected: /a number/,
    actual: 'a number beyond float64',
  },
  {
    says: '$exists of a number',
    filter: { a: { $exists: 1 } },
    place: '/filter/a/$exists',
    expected: /^true or false$/,
    actual: 'a number',
  },
  {
    says: '$in of a plain value',
    filter: { a: { $in: 'x' } },
    place: '/filter/a/$in',
    expected: /^an array in which each value is a string, a number, a boolean or null$/,
    actual: 'a string',
  },
  {
    says: 'an array inside $nin',
    filter: { a: { $nin: [1, [2]] } },
    place: '/filter/a/$nin/1',
    expected: /or null/,
    actual: 'an array',
  },
  {
    says: '$contains of an array',
    filter: { a: { $contains: [1] } },
    place: '/filter/a/$contains',
    expected: /^a string, a number, a boolean or null$/,
    actual: 'an array',
  },
  {
    says: 'an object inside $contains_any',
    filter: { a: { $contains_any: ['x', {}] } },
    place: '/filter/a/$contains_any/1',
    expected: /^a string, a number, a boolean or null$/,
    actual: 'an empty object',
  },
  {
    says: 'an object for $contains_all',
    filter: { a: { $contains_all: { x: 1 } } },
    place: '/filter/a/$contains_all',
    expected: /^an array/,
    actual: 'an object',
  },
  {
    says: '$prefix of a number',
    filter: { a: { $prefix: 1 } },
    place: '/filter/a/$prefix',
    expected: /^a string$/,
    actual: 'a number',
  },
  {
    says: '$like with a backslash at its end',
    filter: { a: { $like: 'a\\\\\\' } },
    place: '/filter/a/$like',
    expected: /a character after each backslash/,
    actual: 'a single backslash at the end of the pattern',
  },
  {
    says: '$regex of an array',
    filter: { a: { $regex: ['a'] } },
    place: '/filter/a/$regex',
    expected: /^a string$/,
    actual: 'an array',
  },
  {
    says: '$regex with a group that is not closed',
    filter: { a: { $regex: '(a' } },
    place: '/filter/a/$regex',
    expected: /a regular expression in RE2 syntax/,
    actual: 'missing closing ): `(a`',
  },
  {
    says: '$regex with a backreference',
    filter: { a: { $regex: '(a)\\1' } },
    place: '/filter/a/$regex',
    expected: /a regular expression in RE2 syntax/,
    actual: 'invalid escape sequence: `\\1`',
  },
  {
    says: 'an unknown $case',
    filter: { a: { $eq: 'x', $case: 'upper' } },
    place: '/filter/a/$case',
    expected: /"sensitive" or "insensitive"/,
    actual: 'another string',
  },
  {
    says: '$case without an operator that compares strings',
    filter: { a: { $exists: true, $case: 'insensitive' } },
    place: '/filter/a/$case',
    expected: /an operator that compares strings/,
    actual: 'none',
  },
  {
    says: '$case alone',
    filter: { a: { $case: 'insensitive' } },
    place: '/filter/a',
    expected: /at least one operator/,
    actual: '$case alone',
  },
  {
    says: '$date of another string',
    filter: { a: { $date: { $gte: '31.01.2026' } } },
    place: '/filter/a/$date/$gte',
    expected: /RFC 3339/,
    actual: '"31.01.2026"',
  },
  {
    says: '$date of a number',
    filter: { a: { $date: 1769857200 } },
    place: '/filter/a/$date',
    expected: /RFC 3339/,
    actual: '1769857200',
  },
  {
    says: 'an empty $date',
    filter: { a: { $date: {} } },
    place: '/filter/a/$date',
    expected: /at least one comparison/,
    actual: 'an empty object',
  },
  {
    says: 'an unknown comparison in $size',
    filter: { a: { $size: { $gt: 1, $in: [1] } } },
    place: '/filter/a/$size',
    expected: /\$eq, \$gt, \$gte, \$lt, \$lte/,
    actual: '$in',
  },
  {
    says: 'a fractional $size',
    filter: { a: { $size: 1.5 } },
    place: '/filter/a/$size',
    expected: /a non-negative integer/,
    actual: '1.5',
  },
  {
    says: 'an unknown $type',
    filter: { a: { $type: ['string', 'date'] } },
    place: '/filter/a/$type/1',
    expected: /null, boolean, number, string, array, object/,
    actual: 'date',
  },
  {
    says: 'an empty $type',
    filter: { a: { $type: [] } },
    place: '/filter/a/$type',
    expected: /one of null/,
    actual: 'an empty array',
  },
  {
    says: 'an empty $elem_match',
    filter: { a: { $elem_match: {} } },
    place: '/filter/a/$elem_match',
    expected: /operators or fields/,
    actual: 'an empty object',
  },
  {
    says: 'a field beside operators in $elem_match',
    filter: { a: { $elem_match: { $gt: 1, b: 2 } } },
    place: '/filter/a/$elem_match/b',
    expected: /^\$eq, /,
    actual: 'b',
  },
  {
    says: '$id in $elem_match',
    filter: { a: { $elem_match: { b: 1, $id: 'x' } } },
    place: '/filter/a/$elem_match/$id',
    expected: /^\$and, \$or, \$not/,
    actual: '$id',
  },
  {
    says: '$id of a number',
    filter: { $id: 5 },
    place: '/filter/$id',
    expected: /^a string$/,
    actual: 'a number',
  },
  {
    says: 'null in $in of $id',
    filter: { $id: { $in: ['a', null] } },
    place: '/filter/$id/$in/1',
    expected: /^a string$/,
    actual: 'null',
  },
  {
    says: '$size of $id',
    filter: { $id: { $size: 1 } },
    place: '/filter/$id/$size',
    expected: /^\$eq, .*\$regex$/,
    actual: '$size',
  },
  {
    says: '$geo_radius without a radius',
    filter: { a: { $geo_radius: { center: { lat: 1, lon: 2 } } } },
    place: '/filter/a/$geo_radius',
    expected: /center and radius_meters/,
    actual: 'no radius_meters',
  },
  {
    says: 'a negative radius',
    filter: { a: { $geo_radius: { center: { lat: 1, lon: 2 }, radius_meters: -1 } } },
    place: '/filter/a/$geo_radius/radius_meters',
    expected: /a non-negative number/,
    actual: '-1',
  },
  {
    says: 'an unknown name in a point',
    filter: { a: { $geo_radius: { center: { lat: 1, lng: 2 }, radius_meters: 1 } } },
    place: '/filter/a/$geo_radius/center',
    expected: /one of lat, lon/,
    actual: 'lng',
  },
  {
    says: 'a latitude beyond the pole',
    filter: { a: { $geo_radius: { center: { lat: 91, lon: 2 }, radius_meters: 1 } } },
    place: '/filter/a/$geo_radius/center/lat',
    expected: /-90 to 90/,
    actual: '91',
  },
  {
    says: 'a longitude that is a string',
    filter: { a: { $geo_radius: { center: { lat: 9, lon: '2' }, radius_meters: 1 } } },
    place: '/filter/a/$geo_radius/center/lon',
    expected: /-180 to 180/,
    actual: 'a string',
  },
  {
    says: '$geo_box upside down',
    filter: {
      a: { $geo_box: { top_left: { lat: 1, lon: 2 }, bottom_right: { lat: 3, lon: 4 } } },
    },
    place: '/filter/a/$geo_box/top_left/lat',
    expected: /at least 3/,
    actual: '1',
  },
  {
    says: 'a polygon of two points',
    filter: { a: { $geo_polygon: { exterior: [P(0, 0), P(1, 1), P(0, 0)] } } },
    place: '/filter/a/$geo_polygon/exterior',
    expected: /at least 3 points/,
    actual: '2',
  },
  {
    says: 'a polygon around a pole',
    filter: { a: { $geo_polygon: { exterior: [P(80, 0), P(80, 120), P(80, -120)] } } },
    place: '/filter/a/$geo_polygon/exterior',
    expected: /without going around a pole/,
    actual: 'edges that go around the globe',
  },
  {
    says: 'a point in a hole that is no object',
    filter: {
      a: { $geo_polygon: { exterior: [P(0, 0), P(0, 9), P(9, 9)], interiors: [[P(1, 1), 5]] } },
    },
    place: '/filter/a/$geo_polygon/interiors/0/1',
    expected: /an object with lat and lon/,
    actual: 'a number',
  },
];

for (const { says, filter, place, expected, actual } of REFUSED) {
  test(`${says} is rejected with its path`, () => {
    const items = findings(filter);
    assert.equal(items.length, 1);
    assert.equal(items[0].code, 'invalid_filter');
    assert.equal(placeOf(items[0]), place);
    assert.match(String(items[0].expected), expected);
    assert.equal(String(items[0].actual), actual);
    assert.match(items[0].detail, /^[A-Z$].+\.$/s);
  });
}

test('an object as a value is rejected with the path that was probably meant', () => {
  const [item] = findings({ a: { b: 1 } });
  assert.equal(placeOf(item), '/filter/a/b');
  assert.match(item.detail, /"a\.b"/);
});

test('an issue has the path of its value under the name of the filter', () => {
  const path = ['filter', '$or', 1, 'a/b~c', '$x'];
  const [item] = findings({ $or: [{ b: 1 }, { 'a/b~c': { $x: 1 } }] });
  assert.deepEqual(item.location, { kind: 'field', path });
});

test('all issues are reported at once, up to the limit', () => {
  const places = findings({ a: [], $or: [{ b: { $x: 1, $gt: null } }, 1] }).map(placeOf);
  assert.deepEqual(places, [
    '/filter/a',
    '/filter/$or/0/b/$x',
    '/filter/$or/0/b/$gt',
    '/filter/$or/1',
  ]);
  assert.equal(findings({ $and: new Array(100_000).fill(1) }).length, ISSUES_MAX);
});

test('a filter nests up to the limit and no deeper', () => {
  const nested = (depth: number): JsonObject =>
    depth === 0 ? { a: 1 } : { $not: nested(depth - 1) };
  assert.deepEqual(findings(nested(3), { filterDepthMax: 3 }), []);
  const [item] = findings(nested(4), { filterDepthMax: 3 });
  assert.equal(item.code, 'limit_exceeded');
  assert.equal(placeOf(item), '/filter/$not/$not/$not/$not');
  assert.deepEqual([item.expected, item.actual], [3, 4]);
  assert.equal(findings({ $or: [{ a: { $not: { $gt: 1 } } }] }, { filterDepthMax: 1 }).length, 1);
  assert.deepEqual(findings({ $or: [{ a: { $not: { $gt: 1 } } }] }, { filterDepthMax: 2 }), []);
});

test('nesting far beyond the limit is rejected without recursion', () => {
  const text = `${'{"$not":'.repeat(100_000)}{}${'}'.repeat(100_000)}`;
  assert.equal(findings(JSON.parse(text) as Json)[0].code, 'limit_exceeded');
});

test('operators, plain values and empty filters count as nodes', () => {
  const filter = { a: 1, $and: [{ b: { $gt: 1, $lt: 2 } }, { $not: {} }] };
  assert.deepEqual(findings(filter, { filterNodesMax: 6 }), []);
  const [item] = findings(filter, { filterNodesMax: 5 });
  assert.equal(item.code, 'limit_exceeded');
  assert.equal(placeOf(item), '/filter/$and/1/$not');
  assert.deepEqual([item.expected, item.actual], [5, 'more than 5']);
});

test('counting stops at the limit, however many nodes follow', () => {
  let readCount = 0;
  const filters = new Proxy(new Array<Json>(1_000_000).fill({}), {
    get(target, key, receiver) {
      if (typeof key === 'string' && /^\d+$/.test(key)) readCount++;
      return Reflect.get(target, key, receiver) as unknown;
    },
  });
  assert.equal(findings({ $or: filters }).length, 1);
  assert.ok(readCount <= DEFAULT_LIMITS.filterNodesMax);
});

test('a list may have as many values as the limit and no more', () => {
  assert.deepEqual(findings({ a: { $in: [1, 2, 3] } }, { filterValuesMax: 3 }), []);
  const [item] = findings({ a: { $nin: [1, 2, 3, 4] } }, { filterValuesMax: 3 });
  assert.equal(item.code, 'limit_exceeded');
  assert.equal(placeOf(item), '/filter/a/$nin');
  assert.deepEqual([item.expected, item.actual], [3, 4]);
});

test('a field name may be as long as the limit, and a longer one is not repeated in the reply', () => {
  assert.deepEqual(findings({ abc: 1 }, { filterPathCharactersMax: 3 }), []);
  for (const filter of [{ $not: { abcd: 1 } }, { $not: { abc: { $abc: 1 } } }]) {
    const [item] = findings(filter, { filterPathCharactersMax: 3 });
    assert.equal(item.code, 'limit_exceeded');
    assert.deepEqual([item.expected, item.actual], [3, 4]);
    assert.ok(!JSON.stringify(item).includes('abcd'));
  }
});

test('patterns are limited in length, compiled size and number', () => {
  const limits = { filterPatternCharactersMax: 5, filterPatternsMax: 2 };
  assert.deepEqual(findings({ a: { $regex: 'a{20}', $like: '12345' } }, limits), []);
  const [byLength] = findings({ a: { $like: '123456' } }, limits);
  assert.equal(placeOf(byLength), '/filter/a/$like');
  assert.deepEqual([byLength.code, byLength.expected, byLength.actual], ['limit_exceeded', 5, 6]);
  const [bySize] = findings({ a: { $regex: 'a{20}' } }, { filterPatternInstructionsMax: 20 });
  assert.equal(placeOf(bySize), '/filter/a/$regex');
  assert.deepEqual([bySize.code, bySize.expected, bySize.actual], ['limit_exceeded', 20, 22]);
  const patterns = { $and: ['a', 'b', 'c'].map((pattern) => ({ a: { $regex: pattern } })) };
  const [byNumber] = findings(patterns, limits);
  assert.equal(placeOf(byNumber), '/filter/$and/2/a/$regex');
  assert.deepEqual([byNumber.code, byNumber.expected, byNumber.actual], ['limit_exceeded', 2, 3]);
});

test('the points of a polygon are limited, those of its holes included', () => {
  const exterior = [P(0, 0), P(0, 9), P(9, 9)];
  const hole = [P(1, 2), P(1, 3), P(2, 3)];
  const filter = { a: { $geo_polygon: { exterior, interiors: [hole] } } };
  assert.deepEqual(findings(filter, { filterPolygonPointsMax: 6 }), []);
  const [item] = findings(filter, { filterPolygonPointsMax: 5 });
  assert.equal(placeOf(item), '/filter/a/$geo_polygon');
  assert.deepEqual([item.code, item.expected, item.actual], ['limit_exceeded', 5, 6]);
});

test('$elem_match counts as a level of nesting, and $not in it may be of either kind', () => {
  const nested = (depth: number): JsonObject =>
    depth === 0 ? { $gt: 1 } : { $elem_match: { $not: nested(depth - 1) } };
  assert.deepEqual(findings({ a: nested(2) }, { filterDepthMax: 4 }), []);
  assert.equal(findings({ a: nested(2) }, { filterDepthMax: 3 })[0].code, 'limit_exceeded');
  assert.deepEqual(findings({ a: { $elem_match: { $not: { b: 1 } } } }), []);
  const text = `{"a":{"$elem_match":${'{"$not":'.repeat(100_000)}{}${'}'.repeat(100_000)}}}`;
  assert.equal(findings(JSON.parse(text) as Json)[0].code, 'limit_exceeded');
});

test('operands are normalised, so that equal filters are cached once', () => {
  const interval = { from: [1769857200, 0], until: [1769857200, 1] };
  const [date] = [parse({ a: { $date: '2026-01-31T12:00:00+01:00' } })];
  assert.deepEqual(date, { kind: 'test', path: 'a', operator: '$date', operand: interval });
  assert.deepEqual(
    parse({ a: { $date: { $gte: '2026-01-31T11:00:00Z', $lte: '2026-01-31T11:00:00Z' } } }),
    date,
  );
  assert.deepEqual(parse({ a: { $type: ['string', 'null', 'string'] } }), {
    kind: 'test',
    path: 'a',
    operator: '$type',
    operand: ['null', 'string'],
  });
  assert.deepEqual(parse({ a: { $in: ['A', 1], $case: 'insensitive' } }), {
    kind: 'test',
    path: 'a',
    operator: '$in',
    operand: ['a', 1],
    ignoresCase: true,
  });
});
