// The kinds of vectors as columns of a record batch. A further kind is a further entry.

import type { ColumnSpec, DenseColumn, MultiColumn, VectorKind } from '../../common/vectors.js';
import type { ArrowKind } from './arrow-kind.js';
import { multiVectors } from './multi-vectors.js';
import { type SparseCells, sparseVectors } from './sparse-cells.js';
import { denseVectors } from './vectors.js';

/** Vectors of one name as they were read. */
export type FoundVectors = DenseColumn | MultiColumn | SparseCells;

export const ARROW_KINDS: Readonly<Record<VectorKind, ArrowKind<ColumnSpec, FoundVectors>>> = {
  dense: denseVectors,
  multi: multiVectors,
  sparse: sparseVectors,
};

/** The names of the columns of the vectors that have the name. */
export function columnNames({ kind }: ColumnSpec, name: string): string[] {
  const { prefix, suffixes } = ARROW_KINDS[kind];
  return suffixes.map((suffix) => `${prefix}${name}${suffix}`);
}
