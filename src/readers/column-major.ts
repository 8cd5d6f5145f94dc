// Reads arrays in Fortran order: all values of the first dimension, then those of the second, and so on. Rows are
// assembled from a piece of each column, so memory use does not depend on the size of the file.

import type { RandomFile } from './input-source.js';
import type { ReaderOptions } from './reader-options.js';
import { bytesPerNumber, type NumberType, toFloats } from './record-files.js';
import {
  plainBatch,
  type RowBatch,
  type RowReader,
  rowsPerBatch,
  sampleOfVectors,
} from './row-batch.js';

/** Where in a file an array is stored, in bytes that can be read in any order. */
export interface FilePart {
  readonly file: RandomFile;
  readonly start: number;
  /** Throws ReadError when the bytes are damaged. */
  check?(): Promise<void>;
}

export interface ColumnMajorArray extends Pick<FilePart, 'file' | 'start'> {
  /** The name of the array in messages. */
  readonly name: string;
  readonly type: NumberType;
  readonly isBigEndian: boolean;
  readonly rowCount: number;
  readonly dimension: number;
}

export function readColumnMajor(array: ColumnMajorArray, options: ReaderOptions): RowReader {
  const { name, rowCount, dimension } = array;
  async function* batches(startRow: number): AsyncGenerator<RowBatch> {
    const step = rowsPerBatch(dimension, options.rowsPerBatch);
    for (let firstRow = startRow; firstRow < rowCount; firstRow += step) {
      const values = await gatherRows(array, firstRow, Math.min(step, rowCount - firstRow));
      const location = (row: number) => `${name}, row ${row + 1}`;
      if (yield* plainBatch({ values, dimension, firstRow, location }, options)) return;
    }
  }
  return { rowCount, batches, sample: (count) => sampleOfVectors({ batches }, count) };
}

/** Row-major [count, dimension]. */
async function gatherRows(
  { file, start, type, isBigEndian, rowCount, dimension }: ColumnMajorArray,
  first: number,
  count: number,
): Promise<Float32Array> {
  const elementBytes = bytesPerNumber(type);
  const values = new Float32Array(count * dimension);
  for (let column = 0; column < dimension; column++) {
    const at = start + (column * rowCount + first) * elementBytes;
    const bytes = await file.read(at, at + count * elementBytes);
    const floats = toFloats(type, bytes, isBigEndian);
    for (let row = 0; row < count; row++) values[row * dimension + column] = floats[row]!;
  }
  return values;
}
