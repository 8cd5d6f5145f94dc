// Files of plain vectors with fixed-size records: fvecs, bvecs and ivecs, where each record begins with
// its dimension, and fbin, u8bin and i8bin, where the file begins with count and dimension. A record's
// offset is known, so a resumed import seeks to it.

import { ELEMENTS } from '../common/elements.js';
import { ByteReader } from './byte-stream.js';
import type { InputSource } from './input-source.js';
import { ReadError } from './read-error.js';
import type { ReaderOptions } from './reader-options.js';
import {
  plainBatch,
  type RowBatch,
  type RowReader,
  rowsPerBatch,
  type Sample,
  sampleOfVectors,
} from './row-batch.js';

/** A larger dimension means that the file has a different format. */
export const DIMENSION_MAX = 1_000_000;
const INT32_BYTES = 4;

interface RecordLayout {
  readonly type: NumberType;
  readonly isBigEndian?: boolean;
  readonly dimension: number;
  /** Offset of the first record. */
  readonly start: number;
  /** Whether each record begins with its dimension. */
  readonly hasPrefix: boolean;
  /** Undefined: records continue to the end of the file. */
  readonly rowCount: number | undefined;
}

/** Opens an fvecs, bvecs or ivecs file. */
export async function openVecs(
  source: InputSource,
  type: NumberType,
  options: ReaderOptions,
): Promise<RowReader> {
  if (source.head.length < INT32_BYTES) throw tooShort(source, 'the dimension of a vector');
  const dimension = checkDimension(source, readInt32(source.head, 0));
  const recordBytes = INT32_BYTES + dimension * bytesPerNumber(type);
  const { contentBytes } = source;
  const isKnown = contentBytes !== undefined && contentBytes % recordBytes === 0;
  return openRecords(source, options, {
    type,
    dimension,
    start: 0,
    hasPrefix: true,
    rowCount: isKnown ? contentBytes / recordBytes : undefined,
  });
}

/** Opens an fbin, u8bin or i8bin file. */
export async function openBin(
  source: InputSource,
  type: NumberType,
  options: ReaderOptions,
): Promise<RowReader> {
  const start = 2 * INT32_BYTES;
  if (source.head.length < start) throw tooShort(source, 'the number of vectors and the dimension');
  const rowCount = readInt32(source.head, 0);
  const dimension = checkDimension(source, readInt32(source.head, INT32_BYTES));
  if (rowCount < 0) {
    throw new ReadError(`${source.name}: invalid number of vectors ${rowCount} in the header`);
  }
  return openRecords(source, options, { type, dimension, start, hasPrefix: false, rowCount });
}

/** Throws ReadError when the file's length does not match its header. */
export function openRecords(
  source: InputSource,
  options: ReaderOptions,
  layout: RecordLayout,
): RowReader {
  return new RecordReader(source, options, layout);
}

class RecordReader implements RowReader {
  readonly #source: InputSource;
  readonly #options: ReaderOptions;
  readonly #rowsPerBatch: number;
  readonly #layout: RecordLayout;
  readonly #prefixBytes: number;
  readonly #recordBytes: number;

  constructor(source: InputSource, options: ReaderOptions, layout: RecordLayout) {
    const { rowCount, dimension, type, start } = layout;
    this.#source = source;
    this.#options = options;
    this.#rowsPerBatch = rowsPerBatch(dimension, options.rowsPerBatch);
    this.#layout = layout;
    this.#prefixBytes = layout.hasPrefix ? INT32_BYTES : 0;
    this.#recordBytes = this.#prefixBytes + dimension * bytesPerNumber(type);
    if (rowCount === undefined) return;
    checkContentBytes(source, start + rowCount * this.#recordBytes, { rowCount, dimension, type });
  }

  get rowCount(): number | undefined {
    return this.#layout.rowCount;
  }

  sample(rowCount: number): Promise<Sample> {
    return sampleOfVectors(this, rowCount);
  }

  async *batches(startRow: number): AsyncGenerator<RowBatch> {
    const { rowCount, start, dimension } = this.#layout;
    const reader = new ByteReader(this.#source.chunks(start + startRow * this.#recordBytes));
    try {
      for (let row = startRow; rowCount === undefined || row < rowCount; ) {
        const wanted = Math.min(this.#rowsPerBatch, (rowCount ?? Number.POSITIVE_INFINITY) - row);
        const bytes = await reader.take(wanted * this.#recordBytes);
        if (bytes.length === 0 && rowCount === undefined) return;
        const values = this.#decode(bytes, row, wanted);
        const rows = {
          values,
          dimension,
          firstRow: row,
          location: (at: number) => this.#location(at),
        };
        if (yield* plainBatch(rows, this.#options)) return;
        row += values.length / dimension;
      }
      if ((await reader.take(1)).length > 0) {
        throw new ReadError(`${this.#source.name}: found more bytes than ${rowCount} vectors take`);
      }
    } finally {
      await reader.close();
    }
  }

  /** The values of `wanted` rows from `firstRow` on, or of fewer if the file does not state its row count. */
  #decode(bytes: Uint8Array, firstRow: number, wanted: number): Float32Array {
    const { rowCount, type, hasPrefix, isBigEndian } = this.#layout;
    const count = Math.floor(bytes.length / this.#recordBytes);
    const restBytes = bytes.length - count * this.#recordBytes;
    const isTruncated = rowCount === undefined ? restBytes > 0 : count < wanted;
    const elements = hasPrefix ? this.#withoutPrefixes(bytes, count, firstRow) : bytes;
    if (isTruncated) {
      // A record of a different dimension shifts the records after it, so its dimension is reported first.
      if (hasPrefix && restBytes >= INT32_BYTES) this.#checkPrefix(bytes, count, firstRow);
      throw new ReadError(
        `${this.#location(firstRow + count)}: the file ends within this vector, after ${restBytes} of ${this.#recordBytes} bytes`,
      );
    }
    return toFloats(type, elements, isBigEndian);
  }

  #withoutPrefixes(bytes: Uint8Array, count: number, firstRow: number): Uint8Array {
    const valueBytes = this.#recordBytes - this.#prefixBytes;
    const values = new Uint8Array(count * valueBytes);
    for (let at = 0; at < count; at++) {
      this.#checkPrefix(bytes, at, firstRow);
      const from = at * this.#recordBytes + this.#prefixBytes;
      values.set(bytes.subarray(from, from + valueBytes), at * valueBytes);
    }
    return values;
  }

  #checkPrefix(bytes: Uint8Array, at: number, firstRow: number): void {
    const found = readInt32(bytes, at * this.#recordBytes);
    const { dimension } = this.#layout;
    if (found === dimension) return;
    throw new ReadError(
      `${this.#location(firstRow + at)}: found dimension ${found}, expected ${dimension} as in row 1`,
    );
  }

  #location(row: number): string {
    return `${this.#source.name}, row ${row + 1}`;
  }
}

/** Throws ReadError when the content is known to have a size other than `expected`. */
export function checkContentBytes(
  { name, contentBytes }: InputSource,
  expected: number,
  { rowCount, dimension, type }: { rowCount: number; dimension: number; type: NumberType },
): void {
  if (contentBytes === undefined || contentBytes === expected) return;
  throw new ReadError(
    `${name}: found ${contentBytes} bytes, expected ${expected} for ` +
      `${rowCount} vectors of ${dimension} ${type}`,
  );
}

function checkDimension({ name }: InputSource, found: number): number {
  if (found >= 1 && found <= DIMENSION_MAX) return found;
  throw new ReadError(
    `${name}: the first vector has dimension ${found}, expected 1 to ${DIMENSION_MAX}; ` +
      'the file probably has a different format',
  );
}

function tooShort({ name, head }: InputSource, expected: string): ReadError {
  return new ReadError(`${name}: found ${head.length} bytes, expected ${expected}`);
}

function readInt32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset + at, INT32_BYTES).getInt32(0, true);
}

interface NumberArrayType {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): NumberArray;
  readonly BYTES_PER_ELEMENT: number;
}

type NumberArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** The typed array for each number type of these files. Both are little-endian, like every supported platform. */
const NUMBER_ARRAYS = {
  float16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
} as const satisfies Readonly<Record<string, NumberArrayType>>;

export type NumberType = keyof typeof NUMBER_ARRAYS;

export function bytesPerNumber(type: NumberType): number {
  return NUMBER_ARRAYS[type].BYTES_PER_ELEMENT;
}

/** Converts numbers to float32. `bytes` ends at a number boundary; big-endian numbers are swapped in place. */
export function toFloats(type: NumberType, bytes: Uint8Array, isBigEndian = false): Float32Array {
  const NumberArray: NumberArrayType = NUMBER_ARRAYS[type];
  const size = NumberArray.BYTES_PER_ELEMENT;
  // Typed arrays require an aligned offset. `slice` of a Buffer would not copy.
  const aligned = bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
  if (isBigEndian) swap(aligned, size);
  const { buffer, byteOffset, byteLength } = aligned;
  const numbers = new NumberArray(buffer, byteOffset, byteLength / size);
  if (numbers instanceof Float32Array) return numbers;
  if (numbers instanceof BigInt64Array || numbers instanceof BigUint64Array) {
    return floatsOfBigInts(numbers);
  }
  if (type !== 'float16') return new Float32Array(numbers);
  const floats = new Float32Array(numbers.length);
  ELEMENTS.float16.unpack(numbers as Uint16Array, floats);
  return floats;
}

/** A loop is 20 times as fast as `Float32Array.from` with a function. */
function floatsOfBigInts(integers: BigInt64Array | BigUint64Array): Float32Array {
  const floats = new Float32Array(integers.length);
  for (let at = 0; at < integers.length; at++) floats[at] = Number(integers[at]!);
  return floats;
}

function swap(bytes: Uint8Array, size: number): void {
  for (let start = 0; start < bytes.length; start += size) {
    for (let low = start, high = start + size - 1; low < high; low++, high--) {
      const byte = bytes[low]!;
      bytes[low] = bytes[high]!;
      bytes[high] = byte;
    }
  }
}
