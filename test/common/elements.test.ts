import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  ELEMENT_TYPES,
  ELEMENTS,
  type ElementType,
  float16Table,
  roundElements,
  unpackElements,
} from '../../src/common/elements.js';
import { Random, seedOf } from '../segment/sample.js';

/** The values after they were stored and read again. */
function storedAndRead(type: ElementType, values: Float32Array): Float32Array {
  const packed = ELEMENTS[type].pack(values);
  return unpackElements(type, values.length, (StoredArray, length) => {
    assert.ok(packed instanceof StoredArray);
    assert.equal(packed.length, length);
    return packed;
  });
}

/** The float16 values in ascending order, with −0 and 0 once. */
function halves(): number[] {
  const finite = [...float16Table()].filter((value) => Number.isFinite(value));
  return [...new Set(finite.map((value) => value + 0))].sort((a, b) => a - b);
}

describe('types of elements', () => {
  it('include every float16 value and no others', () => {
    const table = float16Table();
    for (let half = 0; half < table.length; half++) {
      const value = table[half]!;
      if (!Number.isFinite(value)) continue;
      const values = Float32Array.of(value);
      assert.equal(roundElements('float16', values, 0, 1), -1);
      assert.ok(Object.is(values[0], value), `${value}`);
      assert.equal(ELEMENTS.float16.pack(values)[0], half);
      assert.ok(Object.is(storedAndRead('float16', values)[0], value), `${value}`);
    }
  });

  it('round to the nearest float16, ties to the even one', () => {
    const all = halves();
    const isEven = (value: number) => (ELEMENTS.float16.pack(Float32Array.of(value))[0]! & 1) === 0;
    for (let i = 1; i < all.length; i++) {
      const [below, above] = [all[i - 1]!, all[i]!];
      const middle = below + (above - below) / 2;
      const expected = isEven(below) ? below : above;
      assert.equal(ELEMENTS.float16.nearest(middle) + 0, expected + 0, `${middle}`);
      const quarter = Math.fround(below + (above - below) / 4);
      assert.equal(ELEMENTS.float16.nearest(quarter) + 0, below + 0, `${quarter}`);
    }
  });

  it('refuse numbers beyond float16 and bfloat16', () => {
    assert.equal(ELEMENTS.float16.nearest(65_519), 65_504);
    assert.ok(Number.isNaN(ELEMENTS.float16.nearest(65_520)));
    assert.ok(Number.isNaN(ELEMENTS.float16.nearest(-1e30)));
    assert.equal(ELEMENTS.bfloat16.nearest(1e38), 9.969209968386869e37);
    assert.ok(Number.isNaN(ELEMENTS.bfloat16.nearest(3.4028234663852886e38)));
  });

  it('round to the nearest bfloat16, ties to the even one', () => {
    const random = new Random(seedOf('bfloat16'));
    const bits = new Uint32Array(1);
    const floats = new Float32Array(bits.buffer);
    for (let round = 0; round < 20_000; round++) {
      bits[0] = random.below(2 ** 32);
      const value = floats[0]!;
      if (!Number.isFinite(value)) continue;
      const found = ELEMENTS.bfloat16.nearest(value);
      bits[0] = bits[0]! & 0xffff0000;
      const down = floats[0]!;
      bits[0] = bits[0]! + 0x10000;
      const up = floats[0]!;
      if (!Number.isFinite(up)) continue;
      const [toDown, toUp] = [Math.abs(value - down), Math.abs(up - value)];
      const isDownEven = ((bits[0]! - 0x10000) & 0x10000) === 0;
      const expected = toDown < toUp || (toDown === toUp && isDownEven) ? down : up;
      assert.ok(Object.is(found, expected), `${value}: ${found}, expected ${expected}`);
      assert.ok(Object.is(storedAndRead('bfloat16', Float32Array.of(found))[0], found));
    }
  });

  it('keep integers and bits, and report the first element that is neither', () => {
    for (let value = -128; value <= 127; value++) {
      assert.equal(storedAndRead('int8', Float32Array.of(value))[0], value);
    }
    const bits = Float32Array.of(1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 1);
    assert.deepEqual([...ELEMENTS.bit.pack(bits)], [0b10111001, 0b101]);
    assert.deepEqual([...storedAndRead('bit', bits)], [...bits]);
    assert.equal(roundElements('int8', Float32Array.of(1, -129, 0.5), 0, 3), 1);
    assert.equal(roundElements('int8', Float32Array.of(1, -129, 0.5), 2, 3), 2);
    assert.equal(roundElements('bit', Float32Array.of(1, 0, 2), 0, 3), 2);
  });

  it('are read in place if they are float32', () => {
    const values = Float32Array.of(1, 2);
    assert.equal(storedAndRead('float32', values), values);
    assert.deepEqual(Object.keys(ELEMENTS), [...ELEMENT_TYPES]);
  });
});
