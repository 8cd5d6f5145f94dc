// Reads .npy files, also compressed by gzip: matrices of float32, float16 or int8.

import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

export interface Matrix {
  readonly rowCount: number;
  readonly dimension: number;
  /** Row-major [rowCount, dimension]. */
  readonly values: Float32Array;
}

/**
 * Rows of int8 have no scale, only a direction, so they are scaled to unit length. Throws unless the file has two
 * dimensions of one of the types, little-endian and in the order of C.
 */
export function readNpy(path: string): Matrix {
  const stored = readFileSync(path);
  const bytes = path.endsWith('.gz') ? gunzipSync(stored) : stored;
  const isNpy = bytes.subarray(0, 6).equals(Buffer.from('\x93NUMPY', 'latin1'));
  const headerBytes = bytes[6] === 1 ? 2 : 4;
  const headerEnd = 8 + headerBytes + (isNpy ? bytes.readUIntLE(8, headerBytes) : 0);
  const header = bytes.toString('latin1', 8 + headerBytes, headerEnd);
  const [, type] = /'descr': '(<f4|<f2|\|i1)'/.exec(header) ?? [];
  const shape = /'shape': \((\d+), (\d+)\)/.exec(header);
  if (type === undefined || !/'fortran_order': False/.test(header) || shape === null) {
    throw new Error(
      `${path}: expected a .npy file of float32, float16 or int8 [rows, dimension]; found ${header}`,
    );
  }
  const [rowCount, dimension] = [Number(shape[1]), Number(shape[2])];
  const data = bytes.subarray(headerEnd);
  return { values: decode(type, data, rowCount * dimension, dimension), rowCount, dimension };
}

function decode(type: string, bytes: Buffer, count: number, dimension: number): Float32Array {
  // Copied, since the header need not end at a multiple of four bytes.
  const copy = new Uint8Array(bytes).buffer;
  if (type === '<f4') return new Float32Array(copy, 0, count);
  if (type === '<f2') return Float32Array.from(new Uint16Array(copy, 0, count), fromFloat16);
  const values = Float32Array.from(new Int8Array(copy, 0, count));
  for (let at = 0; at < count; at += dimension) normalize(values.subarray(at, at + dimension));
  return values;
}

function fromFloat16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 31;
  const fraction = bits & 1_023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0
    ? sign * fraction * 2 ** -24
    : sign * (1 + fraction / 1_024) * 2 ** (exponent - 15);
}

/** Scales to unit length, in place. */
export function normalize(vector: Float32Array): void {
  let square = 0;
  for (const value of vector) square += value * value;
  const scale = 1 / Math.sqrt(square);
  for (let i = 0; i < vector.length; i++) vector[i]! *= scale;
}
