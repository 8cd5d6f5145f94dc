// Reads NumPy's .npy files: a header with a Python dictionary, then the numbers. Supports two-dimensional arrays of any
// integer or floating-point type of up to 64 bits, in C order and, with random access, in Fortran order.

import { decodeUtf8 } from '../common/bytes.js';
import { type FilePart, readColumnMajor } from './column-major.js';
import type { InputSource } from './input-source.js';
import { ReadError } from './read-error.js';
import type { ReaderOptions } from './reader-options.js';
import {
  bytesPerNumber,
  checkContentBytes,
  DIMENSION_MAX,
  type NumberType,
  openRecords,
} from './record-files.js';
import type { RowReader } from './row-batch.js';

const VERSION_AT = 6;
/** The header length follows magic and version: two bytes in version 1, four in later ones. */
const LENGTH_AT = 8;

const TYPES: Readonly<Record<string, NumberType>> = {
  // NumPy stores a boolean as a byte of 0 or 1.
  b1: 'uint8',
  f2: 'float16',
  f4: 'float32',
  f8: 'float64',
  i1: 'int8',
  u1: 'uint8',
  i2: 'int16',
  u2: 'uint16',
  i4: 'int32',
  u4: 'uint32',
  i8: 'int64',
  u8: 'uint64',
};

/** `part` is undefined for piped or compressed bytes. Throws ReadError. */
export async function openNpy(
  source: InputSource,
  options: ReaderOptions,
  part: FilePart | undefined = source.file && { file: source.file, start: 0 },
): Promise<RowReader> {
  const { head, name } = source;
  const version = head[VERSION_AT]!;
  const lengthBytes = version === 1 ? 2 : 4;
  const headerAt = LENGTH_AT + lengthBytes;
  if (head.length < headerAt) throw new ReadError(`${name}: the file ends within its header`);
  if (version < 1 || version > 3) {
    throw new ReadError(`${name}: unsupported .npy version ${version}, expected 1, 2 or 3`);
  }
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const headerBytes =
    version === 1 ? view.getUint16(LENGTH_AT, true) : view.getUint32(LENGTH_AT, true);
  // The header of a plain array fits into the head of the file; larger ones are structured arrays.
  const start = headerAt + headerBytes;
  if (start > head.length) {
    throw new ReadError(
      `${name}: found a header of ${headerBytes} bytes, expected that of a plain array ` +
        `(at most ${head.length - headerAt} bytes)`,
    );
  }
  const header = decodeUtf8(head, headerAt, start);
  const descr = /'descr'\s*:\s*'([<>|=])([a-zA-Z]\d*)'/.exec(header);
  const type = descr === null ? undefined : TYPES[descr[2]!];
  if (type === undefined) {
    const found = /'descr'\s*:\s*('[^']*'|\[.*?\])/.exec(header)?.[1] ?? header.slice(0, 80).trim();
    throw new ReadError(
      `${name}: unsupported type ${found}, expected one of ${Object.keys(TYPES).join(', ')}`,
    );
  }
  const { rowCount, dimension } = readShape(name, header);
  const array = { type, isBigEndian: descr![1] === '>', dimension, rowCount };
  const order = /'fortran_order'\s*:\s*(True|False)\b/.exec(header)?.[1];
  if (order === undefined) throw new ReadError(`${name}: the header has no fortran_order`);
  if (order === 'False') {
    return openRecords(source, options, { ...array, start, hasPrefix: false });
  }
  checkContentBytes(source, start + rowCount * dimension * bytesPerNumber(type), array);
  if (part === undefined) {
    throw new ReadError(
      `${name}: an array in Fortran order cannot be read from compressed bytes or a pipe, because its ` +
        'rows are spread over the file; pass an uncompressed file, or convert it with numpy.ascontiguousarray',
    );
  }
  await part.check?.();
  return readColumnMajor({ ...array, name, file: part.file, start: part.start + start }, options);
}

/** The shape of a two-dimensional array. Throws ReadError for any other. */
function readShape(name: string, header: string): { rowCount: number; dimension: number } {
  const text = /'shape'\s*:\s*\(([^)]*)\)/.exec(header)?.[1] ?? '';
  // Python 2 wrote some integers with a trailing L.
  const numbers = /^\s*(\d+)L?\s*,\s*(\d+)L?\s*,?\s*$/.exec(text);
  const [rowCount, dimension] = [Number(numbers?.[1]), Number(numbers?.[2])];
  if (numbers !== null && dimension >= 1 && dimension <= DIMENSION_MAX) {
    // Beyond the size of any file, and byte offsets would not be exact.
    if (rowCount * dimension * 8 <= Number.MAX_SAFE_INTEGER) return { rowCount, dimension };
  }
  const found = text.trim().replace(/\s*,$/, '');
  throw new ReadError(
    `${name}: found the shape (${found}), expected (vectors, dimension) with a dimension from 1 to ${DIMENSION_MAX}`,
  );
}
