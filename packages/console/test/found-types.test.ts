import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FoundPath, TypeCounts } from '@sagitta/client';
import {
  declaredOnly,
  formatShare,
  hasNumbers,
  hasValues,
  typeSharesOf,
} from '../src/views/collection/found-types.js';

const NONE: TypeCounts = { null: 0, boolean: 0, number: 0, string: 0, array: 0, object: 0 };

function found(types: Partial<TypeCounts>, elements?: Partial<TypeCounts>): FoundPath {
  return {
    path: 'p',
    count: Object.values(types).reduce((sum, count) => sum + count, 0),
    types: { ...NONE, ...types },
    ...(elements !== undefined && { element_types: { ...NONE, ...elements } }),
    distinct_count: 1,
    is_distinct_exact: true,
  };
}

describe('typeSharesOf', () => {
  test('the most frequent type is first', () => {
    assert.deepEqual(typeSharesOf(found({ null: 1, string: 3 })), [
      { type: 'string', share: 0.75 },
      { type: 'null', share: 0.25 },
    ]);
  });

  test('arrays are named by the types of their elements', () => {
    const typeOf = (path: FoundPath) => typeSharesOf(path)[0]!.type;
    assert.equal(typeOf(found({ array: 2 }, { string: 5 })), 'string[]');
    assert.equal(typeOf(found({ array: 2 }, { string: 5, number: 1 })), '(number | string)[]');
    assert.equal(typeOf(found({ array: 2 }, {})), 'array');
  });
});

test('numbers in arrays count', () => {
  assert.equal(hasNumbers(found({ array: 1 }, { number: 3 })), true);
  assert.equal(hasNumbers(found({ number: 1 })), true);
  assert.equal(hasNumbers(found({ string: 1 })), false);
  assert.equal(hasValues({ ...found({ object: 1 }), distinct_count: 0 }), false);
});

test('shares are never rounded to 0 % or 100 %', () => {
  assert.equal(formatShare(1), '100 %');
  assert.equal(formatShare(0.99999), '99.9 %');
  assert.equal(formatShare(0.996), '99 %');
  assert.equal(formatShare(0.5), '50 %');
  assert.equal(formatShare(0.0123), '1.2 %');
  assert.equal(formatShare(0.00001), '< 0.1 %');
  assert.equal(formatShare(0), '0 %');
});

test('declared paths that no vector has are listed', () => {
  assert.deepEqual(declaredOnly({ p: 'string', q: 'date' }, [found({ string: 1 })]), ['q']);
});
