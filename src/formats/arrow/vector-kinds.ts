// The kinds of vectors as columns of a record batch: what their columns are called, which types they may have and
// how they are read. A further kind is a further entry.

import type { Limits } from '../../common/limits.js';
import type { ColumnSpec, DenseColumn, MultiColumn, VectorKind } from '../../common/vectors.js';
import type { Column } from './columns.js';
import { multiVectors } from './multi-vectors.js';
import type { RowIssues } from './row-issues.js';
import type { ArrowField } from './schema.js';
import { type SparseCells, sparseVectors } from './sparse-cells.js';
import { denseVectors } from './vectors.js';

/** Vectors of one name to read. */
export interface NamedToRead {
  readonly name: string;
  /** Whether rows may lack the vector: null stands for none then. */
  readonly mayBeNull: boolean;
  /** Bound on the result. */
  readonly bytesMax: number;
  readonly limits: Pick<Limits, 'multiVectorsMax' | 'multiValuesMax'>;
  readonly issues: RowIssues;
}

/** Vectors of one name as they were read. */
export type FoundVectors = DenseColumn | MultiColumn | SparseCells;

export interface ArrowKind<Spec extends ColumnSpec = ColumnSpec, Found = FoundVectors> {
  /** A column's name is the prefix, the name of the vector and one of the suffixes. */
  readonly prefix: string;
  readonly suffixes: readonly string[];
  /** What the columns are for, and what they must hold, in errors. */
  readonly what: string;
  readonly expected: string;
  isField(field: ArrowField): boolean;
  /**
   * @param columns one for each suffix. Undefined content if there are issues. Throws `invalid_arrow`.
   */
  read(columns: readonly Column[], toRead: NamedToRead & Spec): Found;
}

export const ARROW_KINDS: Readonly<Record<VectorKind, ArrowKind>> = {
  dense: denseVectors,
  multi: multiVectors,
  sparse: sparseVectors,
};

/** The names of the columns of the vectors that have the name. */
export function columnNames({ kind }: ColumnSpec, name: string): string[] {
  const { prefix, suffixes } = ARROW_KINDS[kind];
  return suffixes.map((suffix) => `${prefix}${name}${suffix}`);
}
