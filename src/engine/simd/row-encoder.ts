// Makes the codes of rows that the `simd` engine scans. Rows are encoded as they arrive, on the calling thread or, in
// tasks of about a millisecond, on the threads of the pool. The heads of sealed rows are made behind everything else.

import { sharedBytes } from '../../common/shared-array.js';
import {
  type HeadlessRows,
  ROW_CODE_NAMES,
  type RowCodes,
  type RowEncoder,
  type RowHead,
  type SealedRows,
  type UnencodedRows,
} from '../../common/types.js';
import { whenAllEnded } from '../../common/when-all-ended.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import { type Kernels, loadKernels } from './simd-kernels.js';

/** Values encoded per task of the pool: about a millisecond, so that searches do not wait long behind it. */
const ENCODED_VALUES = 2 ** 19;
/** Fewer values are encoded on the calling thread, which takes 80 µs, less than a task. */
const ENCODED_VALUES_MIN = 2 ** 14;
/** Values per task that encodes heads, which takes several times as long. */
const HEAD_VALUES = 2 ** 18;

/** A cache line, so that no load of codes straddles two lines. */
const ALIGNMENT_BYTES = 64;

/** Encodes rows in place: values and codes are in shared memory. */
export const encodeSimdTask: Task<UnencodedRows, null> = {
  name: 'engine.encodeSimd',
  priority: 'write',
  run(rows) {
    encodeRows(loadKernels(), rows);
    return null;
  },
};

/** Has no priority, so that searches and writes come first. */
export const learnBasisTask: Task<
  { readonly rows: SealedRows; readonly previous: Uint8Array | null },
  Uint8Array | null
> = {
  name: 'engine.learnBasis',
  run({ rows: { values, rowCount, dimension }, previous }) {
    const kernels = loadKernels();
    const basis = sharedBytes(kernels.basisByteLength(dimension));
    const length = kernels.learnBasis(values, rowCount, dimension, previous, basis);
    return length === 0 ? null : basis;
  },
};

/** Encodes the heads of rows in place. Has no priority, like `learnBasisTask`. */
export const encodeHeadTask: Task<HeadlessRows, null> = {
  name: 'engine.encodeHead',
  run(rows) {
    encodeHead(loadKernels(), rows);
    return null;
  },
};

export function createRowEncoder(kernels: Kernels, pool: WorkerPool): RowEncoder {
  const encoding = `sagitta ${kernels.codesVersion()}`;

  function allocateHead(rowCount: number, dimension: number, basis: Uint8Array): RowHead | null {
    if (kernels.basisByteLength(dimension) === 0 || !kernels.isBasis(basis, dimension)) return null;
    const head = allocateAligned(kernels, kernels.headByteLength(rowCount, dimension));
    if (basis.buffer instanceof SharedArrayBuffer) return { basis, head };
    const shared = sharedBytes(basis.length);
    shared.set(basis);
    return { basis: shared, head };
  }

  async function encodeHeadInPool({ from, to, ...rows }: HeadlessRows): Promise<void> {
    const step = Math.max(1, Math.floor(HEAD_VALUES / rows.dimension));
    let next = from;
    const encodeNext = async () => {
      while (next < to) {
        const first = next;
        next = Math.min(first + step, to);
        await pool.run(encodeHeadTask, { ...rows, from: first, to: next });
      }
    };
    // Requests have tasks without priority, too, which would wait behind all slices if these were queued at once.
    const runningMax = Math.max(1, Math.floor(pool.threadCount / 2));
    await whenAllEnded(Array.from({ length: runningMax }, encodeNext));
  }

  return {
    encoding,
    byteLengths: (rowCount, dimension) => kernels.codeByteLengths(rowCount, dimension),
    accepts(codes, rowCount, dimension) {
      if (codes.encoding !== encoding) return false;
      const byteLengths = kernels.codeByteLengths(rowCount, dimension);
      return (
        ROW_CODE_NAMES.every((name) => (codes[name]?.length ?? 0) === byteLengths[name]) &&
        acceptsHead(kernels, codes, rowCount, dimension)
      );
    },
    allocate(rowCount, dimension) {
      const { tiles, coarse, refinement } = kernels.codeByteLengths(rowCount, dimension);
      return {
        encoding,
        tiles: allocateAligned(kernels, tiles),
        coarse: coarse === 0 ? null : allocateAligned(kernels, coarse),
        refinement: refinement === 0 ? null : allocateAligned(kernels, refinement),
        basis: null,
        head: null,
      };
    },
    encode: (rows) => encodeRows(kernels, rows),
    async encodeAll({ from, to, ...rows }) {
      if ((to - from) * rows.dimension < ENCODED_VALUES_MIN) {
        encodeRows(kernels, { ...rows, from, to });
        return;
      }
      const step = Math.max(1, Math.floor(ENCODED_VALUES / rows.dimension));
      const tasks: Promise<null>[] = [];
      for (let at = from; at < to; at += step) {
        tasks.push(pool.run(encodeSimdTask, { ...rows, from: at, to: Math.min(at + step, to) }));
      }
      await whenAllEnded(tasks);
    },
    allocateHead,
    trimHead({ basis, head }, rowCount, dimension) {
      const trimmed = allocateAligned(kernels, kernels.headByteLength(rowCount, dimension));
      // A head is two arrays of equal length, one after the other; the rows are first in each of them.
      const half = trimmed.length / 2;
      trimmed.set(head.subarray(0, half));
      trimmed.set(head.subarray(head.length / 2, head.length / 2 + half), half);
      return { basis, head: trimmed };
    },
    encodeHead: encodeHeadInPool,
    async makeHead(rows, previous, known = null) {
      const { values, dimension, rowCount } = rows;
      if (kernels.basisByteLength(dimension) === 0) return null;
      const learned = await pool.run(learnBasisTask, {
        rows: { values, dimension, rowCount },
        previous,
      });
      if (learned === null) return null;
      if (known !== null && isEqual(known.basis, learned)) return known;
      const basis = previous !== null && isEqual(previous, learned) ? previous : learned;
      const head = allocateHead(rowCount, dimension, basis);
      if (head !== null) await encodeHeadInPool({ values, dimension, from: 0, to: rowCount, head });
      return head;
    },
  };
}

function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0;
}

function acceptsHead(
  kernels: Kernels,
  { basis, head }: RowCodes,
  rowCount: number,
  dimension: number,
): boolean {
  if (basis === null || head === null) return basis === head;
  const byteLength = kernels.headByteLength(rowCount, dimension);
  return head.length === byteLength && kernels.isBasis(basis, dimension);
}

function allocateAligned(kernels: Kernels, byteLength: number): Uint8Array {
  const bytes = new Uint8Array(new SharedArrayBuffer(byteLength + ALIGNMENT_BYTES));
  const offset = kernels.alignmentOffset(bytes);
  return bytes.subarray(offset, offset + byteLength);
}

function encodeHead(kernels: Kernels, rows: HeadlessRows): void {
  const { values, dimension, from, to, head } = rows;
  kernels.encodeHead(values, dimension, from, to, head.basis, head.head);
}

function encodeRows(kernels: Kernels, { codes, ...rows }: UnencodedRows): void {
  const { values, dimension, from, to } = rows;
  const { tiles, coarse, refinement, basis, head } = codes;
  kernels.encode(values, dimension, from, to, tiles, coarse, refinement);
  if (basis !== null && head !== null) encodeHead(kernels, { ...rows, head: { basis, head } });
}
