// Requests and replies of queries.

import type {
  FieldShapes,
  JsonObject,
  Metric,
  NamedValues,
  SparseVectors,
  VectorShape,
} from '../../common/types.js';
import type { SparseVector } from '../../common/vectors.js';
import type {
  AggregationRequest,
  Aggregations,
  FacetValue,
  HistogramRequest,
  Stats,
} from './aggregate-api.js';
import type { Warning } from './warning.js';

export interface Page {
  readonly hasMore: boolean;
  readonly nextCursor?: string | undefined;
  readonly total?: number | undefined;
}

/** Whether metadata is read, or the paths of it that are. */
export type IncludeMetadata = boolean | readonly string[];

export interface SortKey {
  /** A metadata path; also `score` and `id` in a query, and `$id` in a list. */
  readonly field: string;
  readonly order: 'asc' | 'desc';
}

/** A stored vector by its id, or the values of a vector. */
export type Example = string | Float32Array;

export const RECOMMEND_STRATEGIES = ['average_vector', 'best_score', 'sum_scores'] as const;

/** `examples.ts` and `Formula` define the scores. */
export interface RecommendRequest {
  readonly positive: readonly Example[];
  readonly negative: readonly Example[];
  readonly strategy: (typeof RECOMMEND_STRATEGIES)[number];
  /** Whether examples that are given by their ids may be matches. */
  readonly includeExamples: boolean;
}

export interface DiscoverRequest {
  readonly target?: Example | undefined;
  readonly context: readonly { readonly positive: Example; readonly negative: Example }[];
  readonly includeExamples: boolean;
}

/** See `diversify.ts`. */
export interface DiversityRequest {
  readonly lambda: number;
  /** The number of nearest vectors to choose from. */
  readonly candidateCount?: number | undefined;
}

/** Rows are ranked by exactly one of the first members. */
export interface RankingRequest {
  readonly vector?: Float32Array | undefined;
  readonly id?: string | undefined;
  /** Compared with the multi-vectors named by `using`. */
  readonly multiVector?: readonly Float32Array[] | undefined;
  readonly text?: TextRequest | undefined;
  /** Compared with the sparse vector `using`. */
  readonly sparse?: SparseVector | undefined;
  /** A text, which the caller replaces by its vector before the query is planned. */
  readonly embed?: string | undefined;
  readonly recommend?: RecommendRequest | undefined;
  readonly discover?: DiscoverRequest | undefined;
  /** The named vector to search; absent for the unnamed one. */
  readonly using?: string | undefined;
  readonly metric?: Metric | undefined;
}

export const FUSION_KINDS = ['rrf', 'weighted'] as const;
export const NORMALIZATIONS = ['none', 'max'] as const;

/** Several rankings in one; `fusion.ts` defines the scores. */
export interface FusionRequest {
  readonly kind: (typeof FUSION_KINDS)[number];
  /** For `rrf`. */
  readonly rankConstant: number;
  /** For `weighted`. */
  readonly normalize: (typeof NORMALIZATIONS)[number];
  readonly parts: readonly FusionPartRequest[];
}

export interface FusionPartRequest extends RankingRequest {
  /** Rows must pass it, and the filter of the query, to be ranked by this part. */
  readonly filter?: JsonObject | undefined;
  /** It ranks only so many rows, its best; absent for all. */
  readonly limit?: number | undefined;
  /** Above 0. */
  readonly weight: number;
}

/** The ranking of a query or of a prefetch. */
export interface TargetRequest extends RankingRequest {
  readonly fusion?: FusionRequest | undefined;
}

/** A first stage: the query searches only the best `limit` rows of another ranking. */
export interface PrefetchRequest extends TargetRequest {
  /** Rows must pass it, and the filter of the query. */
  readonly filter?: JsonObject | undefined;
  readonly limit: number;
}

/** Absent fields take the documented defaults or, with a cursor, the values of the first page. */
export interface QueryRequest extends TargetRequest, AggregationRequest {
  readonly prefetch?: PrefetchRequest | undefined;
  readonly diversity?: DiversityRequest | undefined;
  readonly topK?: number | undefined;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly cursor?: string | undefined;
  readonly filter?: JsonObject | undefined;
  readonly includeMetadata?: IncludeMetadata | undefined;
  readonly includeValues?: boolean | 'base64' | undefined;
  /** Whether matches have the sequence of the write that made them as they are. */
  readonly includeSequence?: boolean | undefined;
  readonly sort?: readonly SortKey[] | undefined;
  /** A metadata path: `topK`, `limit` and `offset` then count groups of equal values. */
  readonly groupBy?: string | undefined;
  /** The most matches of a group. */
  readonly groupSize?: number | undefined;
  /** Compared with the score rounded to float32. */
  readonly scoreThreshold?: number | undefined;
  readonly minSequence?: number | undefined;
  readonly scoreStats?: ScoreStatsRequest | undefined;
  readonly explain?: boolean | undefined;
}

/** Words to search for in the text of a collection. */
export interface TextRequest {
  readonly query: string;
  /** Whether a row matches with any of the words, or with all. */
  readonly match: 'any' | 'all';
}

export interface ScoreStatsRequest {
  readonly histogram?: HistogramRequest | undefined;
}

/** They summarize the scores of all rows that pass the filter and reach the threshold. */
export type ScoreStats = Omit<Stats, 'path' | 'missingCount'>;

export interface Match {
  readonly id: string;
  /** Rounded to float32. */
  readonly score: number;
  /** L2 distance rounded to float32; euclidean only. */
  readonly distance?: number;
  /** The value that it is grouped by. */
  readonly group?: FacetValue;
  /** The sequence of the write that made it as it is. */
  readonly sequence?: number;
  readonly metadata?: string;
  readonly values?: Float32Array;
  /** The named vectors that it has; with values, where the collection has any. */
  readonly vectors?: NamedValues;
  /** The same for sparse vectors. */
  readonly sparseVectors?: SparseVectors;
}

/**
 * The phases of a query, or of queries that were answered together, one after another. A page at an
 * offset adds up several searches.
 */
export interface QueryTimings {
  /** When the first phase began, by `performance.now()`. */
  readonly startedAtMs: number;
  readonly filterMs: number;
  /** Wait for the engine while it served others. */
  readonly waitMs: number;
  /** Time in the engine. */
  readonly searchMs: number;
  readonly assembleMs: number;
}

/** The work of a query, in numbers that reveal nothing of its data. */
export interface QueryWork {
  /** Conditions of the filter, also of one that a cursor restored. */
  readonly conditionCount: number;
  readonly segmentCount: number;
  readonly rowsScanned: number;
  readonly rowsPassedFilter: number;
  readonly candidatesRescored: number;
}

export interface Explain extends QueryWork {
  readonly engine: string;
  /** Always true: no row outside the answer scores above a row inside it. */
  readonly isCertified: boolean;
  readonly filterMs: number;
  /** Includes the wait for the engine. */
  readonly searchMs: number;
  readonly assembleMs: number;
}

export interface QueryReply extends Page, Aggregations {
  readonly matches: readonly Match[];
  /** How `values` are written in the reply. */
  readonly valuesEncoding: 'numbers' | 'base64';
  /** The snapshot that answered. */
  readonly sequence: number;
  readonly scoreStats?: ScoreStats | undefined;
  /** On the first page. */
  readonly warnings?: readonly Warning[] | undefined;
  readonly explain?: Explain | undefined;
  readonly timings: QueryTimings;
  readonly work: QueryWork;
}

/** Queries that have been checked and are searched together. */
export interface PreparedQueries {
  /** The index of the first one among all queries of the session. */
  readonly firstIndex: number;
  readonly count: number;
  /** The memory that their matches will take, as far as it can be known before. */
  readonly matchBytes: number;
  /** One reply a query, in order, all with the same timings. Throws `collection_not_found` when the collection is gone by then. */
  answer(options?: { readonly signal?: AbortSignal | undefined }): Promise<readonly QueryReply[]>;
}

/** Any number of queries that one snapshot answers; a query with a cursor uses the cursor's snapshot. */
export interface QuerySession {
  readonly sequence: number;
  /** Those that matches may have. */
  readonly vectors: FieldShapes;
  /** The shape of a vector, or of each of a multi-vector: the unnamed one for undefined. Throws `invalid_request` at `using`. */
  shapeOf(using: string | undefined): VectorShape;
  /**
   * Checks all queries and splits them into groups that fit the engine. Throws the issues of all of
   * them, the first query being row `firstIndex` (0).
   */
  prepare(requests: readonly QueryRequest[], firstIndex?: number): readonly PreparedQueries[];
  /** Releases the snapshot. May be called more than once. */
  close(): void;
}

/** Answers to queries that are to be graded. */
export interface RecallRequest {
  readonly vectors: readonly Float32Array[];
  /** One list for each vector, of 1 to `topKMax` ids. */
  readonly ids: readonly (readonly string[])[];
  /** The named vector to search; absent for the unnamed one. */
  readonly using?: string | undefined;
  readonly filter?: JsonObject | undefined;
  readonly metric?: Metric | undefined;
  readonly minSequence?: number | undefined;
}

export interface RecallReply {
  /** One for each query, from 0 to 1. */
  readonly recalls: readonly number[];
  readonly sequence: number;
  readonly warnings?: readonly Warning[] | undefined;
}
