// Rows of a NumPy array file: two dimensions in C order, numbers of up to 64 bits, little-endian. Each row
// is one vector in the column `values`.

import { readBytes, type SliceableFile } from './file-bytes.js';
import { ImportError, type RowSource, type SourceRow } from './row-source.js';

type Reader = (view: DataView, offset: number) => number;

const TYPES: Readonly<Record<string, { readonly byteCount: number; readonly read: Reader }>> = {
  '<f2': { byteCount: 2, read: (view, at) => halfToNumber(view.getUint16(at, true)) },
  '<f4': { byteCount: 4, read: (view, at) => view.getFloat32(at, true) },
  '<f8': { byteCount: 8, read: (view, at) => view.getFloat64(at, true) },
  '|i1': { byteCount: 1, read: (view, at) => view.getInt8(at) },
  '|u1': { byteCount: 1, read: (view, at) => view.getUint8(at) },
  '<i2': { byteCount: 2, read: (view, at) => view.getInt16(at, true) },
  '<u2': { byteCount: 2, read: (view, at) => view.getUint16(at, true) },
  '<i4': { byteCount: 4, read: (view, at) => view.getInt32(at, true) },
  '<u4': { byteCount: 4, read: (view, at) => view.getUint32(at, true) },
  '<i8': { byteCount: 8, read: (view, at) => Number(view.getBigInt64(at, true)) },
  '<u8': { byteCount: 8, read: (view, at) => Number(view.getBigUint64(at, true)) },
};

const BLOCK_BYTES = 4_000_000;
const HEADER_BYTES_MAX = 65_536;

export async function openNpy(file: SliceableFile): Promise<RowSource> {
  const { type, rowCount, dimension, dataStart } = await readHeader(file);
  const rowBytes = type.byteCount * dimension;
  if (file.size < dataStart + rowCount * rowBytes) {
    const expected = dataStart + rowCount * rowBytes;
    throw new ImportError(`the file has ${file.size} bytes, expected ${expected}`);
  }
  let done = 0;
  async function* rows(startRow: number): AsyncGenerator<readonly SourceRow[]> {
    const blockRows = Math.max(1, Math.floor(BLOCK_BYTES / rowBytes));
    for (let first = startRow; first < rowCount; first += blockRows) {
      const end = Math.min(rowCount, first + blockRows);
      const from = dataStart + first * rowBytes;
      const bytes = await readBytes(file, from, dataStart + end * rowBytes);
      const view = new DataView(bytes.buffer);
      done = end;
      yield Array.from({ length: end - first }, (_, row): SourceRow => {
        const values = new Float32Array(dimension);
        for (let at = 0; at < dimension; at++) {
          values[at] = type.read(view, row * rowBytes + at * type.byteCount);
        }
        return { kind: 'row', cells: { values } };
      });
    }
  }
  return {
    title: 'NumPy array',
    rowCount,
    isText: false,
    columns: ['values'],
    rows,
    share: () => (rowCount === 0 ? 1 : done / rowCount),
  };
}

async function readHeader(file: SliceableFile) {
  const head = await readBytes(file, 0, Math.min(file.size, HEADER_BYTES_MAX));
  if (head.length < 12) throw new ImportError('the file ends within its header');
  const view = new DataView(head.buffer);
  const isFirstVersion = head[6] === 1;
  const headerStart = isFirstVersion ? 10 : 12;
  const headerBytes = isFirstVersion ? view.getUint16(8, true) : view.getUint32(8, true);
  const dataStart = headerStart + headerBytes;
  const header = new TextDecoder().decode(head.subarray(headerStart, dataStart));
  const name = /'descr'\s*:\s*'([^']+)'/.exec(header)?.[1] ?? '';
  const shape = /'shape'\s*:\s*\(\s*(\d+)\s*,\s*(\d+)\s*,?\s*\)/.exec(header);
  const type = TYPES[name];
  if (type === undefined) {
    const expected = Object.keys(TYPES).join(', ');
    throw new ImportError(`found an array of ${name || 'an unknown type'}, expected ${expected}`);
  }
  if (shape === null || !/'fortran_order'\s*:\s*False/.test(header)) {
    throw new ImportError('expected an array with two dimensions in C order');
  }
  return { type, rowCount: Number(shape[1]), dimension: Number(shape[2]), dataStart };
}

/** IEEE 754 binary16. */
function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * 2 ** -24 * fraction;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * 2 ** (exponent - 25) * (1024 + fraction);
}
