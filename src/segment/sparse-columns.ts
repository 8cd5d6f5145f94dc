// Writes and reads sparse vectors as the Arrow columns of segment files and log records; see sparse-fields.ts.

import type { NamedSparse, SparseColumn } from '../common/types.js';
import { corrupt } from '../formats/arrow/arrow-errors.js';
import type { Column } from '../formats/arrow/columns.js';
import type { BodyWriter } from '../formats/arrow/ipc-writer.js';
import { readOffsets } from '../formats/arrow/offsets.js';
import { indicesName, valuesName } from '../formats/arrow/sparse-fields.js';

const COLUMN = /^sparse_vectors\.(.+)\.(?:indices|values)$/;

export function writeSparse(
  body: BodyWriter,
  { starts, indices, values }: SparseColumn,
  count: number,
): void {
  body.lists(starts, indices, count);
  body.lists(starts, values, count);
}

/** The names of the sparse vectors that have columns of these names. */
export function sparseNames(columns: readonly string[]): string[] {
  return [...new Set(columns.flatMap((column) => COLUMN.exec(column)?.[1] ?? []))];
}

/** Of the columns by their names. Throws `data_corrupt`. */
export function readSparse(name: string, columns: ReadonlyMap<string, Column>): NamedSparse {
  const indices = columns.get(indicesName(name))!;
  const values = columns.get(valuesName(name))!;
  const [starts, valueStarts] = [indices, values].map((column) =>
    readOffsets(column, false, column.children[0]!.length),
  ) as [Int32Array, Int32Array];
  const differing = starts.findIndex((start, row) => start !== valueStarts[row]);
  if (differing >= 0) {
    throw corrupt(
      `values of "${name}" from ${valueStarts[differing]} on in row ${differing}, expected ${starts[differing]}`,
    );
  }
  const elementCount = starts.at(-1)!;
  return {
    name,
    starts,
    indices: indices.children[0]!.buffer(0, Uint32Array, elementCount),
    values: values.children[0]!.buffer(0, Float32Array, elementCount),
  };
}
