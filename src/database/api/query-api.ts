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

/** Whether metadata is included, or the paths to include. */
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
  /** Whether examples given by id may be matches. */
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

/** What to rank rows by: exactly one of the members before `using`. */
export interface RankingRequest {
  readonly vector?: Float32Array | undefined;
  readonly id?: string | undefined;
  /** Compared with the multi-vectors named by `using`. */
  readonly multiVector?: readonly Float32Array[] | undefined;
  readonly text?: TextRequest | undefined;
  /** Compared with the sparse vector `using`. */
  readonly sparse?: SparseVector | undefined;
  /** A text that the caller replaces by its vector before the query is planned. */
  readonly embed?: string | undefined;
  readonly recommend?: RecommendRequest | undefined;
  readonly discover?: DiscoverRequest | undefined;
  /** The name of the vector to search; absent for the unnamed one. */
  readonly using?: string | undefined;
  readonly metric?: Metric | undefined;
}

export const FUSION_KINDS = ['rrf', 'weighted'] as const;
export const NORMALIZATIONS = ['none', 'max'] as const;

/** Combines several rankings; `fusion-method.ts` defines the scores. */
export interface FusionRequest {
  readonly kind: (typeof FUSION_KINDS)[number];
  /** Used by `rrf`. */
  readonly rankConstant: number;
  /** Used by `weighted`. */
  readonly normalize: (typeof NORMALIZATIONS)[number];
  readonly parts: readonly FusionPartRequest[];
}

export interface FusionPartRequest extends RankingRequest {
  /** This part ranks only rows that pass this filter and the filter of the query. */
  readonly filter?: JsonObject | undefined;
  /** The number of best rows that this part ranks; absent for all. */
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
  /** Applies in addition to the filter of the query. */
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
  /** Whether matches include the sequence of their last write. */
  readonly includeSequence?: boolean | undefined;
  readonly sort?: readonly SortKey[] | undefined;
  /** A metadata path. `topK`, `limit` and `offset` then count groups of equal values. */
  readonly groupBy?: string | undefined;
  /** Matches per group, at most. */
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

/** A summary of the scores of all rows that pass the filter and reach the threshold. */
export type ScoreStats = Omit<Stats, 'path' | 'missingCount'>;

export interface Match {
  readonly id: string;
  /** Rounded to float32. */
  readonly score: number;
  /** L2 distance rounded to float32; euclidean only. */
  readonly distance?: number;
  /** The value of the group that the match belongs to. */
  readonly group?: FacetValue;
  /** The sequence of the last write of this vector. */
  readonly sequence?: number;
  readonly metadata?: string;
  readonly values?: Float32Array;
  /** Named vectors; present when values are included and the collection has named vectors. */
  readonly vectors?: NamedValues;
  /** Sparse vectors; present when values are included and the collection has sparse vectors. */
  readonly sparseVectors?: SparseVectors;
}

/**
 * The successive phases of a query, or of queries that were answered together. A page at an offset sums several
 * searches.
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

/** The work of a query, in numbers that reveal nothing about its data. */
export interface QueryWork {
  /** Conditions of the filter, which a cursor may have restored. */
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
  /** Present if texts were turned into vectors, which the server does before. */
  readonly embedMs?: number | undefined;
  readonly filterMs: number;
  /** Includes the wait for the engine. */
  readonly searchMs: number;
  readonly assembleMs: number;
}

export interface QueryReply extends Page, Aggregations {
  readonly matches: readonly Match[];
  /** The encoding of `values` in the reply. */
  readonly valuesEncoding: 'numbers' | 'base64';
  /** The snapshot that answered. */
  readonly sequence: number;
  readonly scoreStats?: ScoreStats | undefined;
  /** Present on the first page only. */
  readonly warnings?: readonly Warning[] | undefined;
  readonly explain?: Explain | undefined;
  readonly timings: QueryTimings;
  readonly work: QueryWork;
}

/** Checked queries that are searched together. */
export interface PreparedQueries {
  /** The index of the first query among all queries of the session. */
  readonly firstIndex: number;
  readonly count: number;
  /** An estimate of the memory that the matches take. */
  readonly matchBytes: number;
  /**
   * One reply per query, in order, all with the same timings. Throws
   * `collection_not_found` for a deleted collection.
   */
  answer(options?: { readonly signal?: AbortSignal | undefined }): Promise<readonly QueryReply[]>;
}

/** Answers any number of queries from one snapshot; a query with a cursor uses the cursor's snapshot. */
export interface QuerySession {
  readonly sequence: number;
  /** The vectors of the collection by name. */
  readonly vectors: FieldShapes;
  /**
   * The shape of the named vector, for a multi-vector of each of its vectors; undefined names the unnamed one. Throws
   * `invalid_request` at `using`.
   */
  shapeOf(using: string | undefined): VectorShape;
  /** The most queries of a group that `prepare` makes. */
  readonly groupQueriesMax: number;
  /**
   * Checks all queries and splits them into groups that fit the engine. Throws the issues of all
   * queries; the first query is row `firstIndex`, by default 0.
   */
  prepare(requests: readonly QueryRequest[], firstIndex?: number): readonly PreparedQueries[];
  /** Releases the snapshot. May be called more than once. */
  close(): void;
}

/** Answers to queries, to be graded. */
export interface RecallRequest {
  readonly vectors: readonly Float32Array[];
  /** One list per vector, of 1 to `topKMax` ids. */
  readonly ids: readonly (readonly string[])[];
  /** The name of the vector to search; absent for the unnamed one. */
  readonly using?: string | undefined;
  readonly filter?: JsonObject | undefined;
  readonly metric?: Metric | undefined;
  readonly minSequence?: number | undefined;
}

export interface RecallReply {
  /** One recall per query, from 0 to 1. */
  readonly recalls: readonly number[];
  readonly sequence: number;
  readonly warnings?: readonly Warning[] | undefined;
}
