// Files of bare vectors, one record of bytes after another: fvecs, bvecs and ivecs, where each record
// begins with its dimension, and fbin, u8bin and i8bin, where the file begins with count and dimension.
// A record's place in the file is known, so a resumed import goes there at once.

import { CliError } from '../failure.js';
import { ByteReader } from './byte-reader.js';
import { ELEMENT_TYPES, type ElementType, toFloats } from './element-types.js';
import {
  checkFinite,
  type ReadOptions,
  type RowBatch,
  type RowReader,
  rowError,
  rowsPerBatch,
} from './row-batch.js';
import type { InputSource } from './source.js';

/** The longest vector that is taken for one: a larger number is a file of another kind. */
const DIMENSION_MAX = 1_000_000;
const INT32_BYTES = 4;

export interface RecordLayout {
  readonly type: ElementType;
  readonly isBigEndian?: boolean;
  readonly dimension: number;
  /** Where the first record begins. */
  readonly start: number;
  /** Whether each record begins with its dimension. */
  readonly hasPrefix: boolean;
  /** Undefined: as many as there are. */
  readonly rowCount: number | undefined;
}

/** fvecs, bvecs, ivecs. */
export async function openVecs(
  source: InputSource,
  type: ElementType,
  options: ReadOptions,
): Promise<RowReader> {
  if (source.head.length < INT32_BYTES) throw tooShort(source, 'the dimension of a vector');
  const dimension = checkDimension(source, readInt32(source.head, 0));
  const recordBytes = INT32_BYTES + dimension * ELEMENT_TYPES[type];
  const isKnown = source.path !== undefined && source.byteCount! % recordBytes === 0;
  return readRecords(source, options, {
    type,
    dimension,
    start: 0,
    hasPrefix: true,
    rowCount: isKnown ? source.byteCount! / recordBytes : undefined,
  });
}

/** fbin, u8bin, i8bin. */
export async function openBin(
  source: InputSource,
  type: ElementType,
  options: ReadOptions,
): Promise<RowReader> {
  const start = 2 * INT32_BYTES;
  if (source.head.length < start) throw tooShort(source, 'the number of vectors and the dimension');
  const rowCount = readInt32(source.head, 0);
  const dimension = checkDimension(source, readInt32(source.head, INT32_BYTES));
  if (rowCount < 0) {
    throw new CliError(`${source.name}: found ${rowCount} as the number of vectors`);
  }
  return readRecords(source, options, { type, dimension, start, hasPrefix: false, rowCount });
}

/** Throws CliError when the file's length tells that it cannot hold what it says. */
export function readRecords(
  source: InputSource,
  options: ReadOptions,
  layout: RecordLayout,
): RowReader {
  const { rowCount, dimension, type, hasPrefix, start } = layout;
  const prefixBytes = hasPrefix ? INT32_BYTES : 0;
  const recordBytes = prefixBytes + dimension * ELEMENT_TYPES[type];
  if (rowCount !== undefined && source.path !== undefined) {
    const expected = start + rowCount * recordBytes;
    if (source.byteCount !== expected) {
      throw new CliError(
        `${source.name}: found ${source.byteCount} bytes, expected ${expected} for ` +
          `${rowCount} vectors of ${dimension} ${type}`,
      );
    }
  }
  const place = (row: number): string => `${source.name}, row ${row + 1}`;

  async function* batches(startRow: number): AsyncGenerator<RowBatch> {
    const reader = new ByteReader(source.chunks(start + startRow * recordBytes));
    const batchRows = rowsPerBatch(dimension, options.rowsPerBatch);
    try {
      for (let row = startRow; rowCount === undefined || row < rowCount; ) {
        const wanted = Math.min(batchRows, (rowCount ?? Number.POSITIVE_INFINITY) - row);
        const bytes = await reader.take(wanted * recordBytes);
        if (bytes.length === 0 && rowCount === undefined) return;
        const count = Math.floor(bytes.length / recordBytes);
        const isTorn = rowCount === undefined ? bytes.length % recordBytes !== 0 : count < wanted;
        const elements = hasPrefix ? withoutPrefixes(bytes, count, row) : bytes;
        // Where the dimension has changed, the records behind it are not where they are sought.
        if (hasPrefix && isTorn && bytes.length - count * recordBytes >= INT32_BYTES) {
          checkPrefix(bytes, count, row);
        }
        if (isTorn) {
          const found = bytes.length - count * recordBytes;
          throw rowError(
            place(row + count),
            `the file ends after ${found} bytes of this vector, expected ${recordBytes}`,
          );
        }
        const first = row;
        const batch: RowBatch = {
          rowCount: count,
          ids: undefined,
          values: toFloats(type, elements, layout.isBigEndian),
          dimension,
          metadata: undefined,
          place: (at) => place(first + at),
        };
        checkFinite(batch, 'values');
        yield batch;
        row += count;
      }
      if ((await reader.take(1)).length > 0) {
        throw new CliError(`${source.name}: found more bytes than ${rowCount} vectors have`);
      }
    } finally {
      await reader.close();
    }
  }

  function withoutPrefixes(bytes: Uint8Array, count: number, firstRow: number): Uint8Array {
    const bodyBytes = recordBytes - prefixBytes;
    const bodies = new Uint8Array(count * bodyBytes);
    for (let at = 0; at < count; at++) {
      checkPrefix(bytes, at, firstRow);
      const from = at * recordBytes + prefixBytes;
      bodies.set(bytes.subarray(from, from + bodyBytes), at * bodyBytes);
    }
    return bodies;
  }

  function checkPrefix(bytes: Uint8Array, at: number, firstRow: number): void {
    const found = readInt32(bytes, at * recordBytes);
    if (found === dimension) return;
    throw rowError(
      place(firstRow + at),
      `found the dimension ${found}, expected ${dimension} as in row 1`,
    );
  }

  return { rowCount, batches };
}

function checkDimension({ name }: InputSource, found: number): number {
  if (found >= 1 && found <= DIMENSION_MAX) return found;
  throw new CliError(
    `${name}: found ${found} as the dimension of the first vector, expected 1 to ${DIMENSION_MAX}; ` +
      'is it a file of this format?',
  );
}

function tooShort({ name, head }: InputSource, expected: string): CliError {
  return new CliError(`${name}: found ${head.length} bytes, expected ${expected}`);
}

function readInt32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset + at, INT32_BYTES).getInt32(0, true);
}
