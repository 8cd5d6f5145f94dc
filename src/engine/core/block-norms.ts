// What the scan knows of each row of a block beside its values: three float64 per row, computed
// once when the row is first seen, however often the block grows.

import type { VectorBlock } from '../../common/types.js';
import { sumOfSquares } from './canonical.js';
import type { RowSquares } from './canonical-scan.js';
import { rowScale } from './scaling.js';

export class BlockNorms {
  /** Canonical x·x. */
  squares = new Float64Array(0);
  /** √(x·x). */
  lengths = new Float64Array(0);
  /** 1 / (√(x·x) · rowScale): times the scanned product it is the cosine, up to the query's length; 0 for a zero row. */
  inverseLengths = new Float64Array(0);
  rowCount = 0;

  get byteCount(): number {
    return 3 * this.squares.byteLength;
  }

  get rowSquares(): RowSquares {
    return { values: this.squares, firstRow: 0 };
  }

  /** Adds the rows of the block that are new. */
  extend(block: VectorBlock): void {
    if (block.rowCount <= this.rowCount) return;
    this.reserve(block.rowCount);
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

  /** Grows by half at least, so that a block that gains a row a search is not copied each time. */
  private reserve(rowCount: number): void {
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
