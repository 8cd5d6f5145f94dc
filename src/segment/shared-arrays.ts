// Growing typed arrays over SharedArrayBuffers. Growing copies into a new buffer, so that views returned
// earlier keep their contents.

import { type SharedArray, sharedInt32, sharedLike } from '../common/shared-array.js';
import type { Utf8Column } from '../common/types.js';

/** The minimum capacity. It is small because most collections are. */
const LENGTH_MIN = 16;

/**
 * Returns `array` if it has room for `length` elements. Otherwise it returns a copy of at least twice the
 * length, but at most `lengthMax` (which must be enough), with zeros after the old contents.
 */
export function withRoom<T extends SharedArray>(array: T, length: number, lengthMax?: number): T {
  if (length <= array.length) return array;
  const doubled = Math.max(length, array.length * 2, LENGTH_MIN);
  return resized(array, Math.max(length, Math.min(doubled, lengthMax ?? doubled)));
}

/** Arrays of values up to this size grow by doubling. */
const DOUBLED_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Like `withRoom`, but a large array gets all the room that it may ever need. Untouched memory is free, whereas
 * outgrown buffers stay until the garbage collector runs, which does not count shared memory.
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

/**
 * Like `trimmed`, for an array from `withValueRoom`. Room that was never touched is not worth copying many
 * megabytes on the main thread.
 */
export function trimmedValues(array: Float32Array, length: number): Float32Array {
  const isLarge = length * array.BYTES_PER_ELEMENT >= DOUBLED_BYTES_MAX;
  return isLarge ? array.subarray(0, length) : trimmed(array, length);
}

/** Returns the first `length` elements: a subarray if that wastes little room, otherwise a copy. */
export function trimmed<T extends SharedArray>(array: T, length: number): T {
  const isNearlyFull = (array.length - length) * 8 <= length;
  return isNearlyFull ? (array.subarray(0, length) as T) : resized(array, length);
}

function resized<T extends SharedArray>(array: T, length: number): T {
  const copy = sharedLike(array, length);
  copy.set(length < array.length ? array.subarray(0, length) : array);
  return copy;
}

/** An append-only column of strings. */
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

  appendString(text: string): void {
    const start = this.byteLength;
    // A UTF-16 unit takes at most three bytes.
    this.#reserve(1, text.length * 3);
    const written = this.#bytes.write(text, start, 'utf8');
    this.count++;
    this.#offsets[this.count] = start + written;
  }

  /** Returns the current strings. Later additions do not change the view. */
  view(): Utf8Column {
    return {
      offsets: this.#offsets.subarray(0, this.count + 1),
      bytes: new Uint8Array(this.#bytes.buffer, 0, this.byteLength),
    };
  }

  /** Frees memory reserved for growth. */
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
