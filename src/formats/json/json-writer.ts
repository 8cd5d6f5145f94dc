// Writes JSON or other text as UTF-8 into one growing buffer, without intermediate strings. Subclasses may limit its
// growth. Runs on any thread.

import { allocateBytes, writeLatin1 } from '../../common/bytes.js';
import { FLOAT_BYTES_MAX, writeFloat } from '../../common/float-text.js';
import type { Utf8Column } from '../../common/types.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const SPACE = 0x20;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const MINUS = 0x2d;
const ZERO = 0x30;
const HEX = '0123456789abcdef';

/** Up to this length a loop is faster than a call. */
const LOOP_BYTES_MAX = 48;

/** The letter that denotes a control character after a backslash. */
const SHORT_ESCAPES: { readonly [byte: number]: string } = {
  8: 'b',
  9: 't',
  10: 'n',
  12: 'f',
  13: 'r',
};

export class JsonWriter {
  protected bytes: Uint8Array;
  /** The end of the bytes that may be written without `grow`. */
  protected limit: number;
  /** The number of bytes written. */
  end = 0;

  /** @param byteCount the expected length. */
  constructor(byteCount: number) {
    this.bytes = allocateBytes(Math.max(byteCount, 64));
    this.limit = this.bytes.length;
  }

  /** Returns everything written, as a view at the start of its own buffer. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.end);
  }

  byte(byte: number): void {
    if (this.end >= this.limit) this.grow(1);
    this.bytes[this.end++] = byte;
  }

  /** @param text ASCII. */
  ascii(text: string): void {
    const { length } = text;
    if (this.end + length > this.limit) this.grow(length);
    if (length > LOOP_BYTES_MAX) {
      this.end += writeLatin1(this.bytes, text, this.end);
      return;
    }
    const { bytes } = this;
    let { end } = this;
    for (let i = 0; i < length; i++) bytes[end++] = text.charCodeAt(i);
    this.end = end;
  }

  raw(source: Uint8Array, from: number, to: number): void {
    const length = to - from;
    if (this.end + length > this.limit) this.grow(length);
    if (length > LOOP_BYTES_MAX) {
      this.bytes.set(source.subarray(from, to), this.end);
      this.end += length;
      return;
    }
    const { bytes } = this;
    let { end } = this;
    for (let i = from; i < to; i++) bytes[end++] = source[i]!;
    this.end = end;
  }

  /** Writes UTF-8 as a JSON string. */
  quoted(source: Uint8Array, from: number, to: number): void {
    const length = to - from;
    if (this.end + length + 2 > this.limit) this.grow(length + 2);
    const { bytes } = this;
    let { end } = this;
    bytes[end++] = QUOTE;
    for (let i = from; i < to; i++) {
      const byte = source[i]!;
      if (byte < SPACE || byte === QUOTE || byte === BACKSLASH) {
        this.end = end;
        this.#escapeRest(source, i, to);
        return;
      }
      bytes[end++] = byte;
    }
    bytes[end++] = QUOTE;
    this.end = end;
  }

  #escapeRest(source: Uint8Array, from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const byte = source[i]!;
      if (byte >= SPACE && byte !== QUOTE && byte !== BACKSLASH) {
        this.byte(byte);
        continue;
      }
      this.byte(BACKSLASH);
      if (byte >= SPACE) this.byte(byte);
      else this.ascii(SHORT_ESCAPES[byte] ?? `u00${HEX[byte >> 4]}${HEX[byte & 15]}`);
    }
    this.byte(QUOTE);
  }

  /** Writes a string of the column as a JSON string. */
  text({ offsets, bytes }: Utf8Column, row: number): void {
    this.quoted(bytes, offsets[row]!, offsets[row + 1]!);
  }

  /** Writes JSON text of the column on one line: line breaks between its tokens become spaces. */
  document({ offsets, bytes: source }: Utf8Column, row: number): void {
    const from = offsets[row]!;
    const to = offsets[row + 1]!;
    if (to - from > LOOP_BYTES_MAX) {
      const { end } = this;
      this.raw(source, from, to);
      this.#replace(LINE_FEED, end);
      this.#replace(CARRIAGE_RETURN, end);
      return;
    }
    if (this.end + to - from > this.limit) this.grow(to - from);
    const { bytes } = this;
    let { end } = this;
    for (let i = from; i < to; i++) {
      const byte = source[i]!;
      bytes[end++] = byte === LINE_FEED || byte === CARRIAGE_RETURN ? SPACE : byte;
    }
    this.end = end;
  }

  #replace(byte: number, from: number): void {
    const written = this.bytes.subarray(from, this.end);
    for (let at = written.indexOf(byte); at >= 0; at = written.indexOf(byte, at + 1)) {
      written[at] = SPACE;
    }
  }

  /** Doubles the quotes that were written from `from` on, as required in a quoted CSV cell. */
  doubleQuotes(from: number): void {
    const written = this.bytes.subarray(from, this.end);
    let count = 0;
    for (let at = written.indexOf(QUOTE); at >= 0; at = written.indexOf(QUOTE, at + 1)) count++;
    if (count === 0) return;
    if (this.end + count > this.limit) this.grow(count);
    const { bytes } = this;
    const end = this.end + count;
    for (let at = this.end - 1; count > 0; at--) {
      bytes[at + count] = bytes[at]!;
      if (bytes[at] === QUOTE) bytes[at + --count] = QUOTE;
    }
    this.end = end;
  }

  /** @param value an integer with a magnitude below 2^53. */
  integer(value: number): void {
    if (value >= 2 ** 31 || value <= -(2 ** 31)) {
      this.ascii(String(value));
      return;
    }
    if (this.end + 11 > this.limit) this.grow(11);
    const { bytes } = this;
    let rest = value;
    if (rest < 0) {
      bytes[this.end++] = MINUS;
      rest = -rest;
    }
    let digits = 1;
    for (let bound = 10; bound <= rest; bound *= 10) digits++;
    let at = this.end + digits;
    this.end = at;
    while (at > this.end - digits) {
      bytes[--at] = ZERO + (rest % 10);
      rest = (rest / 10) | 0;
    }
  }

  /** @param value finite and rounded to float32. */
  float(value: number): void {
    if (this.end + FLOAT_BYTES_MAX > this.limit) this.grow(FLOAT_BYTES_MAX);
    this.end = writeFloat(this.bytes, value, this.end);
  }

  /** Writes the elements from..to as an array. */
  vector(values: Float32Array, from: number, to: number): void {
    const byteCountMax = (to - from) * (FLOAT_BYTES_MAX + 1) + 2;
    if (this.end + byteCountMax > this.limit) this.grow(byteCountMax);
    const { bytes } = this;
    let { end } = this;
    bytes[end++] = OPEN_BRACKET;
    for (let i = from; i < to; i++) {
      if (i > from) bytes[end++] = COMMA;
      end = writeFloat(bytes, values[i]!, end);
    }
    bytes[end++] = CLOSE_BRACKET;
    this.end = end;
  }

  /** Makes room for `byteCount` more bytes. */
  protected grow(byteCount: number): void {
    this.resize(Math.max(this.end + byteCount, this.bytes.length * 2));
    this.limit = this.bytes.length;
  }

  protected resize(length: number): void {
    const bytes = allocateBytes(length);
    bytes.set(this.written());
    this.bytes = bytes;
  }
}
