// The kinds of vectors as columns of a record batch.

import {
  type ColumnSpec,
  type DenseColumn,
  type MultiColumn,
  type Named,
  UNNAMED,
  type VectorColumn,
  type VectorKind,
} from '../../common/vectors.js';
import type { ArrowKind } from './arrow-kind.js';
import type { ColumnToWrite, FieldToWrite } from './ipc-writer.js';
import { MULTI_COLUMNS } from './multi-vectors.js';
import { SPARSE_COLUMNS, type SparseCells } from './sparse-cells.js';
import { DENSE_COLUMNS } from './vectors.js';

/** The vectors of one name, as read from a batch. */
export type FoundVectors = DenseColumn | MultiColumn | SparseCells;

type AnyKind = ArrowKind<ColumnSpec, FoundVectors, VectorColumn>;

export const ARROW_KINDS: Readonly<Record<VectorKind, AnyKind>> = {
  dense: DENSE_COLUMNS,
  multi: MULTI_COLUMNS,
  sparse: SPARSE_COLUMNS,
};

/** Returns the path of members to the values of each column. Joined by dots, it is the name of the column. */
function columnPaths({ kind }: ColumnSpec, name: string): string[][] {
  const { member, parts } = ARROW_KINDS[kind];
  if (name === UNNAMED) return [['values']];
  return parts.map((part) => [member, name, ...(part === '' ? [] : [part])]);
}

/** Returns the names of the columns of the vectors with a name. */
export function columnNames(spec: ColumnSpec, name: string): string[] {
  return columnPaths(spec, name).map((path) => path.join('.'));
}

interface VectorsField extends FieldToWrite {
  /** The path of members to the value in the JSON of a row. */
  readonly path: readonly string[];
}

/** Returns the fields of the columns of vectors. Every row has the unnamed vector and may lack others. */
export function fieldsOfVectors(spec: Named<ColumnSpec>): readonly VectorsField[] {
  const { types, isNullable } = ARROW_KINDS[spec.kind];
  const paths = columnPaths(spec, spec.name);
  return types(spec).map((type, i) => {
    const path = paths[i]!;
    return { name: path.join('.'), path, type, isNullable: isNullable && spec.name !== UNNAMED };
  });
}

/** Returns the columns in the order of their fields. */
export function columnsOfVectors(column: VectorColumn): readonly ColumnToWrite[] {
  return ARROW_KINDS[column.kind].write(column);
}
