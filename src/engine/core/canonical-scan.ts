// Scores rows of a block canonically for one query and offers them to its selection. The reference
// engine scores all rows this way; the tensor engines score their candidates.

import { nextSetBit } from '../../common/bitmap.js';
import type { VectorBlock } from '../../common/types.js';
import {
  type CanonicalQuery,
  canonicalScore,
  createCanonicalQuery,
  sumOfProducts,
  sumOfSquares,
} from './canonical.js';
import { scoreFloor, TopRows } from './order.js';
import type { PackedQueries, PackedQuery } from './packed-queries.js';

/** Canonical x·x of consecutive rows; `values[r - firstRow]` belongs to row r. */
export interface RowSquares {
  readonly values: Float64Array;
  readonly firstRow: number;
}

/** The rows of a block that a query searches. */
export type RowSelection = Pick<PackedQuery, 'rows' | 'rowCount'>;

export function unpackQuery(packed: PackedQueries, index: number, dimension: number) {
  const { metric } = packed.queries[index]!;
  const start = index * dimension;
  return createCanonicalQuery(metric, packed.vectors.subarray(start, start + dimension));
}

/** Creates the selection of a query to which at most `rowCount` rows will be offered. */
export function createTopRows(block: VectorBlock, query: PackedQuery, rowCount: number): TopRows {
  const floor = scoreFloor(query.metric, query.scoreMin);
  return new TopRows(query.k, rowCount, block.ids, { floor, after: query.after });
}

/** Fills `squares` for its first `count` rows. */
export function fillSquares(block: VectorBlock, squares: RowSquares, count: number): void {
  const { values, dimension } = block;
  for (let i = 0; i < count; i++) {
    squares.values[i] = sumOfSquares(values, (squares.firstRow + i) * dimension, dimension);
  }
}

/** The canonical score of one row. `squares` is not read for a dot product. */
export function scoreRow(
  block: VectorBlock,
  query: CanonicalQuery,
  squares: RowSquares,
  row: number,
): number {
  const product = sumOfProducts(query.values, block.values, row * block.dimension);
  if (query.metric === 'dot') return product;
  const rowSquare = squares.values[row - squares.firstRow]!;
  return canonicalScore(query.metric, product, query.square, rowSquare);
}

/** Scores the selected rows of from..to, offers them and returns how many there were. */
export function scanRows(
  block: VectorBlock,
  query: CanonicalQuery,
  selection: RowSelection,
  range: { readonly from: number; readonly to: number; readonly squares: RowSquares },
  top: TopRows,
): number {
  const end = Math.min(range.to, selection.rowCount);
  const { rows } = selection;
  let scoredCount = 0;
  if (rows === null) {
    for (let row = range.from; row < end; row++) {
      top.offer(scoreRow(block, query, range.squares, row), row);
    }
    scoredCount = Math.max(0, end - range.from);
  } else {
    for (
      let row = nextSetBit(rows, range.from);
      row !== -1 && row < end;
      row = nextSetBit(rows, row + 1)
    ) {
      top.offer(scoreRow(block, query, range.squares, row), row);
      scoredCount++;
    }
  }
  return scoredCount;
}
