// The norms of the rows of a block: three float64 per row, computed once when a row is first seen.

import type { VectorBlock } from '../../common/types.js';
import { sumOfSquares } from '../core/canonical.js';
import type { RowSquares } from '../core/canonical-scan.js';
import { rowScale } from './scaling.js';

export class BlockNorms {
  /** Canonical x·x. */
  squares = new Float64Array(0);
  /** √(x·x). */
  lengths = new Float64Array(0);
  /** 1 / (√(x·x) · rowScale): the factor from a scanned product to cosine × query length; 0 for a zero row. */
  inverseLengths = new Float64Array(0);
  rowCount = 0;

  get byteCount(): number {
    return 3 * this.squares.byteLength;
  }

  get rowSquares(): RowSquares {
    return { values: this.squares, firstRow: 0 };
  }

  /** Adds the new rows of the block. */
  extend(block: VectorBlock): void {
    if (block.rowCount <= this.rowCount) return;
    this.#reserve(block.rowCount);
    const { values, dimension } = block;
    for (let row = this.rowCount; row < block.rowCount; row++) {
      const square = sumOfSquares(values, row * dimension, dimension);
      const length = Math.sqrt(square);
      this.squares[row] = square;
      this.lengths[row] = length;
      this.inverseLengths[row] = square === 0 ? 0 : 1 / (length * rowScale(square));
    }
    this.rowCount = block.rowCount;
  }

  /** Grows by at least half, so that a block that gains one row per search is not copied each time. */
  #reserve(rowCount: number): void {
    if (rowCount <= this.squares.length) return;
    const capacity =
      this.rowCount === 0 ? rowCount : Math.max(rowCount, Math.ceil(this.squares.length * 1.5));
    this.squares = grow(this.squares, capacity);
    this.lengths = grow(this.lengths, capacity);
    this.inverseLengths = grow(this.inverseLengths, capacity);
  }
}

function grow(values: Float64Array, capacity: number): Float64Array<ArrayBuffer> {
  const grown = new Float64Array(capacity);
  grown.set(values);
  return grown;
}
