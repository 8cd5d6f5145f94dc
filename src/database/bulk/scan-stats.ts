// The number and the progress of scans and joins under way, for metrics.

export class ScanStats {
  scanCount = 0;
  joinCount = 0;
  /** Rows of the scans and joins under way that have not been read yet. */
  scanRowsLeft = 0;
  joinRowsLeft = 0;
  /** Since the start of the process. */
  scannedRowCount = 0;
  joinedRowCount = 0;

  /** Yields the chunks of a scan and counts the rows of each when the next one is asked for. */
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

  /** Counts a join: the caller reports its rows and its end. */
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
