// Makes the codes of rows that the `simd` engine scans. Rows are encoded as they arrive, on the calling thread or, in
// tasks of about a millisecond, on the threads of the pool. The heads of sealed rows are made behind everything else.

import { sharedBytes } from '../../common/shared-array.js';
import {
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

interface HeadSlice extends RowHead {
  readonly rows: SealedRows;
  readonly from: number;
  readonly to: number;
}

/** Encodes the heads of rows in place. Has no priority, like `learnBasisTask`. */
export const encodeHeadTask: Task<HeadSlice, null> = {
  name: 'engine.encodeHead',
  run({ rows: { values, dimension }, from, to, basis, head }) {
    loadKernels().encodeHead(values, dimension, from, to, basis, head);
    return null;
  },
};

export function createRowEncoder(kernels: Kernels, pool: WorkerPool): RowEncoder {
  const encoding = `sagitta ${kernels.codesVersion()}`;
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
    async makeHead(rows, previous) {
      if (kernels.basisByteLength(rows.dimension) === 0) return null;
      const learned = await pool.run(learnBasisTask, { rows, previous });
      if (learned === null) return null;
      const isPrevious = previous !== null && Buffer.compare(learned, previous) === 0;
      const basis = isPrevious ? previous : learned;
      const head = allocateAligned(kernels, kernels.headByteLength(rows.rowCount, rows.dimension));
      const step = Math.max(1, Math.floor(HEAD_VALUES / rows.dimension));
      let next = 0;
      const encodeNext = async () => {
        while (next < rows.rowCount) {
          const from = next;
          next = Math.min(from + step, rows.rowCount);
          await pool.run(encodeHeadTask, { rows, from, to: next, basis, head });
        }
      };
      // Requests have tasks without priority, too, which would wait behind all slices if these were queued at once.
      const runningMax = Math.max(1, Math.floor(pool.threadCount / 2));
      await whenAllEnded(Array.from({ length: runningMax }, encodeNext));
      return { basis, head };
    },
  };
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

function encodeRows(kernels: Kernels, { values, dimension, from, to, codes }: UnencodedRows): void {
  kernels.encode(values, dimension, from, to, codes.tiles, codes.coarse, codes.refinement);
}
