// The element types of dense vectors. In memory all elements are float32, which represents every value of the other
// types; in files and in transit they take only the space of their type. An element type is described only here.

import { sharedFloat32 } from './shared-array.js';

export const ELEMENT_TYPES = ['float32', 'float16', 'bfloat16', 'int8', 'bit'] as const;
export type ElementType = (typeof ELEMENT_TYPES)[number];

type StoredArray = Float32Array | Uint16Array | Int8Array | Uint8Array;

interface StoredArrayType {
  new (length: number): StoredArray;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): StoredArray;
  readonly BYTES_PER_ELEMENT: number;
}

interface ElementKind {
  /** Converts a float32 to the nearest value of the type; NaN if there is none. */
  nearest(value: number): number;
  /** Describes the valid values in messages. */
  readonly values: string;
  /** The Arrow type of stored elements. */
  readonly arrow: 'float32' | 'float16' | 'uint16' | 'int8' | 'bool';
  /** The type of elements in transit: neither Arrow nor Parquet supports bfloat16. */
  readonly sent: 'float32' | 'float16' | 'int8' | 'bit';
  readonly StoredArray: StoredArrayType;
  /** Number of elements in one item of the stored array. */
  readonly perStored: number;
  /** Converts values, all of which the type can represent, to their stored form. */
  pack(values: Float32Array): StoredArray;
  unpack(stored: StoredArray, values: Float32Array): void;
}

const word = new Uint32Array(1);
const float = new Float32Array(word.buffer);

function bitsOf(value: number): number {
  float[0] = value;
  return word[0]!;
}

function floatOf(bits: number): number {
  word[0] = bits;
  return float[0]!;
}

/** Rounds to the nearest multiple of 2^places, ties to even. */
function roundBits(bits: number, places: number): number {
  const odd = (bits >>> places) & 1;
  return (bits + (2 ** (places - 1) - 1) + odd) & ~(2 ** places - 1);
}

const HALF_MAX = 65_504;
/** Step between subnormal float16 values. */
const HALF_STEP = 2 ** -24;

function nearestHalf(value: number): number {
  const size = Math.abs(value);
  // Below 2^-14, the steps do not get smaller.
  if (size < 2 ** -14) {
    const steps = size / HALF_STEP;
    const down = Math.floor(steps);
    const isUp = steps - down > 0.5 || (steps - down === 0.5 && down % 2 === 1);
    return Math.sign(value) * (down + (isUp ? 1 : 0)) * HALF_STEP;
  }
  const rounded = floatOf(roundBits(bitsOf(value) >>> 0, 13) >>> 0);
  return Math.abs(rounded) > HALF_MAX ? Number.NaN : rounded;
}

/** @param value must be a float16 value. */
function toHalf(value: number): number {
  const bits = bitsOf(value);
  const sign = (bits >>> 16) & 0x8000;
  const size = Math.abs(value);
  if (size < 2 ** -14) return sign | (size / HALF_STEP);
  return sign | (((bits >>> 13) & 0x3ffff) - (112 << 10));
}

/** All 65 536 values, built on first use. */
let halves: Float32Array | undefined;

/** The float16 value of every bit pattern. */
export function float16Table(): Float32Array {
  halves ??= Float32Array.from({ length: 65_536 }, (_, bits) => float16Value(bits));
  return halves;
}

/** Format: a sign, 5 bits of exponent and 10 bits of fraction; exponent 0 stands for zero and subnormals. */
function float16Value(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : Number.NaN;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

function each(convert: (element: number) => number, StoredArray: StoredArrayType) {
  return (values: Float32Array): StoredArray => {
    const stored = new StoredArray(values.length);
    for (let i = 0; i < values.length; i++) stored[i] = convert(values[i]!);
    return stored;
  };
}

function unpackEach(convert: (stored: number) => number): ElementKind['unpack'] {
  return (stored, values) => {
    for (let i = 0; i < values.length; i++) values[i] = convert(stored[i]!);
  };
}

const identity = (value: number) => value;

export const ELEMENTS: Readonly<Record<ElementType, ElementKind>> = {
  float32: {
    nearest: identity,
    values: 'numbers within the range of float32 (3.4028235e38)',
    arrow: 'float32',
    sent: 'float32',
    StoredArray: Float32Array,
    perStored: 1,
    pack: (values) => values,
    unpack: (stored, values) => values.set(stored),
  },
  float16: {
    nearest: nearestHalf,
    values: `numbers within the range of float16 (${HALF_MAX})`,
    arrow: 'float16',
    sent: 'float16',
    StoredArray: Uint16Array,
    perStored: 1,
    pack: each(toHalf, Uint16Array),
    unpack(stored, values) {
      const table = float16Table();
      for (let i = 0; i < values.length; i++) values[i] = table[stored[i]!]!;
    },
  },
  bfloat16: {
    nearest(value) {
      const rounded = floatOf(roundBits(bitsOf(value), 16) >>> 0);
      return Number.isFinite(rounded) ? rounded : Number.NaN;
    },
    values: 'numbers within the range of bfloat16 (3.3895314e38)',
    arrow: 'uint16',
    sent: 'float32',
    StoredArray: Uint16Array,
    perStored: 1,
    pack: each((value) => bitsOf(value) >>> 16, Uint16Array),
    unpack: unpackEach((stored) => floatOf((stored << 16) >>> 0)),
  },
  int8: {
    nearest: (value) =>
      Number.isInteger(value) && value >= -128 && value <= 127 ? value : Number.NaN,
    values: 'integers from -128 to 127',
    arrow: 'int8',
    sent: 'int8',
    StoredArray: Int8Array,
    perStored: 1,
    pack: each(identity, Int8Array),
    unpack: unpackEach(identity),
  },
  bit: {
    nearest: (value) => (value === 0 || value === 1 ? value : Number.NaN),
    values: '0 and 1',
    arrow: 'bool',
    sent: 'bit',
    StoredArray: Uint8Array,
    perStored: 8,
    pack(values) {
      const bytes = new Uint8Array(Math.ceil(values.length / 8));
      for (let i = 0; i < values.length; i++) bytes[i >>> 3]! |= values[i]! << (i & 7);
      return bytes;
    },
    unpack(stored, values) {
      for (let i = 0; i < values.length; i++) values[i] = (stored[i >>> 3]! >>> (i & 7)) & 1;
    },
  },
};

/**
 * Rounds the elements from..to to the nearest values of the type. Returns the index of the first element without one,
 * or -1; later elements are then undefined.
 */
export function roundElements(
  type: ElementType,
  values: Float32Array,
  from: number,
  to: number,
): number {
  if (type === 'float32') return -1;
  const { nearest } = ELEMENTS[type];
  for (let i = from; i < to; i++) {
    const found = values[i]!;
    const rounded = nearest(found);
    if (Number.isNaN(rounded)) return i;
    values[i] = rounded;
  }
  return -1;
}

/**
 * Returns the float32 values of `count` stored elements; float32 is not copied. @param read returns the stored array.
 */
export function unpackElements(
  type: ElementType = 'float32',
  count: number,
  read: (StoredArray: StoredArrayType, length: number) => StoredArray,
): Float32Array {
  const { StoredArray, perStored, unpack } = ELEMENTS[type];
  const stored = read(StoredArray, Math.ceil(count / perStored));
  if (stored instanceof Float32Array) return stored;
  const values = sharedFloat32(count);
  unpack(stored, values);
  return values;
}
