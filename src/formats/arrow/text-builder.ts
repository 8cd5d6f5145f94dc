// Builds a column of text, plain or JSON, in one buffer that grows up to a bound.

import type { Utf8Column } from '../../common/types.js';
import { invalidArrow } from './arrow-errors.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const ZERO = 0x30;
const HEX = '0123456789abcdef';
/** Up to this length a loop is faster than a call. */
const LOOP_BYTES_MAX = 48;

/** The letter that stands for a control character after a backslash. */
const SHORT_ESCAPES: { readonly [byte: number]: string } = {
  8: 'b',
  9: 't',
  10: 'n',
  12: 'f',
  13: 'r',
};

/** Thrown when the text of one row exceeds its bound. */
export class RowTooLong extends Error {}

export class TextBuilder {
  readonly #bytesMax: number;
  readonly #rowBytesMax: number;
  readonly #offsets: Int32Array;
  #bytes: Buffer;
  #limit: number;
  #rows = 0;
  end = 0;

  constructor(rowCount: number, bytesMax: number, rowBytesMax: number) {
    this.#bytesMax = Math.min(bytesMax, 2 ** 31 - 1);
    this.#rowBytesMax = rowBytesMax;
    this.#offsets = new Int32Array(rowCount + 1);
    this.#bytes = Buffer.allocUnsafeSlow(Math.min(1024 + rowCount * 32, this.#bytesMax));
    this.#limit = Math.min(this.#bytes.length, rowBytesMax);
  }

  endRow(): void {
    this.#offsets[++this.#rows] = this.end;
    this.#setLimit();
  }

  /** Ends the row as an empty one, dropping what was written to it. */
  dropRow(): void {
    this.end = this.#offsets[this.#rows]!;
    this.endRow();
  }

  finish(): Utf8Column {
    return { offsets: this.#offsets, bytes: this.#bytes.subarray(0, this.end) };
  }

  byte(byte: number): void {
    if (this.end >= this.#limit) this.#grow(1);
    this.#bytes[this.end++] = byte;
  }

  ascii(text: string): void {
    const { length } = text;
    if (this.end + length > this.#limit) this.#grow(length);
    if (length > LOOP_BYTES_MAX) {
      this.end += this.#bytes.write(text, this.end, 'latin1');
      return;
    }
    let { end } = this;
    for (let i = 0; i < length; i++) this.#bytes[end++] = text.charCodeAt(i);
    this.end = end;
  }

  raw(bytes: Uint8Array, from: number, to: number): void {
    const length = to - from;
    if (this.end + length > this.#limit) this.#grow(length);
    if (length > LOOP_BYTES_MAX) {
      this.#bytes.set(bytes.subarray(from, to), this.end);
      this.end += length;
      return;
    }
    let { end } = this;
    for (let i = from; i < to; i++) this.#bytes[end++] = bytes[i]!;
    this.end = end;
  }

  /** Writes UTF-8 bytes as a JSON string. */
  quoted(bytes: Uint8Array, from: number, to: number): void {
    const length = to - from;
    if (this.end + length + 2 > this.#limit) this.#grow(length + 2);
    const target = this.#bytes;
    let { end } = this;
    target[end++] = QUOTE;
    for (let i = from; i < to; i++) {
      const byte = bytes[i]!;
      if (byte < 0x20 || byte === QUOTE || byte === BACKSLASH) {
        this.end = end;
        this.#quotedRest(bytes, i, to);
        return;
      }
      target[end++] = byte;
    }
    target[end++] = QUOTE;
    this.end = end;
  }

  /** The rest of a string, from the first byte that is escaped. */
  #quotedRest(bytes: Uint8Array, from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const byte = bytes[i]!;
      if (byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH) {
        this.byte(byte);
        continue;
      }
      this.byte(BACKSLASH);
      if (byte >= 0x20) this.byte(byte);
      else this.ascii(SHORT_ESCAPES[byte] ?? `u00${HEX[byte >> 4]}${HEX[byte & 15]}`);
    }
    this.byte(QUOTE);
  }

  /** @param value an integer below 2^53. */
  integer(value: number): void {
    if (value >= 2 ** 31 || value <= -(2 ** 31)) {
      this.ascii(String(value));
      return;
    }
    if (this.end + 11 > this.#limit) this.#grow(11);
    let rest = value;
    if (rest < 0) {
      this.#bytes[this.end++] = MINUS;
      rest = -rest;
    }
    let digits = 1;
    for (let bound = 10; bound <= rest; bound *= 10) digits++;
    let at = this.end + digits;
    this.end = at;
    while (at > this.end - digits) {
      this.#bytes[--at] = ZERO + (rest % 10);
      rest = (rest / 10) | 0;
    }
  }

  #grow(byteCount: number): void {
    const needed = this.end + byteCount;
    if (needed > this.#bytesMax) {
      throw invalidArrow(
        `more than ${this.#bytesMax} bytes of text in a batch; send smaller batches`,
      );
    }
    const rowStart = this.#offsets[this.#rows]!;
    if (needed - rowStart > this.#rowBytesMax) throw new RowTooLong();
    if (needed > this.#bytes.length) {
      const length = Math.min(Math.max(needed, this.#bytes.length * 2), this.#bytesMax);
      const bytes = Buffer.allocUnsafeSlow(length);
      this.#bytes.copy(bytes, 0, 0, this.end);
      this.#bytes = bytes;
    }
    this.#setLimit();
  }

  #setLimit(): void {
    this.#limit = Math.min(this.#bytes.length, this.#offsets[this.#rows]! + this.#rowBytesMax);
  }
}
