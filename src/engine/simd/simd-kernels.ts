// The native addon: loaded by path, once a thread. What its functions take and give is declared
// here and checked there; see kernels/kernels.h for what they mean.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

export interface KernelBlock {
  readonly rowCount: number;
  /** Row-major [rowCount, dimension] at least. */
  readonly values: Float32Array;
  /** As `encode` makes them; null: the rows are scored canonically. */
  readonly codes: Uint8Array | null;
  readonly idOffsets: Int32Array;
  readonly idBytes: Uint8Array;
}

/** A batch in columns: one value a query, but for what says otherwise. */
export interface KernelBatch {
  readonly dimension: number;
  /** Threads that may work on it at once. */
  readonly workerCount: number;
  readonly blocks: readonly KernelBlock[];
  readonly bitmaps: readonly Uint32Array[];
  /** Row-major [views, 3]: block, row count, and 1 + the index of the bitmap, or 0 for all rows. */
  readonly views: Uint32Array;
  /** Row-major [queries, dimension]. */
  readonly vectors: Float32Array;
  /** 0 cosine, 1 dot, 2 euclidean. */
  readonly metrics: Uint8Array;
  readonly ks: Uint32Array;
  /** −Infinity for none. */
  readonly floors: Float64Array;
  /** Positions: no bytes of an id mean none. [queries + 1] offsets into the bytes. */
  readonly afterScores: Float64Array;
  readonly afterOffsets: Uint32Array;
  readonly afterIds: Uint8Array;
  /** [queries + 1] offsets into the views. */
  readonly viewOffsets: Uint32Array;
}

/** Hits in columns; those of query i are at offsets[i] .. offsets[i + 1]. */
export interface KernelHits {
  readonly offsets: Uint32Array;
  readonly views: Uint32Array;
  readonly rows: Uint32Array;
  readonly scores: Float64Array;
  readonly scannedCounts: Float64Array;
  readonly rescoredCounts: Float64Array;
}

export interface Kernels {
  /** That this processor has, the fastest first. */
  targets(): string[];
  selectedTarget(): string;
  /** For the whole process. Throws RangeError when this processor does not have it. */
  selectTarget(name: string): void;
  codesByteLength(rowCount: number, dimension: number): number;
  /** Bytes from the start of the array to where codes may begin. */
  alignmentOffset(bytes: Uint8Array): number;
  encode(
    values: Float32Array,
    dimension: number,
    from: number,
    to: number,
    codes: Uint8Array,
  ): void;
  /** A ticket, known to all threads. The arrays of blocks and the bitmaps must live until nobody works on it. */
  createSearch(batch: KernelBatch): number;
  /** Nanoseconds of work on one thread, roughly. */
  cost(ticket: number): number;
  /** Works until nothing is left; true for the one call after which the hits are complete. */
  work(ticket: number): boolean;
  /** The search ends soon, without hits. */
  cancel(ticket: number): void;
  takeHits(ticket: number): KernelHits;
  /** The ticket is forgotten; working on it does nothing. */
  release(ticket: number): void;
}

/** From dist/src/engine, where this file runs, to what scripts/build-kernels.mjs writes. */
const ADDON_URL = new URL('../../../../build/kernels/sagitta.node', import.meta.url);

let loaded: Kernels | null = null;

/** Throws, in words for an operator, where the addon was not built or does not load. */
export function loadKernels(): Kernels {
  if (loaded !== null) return loaded;
  const path = fileURLToPath(ADDON_URL);
  if (!existsSync(path)) {
    throw new Error('the kernels are not built here; `node scripts/build-kernels.mjs` builds them');
  }
  loaded = createRequire(import.meta.url)(path) as Kernels;
  return loaded;
}
