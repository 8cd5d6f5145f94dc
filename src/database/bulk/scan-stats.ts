// The number and the progress of running scans and joins, for metrics.

export class ScanStats {
  scanCount = 0;
  joinCount = 0;
  /** Rows that running scans have not read yet. */
  scanRowsLeft = 0;
  /** Rows that running joins have not read yet. */
  joinRowsLeft = 0;
  /** Rows scanned since the start of the process. */
  scannedRowCount = 0;
  /** Rows joined since the start of the process. */
  joinedRowCount = 0;

  /** Yields the chunks of a scan, and counts the rows of each when the next chunk is requested. */
  *countScan<Chunk extends { readonly count: number }>(
    chunks: Iterable<Chunk>,
    rowCount: number,
  ): Generator<Chunk> {
    let rowsLeft = rowCount;
    this.scanCount++;
    this.scanRowsLeft += rowCount;
    try {
      for (const chunk of chunks) {
        yield chunk;
        rowsLeft -= chunk.count;
        this.scanRowsLeft -= chunk.count;
        this.scannedRowCount += chunk.count;
      }
    } finally {
      this.scanCount--;
      this.scanRowsLeft -= rowsLeft;
    }
  }

  /** Counts a join, of which the caller reports the rows and the end. */
  startJoin(rowCount: number): { joined(count: number): void; ended(): void } {
    let rowsLeft = rowCount;
    this.joinCount++;
    this.joinRowsLeft += rowCount;
    return {
      joined: (count) => {
        rowsLeft -= count;
        this.joinRowsLeft -= count;
        this.joinedRowCount += count;
      },
      ended: () => {
        this.joinCount--;
        this.joinRowsLeft -= rowsLeft;
      },
    };
  }
}
