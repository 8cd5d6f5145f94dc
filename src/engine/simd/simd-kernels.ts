// The native addon of the simd engine, loaded once per thread. Its functions are declared here and
// check their arguments themselves; kernels/kernels.h documents them.

import type { CodeByteLengths } from '../../common/types.js';
import { addonPath, buildCommand, loadAddon } from '../../platform/native-addon.js';
import type { KernelBatch, KernelHits } from '../core/kernel-batch.js';

export interface Kernels {
  /** The targets that this processor supports, fastest first. */
  targets(): string[];
  selectedTarget(): string;
  /** Selects the target of the whole process. Throws RangeError when it is not supported. */
  selectTarget(name: string): void;
  /** The version of the layout and meaning of codes. */
  codesVersion(): number;
  /** Bytes of each array of codes; 0 for an array that the dimension does not have. */
  codeByteLengths(rowCount: number, dimension: number): CodeByteLengths;
  /** The first aligned offset in the array, at which codes may start. */
  alignmentOffset(bytes: Uint8Array): number;
  encode(
    values: Float32Array,
    dimension: number,
    from: number,
    to: number,
    tiles: Uint8Array,
    coarse: Uint8Array | null,
    refinement: Uint8Array | null,
  ): void;
  /** The bytes of a basis; 0 for a dimension without heads. */
  basisByteLength(dimension: number): number;
  /**
   * Makes a basis for the rows from a sample of them, or copies the previous one if its codes leave hardly more rows.
   * Returns its bytes; 0 if a head would not pay. Takes up to a second.
   */
  learnBasis(
    values: Float32Array,
    rowCount: number,
    dimension: number,
    previous: Uint8Array | null,
    basis: Uint8Array,
  ): number;
  /** Whether these are the unchanged bytes of a basis for this dimension. */
  isBasis(bytes: Uint8Array, dimension: number): boolean;
  headByteLength(rowCount: number, dimension: number): number;
  encodeHead(
    values: Float32Array,
    dimension: number,
    from: number,
    to: number,
    basis: Uint8Array,
    head: Uint8Array,
  ): void;
  /** Returns a ticket, valid in all threads. The batch's arrays must live until no thread works on it. */
  createSearch(batch: KernelBatch): number;
  /**
   * Like `createSearch`, but counts the rows that come before rank keys; the batch has one query. The id of
   * rank key i is ids[idOffsets[i]..idOffsets[i + 1]).
   */
  createCount(
    batch: KernelBatch,
    scores: Float64Array,
    idOffsets: Uint32Array,
    ids: Uint8Array,
  ): number;
  /** The estimated work in nanoseconds on one thread. */
  cost(ticket: number): number;
  /** Works until no work is left. Returns true for the one call that completes the search. */
  work(ticket: number): boolean;
  /** Whether a thread has completed the search or it has failed. */
  isDone(ticket: number): boolean;
  /** Ends the search soon, without hits. */
  cancel(ticket: number): void;
  takeHits(ticket: number): KernelHits;
  /** Returns one count per rank key. */
  takeCounts(ticket: number): Float64Array;
  /** Invalidates the ticket; `work` then does nothing. */
  release(ticket: number): void;
}

let loaded: Kernels | null = null;

/** Throws with a message for an operator when the addon is not built or does not load. */
export function loadKernels(): Kernels {
  loaded ??= loadAddon<Kernels>(
    addonPath('sagitta.node'),
    `the kernels are not built; install a C++ compiler (g++ 10 or later) and run ${buildCommand()}`,
  );
  return loaded;
}
