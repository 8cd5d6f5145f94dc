// The kinds of vectors as columns of a record batch. A further kind is a further entry.

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
import { multiVectors } from './multi-vectors.js';
import { type SparseCells, sparseVectors } from './sparse-cells.js';
import { denseVectors } from './vectors.js';

/** Vectors of one name as they were read. */
export type FoundVectors = DenseColumn | MultiColumn | SparseCells;

type AnyKind = ArrowKind<ColumnSpec, FoundVectors, VectorColumn>;

export const ARROW_KINDS: Readonly<Record<VectorKind, AnyKind>> = {
  dense: denseVectors,
  multi: multiVectors,
  sparse: sparseVectors,
};

/** The members that lead to what each column of the vectors has: with dots between them its name. */
function columnPaths({ kind }: ColumnSpec, name: string): string[][] {
  const { member, parts } = ARROW_KINDS[kind];
  if (name === UNNAMED) return [['values']];
  return parts.map((part) => [member, name, ...(part === '' ? [] : [part])]);
}

/** The names of the columns of the vectors that have the name. */
export function columnNames(spec: ColumnSpec, name: string): string[] {
  return columnPaths(spec, name).map((path) => path.join('.'));
}

interface VectorsField extends FieldToWrite {
  /** The members that lead to it in the JSON of a row. */
  readonly path: readonly string[];
}

/** The fields of the columns of vectors. Every row has the unnamed one, and any of the others. */
export function fieldsOfVectors(spec: Named<ColumnSpec>): readonly VectorsField[] {
  const { types, isNullable } = ARROW_KINDS[spec.kind];
  const paths = columnPaths(spec, spec.name);
  return types(spec).map((type, i) => {
    const path = paths[i]!;
    return { name: path.join('.'), path, type, isNullable: isNullable && spec.name !== UNNAMED };
  });
}

/** In the order of their fields. */
export function columnsOfVectors(column: VectorColumn): readonly ColumnToWrite[] {
  return ARROW_KINDS[column.kind].write(column);
}
