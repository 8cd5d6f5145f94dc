// Dense vectors in requests: arrays of numbers or base64 in JSON, which are written directly to their place in the
// column, and columns of Arrow.

import { endianness } from 'node:os';
import { type Bitmap, countBits, createBitmap, setBit } from '../../common/bitmap.js';
import { bytesOfBase64 } from '../../common/bytes.js';
import { ELEMENTS, roundElements } from '../../common/elements.js';
import { assert, type Violation } from '../../common/errors.js';
import { float32Text } from '../../common/float-text.js';
import {
  type DenseColumn,
  hasVector,
  type MultiColumn,
  specOf,
  UNNAMED,
  valuesOfRows,
} from '../../common/vectors.js';
import { describeKind } from './value-kinds.js';
import type {
  ArrowRules,
  ColumnOptions,
  ColumnReader,
  ShapeOf,
  VectorRules,
} from './vector-rules.js';

type DenseShape = ShapeOf<'dense'>;

export const denseRules: VectorRules<DenseShape, DenseColumn> = {
  member: 'vectors',
  openColumn: (options) => new DenseReader(options),
  ofArrow(column, rules) {
    const { shape } = rules;
    conformVectors(column, rules);
    return { ...column, ...specOf(shape) };
  },
};

class DenseReader implements ColumnReader {
  readonly #shape: DenseShape & { readonly name: string };
  /** Row-major [rowCount, dimension]. */
  readonly #values: Float32Array;
  readonly #presence: Bitmap;

  constructor({ name, rowCount, shape, allocate }: ColumnOptions<DenseShape>) {
    this.#shape = { ...shape, name };
    this.#values = allocate(rowCount * shape.dimension);
    this.#presence = createBitmap(rowCount);
  }

  read(row: number, source: unknown): Violation | null {
    setBit(this.#presence, row);
    const start = row * this.#shape.dimension;
    return source instanceof Float32Array
      ? placeVector(this.#values, start, source, this.#shape)
      : readVectorInto(this.#values, start, source, this.#shape);
  }

  build(): DenseColumn {
    const isComplete = countBits(this.#presence) === this.#presence.length;
    const presence = isComplete ? null : this.#presence;
    return { ...specOf(this.#shape), values: this.#values, presence };
  }
}

/** Applies `conformVector` to the vectors of all rows. */
export function conformVectors(
  column: DenseColumn | MultiColumn,
  { shape, rowCount, isFull, report }: ArrowRules<ShapeOf<'dense' | 'multi'>>,
): void {
  if (!needsConforming(shape)) return;
  for (let row = 0; row < rowCount && !isFull(); row++) {
    if (!hasVector(column, row)) continue;
    const values = valuesOfRows(column, row, row + 1);
    for (let start = 0; start < values.length; start += shape.dimension) {
      const violation = conformVector(values, start, shape);
      if (violation !== null) report(row, violation);
    }
  }
}

assert(
  endianness() === 'LE',
  'vectors are read and written as the little-endian host lays them out',
);

type ShapeToCheck = ShapeOf<'dense' | 'multi'> & { readonly name: string };

/** Reads a vector of 1 to `dimensionMax` elements. */
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

/** Writes a vector of the shape to target[start..start + dimension). These elements are undefined after a violation. */
export function readVectorInto(
  target: Float32Array,
  start: number,
  source: unknown,
  shape: ShapeToCheck,
): Violation | null {
  const elements = decodeElements(source);
  if ('code' in elements) return elements;
  const { length } = elements;
  if (length !== shape.dimension) {
    return narrowInto(new Float32Array(length), 0, elements) ?? wrongLength(length, shape);
  }
  const violation = narrowInto(target, start, elements);
  if (violation !== null) return violation;
  return conformVector(target, start, shape);
}

/** The same for a vector of finite elements, which may already be in its place. */
function placeVector(
  target: Float32Array,
  start: number,
  vector: Float32Array,
  shape: ShapeToCheck,
): Violation | null {
  if (vector.length !== shape.dimension) return wrongLength(vector.length, shape);
  if (vector.buffer !== target.buffer) target.set(vector, start);
  return conformVector(target, start, shape);
}

function wrongLength(actual: number, { dimension: expected, name }: ShapeToCheck): Violation {
  const whose = name === UNNAMED ? "the collection's dimension" : `the dimension of "${name}"`;
  return {
    code: 'dimension_mismatch',
    detail: `The vector has ${actual} elements; ${whose} is ${expected}.`,
    expected,
    actual,
  };
}

function decodeElements(source: unknown): unknown[] | Float32Array | Violation {
  if (Array.isArray(source)) return source;
  if (typeof source === 'string') return decodeBase64(source);
  return {
    code: 'invalid_vector',
    detail: `A vector is an array of numbers or a base64 string of little-endian float32; found ${describeKind(source)}.`,
  };
}

function decodeBase64(text: string): Float32Array | Violation {
  const bytes = bytesOfBase64(text);
  if (bytes === undefined) {
    return {
      code: 'invalid_vector',
      detail: 'The string is not base64 (RFC 4648, section 4, with padding).',
    };
  }
  if (bytes.length % 4 !== 0) {
    return {
      code: 'invalid_vector',
      detail: `The base64 string holds ${bytes.length} bytes, which is not a whole number of float32.`,
    };
  }
  // Copied, since the bytes of a small Buffer may be unaligned.
  return new Float32Array(new Uint8Array(bytes).buffer);
}

function narrowInto(
  target: Float32Array,
  start: number,
  source: unknown[] | Float32Array,
): Violation | null {
  // Stays 0 while every element is finite.
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

type ConformingShape = Pick<DenseShape, 'dimension' | 'metric'> &
  Partial<Pick<DenseShape, 'element'>>;

function needsConforming({ metric, element }: ConformingShape): boolean {
  return metric === 'cosine' || element !== undefined;
}

/**
 * Rounds the elements in place to the element type of the shape. Violations are elements outside the type, and zero
 * vectors under cosine, which have no direction.
 */
export function conformVector(
  values: Float32Array,
  start: number,
  shape: ConformingShape,
): Violation | null {
  const { dimension, metric, element } = shape;
  const end = start + dimension;
  if (element !== undefined) {
    const wrong = roundElements(element, values, start, end);
    if (wrong >= 0) {
      const detail = `Element ${wrong - start} is ${float32Text(values[wrong]!)}; ${element} has ${ELEMENTS[element].values}.`;
      return { code: 'invalid_vector', detail };
    }
  }
  if (metric !== 'cosine') return null;
  for (let i = start; i < end; i++) {
    if (values[i] !== 0) return null;
  }
  return {
    code: 'invalid_vector',
    detail: `Every element is zero as ${element ?? 'float32'}, and a zero vector has no cosine.`,
  };
}
