// The data of the comparison: generated vectors, isotropic noise, or a file of real vectors, in blocks of the
// size that the database uses.

import { readFileSync } from 'node:fs';
import { createBlocks, createDataSet, type DataSet } from '../engine/data.js';
import type { Parameters, Shape } from '../engine/options.js';

/** The source of a data set; plain data, since it is sent to other processes. */
export type VectorSource =
  | { readonly kind: 'clusters'; readonly shape: Shape }
  | { readonly kind: 'noise'; readonly shape: Shape }
  /** A .npy file of float32 [rows, dimension], some of whose rows serve as queries instead. */
  | { readonly kind: 'file'; readonly path: string };

export function openVectors(source: VectorSource, parameters: Parameters): DataSet {
  switch (source.kind) {
    case 'clusters':
      return createDataSet('wide', {
        ...parameters,
        data: { ...parameters.data, wide: source.shape },
      });
    case 'noise':
      return createNoise(source.shape, parameters);
    case 'file':
      return readVectors(source.path, parameters);
  }
}

/** Values that are independent of each other: no direction is preferred, so scans prune least. */
function createNoise(shape: Shape, parameters: Parameters): DataSet {
  const random = createNormal();
  const fill = (target: Float32Array, offset: number) => {
    for (let i = 0; i < shape.dimension; i++) target[offset + i] = random();
  };
  return createBlocks('wide', shape, parameters, fill);
}

/** Returns approximately normal numbers: the sum of the four bytes of a step of xorshift32. */
function createNormal(): () => number {
  let state = 20_251;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state & 255) + ((state >>> 8) & 255) + ((state >>> 16) & 255) + (state >>> 24) - 510;
  };
}

function readVectors(path: string, parameters: Parameters): DataSet {
  const { values, rowCount, dimension } = readNpy(path);
  const step = Math.floor(rowCount / parameters.queryCount);
  if (step < 2) {
    throw new Error(
      `${path}: expected at least ${2 * parameters.queryCount} rows, found ${rowCount}`,
    );
  }
  const isQuery = (row: number) => row % step === 0 && row / step < parameters.queryCount;
  const order: number[] = [];
  const queries: number[] = [];
  for (let row = 0; row < rowCount; row++) (isQuery(row) ? queries : order).push(row);
  order.push(...queries);
  let next = 0;
  const shape = { rowCount: rowCount - queries.length, dimension };
  return createBlocks('wide', shape, parameters, (target, offset) => {
    const from = order[next++]! * dimension;
    target.set(values.subarray(from, from + dimension), offset);
  });
}

/** Throws unless the file has two dimensions of little-endian float32 in the order of C. */
export function readNpy(path: string): Shape & { readonly values: Float32Array } {
  const bytes = readFileSync(path);
  const isNpy = bytes.subarray(0, 6).equals(Buffer.from('\x93NUMPY', 'latin1'));
  const headerBytes = bytes[6] === 1 ? 2 : 4;
  const headerEnd = 8 + headerBytes + (isNpy ? bytes.readUIntLE(8, headerBytes) : 0);
  const header = bytes.toString('latin1', 8 + headerBytes, headerEnd);
  const shape = /'shape': \((\d+), (\d+)\)/.exec(header);
  if (!/'descr': '<f4'/.test(header) || !/'fortran_order': False/.test(header) || shape === null) {
    throw new Error(`${path}: expected a .npy file of float32 [rows, dimension], found ${header}`);
  }
  const [rowCount, dimension] = [Number(shape[1]), Number(shape[2])];
  const start = bytes.byteOffset + headerEnd;
  const values = new Float32Array(bytes.buffer.slice(start, start + 4 * rowCount * dimension));
  return { values, rowCount, dimension };
}
