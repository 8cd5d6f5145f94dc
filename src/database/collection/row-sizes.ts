// The average sizes of the rows of a collection, for estimates of the memory that results take.

import type { Collection } from './collection.js';

export interface RowSizes {
  readonly rowCount: number;
  /** Bytes of the id and the metadata of a row. */
  readonly textBytes: number;
  /** Bytes of all vectors of a row. */
  readonly vectorBytes: number;
}

/** Includes deleted rows that are not compacted yet. */
export function rowSizesOf({ rows: { segments } }: Collection): RowSizes {
  let rowCount = 0;
  let textBytes = 0;
  let dataBytes = 0;
  for (const segment of segments) {
    rowCount += segment.rowCount;
    textBytes += segment.textBytes;
    dataBytes += segment.dataBytes;
  }
  const divisor = Math.max(1, rowCount);
  return {
    rowCount,
    textBytes: textBytes / divisor,
    vectorBytes: (dataBytes - textBytes) / divisor,
  };
}
