// Vectors on their way in: numbers or base64 of little-endian float32, to a Float32Array whose
// elements are all finite. Checked after narrowing: 1e39 is a number, but infinite as float32.

import { endianness } from 'node:os';
import { assert, type Violation } from '../../common/errors.js';
import type { Metric } from '../../common/types.js';
import { describeKind } from './describe-kind.js';

assert(
  endianness() === 'LE',
  'vectors are read and written as the little-endian host lays them out',
);

/** What a collection asks of its vectors. */
export interface VectorShape {
  readonly dimension: number;
  readonly metric: Metric;
}

/** A vector of 1 to `dimensionMax` elements, or what is wrong with it. */
export function readVector(source: unknown, dimensionMax: number): Float32Array | Violation {
  const elements = decodeElements(source);
  if ('code' in elements) return elements;
  if (elements.length === 0 || elements.length > dimensionMax) {
    return {
      code: elements.length === 0 ? 'invalid_vector' : 'limit_exceeded',
      detail: `A vector has 1 to ${dimensionMax} elements; found ${elements.length}.`,
      expected: dimensionMax,
      actual: elements.length,
    };
  }
  const vector = new Float32Array(elements.length);
  return narrowInto(vector, 0, elements) ?? vector;
}

/**
 * Writes a vector of the shape to target[start..start + dimension), or says what is wrong with it,
 * and then the target's elements are undefined.
 */
export function readVectorInto(
  target: Float32Array,
  start: number,
  source: unknown,
  shape: VectorShape,
): Violation | null {
  const elements = decodeElements(source);
  if ('code' in elements) return elements;
  if (elements.length !== shape.dimension) return wrongLength(elements.length, shape.dimension);
  const violation = narrowInto(target, start, elements);
  if (violation !== null) return violation;
  return checkDirection(target, start, shape);
}

/** Whether a vector that `readVector` gave fits a collection. */
export function checkVector(vector: Float32Array, shape: VectorShape): Violation | null {
  if (vector.length !== shape.dimension) return wrongLength(vector.length, shape.dimension);
  return checkDirection(vector, 0, shape);
}

function wrongLength(actual: number, expected: number): Violation {
  return {
    code: 'dimension_mismatch',
    detail: `The vector has ${actual} elements; the collection's dimension is ${expected}.`,
    expected,
    actual,
  };
}

/** Anything with a length: the elements of base64 need no further check of their type. */
function decodeElements(source: unknown): unknown[] | Float32Array | Violation {
  if (Array.isArray(source)) return source;
  if (typeof source === 'string') return decodeBase64(source);
  return {
    code: 'invalid_vector',
    detail: `A vector is an array of numbers or a base64 string of little-endian float32; found ${describeKind(source)}.`,
  };
}

function decodeBase64(text: string): Float32Array | Violation {
  const bytes = Buffer.from(text, 'base64');
  // Decoding is lenient; only the one canonical spelling, with padding, survives the way back.
  if (bytes.toString('base64') !== text) {
    return {
      code: 'invalid_vector',
      detail: 'The string is not base64 (RFC 4648, section 4, with padding).',
    };
  }
  if (bytes.length % 4 !== 0) {
    return {
      code: 'invalid_vector',
      detail: `The base64 string holds ${bytes.length} bytes, which is no whole number of float32.`,
    };
  }
  // Copied, since the bytes of a small Buffer need not be aligned.
  return new Float32Array(new Uint8Array(bytes).buffer);
}

function narrowInto(
  target: Float32Array,
  start: number,
  source: unknown[] | Float32Array,
): Violation | null {
  // Stays 0 as long as every element is finite.
  let witness = 0;
  for (let i = 0; i < source.length; i++) {
    const element = source[i];
    if (typeof element !== 'number') {
      return {
        code: 'invalid_vector',
        detail: `Element ${i} is ${describeKind(element)}, not a number.`,
      };
    }
    target[start + i] = element;
    witness += target[start + i]! * 0;
  }
  if (witness === 0) return null;
  const index = target.subarray(start, start + source.length).findIndex((x) => !Number.isFinite(x));
  const what = Number.isNaN(source[index])
    ? 'NaN'
    : 'infinite or beyond the range of float32 (3.4028235e38)';
  return { code: 'invalid_vector', detail: `Element ${index} is ${what}.` };
}

/** Cosine compares directions, and zero has none. */
export function checkDirection(
  values: Float32Array,
  start: number,
  shape: VectorShape,
): Violation | null {
  if (shape.metric !== 'cosine') return null;
  const end = start + shape.dimension;
  for (let i = start; i < end; i++) {
    if (values[i] !== 0) return null;
  }
  return {
    code: 'invalid_vector',
    detail: 'Every element is zero as float32, and a zero vector has no cosine.',
  };
}
