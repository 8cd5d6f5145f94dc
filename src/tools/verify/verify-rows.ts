// Checks rows of a log record or a segment file against the rules for ids, values and metadata.

import { isUtf8 } from 'node:buffer';
import { DEFAULT_LIMITS } from '../../common/limits.js';
import type { NamedMulti, NamedSparse, Utf8Column, VectorShape } from '../../common/types.js';
import { type CollectionShape, unnamedShape } from '../../database/api.js';

export interface RowsToCheck {
  readonly count: number;
  readonly ids: Utf8Column;
  /** Row-major [count, dimension]; empty without the unnamed vector. */
  readonly values: Float32Array;
  /** JSON text. */
  readonly metadata: Utf8Column;
}

/** A named vector of rows, and those that have it. */
export interface NamedToCheck {
  readonly name: string;
  readonly dimension: number;
  /** Row-major [count, dimension]. */
  readonly values: Float32Array;
  readonly has: (row: number) => boolean;
}

/** Checks that the collection has these named vectors, and their values. */
export function checkNamed(
  named: readonly NamedToCheck[],
  count: number,
  { vectors = {} }: CollectionShape,
  report: (what: string) => void,
): void {
  for (const { name, dimension, values, has } of named) {
    const shape = Object.hasOwn(vectors, name) ? vectors[name]! : undefined;
    if (shape?.dimension !== dimension) {
      const expected = shape === undefined ? 'no vector of that name' : shape.dimension;
      report(`vectors "${name}" have ${dimension} dimensions, expected ${expected}`);
      continue;
    }
    checkValues(values, count, { ...shape, has }, (what) => report(`vectors "${name}", ${what}`));
  }
}

/** The same for multi-vectors. */
export function checkMulti(
  multi: readonly NamedMulti[],
  count: number,
  { multiVectors = {} }: CollectionShape,
  report: (what: string) => void,
): void {
  for (const { name, dimension, starts, values } of multi) {
    const shape = Object.hasOwn(multiVectors, name) ? multiVectors[name]! : undefined;
    if (shape?.dimension !== dimension) {
      const expected = shape === undefined ? 'no multi-vector of that name' : shape.dimension;
      report(`multi-vectors "${name}" have ${dimension} dimensions, expected ${expected}`);
      continue;
    }
    for (let row = 0; row < count; row++) {
      const ofRow = values.subarray(starts[row]! * dimension, starts[row + 1]! * dimension);
      checkValues(ofRow, ofRow.length / dimension, shape, (what) =>
        report(`multi-vector "${name}" of row ${row}, vector at ${what}`),
      );
    }
  }
}

/** Checks that the collection has these sparse vectors, and their elements. */
export function checkSparse(
  sparse: readonly NamedSparse[],
  count: number,
  { sparseVectors = {} }: CollectionShape,
  report: (what: string) => void,
): void {
  for (const { name, starts, indices, values } of sparse) {
    const where = `sparse vectors "${name}"`;
    if (!Object.hasOwn(sparseVectors, name)) {
      report(`${where}: expected no vector of that name`);
      continue;
    }
    for (let row = 0; row < count; row++) {
      for (let i = starts[row]!; i < starts[row + 1]!; i++) {
        const element = `${where}, row ${row}, element ${i - starts[row]!}`;
        if (i > starts[row]! && indices[i]! <= indices[i - 1]!) {
          report(`${element}: the index is ${indices[i]}, expected more than ${indices[i - 1]}`);
        }
        if (values[i] === 0 || !Number.isFinite(values[i])) {
          report(`${element}: the value is ${values[i]}`);
        }
      }
    }
  }
}

export function checkRows(
  { count, ids, values, metadata }: RowsToCheck,
  shape: CollectionShape,
  report: (what: string) => void,
): void {
  checkIds(ids, count, report);
  const unnamed = unnamedShape(shape);
  if (unnamed !== null) checkValues(values, count, unnamed, report);
  const texts = textsOf(metadata, count);
  for (let row = 0; row < count; row++) {
    const text = texts(row);
    if (text === undefined || !isJsonObject(text)) {
      report(`row ${row}: metadata is not a JSON object`);
    }
  }
}

export function checkIds(ids: Utf8Column, count: number, report: (what: string) => void): void {
  const texts = textsOf(ids, count);
  for (let row = 0; row < count; row++) {
    const byteLength = ids.offsets[row + 1]! - ids.offsets[row]!;
    if (byteLength < 1 || byteLength > DEFAULT_LIMITS.vectorIdBytesMax) {
      report(
        `row ${row}: id has ${byteLength} bytes, expected 1 to ${DEFAULT_LIMITS.vectorIdBytesMax}`,
      );
    } else if (texts(row) === undefined) {
      report(`row ${row}: id is not UTF-8`);
    }
  }
}

function checkValues(
  values: Float32Array,
  count: number,
  { dimension, metric, has = () => true }: VectorShape & { has?: (row: number) => boolean },
  report: (what: string) => void,
): void {
  for (let row = 0; row < count; row++) {
    if (!has(row)) continue;
    let isZero = true;
    for (let i = row * dimension; i < (row + 1) * dimension; i++) {
      const value = values[i]!;
      if (value !== 0) isZero = false;
      if (!Number.isFinite(value)) {
        report(`row ${row}: value ${i - row * dimension} is ${value}`);
        break;
      }
    }
    if (isZero && metric === 'cosine')
      report(`row ${row}: all values are zero, which the cosine metric does not allow`);
  }
}

/** The text of a row; undefined where it is not UTF-8. */
function textsOf(
  { offsets, bytes }: Utf8Column,
  count: number,
): (row: number) => string | undefined {
  const start = offsets[0]!;
  // A copy, because decoders do not take shared memory.
  const copy = Buffer.from(bytes.subarray(start, offsets[count]!));
  return (row) => {
    const text = copy.subarray(offsets[row]! - start, offsets[row + 1]! - start);
    return isUtf8(text) ? text.toString('utf8') : undefined;
  };
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
