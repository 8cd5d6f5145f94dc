// Typed arrays over SharedArrayBuffers that grow. Growing copies into a new buffer, so that a view
// handed out earlier keeps its memory and its content; nothing here ever shrinks or moves under a
// reader.

import type { Utf8Column } from '../common/types.js';

export type SharedArray = Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array;

/** The smallest buffer worth having; most collections are small. */
const LENGTH_MIN = 16;

export function sharedBytes(length: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(length));
}
export function sharedInt32(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * 4));
}
export function sharedUint32(length: number): Uint32Array {
  return new Uint32Array(new SharedArrayBuffer(length * 4));
}
export function sharedFloat32(length: number): Float32Array {
  return new Float32Array(new SharedArrayBuffer(length * 4));
}
export function sharedFloat64(length: number): Float64Array {
  return new Float64Array(new SharedArrayBuffer(length * 8));
}

/**
 * `array` itself while it has room for `length` elements, else a copy in a buffer of at least twice
 * its length (but no longer than `lengthMax`, which must suffice), zero after the old content.
 */
export function withRoom<T extends SharedArray>(array: T, length: number, lengthMax?: number): T {
  if (length <= array.length) return array;
  const doubled = Math.max(length, array.length * 2, LENGTH_MIN);
  return resized(array, Math.max(length, Math.min(doubled, lengthMax ?? doubled)));
}

/** Bytes of values from which on growing is not worth a copy. */
const DOUBLED_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Like `withRoom`, but a large array gets all the room that it may ever need: memory that is not
 * touched costs nothing, while each outgrown buffer would stay until the collector comes by, which
 * does not see the size of shared memory.
 */
export function withValueRoom(
  array: Float32Array,
  length: number,
  lengthMax: number,
): Float32Array {
  if (length <= array.length) return array;
  if (length * array.BYTES_PER_ELEMENT < DOUBLED_BYTES_MAX) {
    return withRoom(array, length, lengthMax);
  }
  return resized(array, lengthMax);
}

/** The first `length` elements: a view when little is wasted behind them, else an exact copy. */
export function trimmed<T extends SharedArray>(array: T, length: number): T {
  const isNearlyFull = (array.length - length) * 8 <= length;
  return isNearlyFull ? (array.subarray(0, length) as T) : resized(array, length);
}

function resized<T extends SharedArray>(array: T, length: number): T {
  const ArrayType = array.constructor as new (buffer: SharedArrayBuffer) => T;
  const copy = new ArrayType(new SharedArrayBuffer(length * array.BYTES_PER_ELEMENT));
  copy.set(length < array.length ? array.subarray(0, length) : array);
  return copy;
}

/** Text of `bytes[start..end)`; works over shared memory, where TextDecoder does not. */
export function decodeUtf8(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8');
}

/** Strings that are only added to. */
export class GrowingUtf8 {
  count = 0;
  #offsets = sharedInt32(1);
  #bytes = Buffer.from(new SharedArrayBuffer(0));

  get byteLength(): number {
    return this.#offsets[this.count]!;
  }

  append(source: Utf8Column, from: number, count: number): void {
    const start = source.offsets[from]!;
    const end = source.offsets[from + count]!;
    const shift = this.byteLength - start;
    this.#reserve(count, end - start);
    this.#bytes.set(source.bytes.subarray(start, end), start + shift);
    const offsets = this.#offsets;
    const first = this.count - from;
    for (let i = from + 1; i <= from + count; i++) offsets[first + i] = source.offsets[i]! + shift;
    this.count += count;
  }

  /** Lone surrogates become U+FFFD, as everywhere where JavaScript writes UTF-8. */
  appendString(text: string): void {
    const start = this.byteLength;
    // A UTF-16 unit takes three bytes at most.
    this.#reserve(1, text.length * 3);
    const written = this.#bytes.write(text, start, 'utf8');
    this.count++;
    this.#offsets[this.count] = start + written;
  }

  /** What is there now; unchanged by later additions. */
  view(): Utf8Column {
    return {
      offsets: this.#offsets.subarray(0, this.count + 1),
      bytes: new Uint8Array(this.#bytes.buffer, 0, this.byteLength),
    };
  }

  /** Lets go of room that was reserved for growth. */
  trim(): void {
    this.#offsets = trimmed(this.#offsets, this.count + 1);
    this.#bytes = asBuffer(trimmed(new Uint8Array(this.#bytes.buffer), this.byteLength));
  }

  #reserve(count: number, byteCount: number): void {
    this.#offsets = withRoom(this.#offsets, this.count + count + 1);
    const bytesNeeded = this.byteLength + byteCount;
    if (bytesNeeded > this.#bytes.length) {
      this.#bytes = asBuffer(withRoom(new Uint8Array(this.#bytes.buffer), bytesNeeded));
    }
  }
}

function asBuffer(bytes: Uint8Array): Buffer<SharedArrayBuffer> {
  return Buffer.from(bytes.buffer as SharedArrayBuffer, bytes.byteOffset, bytes.byteLength);
}
