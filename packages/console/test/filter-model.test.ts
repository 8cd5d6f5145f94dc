import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parseExactJson, stringifyExactJson } from '../../../src/common/exact-json.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import type { JsonObject } from '../../../src/common/types.js';
import { matchesDocument } from '../../../src/filter/operators.js';
import { parseFilter } from '../../../src/filter/parse.js';
import {
  type FilterCondition,
  itemAt,
  newCondition,
  newGroup,
  parseFilterGroup,
  replaceItem,
  writeFilter,
} from '../src/views/filter/filter-model.js';
import { operatorsFor } from '../src/views/filter/filter-operators.js';

interface Case {
  readonly says: string;
  readonly filter: JsonObject;
  readonly matches: readonly JsonObject[];
  readonly misses: readonly JsonObject[];
}

const CASES = parseExactJson(
  readFileSync(new URL('../../../../test/filter/semantics.json', import.meta.url), 'utf8'),
) as unknown as Case[];

function condition(part: Partial<FilterCondition>): FilterCondition {
  return { ...newCondition(), ...part };
}

describe('a filter in the editor', () => {
  test('selects the same vectors after it has been parsed and written', () => {
    assert.ok(CASES.length > 20);
    for (const { says, filter, matches, misses } of CASES) {
      const written = writeFilter(parseFilterGroup(filter)).filter ?? {};
      const node = parseFilter(written, { limits: DEFAULT_LIMITS, hasText: true });
      const found = [...matches, ...misses].filter((one) => matchesDocument(node, one));
      assert.deepEqual(found, matches, `${says}: ${stringifyExactJson(written)}`);
    }
  });

  test('keeps the conditions of one field together', () => {
    const filter = {
      year: { $gte: 2019, $lt: 2024 },
      at: { $date: { $gte: '2026-01-01', $lt: '2026-02-01' } },
      tags: { $size: { $gte: 2 }, $contains: 'sea' },
      title: { $like: 'on %', $regex: 'wh', $case: 'insensitive' },
      $or: [{ draft: true }, { $not: { lang: 'en' } }],
      $id: { $prefix: 'a' },
    } as const satisfies JsonObject;
    const read = parseFilterGroup(filter);
    assert.equal(read.items.filter(({ kind }) => kind === 'condition').length, 9);
    assert.deepEqual(writeFilter(read).filter, filter);
  });

  test('keeps parts without controls as JSON', () => {
    for (const filter of [
      { a: { $future: 1 } },
      { a: { $not: { $gt: 1 } } },
      { $or: [{}, { a: 1 }] },
      { $and: [] },
      { $not: {} },
      { a: [1, 2] },
      { $what: 1 },
      { a: { $case: 'insensitive' } },
    ] satisfies JsonObject[]) {
      const read = parseFilterGroup(filter);
      assert.deepEqual(
        read.items.map(({ kind }) => kind),
        ['json'],
      );
      assert.deepEqual(writeFilter(read).filter, filter);
    }
  });

  test('writes conditions that need the same member into $and', () => {
    const twice = newGroup('all', [
      condition({ path: 'tags', operator: '$contains', operand: 'a' }),
      condition({ path: 'tags', operator: '$contains', operand: 'b' }),
      condition({ path: 'year', operand: 2020 }),
    ]);
    assert.deepEqual(writeFilter(twice).filter, {
      $and: [{ tags: { $contains: 'a' } }, { tags: { $contains: 'b' } }, { year: 2020 }],
    });
    const cases = newGroup('all', [
      condition({ path: 'a', operator: '$prefix', operand: 'x', ignoresCase: true }),
      condition({ path: 'a', operator: '$suffix', operand: 'y' }),
    ]);
    assert.deepEqual(writeFilter(cases).filter, {
      $and: [{ a: { $prefix: 'x', $case: 'insensitive' } }, { a: { $suffix: 'y' } }],
    });
  });

  test('leaves out unfinished conditions', () => {
    const any = newGroup('any', [condition({ path: 'a' }), condition({ path: 'b', operand: 1 })]);
    const root = newGroup('all', [condition({ operand: 1 }), any, newGroup('not', [])]);
    assert.deepEqual(writeFilter(root).filter, { $or: [{ b: 1 }] });
    assert.equal(writeFilter(newGroup('all', [newCondition()])).filter, undefined);
  });

  test('finds the condition that a server error is about', () => {
    const range = condition({ path: 'a/b', operator: '$gte', operand: 1 });
    const inner = condition({ path: 'c', operand: 2 });
    const any = newGroup('any', [inner, newCondition()]);
    const root = newGroup('all', [range, any]);
    const { pointers } = writeFilter(root);
    assert.equal(itemAt(pointers, '/a~1b/$gte'), range.key);
    assert.equal(itemAt(pointers, '/$or/0/c'), inner.key);
    assert.equal(itemAt(pointers, '/$or'), any.key);
    assert.equal(itemAt(pointers, ''), root.key);
  });

  test('replaces and removes items at any depth', () => {
    const inner = condition({ path: 'c', operand: 2 });
    const root = newGroup('all', [newGroup('any', [inner])]);
    const replaced = replaceItem(root, inner.key, { ...inner, operand: 3 });
    assert.deepEqual(writeFilter(replaced).filter, { $or: [{ c: 3 }] });
    assert.equal(writeFilter(replaceItem(root, inner.key, null)).filter, undefined);
  });
});

describe('operatorsFor', () => {
  const none = { null: 0, boolean: 0, number: 0, string: 0, array: 0, object: 0 };
  const found = (types: Partial<typeof none>) => ({
    path: 'a',
    count: 1,
    types: { ...none, ...types },
    distinct_count: 1,
    is_distinct_exact: true,
  });

  test('offers the operators that fit the types at a path', () => {
    const numbers = operatorsFor('a', found({ number: 3 }));
    assert.ok(numbers.includes('$gte') && !numbers.includes('$prefix'));
    const arrays = operatorsFor('a', found({ array: 3 }));
    assert.ok(arrays.includes('$contains_only') && !arrays.includes('$gt'));
    assert.deepEqual(operatorsFor('$text', undefined), ['$match']);
    assert.ok(!operatorsFor('$id', undefined).includes('exists'));
  });
});
