// The meaning of filters by a table of cases, and other guarantees of the evaluation over columns.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type Bitmap, countBits, hasBit } from '../../src/common/bitmap.js';
import type { MetadataView } from '../../src/common/columns.js';
import { parseExactJson } from '../../src/common/exact-json.js';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import type { JsonObject } from '../../src/common/types.js';
import { evaluateFilter } from '../../src/filter/evaluate.js';
import { matchesDocument } from '../../src/filter/operators.js';
import { parseFilter } from '../../src/filter/parse.js';
import { saysYes } from './oracle.js';
import { columnOf, textOf, utf8Of, viewOf } from './view-of.js';

interface Case {
  readonly says: string;
  readonly filter: JsonObject;
  readonly matches: readonly JsonObject[];
  readonly misses: readonly JsonObject[];
}

const CASES: readonly Case[] = parseExactJson(
  readFileSync('test/filter/semantics.json', 'utf8'),
) as unknown as Case[];

for (const { says, filter, matches, misses } of CASES) {
  test(says, () => {
    const node = parseFilter(filter, { limits: DEFAULT_LIMITS, hasText: true });
    const documents = [...matches, ...misses];
    const texts = documents.map(textOf);
    const view = viewOf(texts);
    const answers = {
      document: documents.map((document) => matchesDocument(node, document)),
      columns: bitsOf(evaluateFilter(node, view)),
      json: bitsOf(evaluateFilter(node, { ...view, columns: new Map(), isComplete: false })),
      oracle: documents.map((document) => saysYes(filter, document)),
    };
    for (const [by, answer] of Object.entries(answers)) {
      const wrong = answer.findIndex((isMatch, i) => isMatch !== i < matches.length);
      assert.equal(wrong, -1, `by ${by}: ${texts[wrong]}`);
    }
  });
}

test('rows past the end of a column are missing, wherever the column ends', () => {
  for (const rowCount of [0, 1, 31, 32, 33, 63, 64, 65, 100]) {
    for (let end = 0; end <= rowCount; end++) {
      const column = columnOf(Array.from({ length: end }, (_, row) => (row % 3 === 0 ? 1 : 'x')));
      const view = { ...viewOf([]), rowCount, columns: new Map([['a', column]]) };
      const isOne = (row: number) => row < end && row % 3 === 0;
      assertRows(view, { a: 1 }, isOne);
      assertRows(view, { a: { $ne: 1 } }, (row) => !isOne(row));
      assertRows(view, { a: 'x' }, (row) => row < end && !isOne(row));
      assertRows(view, { a: { $gt: 0 } }, isOne);
      assertRows(view, { a: null }, (row) => row >= end);
      assertRows(view, { a: { $in: [null, 1, 2] } }, (row) => row >= end || isOne(row));
      assertRows(view, { a: { $exists: true } }, (row) => row < end);
      assertRows(view, { a: { $exists: false } }, (row) => row >= end);
    }
  }
});

test('no bit is set past the last row', () => {
  const view = viewOf(['{"a":1}', '{}', '{"a":2}']);
  for (const filter of [{}, { $not: { a: 1 } }, { a: null }, { b: null }]) {
    const { words } = evaluateFilter(
      parseFilter(filter as JsonObject, { limits: DEFAULT_LIMITS, hasText: true }),
      view,
    );
    assert.equal(words[0] >>> 3, 0, JSON.stringify(filter));
  }
});

test('every result is a new bitmap in shared memory', () => {
  const view = viewOf(['{}', '{}']);
  const first = evaluateFilter(parseFilter({}, { limits: DEFAULT_LIMITS, hasText: true }), view);
  const second = evaluateFilter(parseFilter({}, { limits: DEFAULT_LIMITS, hasText: true }), view);
  assert.ok(first.words.buffer instanceof SharedArrayBuffer);
  first.words[0] = 0;
  assert.equal(countBits(second), 2);
});

test('only rows not decided by columns are parsed', () => {
  const texts = Array.from({ length: 100 }, (_, row) => `{"a":${row},"b":${row % 2}}`);
  const view = viewOf(texts, { withoutColumns: ['b'] });
  // Invalid JSON in rows that must not be parsed.
  const isOpen = (row: number) => row === 40 || row === 41;
  const json = utf8Of(texts.map((text, row) => (isOpen(row) ? text : '{"a"')));
  const broken = { ...view, json };
  const count = (filter: JsonObject) => countBits(run(filter, broken));
  assert.equal(count({ b: 1, a: { $in: [40, 41] } }), 1);
  assert.equal(count({ $and: [{ b: 1 }, { b: { $gt: 0 } }, { a: { $gte: 40, $lt: 42 } }] }), 1);
  assert.equal(count({ $or: [{ b: 1 }, { a: { $lt: 40 } }, { a: { $gt: 41 } }] }), 99);
  assert.equal(count({ $not: { $or: [{ b: 1 }, { a: { $lt: 40 } }, { a: { $gt: 41 } }] } }), 1);
  assert.equal(count({}), 100);
  assert.throws(() => count({ b: 1 }), SyntaxError);
});

test('a list of thousands of values matches exactly these values', () => {
  const numbers = [
    ...Array.from({ length: 3000 }, (_, i) => i * 3),
    ...Array.from({ length: 1000 }, (_, i) => 1e15 + i * 2),
    ...Array.from({ length: 1000 }, (_, i) => -(2 ** (i - 500))),
    Number.MAX_VALUE,
    -Number.MAX_VALUE,
  ];
  const strings = Array.from({ length: 4000 }, (_, i) => `name ${i * 2}`.repeat(1 + (i % 3)));
  const wanted = new Set<unknown>([...numbers, ...strings]);
  const cells = [
    ...numbers.flatMap((number) => [number, number + 1, number / 2]),
    ...Array.from({ length: 8100 }, (_, i) => `name ${i}`),
    ...strings,
  ].filter((cell) => typeof cell === 'string' || Number.isFinite(cell));
  const column = columnOf(cells);
  const view = { ...viewOf([]), rowCount: cells.length, columns: new Map([['a', column]]) };
  const isWanted = (row: number) => wanted.has(cells[row]);
  assertRows(
    view,
    { a: { $in: numbers } },
    (row) => isWanted(row) && typeof cells[row] !== 'string',
  );
  assertRows(
    view,
    { a: { $in: strings } },
    (row) => isWanted(row) && typeof cells[row] === 'string',
  );
  assertRows(view, { a: { $in: [...strings, ...numbers].slice(0, 9_900) } }, isWanted);
});

test('ranges over one path must all hold, in any order', () => {
  const cells = [...Array.from({ length: 40 }, (_, i) => i), 'a', 'b', 'c', null, true, [3], {}];
  const column = columnOf([...cells, undefined]);
  const columns = new Map([['a', column]]);
  const view = { ...viewOf([]), rowCount: cells.length + 1, columns };
  const isBetween = (low: number, high: number) => (row: number) => row >= low && row < high;
  assertRows(view, { a: { $gte: 5, $lt: 20 } }, isBetween(5, 20));
  assertRows(view, { a: { $lt: 20, $gte: 5 } }, isBetween(5, 20));
  assertRows(view, { $and: [{ a: { $lte: 30 } }, { a: { $gt: 4 } }, { a: { $lt: 9 } }] }, (row) =>
    isBetween(5, 9)(row),
  );
  assertRows(view, { a: { $gt: 20, $lt: 5 } }, () => false);
  assertRows(view, { a: { $gte: 'b', $lt: 'c' } }, (row) => row === 41);
  assertRows(view, { a: { $lt: 'c', $gte: 'b' } }, (row) => row === 41);
  assertRows(view, { a: { $gte: 0, $lt: 'c' } }, () => false);
  assertRows(view, { $not: { a: { $gte: 5, $lt: 40 } } }, (row) => row < 5 || row >= 40);
});

test('$id is the id of the vector and no member of the metadata', () => {
  const view = viewOf(['{}', '{}', '{"a":1}', '{}']);
  assertRows(view, { $id: 'doc/0' }, (row) => row === 0);
  assertRows(view, { $id: { $in: ['doc/0', 'é/2', 'x'] } }, (row) => row === 0 || row === 2);
  assertRows(view, { $id: { $nin: ['doc/0'] }, a: null }, (row) => row === 1 || row === 3);
  assertRows(view, { $id: { $prefix: 'doc/' } }, (row) => row % 3 === 0);
  assertRows(view, { $id: { $prefix: 'doc/', $case: 'insensitive' } }, (row) => row !== 2);
  assertRows(view, { $or: [{ $id: { $gt: 'doc/1' } }, { a: 1 }] }, (row) => row >= 2);
});

test('$id finds the last of several versions of a vector', () => {
  const view = { ...viewOf(['{}', '{}', '{}', '{}']), ids: utf8Of(['a', 'b', 'a', 'c']) };
  assertRows(view, { $id: 'a' }, (row) => row === 0 || row === 2);
  assertRows(view, { $id: { $ne: 'a' } }, (row) => row === 1 || row === 3);
  assertRows(view, { $id: { $in: ['a', 'c'] } }, (row) => row !== 1);
});

test('the fields of elements are read only from rows with arrays', () => {
  const texts = ['{"a":[{"b":1}]}', '{"a":1}', '{"a":[2]}', '{}'];
  const json = utf8Of(texts.map((text) => (text.includes('[') ? text : 'no JSON')));
  assertRows({ ...viewOf(texts), json }, { a: { $elem_match: { b: 1 } } }, (row) => row === 0);
});

test('patterns match strings with and without ASCII, wherever they are in a dictionary', () => {
  const cells = Array.from({ length: 9_000 }, (_, i) => {
    // Strings of a few bytes next to strings longer than any chunk, and stretches without ASCII.
    if (i % 2_000 === 7) return `${i} ${'x'.repeat(50_000)}`;
    return Math.floor(i / 1_000) % 2 === 0 ? `name ${i}` : `näme ${i}`;
  });
  const arrays = cells.map((cell, i) => (i % 5 === 0 ? [cell, 'other'] : cell));
  const column = columnOf(arrays);
  const view = { ...viewOf([]), rowCount: cells.length, columns: new Map([['a', column]]) };
  assertRows(view, { a: { $regex: '^n.me \\d*7$' } }, (row) => /^n.me \d*7$/u.test(cells[row]));
  assertRows(view, { a: { $regex: '[^ -~]|xx$' } }, (row) => /[^ -~]|xx$/u.test(cells[row]));
});

test('a stop ends the search of a dictionary', () => {
  const column = columnOf(Array.from({ length: 10_000 }, (_, row) => `name ${row}`));
  const view = { ...viewOf([]), rowCount: 10_000, columns: new Map([['a', column]]) };
  let checkCount = 0;
  const isStopped = () => ++checkCount > 3;
  const node = parseFilter({ a: { $regex: 'x' } }, { limits: DEFAULT_LIMITS, hasText: true });
  evaluateFilter(node, view, isStopped);
  assert.ok(checkCount < 10, `checked ${checkCount} times`);
});

function run(filter: JsonObject, view: MetadataView): Bitmap {
  return evaluateFilter(parseFilter(filter, { limits: DEFAULT_LIMITS, hasText: true }), view);
}

function assertRows(view: MetadataView, filter: JsonObject, expected: (row: number) => boolean) {
  const actual = bitsOf(run(filter, view));
  const wrong = actual.findIndex((isMatch, row) => isMatch !== expected(row));
  assert.equal(actual.length, view.rowCount);
  assert.equal(
    wrong,
    -1,
    `row ${wrong} of ${view.rowCount}: ${JSON.stringify(filter).slice(0, 99)}`,
  );
}

function bitsOf(bitmap: Bitmap): boolean[] {
  return Array.from({ length: bitmap.length }, (_, row) => hasBit(bitmap, row));
}
