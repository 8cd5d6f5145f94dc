// Arrays in Fortran order: all values of the first dimension, then those of the second, and so on. Rows
// are gathered by reading a piece of each column, so that memory does not depend on the size of the file.

import { closeSync, openSync, readSync } from 'node:fs';
import { CliError } from '../failure.js';
import { bytesPerNumber, type NumberType, toFloats } from './record-files.js';
import {
  plainBatch,
  type ReadOptions,
  type RowBatch,
  type RowReader,
  rowsPerBatch,
} from './row-batch.js';

export interface ColumnMajorArray {
  /** For messages. */
  readonly name: string;
  readonly path: string;
  /** Offset of the first value in the file. */
  readonly start: number;
  readonly type: NumberType;
  readonly isBigEndian: boolean;
  readonly rowCount: number;
  readonly dimension: number;
}

export function readColumnMajor(
  array: ColumnMajorArray,
  { rowsPerBatch: rowsMax }: Pick<ReadOptions, 'rowsPerBatch'>,
): RowReader {
  const { name, path, rowCount, dimension } = array;
  async function* batches(startRow: number): AsyncGenerator<RowBatch> {
    const file = openSync(path, 'r');
    try {
      const step = rowsPerBatch(dimension, rowsMax);
      for (let first = startRow; first < rowCount; first += step) {
        const count = Math.min(step, rowCount - first);
        yield plainBatch({
          values: gatherRows(file, array, first, count),
          dimension,
          location: (row) => `${name}, row ${first + row + 1}`,
        });
      }
    } finally {
      closeSync(file);
    }
  }
  return { rowCount, batches };
}

/** Row-major [count, dimension]. Reads synchronously: there are many small reads, mostly cached. */
function gatherRows(
  file: number,
  { name, start, type, isBigEndian, rowCount, dimension }: ColumnMajorArray,
  first: number,
  count: number,
): Float32Array {
  const elementBytes = bytesPerNumber(type);
  const values = new Float32Array(count * dimension);
  const bytes = new Uint8Array(count * elementBytes);
  for (let column = 0; column < dimension; column++) {
    const at = start + (column * rowCount + first) * elementBytes;
    if (readSync(file, bytes, 0, bytes.length, at) < bytes.length) {
      throw new CliError(`${name}: the file ends within column ${column + 1} of ${dimension}`);
    }
    const floats = toFloats(type, bytes, isBigEndian);
    for (let row = 0; row < count; row++) values[row * dimension + column] = floats[row]!;
  }
  return values;
}
