// An encoder whose codes a test can check, and an engine that checks the codes of every block that it searches.

import assert from 'node:assert/strict';
import {
  type HeadlessRows,
  ROW_CODE_NAMES,
  type RowCodes,
  type RowEncoder,
  type SealedRows,
  type UnencodedRows,
  type VectorBlock,
} from '../../src/common/types.js';
import type { Engine, SearchQuery } from '../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { createInlinePool } from '../../src/platform/pool.js';

/** Vectors have three values, one for each array of codes that grows with the rows. */
export const DIMENSION = 3;
const ROW_BYTES = 4;

type Train = (rows: SealedRows, previous: Uint8Array | null) => Promise<Uint8Array | null>;

export interface CheckedEncoder extends RowEncoder {
  /** Times that rows were encoded as a whole, as in compacted segments and in loaded ones without usable codes. */
  encodedSegmentCount: number;
  /** Times that a head was to be made. */
  trainedCount: number;
}

/** A basis is a number that scales the head: the first value of every row. */
export function basisOf(scale: number): Uint8Array {
  const basis = new Uint8Array(new SharedArrayBuffer(8));
  new DataView(basis.buffer).setFloat64(0, scale);
  return basis;
}

const scaleOf = (basis: Uint8Array) =>
  new DataView(basis.buffer, basis.byteOffset, basis.byteLength).getFloat64(0);

/** @param train by default, segments have no head. */
export function createCheckedEncoder(
  encoding: string,
  train: Train = async () => null,
): CheckedEncoder {
  const encoder: CheckedEncoder = {
    encodedSegmentCount: 0,
    trainedCount: 0,
    encoding,
    byteLengths(rowCount) {
      const byteLength = rowCount * ROW_BYTES;
      return { tiles: byteLength, coarse: byteLength, refinement: byteLength };
    },
    accepts: ({ basis, head, ...codes }, rowCount) =>
      codes.encoding === encoding &&
      ROW_CODE_NAMES.every((name) => codes[name]?.length === rowCount * ROW_BYTES) &&
      (basis === null ? head === null : basis.length === 8 && head?.length === rowCount * 4),
    allocate: (rowCount) => ({
      encoding,
      tiles: allocateRows(rowCount),
      coarse: allocateRows(rowCount),
      refinement: allocateRows(rowCount),
      basis: null,
      head: null,
    }),
    encode,
    async encodeAll(rows) {
      encoder.encodedSegmentCount++;
      encode(rows);
    },
    allocateHead: (rowCount, _dimension, basis) => ({ basis, head: allocateRows(rowCount) }),
    trimHead: ({ basis, head }, rowCount) => ({
      basis,
      head: sharedCopy(head.subarray(0, rowCount * ROW_BYTES)),
    }),
    encodeHead: async (rows) => encodeHead(rows),
    async makeHead(rows, previous, known = null) {
      encoder.trainedCount++;
      const basis = await train(rows, previous);
      if (basis === null) return null;
      if (known !== null && Buffer.compare(known.basis, basis) === 0) return known;
      const made = { basis, head: allocateRows(rows.rowCount) };
      encodeHead({ ...rows, from: 0, to: rows.rowCount, head: made });
      return made;
    },
  };
  return encoder;
}

function encodeHead({ values, dimension, from, to, head: { basis, head } }: HeadlessRows): void {
  const view = viewOf(head);
  for (let row = from; row < to; row++) {
    view.setFloat32(row * ROW_BYTES, values[row * dimension]! * scaleOf(basis), true);
  }
}

function encode(rows: UnencodedRows): void {
  const { values, dimension, from, to, codes } = rows;
  const { basis, head } = codes;
  if (basis !== null && head !== null) encodeHead({ ...rows, head: { basis, head } });
  for (const [index, name] of ROW_CODE_NAMES.entries()) {
    const view = viewOf(codes[name]);
    for (let row = from; row < to; row++) {
      view.setFloat32(row * ROW_BYTES, values[row * dimension + index]!, true);
    }
  }
}

function sharedCopy(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}

function allocateRows(rowCount: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(rowCount * ROW_BYTES));
}

function viewOf(array: Uint8Array | null): DataView {
  assert.ok(array !== null, 'a block has all codes');
  return new DataView(array.buffer, array.byteOffset, array.byteLength);
}

/** The reference engine, which does not use codes, with a check of the codes of every block. */
export function createWatchingEngine(encoder: RowEncoder) {
  const reference = createReferenceEngine({ pool: createInlinePool() });
  const watching = {
    blockCount: 0,
    /** The codes of the blocks of the last search. */
    lastCodes: [] as readonly RowCodes[],
    lastBlocks: [] as readonly VectorBlock[],
    engine: {
      ...reference,
      name: 'reference',
      rowEncoder: encoder,
      search(queries: readonly SearchQuery[]) {
        const blocks = queries.flatMap(({ views }) => views.map(({ block }) => block));
        watching.lastCodes = blocks.map((block) => checkCodes(encoder.encoding, block));
        watching.lastBlocks = blocks;
        watching.blockCount += blocks.length;
        return reference.search(queries);
      },
    } satisfies Engine,
  };
  return watching;
}

/** Checks that the codes are those of the rows, and the head, if there is one. */
export function checkCodes(
  encoding: string,
  { values, dimension, rowCount, codes }: VectorBlock,
): RowCodes {
  assert.equal(codes?.encoding, encoding);
  for (const [index, name] of ROW_CODE_NAMES.entries()) {
    const view = viewOf(codes[name]);
    for (let row = 0; row < rowCount; row++) {
      const value = values[row * dimension + index];
      assert.equal(view.getFloat32(row * ROW_BYTES, true), value, `row ${row}`);
    }
  }
  const { basis, head } = codes;
  assert.equal(basis === null, head === null);
  for (let row = 0; basis !== null && row < rowCount; row++) {
    const value = Math.fround(values[row * dimension]! * scaleOf(basis));
    assert.equal(viewOf(head).getFloat32(row * ROW_BYTES, true), value, `the head of row ${row}`);
  }
  return codes;
}
