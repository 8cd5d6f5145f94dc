// Multi-vectors as Arrow columns, as segment files and log records have them: `vectors.<name>`, a list of vectors
// in each row, null in rows without it.

import type { MultiColumn, NamedMulti } from '../common/types.js';
import { corrupt } from '../formats/arrow/arrow-errors.js';
import type { Column } from '../formats/arrow/columns.js';
import type { BodyWriter, FieldToWrite } from '../formats/arrow/ipc-writer.js';
import { readOffsets } from '../formats/arrow/offsets.js';
import type { ArrowField } from '../formats/arrow/schema.js';
import { columnOfName, nameOfColumn } from './named-columns.js';

/** A name and the dimension of its vectors. */
export type MultiShape = Pick<NamedMulti, 'name' | 'dimension'>;

export function multiFields(multi: readonly MultiShape[]): FieldToWrite[] {
  return multi.map(({ name, dimension }) => ({
    name: columnOfName(name),
    type: { vectorsOf: dimension },
    isNullable: true,
  }));
}

export function writeMulti(body: BodyWriter, column: MultiColumn, count: number): void {
  body.vectorLists(column, count);
}

/** The multi-vector whose column has this field; undefined for other columns. */
export function multiOfField({ name: column, type, children }: ArrowField): MultiShape | undefined {
  const name = nameOfColumn(column);
  const inner = children[0]?.type;
  const isMulti = type.kind === 'list' && inner?.kind === 'fixed_size_list';
  return name === undefined || !isMulti ? undefined : { name, dimension: inner.listSize };
}

/** Throws `data_corrupt`. */
export function readMulti({ name, dimension }: MultiShape, column: Column): NamedMulti {
  const vectors = column.children[0]!;
  const starts = readOffsets(column, false, vectors.length);
  const vectorCount = starts.at(-1)!;
  if (starts[0] !== 0) throw corrupt(`vectors of "${name}" from ${starts[0]} on, expected 0`);
  const values = vectors.children[0]!.buffer(0, Float32Array, vectorCount * dimension);
  return { name, dimension, starts, values };
}
