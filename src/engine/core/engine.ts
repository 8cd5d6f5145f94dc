// What an engine is: exact top-k over blocks of vectors for a batch of queries. Every engine
// gives the same rows and the same score bits; `test/engine/contract.ts` holds them to it.

import type { Bitmap } from '../../common/bitmap.js';
import type { Metric, RowEncoder, VectorBlock } from '../../common/types.js';

export const ENGINE_NAMES = ['reference', 'wasm', 'simd', 'tensorflow', 'cuda'] as const;
export type EngineName = (typeof ENGINE_NAMES)[number];

/** A place in the order (score descending, id bytes ascending). */
export interface Position {
  /** Unrounded, as in SearchHits. */
  readonly score: number;
  readonly id: Uint8Array;
}

/** A block, and which of its rows a query searches. */
export interface BlockView {
  readonly block: VectorBlock;
  /** Only the rows before this one are searched; at most the block's. */
  readonly rowCount: number;
  /** The rows to search, of length `rowCount` at least; null for all of them. */
  readonly rows: Bitmap | null;
}

export interface SearchQuery {
  /** [dimension] float32, all finite; every part has the same dimension. */
  readonly vector: Float32Array;
  readonly metric: Metric;
  /** 1 to 10 000. */
  readonly k: number;
  /** Where to search; parts of different queries with one block may hold different views of it. */
  readonly views: readonly BlockView[];
  /** Only rows strictly after this place in the order; null for all. */
  readonly after: Position | null;
  /** Only rows whose public score (see `publicScore`), rounded to float32, is at least this; null for all. */
  readonly scoreMin: number | null;
}

/** The best rows of one query over all its parts, best first: at most k. The caller owns the arrays. */
export interface SearchHits {
  /** Indexes into the query's parts. */
  readonly viewIndexes: Uint32Array;
  /** Row numbers within their parts' blocks. */
  readonly rows: Uint32Array;
  /** Canonical float64: cosine, dot product, or minus the squared L2 distance. */
  readonly scores: Float64Array;
  /** Rows that passed bitmaps and row counts. */
  readonly scannedCount: number;
  /** Rows whose canonical score was computed. */
  readonly rescoredCount: number;
}

export interface Engine {
  readonly name: EngineName;
  /** Makes the codes that the engine scans; null when it reads values. Blocks without codes are slow, never wrong. */
  readonly rowEncoder: RowEncoder | null;
  /**
   * One result a query, in order. Queries of different dimensions, metrics, k, parts and positions
   * may share a batch. Rejects with the signal's reason when it aborts, which may come too late.
   */
  search(
    queries: readonly SearchQuery[],
    options?: { readonly signal?: AbortSignal },
  ): Promise<SearchHits[]>;
  /** Forgets whatever is kept for the block; safe for unknown keys and during a search. */
  unload(key: string): void;
  /** Bytes that the engine keeps for the block beside the block's own arrays. */
  bytesUsed(key: string): { readonly hostBytes: number; readonly deviceBytes: number };
  close(): Promise<void>;
}

/** What an engine runs on is not here: its files, its device. Nothing is wrong with the machine. */
export class EngineAbsent extends Error {}

/**
 * The score that users see, from the engine's: higher is better; euclidean is 1 / (1 + d) with d
 * the L2 distance. Monotone, but not rounded: rounding to float32 happens on the way out.
 */
export function publicScore(metric: Metric, score: number): number {
  return metric === 'euclidean' ? 1 / (1 + distanceOf(score)) : score;
}

/** The L2 distance behind a euclidean score, which is never positive; never −0. */
export function distanceOf(score: number): number {
  return Math.sqrt(Math.abs(score));
}
