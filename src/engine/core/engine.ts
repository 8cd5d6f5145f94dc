// The interface of an engine: exact top-k over blocks of vectors for a batch of queries. All engines
// return the same rows and the same score bits; the contract in `src/tools/selftest` checks this.

import type { Bitmap } from '../../common/bitmap.js';
import type { RankKey } from '../../common/rank-key.js';
import { isDistance, type Metric, type RowEncoder, type VectorBlock } from '../../common/types.js';

export const ENGINE_NAMES = ['reference', 'wasm', 'simd', 'tensorflow', 'cuda'] as const;
export type EngineName = (typeof ENGINE_NAMES)[number];

/** A block and the rows of it that a query searches. */
export interface BlockView {
  readonly block: VectorBlock;
  /** Only rows below this number are searched; at most the row count of the block. */
  readonly rowCount: number;
  /** The rows to search, a bitmap of at least `rowCount` bits; null for all. */
  readonly rows: Bitmap | null;
}

export interface SearchQuery {
  /** [dimension] float32, all finite; all views have this dimension. */
  readonly vector: Float32Array;
  readonly metric: Metric;
  /** 1 to 10 000. */
  readonly k: number;
  /** The block views to search. Queries of one batch may have different views of a block. */
  readonly views: readonly BlockView[];
  /** Only rows strictly after this rank key; null for all. */
  readonly after: RankKey | null;
  /** The least public score (see `publicScore`), rounded to float32; null for no limit. */
  readonly scoreMin: number | null;
}

/** The best rows of one query over all its views, best first: at most k. The caller owns the arrays. */
export interface SearchHits {
  /** Indexes into the query's views. */
  readonly viewIndexes: Uint32Array;
  /** Row numbers in the blocks of these views. */
  readonly rows: Uint32Array;
  /** Canonical float64: cosine, dot product, or minus the squared L2 distance. */
  readonly scores: Float64Array;
  /** The number of rows that the views select. */
  readonly scannedCount: number;
  /** The number of rows whose canonical score was computed. */
  readonly rescoredCount: number;
}

/** The rows to rank, and the vector and metric that score them. */
export type CountedQuery = Pick<SearchQuery, 'vector' | 'metric' | 'views'>;

export interface SearchOptions {
  readonly signal?: AbortSignal;
  /**
   * Whether the calling thread may do part of the work itself, for a millisecond or two, because it has nothing
   * else to do. Engines with threads of their own ignore it.
   */
  readonly mayBlock?: boolean;
}

/** How an engine wants to be fed. A search that is larger on its own is not cut. */
export interface Batching {
  readonly queriesMax: number;
  /**
   * The most queries of one request that are searched together. Fewer of them delay other queries less, and their
   * replies are written while the next ones are searched.
   */
  readonly groupQueriesMax: number;
  /** The most hits of all queries of a batch. */
  readonly hitsMax: number;
  /** The number of batches that may be in the engine at once. */
  readonly inFlightMax: number;
  /** The least number of waiting queries for which a batch is begun while another one is in the engine. */
  readonly aheadQueriesMin: number;
}

/**
 * Several times the size that saturates the arithmetic units of a CPU; larger batches only add latency, and selecting
 * and holding many hits takes longer than scoring.
 */
export const DEFAULT_BATCHING: Batching = {
  queriesMax: 1_024,
  groupQueriesMax: 256,
  hitsMax: 65_536,
  inFlightMax: 1,
  aheadQueriesMin: 1,
};

export interface Engine {
  readonly name: EngineName;
  /** `DEFAULT_BATCHING` by default. */
  readonly batching?: Batching;
  /**
   * Creates the codes that the engine scans; null if it reads values. Blocks without codes are searched more slowly.
   */
  readonly rowEncoder: RowEncoder | null;
  /**
   * Returns one result per query, in order. A batch may mix dimensions, metrics, k, views and
   * rank keys. Rejects with the signal's reason when the signal aborts before the search is complete.
   */
  search(queries: readonly SearchQuery[], options?: SearchOptions): Promise<SearchHits[]>;
  /** A faster implementation of `countBefore` in count-before.ts, which calls it. */
  countBefore?(
    query: CountedQuery,
    rankKeys: readonly RankKey[],
    options?: SearchOptions,
  ): Promise<Float64Array>;
  /** Frees what the engine holds for a block. May be called with unknown keys and during a search. */
  unload(key: string): void;
  /** Bytes that the engine holds for a block besides the block's own arrays. */
  bytesUsed(key: string): { readonly hostBytes: number; readonly deviceBytes: number };
  close(): Promise<void>;
}

/** Thrown when the machine lacks what the engine needs (its addon or a device). This is not a fault. */
export class EngineUnavailable extends Error {}

/**
 * Converts an engine's score to the score that users see: higher is better; a distance d, L2 or the number of
 * bits that differ, becomes 1 / (1 + d). Monotone. Not rounded: replies round to float32.
 */
export function publicScore(metric: Metric, score: number): number {
  return isDistance(metric) ? 1 / (1 + distanceOf(metric, score)) : score;
}

/** Converts an engine's score to the distance; only for metrics for which `isDistance` holds. Never −0. */
export function distanceOf(metric: Metric, score: number): number {
  return metric === 'hamming' ? Math.abs(score) : Math.sqrt(Math.abs(score));
}
