import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  dateProblem,
  formatScalar,
  parseObject,
  parseScalar,
} from '../src/views/filter/filter-values.js';

describe('operands', () => {
  test('are parsed as numbers, booleans or strings', () => {
    const typed = ['12', '-0.5', 'true', '"12"', 'twelve', '""', '[1]', 'null'];
    const values = [12, -0.5, true, '12', 'twelve', '', '[1]', 'null'];
    assert.deepEqual(
      typed.map((text) => parseScalar(text, false)),
      values,
    );
    assert.equal(parseScalar('', false), undefined);
    const long = '1768907725507217523';
    assert.equal(parseScalar(long, false), BigInt(long));
    assert.deepEqual(parseObject(`{"$gt":${long}}`), { object: { $gt: BigInt(long) } });
    assert.equal(formatScalar(BigInt(long), false), long);
  });

  test('are strings if the path has only strings', () => {
    assert.equal(parseScalar('12', true), '12');
    assert.equal(parseScalar('"12"', true), '"12"');
  });

  test('are formatted so that they are parsed back unchanged', () => {
    for (const onlyStrings of [true, false]) {
      for (const value of ['12', '"12"', 'true', 'a b', '', 'null', 'x"y']) {
        assert.equal(parseScalar(formatScalar(value, onlyStrings), onlyStrings), value);
      }
    }
    assert.equal(parseScalar(formatScalar(1e21, false), false), 1e21);
  });

  test('may be dates in the format of RFC 3339', () => {
    for (const date of ['2026-01-31', '2026-01-31T12:00:00Z', '2026-01-31T12:00:00.5+01:00']) {
      assert.equal(dateProblem(date), undefined, date);
    }
    for (const text of ['2026', '31.1.2026', '2026-13-01', '2026-01-31T', 'today']) {
      assert.match(dateProblem(text) ?? '', /2026-01-31/, text);
    }
  });
});

test('a text that is not an object is described', () => {
  assert.deepEqual(parseObject('{"a": 1}').object, { a: 1 });
  assert.match(parseObject('[1]').problem!, /an array/);
  assert.match(parseObject('{"a": ').problem!, /Expected JSON/);
});
