// The covariance of rows in float64, computed by pool tasks of about a tenth of a second. Threads fill different
// rows of one matrix and every sum has a fixed order, so that the result does not depend on the number of threads.

import { sharedFloat32, sharedFloat64 } from '../../common/shared-array.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import { countRows, type RowValues, visitRows } from './row-values.js';

/** Rows whose products are summed at a time, so that their values stay in the cache of a core. */
const BLOCK_ROWS = 128;

/** Columns are padded with zeros to whole tiles. */
const TILE_COLUMNS = 4;

/** About a tenth of a second; other tasks run in between. */
const TASK_PRODUCTS_MAX = 2e8;

/** Rows minus their mean, divided by the greatest magnitude so that no product overflows. */
export interface CenteredRows {
  /** [dimension] */
  readonly mean: Float64Array;
  /** The dimension, padded to tiles. */
  readonly columnCount: number;
  /** [blockCount, columnCount, BLOCK_ROWS] float32, shared; zeros after the last row. */
  readonly blocks: Float32Array;
}

/** Bytes of the arrays of a covariance. */
export function covarianceBytes(rowCount: number, dimension: number): number {
  const columnCount = paddedColumns(dimension);
  return Math.ceil(rowCount / BLOCK_ROWS) * BLOCK_ROWS * columnCount * 4 + columnCount ** 2 * 8;
}

/** The covariance up to a factor, row-major [columnCount, columnCount], shared. Rejects with the signal's reason. */
export async function computeCovariance(
  pool: WorkerPool,
  { blocks, columnCount }: CenteredRows,
  signal: AbortSignal | undefined,
): Promise<Float64Array> {
  const covariance = sharedFloat64(columnCount * columnCount);
  const strips = cutStrips(columnCount, blocks.length / columnCount);
  const work = async () => {
    for (let strip = strips.shift(); strip !== undefined; strip = strips.shift()) {
      signal?.throwIfAborted();
      await pool.run(addProductsTask, { ...strip, blocks, columnCount, covariance });
    }
  };
  await Promise.all(Array.from({ length: pool.threadCount }, work));
  return covariance;
}

export const centerRowsTask: Task<RowValues, CenteredRows> = {
  name: 'projection.centerRows',
  run(rows) {
    const { dimension } = rows;
    const rowCount = countRows(rows);
    const columnCount = paddedColumns(dimension);
    const mean = new Float64Array(dimension);
    visitRows(rows, (_index, values, start, factor) => {
      for (let i = 0; i < dimension; i++) mean[i]! += values[start + i]! * factor;
    });
    for (let i = 0; i < dimension; i++) mean[i]! /= Math.max(1, rowCount);
    let greatest = 0;
    visitRows(rows, (_index, values, start, factor) => {
      for (let i = 0; i < dimension; i++) {
        greatest = Math.max(greatest, Math.abs(values[start + i]! * factor - mean[i]!));
      }
    });
    const scale = greatest === 0 ? 0 : 1 / greatest;
    const blockValues = columnCount * BLOCK_ROWS;
    const blocks = sharedFloat32(Math.ceil(rowCount / BLOCK_ROWS) * blockValues);
    visitRows(rows, (index, values, start, factor) => {
      const at = Math.floor(index / BLOCK_ROWS) * blockValues + (index % BLOCK_ROWS);
      for (let i = 0; i < dimension; i++) {
        blocks[at + i * BLOCK_ROWS] = (values[start + i]! * factor - mean[i]!) * scale;
      }
    });
    return { mean, columnCount, blocks };
  },
};

function paddedColumns(dimension: number): number {
  return Math.ceil(dimension / TILE_COLUMNS) * TILE_COLUMNS;
}

/** Rows from..to of the matrix. */
interface Strip {
  readonly from: number;
  readonly to: number;
}

interface StripInput extends Strip, Pick<CenteredRows, 'blocks' | 'columnCount'> {
  readonly covariance: Float64Array;
}

function cutStrips(columnCount: number, rowCount: number): Strip[] {
  const strips: Strip[] = [];
  let from = 0;
  let products = 0;
  for (let to = TILE_COLUMNS; to <= columnCount; to += TILE_COLUMNS) {
    products += TILE_COLUMNS * (columnCount - to) * rowCount;
    if (products < TASK_PRODUCTS_MAX && to < columnCount) continue;
    strips.push({ from, to });
    from = to;
    products = 0;
  }
  return strips;
}

/** Computes the part of the strip on and right of the diagonal. */
export const addProductsTask: Task<StripInput, void> = {
  name: 'projection.addProducts',
  run({ from, to, blocks, columnCount, covariance }) {
    const blockValues = columnCount * BLOCK_ROWS;
    const columns = new Float64Array((columnCount - from) * BLOCK_ROWS);
    for (let start = 0; start < blocks.length; start += blockValues) {
      columns.set(blocks.subarray(start + from * BLOCK_ROWS, start + blockValues));
      for (let i = from; i < to; i += TILE_COLUMNS) {
        for (let j = i; j < columnCount; j += 2) {
          addTile(columns, (i - from) * BLOCK_ROWS, (j - from) * BLOCK_ROWS, {
            sums: covariance,
            at: i * columnCount + j,
            columnCount,
          });
        }
      }
    }
  },
};

/** Adds the products of four columns with two others, which are as many sums as fit in the registers of a core. */
function addTile(
  columns: Float64Array,
  left: number,
  right: number,
  { sums, at, columnCount }: { sums: Float64Array; at: number; columnCount: number },
): void {
  let sum00 = 0;
  let sum01 = 0;
  let sum10 = 0;
  let sum11 = 0;
  let sum20 = 0;
  let sum21 = 0;
  let sum30 = 0;
  let sum31 = 0;
  const left1 = left + BLOCK_ROWS;
  const left2 = left1 + BLOCK_ROWS;
  const left3 = left2 + BLOCK_ROWS;
  const right1 = right + BLOCK_ROWS;
  for (let row = 0; row < BLOCK_ROWS; row++) {
    const other0 = columns[right + row]!;
    const other1 = columns[right1 + row]!;
    const value0 = columns[left + row]!;
    sum00 += value0 * other0;
    sum01 += value0 * other1;
    const value1 = columns[left1 + row]!;
    sum10 += value1 * other0;
    sum11 += value1 * other1;
    const value2 = columns[left2 + row]!;
    sum20 += value2 * other0;
    sum21 += value2 * other1;
    const value3 = columns[left3 + row]!;
    sum30 += value3 * other0;
    sum31 += value3 * other1;
  }
  sums[at]! += sum00;
  sums[at + 1]! += sum01;
  sums[at + columnCount]! += sum10;
  sums[at + columnCount + 1]! += sum11;
  sums[at + 2 * columnCount]! += sum20;
  sums[at + 2 * columnCount + 1]! += sum21;
  sums[at + 3 * columnCount]! += sum30;
  sums[at + 3 * columnCount + 1]! += sum31;
}
