// Builds a column of text, plain or JSON, in one buffer that grows up to a limit.

import type { Utf8Column } from '../../common/types.js';
import { JsonWriter } from '../json/json-writer.js';
import { invalidArrow } from './arrow-errors.js';

/** Thrown if the text of one row exceeds its limit. */
export class RowTooLong extends Error {}

export class Utf8Builder extends JsonWriter {
  readonly #bytesMax: number;
  readonly #rowBytesMax: number;
  readonly #offsets: Int32Array;
  #rows = 0;

  constructor(rowCount: number, bytesMax: number, rowBytesMax: number) {
    super(Math.min(1024 + rowCount * 32, bytesMax));
    this.#bytesMax = Math.min(bytesMax, 2 ** 31 - 1);
    this.#rowBytesMax = rowBytesMax;
    this.#offsets = new Int32Array(rowCount + 1);
    this.#setLimit();
  }

  endRow(): void {
    this.#offsets[++this.#rows] = this.end;
    this.#setLimit();
  }

  /** Discards what was written to the row and ends it as an empty one. */
  dropRow(): void {
    this.end = this.#offsets[this.#rows]!;
    this.endRow();
  }

  finish(): Utf8Column {
    return { offsets: this.#offsets, bytes: this.written() };
  }

  protected override grow(byteCount: number): void {
    const needed = this.end + byteCount;
    if (needed > this.#bytesMax) {
      throw invalidArrow(`more than ${this.#bytesMax} bytes of text in a batch`, {
        advice: 'Send smaller batches.',
      });
    }
    const rowStart = this.#offsets[this.#rows]!;
    if (needed - rowStart > this.#rowBytesMax) throw new RowTooLong();
    if (needed > this.bytes.length) {
      const length = Math.min(Math.max(needed, this.bytes.length * 2), this.#bytesMax);
      this.resize(length);
    }
    this.#setLimit();
  }

  #setLimit(): void {
    this.limit = Math.min(this.bytes.length, this.#offsets[this.#rows]! + this.#rowBytesMax);
  }
}
