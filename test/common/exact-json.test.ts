// Exact integers in JSON, compared with JSON.parse for everything else.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  float64AtMost,
  nextBelow,
  numberOf,
  numberText,
  parseExactJson,
  stringifyExactJson,
} from '../../src/common/exact-json.js';
import type { Json } from '../../src/common/types.js';

const LONG = 9007199254740993n;

/** Rounds all numbers to float64, as JSON.parse does. */
function rounded(value: Json): Json {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, rounded(of)]));
}

describe('exact JSON', () => {
  it('reads an integer as a bigint only if float64 cannot represent it', () => {
    const read = (text: string) => parseExactJson(text);
    assert.equal(read('9007199254740993'), LONG);
    assert.equal(read('-9007199254740993'), -LONG);
    assert.equal(read('18446744073709551615'), 2n ** 64n - 1n);
    assert.equal(read('-9223372036854775807'), 1n - 2n ** 63n);
    for (const text of ['9007199254740992', '9007199254740994', '18446744073709551616', '-0']) {
      assert.equal(read(text), JSON.parse(text));
    }
    // Integers beyond uint64 and int64, and decimals.
    for (const text of [
      '18446744073709551617',
      '-9223372036854775809',
      '123456789012345678901234567890',
      '9007199254740993.0',
      '9007199254740993e0',
      '0.12345678901234567',
    ]) {
      assert.equal(read(text), Number(text));
    }
  });

  it('reads what JSON.parse reads, except for the digits that float64 lacks', () => {
    fc.assert(
      fc.property(
        fc.json({ stringUnit: 'binary', noUnicodeString: false }),
        fc.nat(3),
        (json, gap) => {
          const value: unknown = JSON.parse(json);
          // A long integer in another member makes the parser read all of the text.
          const text = JSON.stringify({ long: 0, value }, null, gap).replace('0', String(LONG));
          assert.deepEqual(rounded(parseExactJson(text)), { long: Number(LONG), value });
        },
      ),
    );
    const odd =
      '{"__proto__" : {"a":[ ]}, "a":1,"a":9007199254740993 , "\\"\\\\":"\\u0041\\\\",\n"":[{},[]]}';
    const read = parseExactJson(odd) as Record<string, unknown>;
    assert.deepEqual(Object.keys(read), ['__proto__', 'a', '"\\', '']);
    assert.deepEqual({ ...read, a: 0 }, { ...(JSON.parse(odd) as object), a: 0 });
    assert.equal(read.a, LONG);
    assert.equal(Object.getPrototypeOf(read), Object.prototype);
  });

  it('reads integers anywhere except in strings, decimals and exponents', () => {
    const text = `[${LONG},${LONG} ,\n${LONG}\t,[-${LONG}],{"${LONG}": ${LONG},"a":"[${LONG}]"},"\\\\",${LONG}]`;
    assert.deepEqual(parseExactJson(text), [
      LONG,
      LONG,
      LONG,
      [-LONG],
      { [String(LONG)]: LONG, a: `[${LONG}]` },
      '\\',
      LONG,
    ]);
    assert.deepEqual(parseExactJson(`[1e-${LONG}, 1.${LONG}, ${LONG}]`), [
      0,
      Number(`1.${LONG}`),
      LONG,
    ]);
  });

  it('is written with an indent on request', () => {
    assert.equal(
      stringifyExactJson({ a: [LONG] }, undefined, 2),
      `{\n  "a": [\n    ${LONG}\n  ]\n}`,
    );
    assert.equal(stringifyExactJson({ a: 1 }, undefined, 2), '{\n  "a": 1\n}');
  });

  it('throws the errors of JSON.parse', () => {
    for (const text of [
      '',
      '{',
      '09007199254740993',
      '{9007199254740993 :1}',
      '9007199254740993x',
      '[9007199254740993,]',
      '{"a":9007199254740993',
    ]) {
      assert.throws(() => parseExactJson(text), SyntaxError);
    }
  });

  it('is exact only within the named members', () => {
    const text = `{"filter":{"a":[${LONG}]},"k":${LONG},"parts":[{"filter":${LONG},"b":${LONG}}]}`;
    const members = { within: new Set(['filter']), except: new Set(['vectors']) };
    assert.deepEqual(parseExactJson(text, members), {
      filter: { a: [LONG] },
      k: Number(LONG),
      parts: [{ filter: LONG, b: Number(LONG) }],
    });
    const named = `{"vectors":[{"filter":{"vectors":{"a":${LONG}}},"vectors" : {"filter":[${LONG}]}}]}`;
    assert.deepEqual(parseExactJson(named, members), {
      vectors: [{ filter: { vectors: { a: LONG } }, vectors: { filter: [Number(LONG)] } }],
    });
  });

  it('writes bigints as they were read, and strings like them as strings', () => {
    const text = `{"a":[${LONG},"${LONG}",1.5,null],"b":{"c":-${LONG}}}`;
    assert.equal(stringifyExactJson(parseExactJson(text)), text);
    assert.equal(stringifyExactJson(LONG), String(LONG));
    assert.equal(stringifyExactJson('x'), '"x"');
  });

  it('writes every number so that it is read as the same one', () => {
    const numbers = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.maxSafeInteger(),
    );
    const large = fc.double({ min: 2 ** 52, max: 2 ** 66, noNaN: true });
    fc.assert(
      fc.property(
        fc.oneof(numbers, large, fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n })),
        (value) => {
          const number = typeof value === 'bigint' ? numberOf(value) : value;
          assert.equal(parseExactJson(numberText(number)), number === 0 ? 0 : number);
          assert.deepEqual(parseExactJson(stringifyExactJson([number])), [
            number === 0 ? 0 : number,
          ]);
        },
      ),
    );
    assert.equal(JSON.stringify(2 ** 60), '1152921504606847000');
    assert.equal(numberText(2 ** 60), '1152921504606846976');
  });

  it('never rounds int64 and uint64 integers, and rounds others to the nearest float64', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 66n), max: 2n ** 66n }), (integer) => {
        const number = numberOf(integer);
        const isExact = integer >= -(2n ** 63n) && integer < 2n ** 64n;
        if (isExact) assert.ok(BigInt(number) === integer);
        else assert.equal(number, Number(integer));
        assert.equal(typeof number === 'bigint', isExact && BigInt(Number(integer)) !== integer);
        const floor = float64AtMost(integer);
        assert.ok(floor <= integer && -nextBelow(-floor) > integer);
      }),
    );
  });
});
