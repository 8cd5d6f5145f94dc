// How many scans and joins are under way, and how far they are: for metrics.

export class ScanStats {
  scanCount = 0;
  joinCount = 0;
  /** Rows of the scans and of the joins under way that have not been given yet. */
  scanRowsLeft = 0;
  joinRowsLeft = 0;
  /** Ever. */
  scannedRowCount = 0;
  joinedRowCount = 0;

  /** The same pieces; rows are counted when they are asked for the next time, or it ends. */
  *countScan<Piece extends { readonly count: number }>(
    pieces: Iterable<Piece>,
    rowCount: number,
  ): Generator<Piece> {
    let rowsLeft = rowCount;
    this.scanCount++;
    this.scanRowsLeft += rowCount;
    try {
      for (const piece of pieces) {
        yield piece;
        rowsLeft -= piece.count;
        this.scanRowsLeft -= piece.count;
        this.scannedRowCount += piece.count;
      }
    } finally {
      this.scanCount--;
      this.scanRowsLeft -= rowsLeft;
    }
  }

  /** Tells of a join as it goes. */
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
