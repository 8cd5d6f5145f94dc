// Checks rows of a log record or a segment file against the rules for ids, values and metadata.

import { isUtf8 } from 'node:buffer';
import { DEFAULT_LIMITS } from '../../common/limits.js';
import { isJsonObject } from '../../common/metadata-path.js';
import type { FieldShape, Metric, Utf8Column } from '../../common/types.js';
import {
  describeSpec,
  isSameSpec,
  type Named,
  type SparseVector,
  UNNAMED,
  type Vector,
  type VectorColumn,
  vectorAt,
} from '../../common/vectors.js';
import { namesOfColumns } from '../../database/collection/vector-changes.js';
import type { CollectionDefinition } from '../../database/layout/manifest.js';
import { VectorNames } from '../../segment/vector-names.js';

export interface RowsToCheck {
  readonly count: number;
  readonly ids: Utf8Column;
  /** JSON text. */
  readonly metadata: Utf8Column;
  /** Named by column; null if their values are not on this disk. */
  readonly vectors: readonly Named[] | null;
}

export function checkRows(
  { count, ids, metadata, vectors }: RowsToCheck,
  definition: CollectionDefinition,
  report: (what: string) => void,
): void {
  checkIds(ids, count, report);
  if (vectors !== null) checkVectors(vectors, count, definition, report);
  const texts = textsOf(metadata, count);
  for (let row = 0; row < count; row++) {
    const text = texts(row);
    if (text === undefined || !holdsJsonObject(text)) {
      report(`row ${row}: metadata is not a JSON object`);
    }
  }
}

/** Checks that the collection has these vectors, or had them before they were dropped, and checks their values. */
function checkVectors(
  vectors: readonly Named[],
  count: number,
  definition: CollectionDefinition,
  report: (what: string) => void,
): void {
  const names = new VectorNames();
  names.redefine(namesOfColumns(definition));
  const fields = new Map(
    Object.entries(definition.vectors).map(([name, field]) => [
      names.columnOf(name),
      { name, field },
    ]),
  );
  if (fields.has(UNNAMED) && !vectors.some(({ name }) => name === UNNAMED)) {
    report('no row has the unnamed vector, expected one in each');
  }
  for (const column of vectors) {
    if (names.isDropped(column.name)) continue;
    const known = fields.get(column.name);
    const name = known?.name ?? column.name;
    const what = name === UNNAMED ? 'values' : `vectors "${name}"`;
    if (known === undefined || !isSameSpec(known.field, column)) {
      const expected = known === undefined ? 'no vector of that name' : describeSpec(known.field);
      report(`${what} are ${describeSpec(column)}, expected ${expected}`);
      continue;
    }
    for (let row = 0; row < count; row++) {
      const vector = vectorAt<VectorColumn>(column, row);
      if (vector === undefined) {
        if (name === UNNAMED) report(`${what} of row ${row}: expected a vector, found none`);
        continue;
      }
      checkVector(vector, known.field, (found) => report(`${what} of row ${row}, ${found}`));
    }
  }
}

function checkVector(
  vector: Vector,
  { metric }: FieldShape,
  report: (found: string) => void,
): void {
  if (vector instanceof Float32Array) {
    checkValues(vector, metric, report);
  } else if ('indices' in vector) {
    checkElements(vector, report);
  } else {
    const { values, dimension } = vector;
    for (let i = 0; i < values.length; i += dimension) {
      checkValues(values.subarray(i, i + dimension), metric, (found) =>
        report(`vector ${i / dimension}, ${found}`),
      );
    }
  }
}

function checkValues(
  values: Float32Array,
  metric: Metric | undefined,
  report: (found: string) => void,
): void {
  const wrong = values.findIndex((value) => !Number.isFinite(value));
  if (wrong >= 0) report(`value ${wrong} is ${values[wrong]}`);
  if (metric === 'cosine' && values.every((value) => value === 0)) {
    report('all values are zero, which the cosine metric does not allow');
  }
}

function checkElements({ indices, values }: SparseVector, report: (found: string) => void): void {
  for (let i = 0; i < indices.length; i++) {
    if (i > 0 && indices[i]! <= indices[i - 1]!) {
      report(`element ${i}: the index is ${indices[i]}, expected more than ${indices[i - 1]}`);
    }
    if (values[i] === 0 || !Number.isFinite(values[i])) {
      report(`element ${i}: the value is ${values[i]}`);
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

/** Returns the text of a row; undefined if it is not UTF-8. */
function textsOf(
  { offsets, bytes }: Utf8Column,
  count: number,
): (row: number) => string | undefined {
  const start = offsets[0]!;
  // Copied because decoders do not accept shared memory.
  const copy = Buffer.from(bytes.subarray(start, offsets[count]!));
  return (row) => {
    const text = copy.subarray(offsets[row]! - start, offsets[row + 1]! - start);
    return isUtf8(text) ? text.toString('utf8') : undefined;
  };
}

function holdsJsonObject(text: string): boolean {
  try {
    return isJsonObject(JSON.parse(text));
  } catch {
    return false;
  }
}
