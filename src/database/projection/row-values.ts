// The rows of a projection in the form in which pool tasks read them.

import { sumOfSquares } from '../../engine/core/canonical.js';
import type { JoinRow } from '../bulk/join-searches.js';

/** Consecutive rows of one block. */
interface BlockRows {
  /** Row-major [blockRows, dimension] float32, shared. */
  readonly values: Float32Array;
  readonly rows: Uint32Array;
}

/** Rows of several blocks, in order. */
export interface RowValues {
  readonly blocks: readonly BlockRows[];
  readonly dimension: number;
  /** Whether each row is divided by its length. */
  readonly isNormalized: boolean;
}

/** Groups consecutive rows with the same view into one block. */
export function rowValues(rows: readonly JoinRow[], shape: Omit<RowValues, 'blocks'>): RowValues {
  const blocks: BlockRows[] = [];
  let start = 0;
  for (let i = 1; i <= rows.length; i++) {
    const { view } = rows[start]!;
    if (i < rows.length && rows[i]!.view === view) continue;
    const numbers = Uint32Array.from(rows.slice(start, i), ({ row }) => row);
    blocks.push({ values: view.block.values, rows: numbers });
    start = i;
  }
  return { blocks, ...shape };
}

export function countRows({ blocks }: RowValues): number {
  return blocks.reduce((sum, { rows }) => sum + rows.length, 0);
}

/** Calls `visit` for each row with its index, the start of its values, and the factor to multiply them with. */
export function visitRows(
  { blocks, dimension, isNormalized }: RowValues,
  visit: (index: number, values: Float32Array, start: number, factor: number) => void,
): void {
  let index = 0;
  for (const { values, rows } of blocks) {
    for (const row of rows) {
      const start = row * dimension;
      visit(index++, values, start, isNormalized ? inverseLength(values, start, dimension) : 1);
    }
  }
}

/** The inverse of the length of a vector; 0 for a vector of zeros. */
function inverseLength(values: Float32Array, start: number, dimension: number): number {
  const sum = sumOfSquares(values, start, dimension);
  return sum === 0 ? 0 : 1 / Math.sqrt(sum);
}
