// The rules for the parts of a row, whatever format it came in: ids, values and metadata. Each check
// returns what is wrong without its place in the request, which the caller knows.

import { endianness } from 'node:os';
import { z } from 'zod';
import { assert, type Violation } from '../../common/errors.js';
import type { VectorShape } from '../../common/types.js';
import type { MultiVector } from '../../common/vectors.js';
import { type CollectionShape, unnamedShape } from '../../database/api.js';
import { describeKind } from './describe-kind.js';

assert(
  endianness() === 'LE',
  'vectors are read and written as the little-endian host lays them out',
);

/** The shape of the unnamed vector of a collection, or of a named one. */
export interface ShapeToCheck extends VectorShape {
  readonly name?: string;
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
  shape: ShapeToCheck,
): Violation | null {
  const elements = decodeElements(source);
  if ('code' in elements) return elements;
  if (elements.length !== shape.dimension) return wrongLength(elements.length, shape);
  const violation = narrowInto(target, start, elements);
  if (violation !== null) return violation;
  return checkDirection(target, start, shape);
}

/** The same for a vector whose elements are known to be finite; it may be in its place already. */
export function placeVector(
  target: Float32Array,
  start: number,
  vector: Float32Array,
  shape: ShapeToCheck,
): Violation | null {
  if (vector.length !== shape.dimension) return wrongLength(vector.length, shape);
  if (vector.buffer !== target.buffer) target.set(vector, start);
  return checkDirection(target, start, shape);
}

export interface MultiLimits {
  readonly multiVectorsMax: number;
  readonly multiValuesMax: number;
}

/** What is wrong with a multi-vector, or with the vector at the index. */
export type MultiViolation = Violation & { readonly index?: number };

/** The vectors of a record, each of the shape, or what is wrong with them. */
export function readMultiVector(
  source: unknown,
  shape: ShapeToCheck,
  limits: MultiLimits,
): MultiVector | MultiViolation {
  const { dimension } = shape;
  const countMax = Math.min(
    limits.multiVectorsMax,
    Math.max(1, Math.floor(limits.multiValuesMax / dimension)),
  );
  if (!Array.isArray(source) || source.length === 0) {
    const detail = `A multi-vector is a list of 1 to ${countMax} vectors; found ${describeKind(source)}.`;
    return { code: 'invalid_vector', detail };
  }
  if (source.length > countMax) {
    const detail = `A multi-vector of this dimension has at most ${countMax} vectors; found ${source.length}.`;
    return { code: 'limit_exceeded', detail, expected: countMax, actual: source.length };
  }
  const values = new Float32Array(source.length * dimension);
  for (const [index, vector] of source.entries()) {
    const violation = readVectorInto(values, index * dimension, vector, shape);
    if (violation !== null) return { ...violation, index };
  }
  return { dimension, values };
}

/** Whether a vector as sent is a multi-vector, where no collection tells. */
export function isMultiVector(source: unknown): source is readonly unknown[] {
  return Array.isArray(source) && (Array.isArray(source[0]) || typeof source[0] === 'string');
}

/** The violation of vectors from `readMultiVector` against the shape of the collection, or null. */
export function checkMultiVector(
  { dimension, values }: MultiVector,
  shape: ShapeToCheck,
): Violation | null {
  if (dimension !== shape.dimension) return wrongLength(dimension, shape);
  for (let start = 0; start < values.length; start += dimension) {
    const violation = checkDirection(values, start, shape);
    if (violation !== null) return violation;
  }
  return null;
}

/** The violation of a vector from `readVector` against the collection's shape, or null. */
export function checkVector(vector: Float32Array, shape: ShapeToCheck): Violation | null {
  if (vector.length !== shape.dimension) return wrongLength(vector.length, shape);
  return checkDirection(vector, 0, shape);
}

/** The same for the unnamed vector of a row, without elements where the row has none. */
export function checkUnnamed(vector: Float32Array, shape: CollectionShape): Violation | null {
  const unnamed = unnamedShape(shape);
  if (unnamed === null) return vector.length === 0 ? null : noUnnamed(shape);
  return vector.length === 0 ? NO_VALUES : checkVector(vector, unnamed);
}

export const NO_VALUES: Violation = { code: 'invalid_vector', detail: 'The vector has no values.' };

/** For values of a collection without the unnamed vector. */
export function noUnnamed({ vectors = {} }: CollectionShape): Violation {
  const names = Object.keys(vectors);
  const expected = names.length === 0 ? 'no values' : `vectors with any of ${names.join(', ')}`;
  const detail = `The collection has no unnamed vector; expected ${expected}.`;
  return { code: 'invalid_request', detail };
}

function wrongLength(actual: number, { dimension: expected, name }: ShapeToCheck): Violation {
  const whose = name === undefined ? "the collection's dimension" : `the dimension of "${name}"`;
  return {
    code: 'dimension_mismatch',
    detail: `The vector has ${actual} elements; ${whose} is ${expected}.`,
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
  shape: ShapeToCheck,
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

/** What is wrong with a text to embed, or null. */
export function checkText(
  text: unknown,
  { embedCharactersMax }: { readonly embedCharactersMax: number },
): Violation | null {
  if (typeof text !== 'string' || text === '') {
    const found = text === '' ? 'an empty string' : describeKind(text);
    const detail = `A text to embed is a string that is not empty; found ${found}.`;
    return { code: 'invalid_request', detail };
  }
  if (text.length <= embedCharactersMax) return null;
  return {
    code: 'limit_exceeded',
    detail: `A text to embed has at most ${embedCharactersMax} characters; found ${text.length}.`,
    expected: embedCharactersMax,
    actual: text.length,
  };
}

/** The length of the id in bytes, or what is wrong with it. */
export function measureId(id: unknown, bytesMax: number): number | Violation {
  if (typeof id !== 'string') {
    return { code: 'invalid_request', detail: `An id is a string; found ${describeKind(id)}.` };
  }
  let byteCount = 0;
  for (let i = 0; i < id.length; i++) {
    const unit = id.charCodeAt(i);
    if (unit < 0x80) {
      if (unit < 0x20 || unit === 0x7f) return controlCharacter(unit, i);
      byteCount += 1;
    } else if (unit < 0x800) {
      if (unit < 0xa0) return controlCharacter(unit, i);
      byteCount += 2;
    } else if (unit < 0xd800 || unit > 0xdfff) {
      byteCount += 3;
    } else {
      const next = id.charCodeAt(i + 1);
      if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) {
        return {
          code: 'invalid_request',
          detail: `An id is text that UTF-8 can hold; found half of a surrogate pair at character ${i}.`,
        };
      }
      byteCount += 4;
      i++;
    }
  }
  if (byteCount === 0) return { code: 'invalid_request', detail: 'An id is never empty.' };
  if (byteCount > bytesMax) {
    return {
      code: 'limit_exceeded',
      detail: `An id has at most ${bytesMax} bytes of UTF-8; found ${byteCount}.`,
      expected: bytesMax,
      actual: byteCount,
    };
  }
  return byteCount;
}

function controlCharacter(unit: number, index: number): Violation {
  const name = `U+${unit.toString(16).toUpperCase().padStart(4, '0')}`;
  return {
    code: 'invalid_request',
    detail: `An id has no control characters; found ${name} at character ${index}.`,
  };
}

const TIME = z.regexes.datetime({ offset: true });

/** Milliseconds since the Unix epoch, Infinity for null, or what is wrong with the time. */
export function readExpiry(time: unknown): number | Violation {
  if (time === null) return Number.POSITIVE_INFINITY;
  if (typeof time === 'string' && TIME.test(time)) return Date.parse(time);
  const found = typeof time === 'string' ? JSON.stringify(time.slice(0, 40)) : describeKind(time);
  return {
    code: 'invalid_request',
    detail: `An expiry is a time such as "2027-01-31T12:00:00Z" (RFC 3339), or null for never; found ${found}.`,
  };
}

export interface MetadataLimits {
  readonly metadataBytesMax: number;
  readonly metadataDepthMax: number;
}

/** @param byteCount of its text as sent. */
export function checkMetadata(
  value: unknown,
  byteCount: number,
  limits: MetadataLimits,
): Violation | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return invalid(`Metadata is an object; found ${describeKind(value)}.`);
  }
  const { metadataBytesMax, metadataDepthMax } = limits;
  if (byteCount > metadataBytesMax) {
    return {
      ...invalid(`Metadata has at most ${metadataBytesMax} bytes; found ${byteCount}.`),
      expected: metadataBytesMax,
      actual: byteCount,
    };
  }
  return checkMembers(value, 1, metadataDepthMax);
}

/** A name, a value or an element inside of level `depth`. */
function checkMember(value: unknown, depth: number, depthMax: number): Violation | null {
  if (typeof value === 'string') return value.isWellFormed() ? null : LONE_SURROGATE;
  if (typeof value !== 'object' || value === null) return null;
  return checkMembers(value, depth + 1, depthMax);
}

/** Columns and files have UTF-8, in which it would become another text. */
const LONE_SURROGATE = invalid(
  'Names and strings in metadata are text that UTF-8 can hold; found half of a surrogate pair, such as \\ud83d alone.',
);

/** The metadata itself is level 1, and arrays count as levels too. */
function checkMembers(container: object, depth: number, depthMax: number): Violation | null {
  if (depth > depthMax) {
    return {
      ...invalid(`Metadata nests at most ${depthMax} levels deep; found more.`),
      expected: depthMax,
      actual: depth,
    };
  }
  if (Array.isArray(container)) {
    for (const element of container) {
      const violation = checkMember(element, depth, depthMax);
      if (violation !== null) return violation;
    }
    return null;
  }
  for (const [name, value] of Object.entries(container)) {
    if (name.startsWith('$')) {
      return invalid(
        'A name in metadata begins with "$"; such names are reserved for operators of filters.',
      );
    }
    const violation = checkMember(name, depth, depthMax) ?? checkMember(value, depth, depthMax);
    if (violation !== null) return violation;
  }
  return null;
}

function invalid(detail: string): Violation {
  return { code: 'invalid_metadata', detail };
}
