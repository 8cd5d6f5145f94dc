// Queries and what they answer: the part of the service's interface that is about searching.

import type { JsonObject, Metric } from '../../common/types.js';

export interface Page {
  readonly hasMore: boolean;
  readonly nextCursor?: string | undefined;
  readonly total?: number | undefined;
}

export interface SortKey {
  /** A metadata path, `score` or `id`. */
  readonly field: string;
  readonly order: 'asc' | 'desc';
}

/** Absent fields mean the defaults of the contract, or, with a cursor, what its first page asked for. */
export interface QueryRequest {
  readonly vector?: Float32Array | undefined;
  readonly id?: string | undefined;
  readonly topK?: number | undefined;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly cursor?: string | undefined;
  readonly filter?: JsonObject | undefined;
  readonly includeMetadata?: boolean | undefined;
  readonly includeValues?: boolean | 'base64' | undefined;
  readonly metric?: Metric | undefined;
  readonly sort?: readonly SortKey[] | undefined;
  /** Compared with the score rounded to float32. */
  readonly scoreThreshold?: number | undefined;
  readonly minSequence?: number | undefined;
  readonly explain?: boolean | undefined;
}

export interface Match {
  readonly id: string;
  /** Rounded to float32. */
  readonly score: number;
  /** L2 distance rounded to float32; euclidean only. */
  readonly distance?: number;
  readonly metadata?: string;
  readonly values?: Float32Array;
}

/** Where the time of a query went, or of the queries that were answered together. The phases follow each other; a page at an offset adds up several searches. */
export interface QueryTimings {
  /** When the first phase began, by `performance.now()`. */
  readonly startedAtMs: number;
  readonly filterMs: number;
  /** For the engine, which was at work for others. */
  readonly waitMs: number;
  /** In the engine. */
  readonly searchMs: number;
  readonly assembleMs: number;
}

/** What a query did, in numbers that tell nothing of its data. */
export interface QueryWork {
  /** Conditions of the filter, also where a cursor brought it. */
  readonly conditionCount: number;
  readonly segmentCount: number;
  readonly rowsScanned: number;
  readonly rowsPassedFilter: number;
  readonly candidatesRescored: number;
}

export interface Explain extends QueryWork {
  readonly engine: string;
  /** True: no row outside the answer can score above a row inside it. Always so. */
  readonly isCertified: boolean;
  readonly filterMs: number;
  /** The wait for the engine among it. */
  readonly searchMs: number;
  readonly assembleMs: number;
}

export interface QueryReply extends Page {
  readonly matches: readonly Match[];
  /** How `values` are to be written. */
  readonly valuesEncoding: 'numbers' | 'base64';
  /** The snapshot that answered. */
  readonly sequence: number;
  readonly explain?: Explain | undefined;
  readonly timings: QueryTimings;
  readonly work: QueryWork;
}

/** Queries that were checked and go to the engine together. */
export interface PreparedQueries {
  /** Of the first of them, among all queries of the session. */
  readonly firstIndex: number;
  readonly count: number;
  /** One reply a query, in order; they share their timings. Throws `collection_not_found` when it is gone by then. */
  answer(options?: { readonly signal?: AbortSignal | undefined }): Promise<readonly QueryReply[]>;
}

/** Any number of queries that one snapshot answers; one with a cursor goes on in that of its walk. */
export interface QuerySession {
  readonly sequence: number;
  readonly dimension: number;
  readonly metric: Metric;
  /**
   * In groups that fit the engine. What can be wrong is found here, for all of them, with pointers
   * `/queries/{index}/…`, where the first has `firstIndex` (0).
   */
  prepare(requests: readonly QueryRequest[], firstIndex?: number): readonly PreparedQueries[];
  /** Lets go of the snapshot. Any number of times. */
  close(): void;
}

/** Somebody's answers to queries, to be graded. */
export interface RecallRequest {
  readonly vectors: readonly Float32Array[];
  /** As many lists, of 1 to `topKMax` each. */
  readonly ids: readonly (readonly string[])[];
  readonly filter?: JsonObject | undefined;
  readonly metric?: Metric | undefined;
  readonly minSequence?: number | undefined;
}

export interface RecallReply {
  /** Of each query, 0 to 1. */
  readonly recalls: readonly number[];
  readonly sequence: number;
}
