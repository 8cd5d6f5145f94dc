import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type CutOptions,
  cutVectors,
  type VectorsCut,
} from '../../../src/formats/json/cut-vectors.js';
import { IS_NIGHTLY } from '../../support/nightly.js';

const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 2 ** 31);
console.log(`SAGITTA_TEST_SEED=${seed}`);

const OPTIONS: CutOptions = {
  member: 'v',
  list: 'rows',
  listMember: 'v',
  dimensionMax: 4,
  isLines: false,
  room: null,
};

const cut = (text: string, options: Partial<CutOptions> = {}): VectorsCut | null =>
  cutVectors(Buffer.from(text), { ...OPTIONS, ...options });

function restOf(text: string, options: Partial<CutOptions> = {}): string | null {
  const vectors = cut(text, options);
  return vectors === null ? null : Buffer.from(vectors.rest).toString();
}

const hasAddon = cut('{"v":[1]}') !== null;
const skip = hasAddon ? false : 'the addon is not built: no C++ compiler';

describe('vectors in JSON', { skip }, () => {
  it('are each replaced by a 0 and follow one another in the order of the text', () => {
    const text =
      '{"rows":[{"id":"é[","v":[1, -0]},{ "v" : [ 2.5,3e0 ,-4 ] , "m":{"v":[[]]}}],"k":7}';
    const vectors = cut(text)!;
    assert.equal(
      Buffer.from(vectors.rest).toString(),
      '{"rows":[{"id":"é[","v":0},{ "v" : 0 , "m":{"v":[[]]}}],"k":7}',
    );
    assert.equal(vectors.count, 2);
    assert.deepEqual(vectors.next(), Float32Array.of(1, -0));
    assert.deepEqual(vectors.next(), Float32Array.of(2.5, 3, -4));
    assert.deepEqual(vectors.values, Float32Array.of(1, -0, 2.5, 3, -4));
  });

  it('are written to the given memory, unless it is too short', () => {
    const room = new Uint8Array(new SharedArrayBuffer(12), 4, 8);
    const vectors = cut('{"v":[1,2]}', { room })!;
    assert.equal(vectors.values.buffer, room.buffer);
    assert.deepEqual(vectors.next(), Float32Array.of(1, 2));
    assert.notEqual(cut('{"v":[1,2,3]}', { room })!.values.buffer, room.buffer);
  });

  it('are cut out of the named members and nowhere else', () => {
    assert.equal(restOf('{"a":[1],"v":[1]}'), '{"a":[1],"v":0}');
    assert.equal(restOf('{"a":{"v":[1]},"rows":[[1]]}'), null);
    assert.equal(restOf('{"rows":[[1],[2]]}', { listMember: '' }), '{"rows":[0,0]}');
    assert.equal(
      restOf('{"rows":[{"v":[1]}],"":[2]}', { member: '' }),
      '{"rows":[{"v":0}],"":[2]}',
    );
    assert.equal(restOf('{"rows":[{"v":"AAAA"},{"v":[1]}]}'), '{"rows":[{"v":"AAAA"},{"v":0}]}');
  });

  it('are left to a general parser if the text is unusual', () => {
    for (const value of [
      '1',
      'null',
      '{}',
      '[]',
      '[1,]',
      '[,1]',
      '["1"]',
      '[[1]]',
      '[1 2]',
      '[1',
    ]) {
      assert.equal(restOf(`{"v":${value}}`), null, value);
    }
    for (const text of [
      '',
      '[]',
      '{}',
      '{"v":[1],"v":[2]}',
      '{"v":[1],"rows":[{"v":[1]}]}',
      '{"rows":[{"v":[1],"v":[2]}]}',
      '{"rows":[{"v":[1]},7]}',
      '{"\\u0076":[1],"v":[2]}',
      '{"v":[1,2,3,4,5]}',
      '\ufeff{"v":[1]}',
      '{v:[1]}',
      "{'v':[1]}",
      '{"v":[1]',
      '{"a":"\n","v":[1]}',
    ]) {
      assert.equal(restOf(text), null, text);
    }
  });

  it('in lines are cut out line by line', () => {
    const lines = { isLines: true };
    assert.equal(restOf('{"v":[1]}\r\n\n{"a":1,"v":[2]}\n', lines), '{"v":0}\r\n\n{"a":1,"v":0}\n');
    for (const text of ['{"v":[1,\n2]}', '{"v":\n[1]}', '{"v":[1],"a":[\n]}', '{"v":[1]}\n[2]']) {
      assert.equal(restOf(text, lines), null, text);
    }
  });

  it('have the same bits as the numbers that JavaScript parses', () => {
    const digits = fc.stringMatching(/^[0-9]{1,25}$/);
    const whole = fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9][0-9]{0,24}$/));
    const spelled = fc
      .tuple(
        fc.constantFrom('', '-'),
        whole,
        fc.option(digits, { nil: null }),
        fc.option(fc.integer({ min: -60, max: 45 }), { nil: null }),
      )
      .map(
        ([sign, integer, fraction, exponent]) =>
          sign +
          integer +
          (fraction === null ? '' : `.${fraction}`) +
          (exponent === null ? '' : `e${exponent}`),
      );
    const double = fc.double({ noNaN: true, noDefaultInfinity: true });
    const float = fc.float({ noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(fc.oneof(spelled, double.map(String), float.map(String)), (text) => {
        checkNumber(text);
      }),
      { seed, numRuns: IS_NIGHTLY ? 100_000 : 30_000 },
    );
  });

  it('round halves as two roundings do', () => {
    const bits = new Int32Array(1);
    const float = new Float32Array(bits.buffer);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 0x7f7fffff }),
        fc.integer({ min: -2, max: 2 }),
        (n, ulps) => {
          bits[0] = n - 1;
          const low = float[0]!;
          bits[0] = n;
          const middle = (low + float[0]!) / 2;
          const near = middle * (1 + ulps * 2 ** -52);
          for (const text of [String(near), near.toPrecision(30), near.toExponential(19)]) {
            checkNumber(text);
          }
        },
      ),
      { seed, numRuns: IS_NIGHTLY ? 20_000 : 6_000 },
    );
  });

  it('accept exactly the numbers that JSON allows', () => {
    const wrong = [
      '01',
      '-',
      '+1',
      '.5',
      '1.',
      '1e',
      '1e+',
      '0x1',
      'NaN',
      'Infinity',
      '1_0',
      '--1',
    ];
    for (const text of [...wrong, '1e39', '-3.4028236e38', '1e999', '1e99999999999999999999']) {
      assert.equal(restOf(`{"v":[${text}]}`), null, text);
    }
    const right = ['-0', '0.0', '-0e5', '1E+2', '1e-2', '0.00000000000000000000001', '16777217'];
    for (const text of [...right, '3.4028235e38', '1e-45', '7e-46', '9007199254740993']) {
      checkNumber(text);
    }
  });
});

function checkNumber(text: string): void {
  const expected = Math.fround(Number(text));
  const vectors = cut(`{"v":[${text}]}`);
  // Numbers that float64 cannot hold may be left to the general parser.
  if (vectors === null) {
    assert.ok(!Number.isFinite(expected) || Math.abs(Number(text)) < Number.MIN_VALUE * 2, text);
  } else {
    assert.ok(
      Object.is(vectors.values[0], expected),
      `${text}: ${vectors.values[0]}, not ${expected}`,
    );
  }
}
