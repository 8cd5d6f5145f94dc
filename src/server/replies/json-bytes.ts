// JSON written as bytes, from columns to columns of text without a string in between: what long
// replies are made of, one line a record. Runs in the pool as well.

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

/** Below this a loop is faster than to make a view and copy it. */
const LOOPED_BYTES_MAX = 48;

export class JsonBytes {
  #target: Buffer;
  #length = 0;

  /** @param byteCount what is expected; it grows. */
  constructor(byteCount: number) {
    this.#target = Buffer.allocUnsafeSlow(Math.max(byteCount, 64));
  }

  get length(): number {
    return this.#length;
  }

  /** @param text ASCII. */
  ascii(text: string): void {
    this.#reserve(text.length);
    const target = this.#target;
    for (let i = 0; i < text.length; i++) target[this.#length++] = text.charCodeAt(i);
  }

  /** A string of the column, quoted. */
  text({ offsets, bytes }: Utf8Column, row: number): void {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    // A control character takes six bytes.
    this.#reserve((end - start) * 6 + 2);
    const target = this.#target;
    let at = this.#length;
    target[at++] = QUOTE;
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!;
      if (byte === QUOTE || byte === BACKSLASH) target[at++] = BACKSLASH;
      if (byte >= SPACE) target[at++] = byte;
      else at += target.write(`\\u00${byte.toString(16).padStart(2, '0')}`, at, 'latin1');
    }
    target[at++] = QUOTE;
    this.#length = at;
  }

  /** JSON text of the column as it stands, but on one line: only between its tokens may it break. */
  document({ offsets, bytes }: Utf8Column, row: number): void {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    this.#reserve(end - start);
    const target = this.#target;
    let at = this.#length;
    this.#length += end - start;
    if (end - start <= LOOPED_BYTES_MAX) {
      for (let i = start; i < end; i++) {
        const byte = bytes[i]!;
        target[at++] = byte === LINE_FEED || byte === CARRIAGE_RETURN ? SPACE : byte;
      }
      return;
    }
    target.set(bytes.subarray(start, end), at);
    this.#replace(LINE_FEED, at);
    this.#replace(CARRIAGE_RETURN, at);
  }

  /** @param value finite and rounded to float32. */
  float(value: number): void {
    this.#reserve(FLOAT_BYTES_MAX);
    this.#length = writeFloat(this.#target, value, this.#length);
  }

  /** An array of the elements from..to. */
  vector(values: Float32Array, from: number, to: number): void {
    this.#reserve((to - from) * (FLOAT_BYTES_MAX + 1) + 2);
    const target = this.#target;
    let at = this.#length;
    target[at++] = OPEN_BRACKET;
    for (let i = from; i < to; i++) {
      if (i > from) target[at++] = COMMA;
      at = writeFloat(target, values[i]!, at);
    }
    target[at++] = CLOSE_BRACKET;
    this.#length = at;
  }

  /** All of it, at the beginning of a buffer of its own. */
  taken(): Uint8Array {
    return this.#target.subarray(0, this.#length);
  }

  #replace(byte: number, from: number): void {
    const written = this.#target.subarray(from, this.#length);
    for (let at = written.indexOf(byte); at >= 0; at = written.indexOf(byte, at + 1)) {
      written[at] = SPACE;
    }
  }

  #reserve(byteCount: number): void {
    const needed = this.#length + byteCount;
    if (needed <= this.#target.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#target.length * 2));
    larger.set(this.#target.subarray(0, this.#length));
    this.#target = larger;
  }
}
