// Reads and writes columns of multi-vectors: a list of vectors per row, empty or null in rows without a multi-vector.

import type { MultiColumn } from '../../common/vectors.js';
import type { ArrowKind, VectorsToRead } from './arrow-kind.js';
import { type ArrowColumn, isValid } from './columns.js';
import { readSpans } from './offsets.js';
import { RowIssues } from './row-issues.js';
import { type ArrowField, isListOfAnyLength } from './schema.js';
import { isVectorField, readVectors } from './vectors.js';

/** Columns of lists of vectors, `vectors.<name>`. */
export const MULTI_COLUMNS: ArrowKind<
  Pick<MultiColumn, 'kind' | 'dimension'>,
  MultiColumn,
  MultiColumn
> = {
  member: 'vectors',
  parts: [''],
  what: 'a named vector',
  expected: 'lists of vectors, which are lists of numbers',
  isField: isMultiField,
  read: ([column], toRead) => readMultiVectors(column!, toRead),
  isNullable: true,
  types: ({ dimension }) => [{ vectorsOf: dimension }],
  write: (multi) => [{ multi }],
};

function isMultiField(field: ArrowField): boolean {
  const [vector] = field.children;
  return isListOfAnyLength(field) && vector !== undefined && isVectorField(vector);
}

/** Returns the limit for the vectors of a row, by their number and by their values; a single vector always fits. */
export function vectorsMax(
  dimension: number,
  { multiVectorsMax, multiValuesMax }: VectorsToRead['limits'],
): number {
  return Math.min(multiVectorsMax, Math.max(1, Math.floor(multiValuesMax / dimension)));
}

/** The content is undefined if there are issues. Throws `invalid_arrow`. */
function readMultiVectors(
  column: ArrowColumn,
  { name, dimension, bytesMax, limits, issues }: VectorsToRead & { readonly dimension: number },
): MultiColumn {
  const { length, validity } = column;
  const countMax = vectorsMax(dimension, limits);
  const spans = readSpans(column);
  const starts = new Int32Array(length + 1);
  for (let row = 0; row < length; row++) {
    const count = isValid(validity, row) ? spans.ends[row]! - spans.starts[row]! : 0;
    starts[row + 1] = starts[row]! + count;
    if (count <= countMax || issues.isFull) continue;
    const detail = `Expected a multi-vector of at most ${countMax} vectors; found ${count}.`;
    const bound = { expected: countMax, actual: count };
    issues.add({ row, member: `vectors.${name}`, code: 'limit_exceeded', detail, ...bound });
  }
  const vectorIssues = new RowIssues();
  const all = readVectors(column.children[0]!, { dimension, bytesMax, issues: vectorIssues });
  for (const { row: vector, ...issue } of vectorIssues.items) {
    const row = spans.ends.findIndex((end, i) => spans.starts[i]! <= vector && vector < end);
    // An invalid vector that belongs to no row is still an issue, reported for row 0.
    issues.add({ ...issue, row: Math.max(0, row), member: `vectors.${name}` });
  }
  const valueCount = issues.items.length > 0 ? 0 : starts[length]! * dimension;
  const values = new Float32Array(valueCount);
  for (let row = 0; row < length && valueCount > 0; row++) {
    const from = spans.starts[row]!;
    const count = starts[row + 1]! - starts[row]!;
    values.set(
      all.subarray(from * dimension, (from + count) * dimension),
      starts[row]! * dimension,
    );
  }
  return { kind: 'multi', dimension, starts, values };
}
