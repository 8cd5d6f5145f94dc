// The visibility of a segment's rows. A row is visible at a sequence if inserted ≤ sequence < deleted.
// Results are immutable; later writes do not change them.

import {
  type Bitmap,
  clearTail,
  countBits,
  createBitmap,
  firstBits,
  intersectInto,
} from '../common/bitmap.js';
import { assert } from '../common/errors.js';
import { sharedFloat64 } from '../common/shared-array.js';
import { trimmed, withRoom } from './shared-arrays.js';

export interface VisibleRows {
  /** Rows inserted at or before the sequence, deleted or not. */
  readonly rowCount: number;
  /** A bitmap of length `rowCount`; null if all rows are visible. */
  readonly rows: Bitmap | null;
  readonly visibleCount: number;
}

/** Returns the visible rows that are in the bitmap, which may cover more rows. */
export function visibleAmong(
  { rowCount, rows: visible }: VisibleRows,
  chosen: Bitmap,
): VisibleRows {
  const rows = firstBits(chosen, rowCount);
  if (visible !== null) intersectInto(rows, visible);
  return { rowCount, rows, visibleCount: countBits(rows) };
}

/** Deleted rows, ascending, and the sequences of their deletion. */
export interface Deletions {
  readonly rows: Uint32Array;
  readonly sequences: Float64Array;
}

export class RowVisibility {
  rowCount: number;
  deletedCount = 0;
  /** Ascending. Sequences are integers below 2^53. */
  #inserted: Float64Array;
  /** Infinity for rows not deleted; null until the first deletion. */
  #deleted: Float64Array | null = null;
  /** One bit per row of `deleted`: 1 for rows not deleted. */
  #live = new Uint32Array(0);
  #firstDeletedSequence = Number.POSITIVE_INFINITY;
  #lastDeletedSequence = Number.NEGATIVE_INFINITY;
  /** Cached results for the latest sequence and for the earlier sequence that was last asked for. */
  #latest: VisibleRows | null = null;
  #past: { sequence: number; visible: VisibleRows } | null = null;

  constructor(
    inserted: Float64Array = sharedFloat64(0),
    rowCount = 0,
    deleted: Float64Array | null = null,
  ) {
    this.#inserted = inserted;
    this.rowCount = rowCount;
    if (deleted !== null) {
      for (let row = 0; row < rowCount; row++) {
        if (deleted[row] !== Number.POSITIVE_INFINITY) this.delete(row, deleted[row]!);
      }
    }
  }

  append(count: number, sequence: number): void {
    const first = this.rowCount;
    assert(
      first === 0 || sequence >= this.#inserted[first - 1]!,
      `sequence ${sequence} comes before that of the last row`,
    );
    this.rowCount += count;
    this.#inserted = withRoom(this.#inserted, this.rowCount);
    this.#inserted.fill(sequence, first, this.rowCount);
    if (this.#deleted !== null) this.#coverDeletions();
    this.#latest = null;
    if (this.#past !== null && sequence <= this.#past.sequence) this.#past = null;
  }

  /** Replaces the sequence of all rows. */
  insertAllAt(sequence: number): void {
    this.#inserted = sharedFloat64(this.rowCount).fill(sequence);
    this.#latest = null;
    this.#past = null;
  }

  /** Deletes a row. Repeating this at the same sequence has no effect, so that a log can be replayed. */
  delete(row: number, sequence: number): void {
    assert(row >= 0 && row < this.rowCount, `row ${row} of ${this.rowCount}`);
    if (this.#deleted === null) this.#coverDeletions();
    const deleted = this.#deleted!;
    if (deleted[row] !== Number.POSITIVE_INFINITY) {
      assert(deleted[row] === sequence, `row ${row} was deleted at ${deleted[row]}`);
      return;
    }
    assert(sequence >= this.#inserted[row]!, `row ${row} was inserted after ${sequence}`);
    deleted[row] = sequence;
    this.#live[row >>> 5]! &= ~(1 << (row & 31));
    this.deletedCount++;
    this.#firstDeletedSequence = Math.min(this.#firstDeletedSequence, sequence);
    this.#lastDeletedSequence = Math.max(this.#lastDeletedSequence, sequence);
    this.#latest = null;
    if (this.#past !== null && sequence <= this.#past.sequence) this.#past = null;
  }

  insertedSequence(row: number): number {
    return this.#inserted[row]!;
  }

  deletedSequence(row: number): number {
    return this.#deleted === null ? Number.POSITIVE_INFINITY : this.#deleted[row]!;
  }

  insertedSequences(): Float64Array {
    return this.#inserted.subarray(0, this.rowCount);
  }

  deletedSequences(): Float64Array | null {
    return this.#deleted?.subarray(0, this.rowCount) ?? null;
  }

  rowCountAt(sequence: number): number {
    const { rowCount } = this;
    if (rowCount === 0 || sequence >= this.#inserted[rowCount - 1]!) return rowCount;
    return this.firstRowFrom(sequence, true);
  }

  /** Returns the first row inserted at or after the sequence, or only after it with `isAfter`. */
  firstRowFrom(sequence: number, isAfter: boolean): number {
    let low = 0;
    let high = this.rowCount;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const inserted = this.#inserted[middle]!;
      if (inserted < sequence || (isAfter && inserted === sequence)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  visibleAt(sequence: number): VisibleRows {
    const rowCount = this.rowCountAt(sequence);
    if (sequence < this.#firstDeletedSequence) {
      return { rowCount, rows: null, visibleCount: rowCount };
    }
    if (rowCount === this.rowCount && sequence >= this.#lastDeletedSequence) {
      this.#latest ??= this.#visibleNow();
      return this.#latest;
    }
    if (this.#past?.sequence !== sequence) {
      this.#past = { sequence, visible: this.#visibleThen(sequence, rowCount) };
    }
    return this.#past.visible;
  }

  /** Counts the rows deleted at or before the sequence. */
  deletedCountAt(sequence: number): number {
    if (sequence >= this.#lastDeletedSequence) return this.deletedCount;
    if (sequence < this.#firstDeletedSequence) return 0;
    let count = 0;
    for (let row = 0; row < this.rowCount; row++) if (this.#deleted![row]! <= sequence) count++;
    return count;
  }

  /** Returns the deletions after `afterSequence`, up to and including `throughSequence`. */
  deletionsBetween(afterSequence: number, throughSequence: number): Deletions {
    const rows: number[] = [];
    if (
      afterSequence < this.#lastDeletedSequence &&
      throughSequence >= this.#firstDeletedSequence
    ) {
      for (let row = 0; row < this.rowCount; row++) {
        const sequence = this.#deleted![row]!;
        if (sequence > afterSequence && sequence <= throughSequence) rows.push(row);
      }
    }
    return {
      rows: Uint32Array.from(rows),
      sequences: Float64Array.from(rows, (row) => this.#deleted![row]!),
    };
  }

  /** Frees memory reserved for growth. */
  trim(): void {
    this.#inserted = trimmed(this.#inserted, this.rowCount);
    if (this.#deleted !== null) this.#deleted = trimmed(this.#deleted, this.rowCount);
  }

  /** Bytes of all buffers, including memory reserved for growth. */
  get hostBytes(): number {
    const deletedBytes = this.#deleted?.buffer.byteLength ?? 0;
    return this.#inserted.buffer.byteLength + deletedBytes + this.#live.byteLength;
  }

  /** Extends `deleted` and `live` to all rows. New rows are not deleted. */
  #coverDeletions(): void {
    const previous = this.#deleted;
    if (previous === null || previous.length < this.rowCount) {
      const grown = withRoom(previous ?? sharedFloat64(0), this.rowCount);
      this.#deleted = grown.fill(Number.POSITIVE_INFINITY, previous?.length ?? 0);
      // Rows not yet appended are marked as live, so that appending need not set bits.
      const live = new Uint32Array((grown.length + 31) >>> 5).fill(0xffffffff);
      live.set(this.#live);
      this.#live = live;
    }
  }

  #visibleNow(): VisibleRows {
    const { rowCount } = this;
    const rows = createBitmap(rowCount);
    rows.words.set(this.#live.subarray(0, rows.words.length));
    clearTail(rows);
    return { rowCount, rows, visibleCount: rowCount - this.deletedCount };
  }

  #visibleThen(sequence: number, rowCount: number): VisibleRows {
    const rows = createBitmap(rowCount);
    const deleted = this.#deleted!;
    for (let start = 0; start < rowCount; start += 32) {
      const end = Math.min(start + 32, rowCount);
      let word = 0;
      for (let row = start; row < end; row++) {
        if (deleted[row]! > sequence) word |= 1 << (row - start);
      }
      rows.words[start >>> 5] = word;
    }
    const visibleCount = countBits(rows);
    return { rowCount, rows: visibleCount === rowCount ? null : rows, visibleCount };
  }
}
