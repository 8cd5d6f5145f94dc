// Reads columns of multi-vectors: a list of vectors in each row, empty or null in rows without it.

import type { NamedMulti } from '../../common/types.js';
import { type Column, isValid } from './columns.js';
import { readSpans } from './offsets.js';
import { RowIssues } from './row-issues.js';
import type { ArrowField } from './schema.js';
import { isVectorField, readVectors, type VectorsToRead } from './vectors.js';

const LISTS = ['list', 'large_list', 'list_view', 'large_list_view'];

/** Whether a field can be a column of multi-vectors: lists of what `isVectorField` takes. */
export function isMultiField({ type, children, dictionary }: ArrowField): boolean {
  const [vector] = children;
  return (
    dictionary === null &&
    LISTS.includes(type.kind) &&
    vector !== undefined &&
    isVectorField(vector)
  );
}

export interface MultiToRead extends VectorsToRead {
  readonly name: string;
  /** Vectors of a row. */
  readonly countMax: number;
}

/** Undefined content if there are issues. Throws `invalid_arrow`. */
export function readMultiVectors(column: Column, toRead: MultiToRead): NamedMulti {
  const { name, dimension, bytesMax, countMax, issues } = toRead;
  const { length, validity } = column;
  const spans = readSpans(column);
  const starts = new Int32Array(length + 1);
  for (let row = 0; row < length; row++) {
    const count = isValid(validity, row) ? spans.ends[row]! - spans.starts[row]! : 0;
    starts[row + 1] = starts[row]! + count;
    if (count <= countMax || issues.isFull) continue;
    const detail = `The multi-vector has ${count} vectors, the limit is ${countMax}.`;
    const bound = { expected: countMax, actual: count };
    issues.add({ row, member: `vectors.${name}`, code: 'limit_exceeded', detail, ...bound });
  }
  const ofVectors = new RowIssues();
  const all = readVectors(column.children[0]!, { dimension, bytesMax, issues: ofVectors });
  for (const { row: vector, ...issue } of ofVectors.items) {
    const row = spans.ends.findIndex((end, i) => spans.starts[i]! <= vector && vector < end);
    // A vector of no row, which nobody sees, is wrong all the same.
    if (!issues.isFull) issues.add({ ...issue, row: Math.max(0, row), member: `vectors.${name}` });
  }
  if (issues.items.length > 0)
    return { kind: 'multi', name, dimension, starts, values: new Float32Array(0) };
  const values = new Float32Array(starts[length]! * dimension);
  for (let row = 0; row < length; row++) {
    const from = spans.starts[row]!;
    const count = starts[row + 1]! - starts[row]!;
    values.set(
      all.subarray(from * dimension, (from + count) * dimension),
      starts[row]! * dimension,
    );
  }
  return { kind: 'multi', name, dimension, starts, values };
}
