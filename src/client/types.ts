// What crosses the wire, in the names of the wire. These are the shapes of the OpenAPI document;
// they say nothing about how a request is sent.

import type { ErrorCode } from '../common/errors.js';
import type { JsonObject, Metric } from '../common/types.js';

/** Numbers, a Float32Array (sent as base64), or base64 of little-endian float32. */
export type VectorValues = readonly number[] | Float32Array | string;

export interface CollectionInput {
  readonly id?: string;
  readonly dimension: number;
  readonly metric?: Metric;
  readonly description?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface CollectionRecord {
  readonly id: string;
  readonly dimension: number;
  readonly metric: Metric;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly status: 'loading' | 'ready' | 'failed';
  readonly vector_count: number;
  readonly sequence: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly engine: { readonly name: string; readonly reason: string };
  readonly memory: { readonly host_bytes: number; readonly device_bytes: number };
}

export interface CollectionPage {
  readonly collections: readonly CollectionRecord[];
  readonly total: number;
  readonly has_more: boolean;
  readonly next_cursor?: string;
}

export interface VectorInput {
  /** Generated when absent. */
  readonly id?: string;
  readonly values: VectorValues;
  readonly metadata?: JsonObject;
}

/**
 * What `include_values` asks for: numbers, the wire's base64 (queries only), or a Float32Array.
 * The latter is the client's own: no decimal text is parsed where the service sends base64.
 */
export type IncludeValues = boolean | 'base64' | 'float32';

/** Where the service knows no base64. */
export type PlainValues = boolean | 'float32';

/** What they are asked for as is what they come as. */
export type ValuesOf<Asked extends IncludeValues> = Asked extends 'float32'
  ? Float32Array
  : Asked extends 'base64'
    ? string
    : readonly number[];

export interface StoredVector<Values = readonly number[]> {
  readonly id: string;
  readonly values?: Values;
  readonly metadata?: JsonObject;
  /** From the reply's header, for `ifMatch`; only on a vector that was asked for alone. */
  readonly etag?: string;
}

export type WriteMode = 'upsert' | 'insert' | 'update';

export interface WriteReply {
  readonly upserted_count: number;
  readonly inserted_count: number;
  readonly updated_count: number;
  /** In the order of the request; present when the service made at least one id. */
  readonly ids?: readonly string[];
  readonly sequence: number;
}

/** Of a streamed write. */
export interface WriteStreamReply {
  readonly upserted_count: number;
  readonly inserted_count: number;
  readonly updated_count: number;
  /** How many commits it took. */
  readonly batch_count: number;
  /** Rows that an earlier try under the same key had made durable; they count above, too. */
  readonly resumed_count: number;
  readonly sequence: number;
}

export interface PutReply {
  readonly id: string;
  readonly collection: string;
  readonly created: boolean;
  readonly sequence: number;
}

export interface PatchReply {
  readonly id: string;
  readonly sequence: number;
}

export interface DeleteReply {
  readonly id: string;
  readonly deleted: true;
  readonly sequence: number;
}

export type DeleteSelection =
  | { readonly ids: readonly string[] }
  | { readonly filter: JsonObject }
  | { readonly all: true };

export interface DeleteManyReply {
  readonly deleted_count: number;
  readonly sequence: number;
}

export interface FetchReply<Values = readonly number[]> {
  readonly vectors: readonly StoredVector<Values>[];
  readonly not_found: readonly string[];
}

export interface ListRequest<Asked extends PlainValues = PlainValues> {
  readonly limit?: number;
  readonly offset?: number;
  readonly cursor?: string;
  readonly filter?: JsonObject;
  readonly include_metadata?: boolean;
  readonly include_values?: Asked;
}

export interface VectorPage<Values = readonly number[]> {
  readonly vectors: readonly StoredVector<Values>[];
  readonly has_more: boolean;
  readonly next_cursor?: string;
  readonly total?: number;
}

export interface SortKey {
  readonly field: string;
  readonly order: 'asc' | 'desc';
}

export interface QueryRequest<Asked extends IncludeValues = IncludeValues> {
  readonly vector?: VectorValues;
  readonly id?: string;
  readonly top_k?: number;
  readonly limit?: number;
  readonly offset?: number;
  readonly cursor?: string;
  readonly filter?: JsonObject;
  readonly include_metadata?: boolean;
  readonly include_values?: Asked;
  readonly metric?: Metric;
  readonly sort?: readonly SortKey[];
  readonly score_threshold?: number;
  readonly min_sequence?: number;
  readonly explain?: boolean;
}

export interface Match<Values = ValuesOf<IncludeValues>> {
  readonly id: string;
  /** Higher is better, whatever the metric. */
  readonly score: number;
  /** The L2 distance, under `euclidean`. */
  readonly distance?: number;
  readonly metadata?: JsonObject;
  readonly values?: Values;
}

export interface Explain {
  readonly engine: string;
  readonly segment_count: number;
  readonly rows_scanned: number;
  readonly rows_passed_filter: number;
  readonly candidates_rescored: number;
  /** No row outside the answer can score above a row inside it. */
  readonly is_certified: boolean;
  readonly filter_ms: number;
  readonly search_ms: number;
  readonly assemble_ms: number;
}

export interface QueryReply<Values = ValuesOf<IncludeValues>> {
  readonly matches: readonly Match<Values>[];
  readonly has_more: boolean;
  readonly next_cursor?: string;
  readonly total?: number;
  readonly sequence: number;
  readonly explain?: Explain;
}

/** A row of the collection and its neighbours; a row without any is there with none. */
export interface JoinRow {
  readonly id: string;
  readonly matches: readonly Omit<Match<never>, 'values'>[];
}

export interface RecallReply {
  /** In [0, 1]: the mean of `recalls`. */
  readonly recall: number;
  readonly query_count: number;
  /** The length of the lists, where all are equally long. */
  readonly k?: number;
  /** For each query, in order. */
  readonly recalls: readonly number[];
  readonly sequence: number;
}

/** Every bound of the service, by name: `top_k_max`, `page_limit_max`, … */
export type Limits = Readonly<Record<string, number>>;

export interface Readiness {
  readonly status: 'starting' | 'ready' | 'stopping';
  readonly reason?: string;
  readonly collections_not_ready: readonly {
    readonly id: string;
    readonly status: 'loading' | 'failed';
    readonly reason: string;
  }[];
}

export interface BackupRecord {
  readonly name: string;
  readonly created_at: string;
  readonly byte_length: number;
  readonly collections: number;
}

export interface ApiKeyInput {
  /** For whom the key is, in words of yours. */
  readonly owner: string;
  /** `vectors:read`, `vectors:write:catalog-*`. */
  readonly scopes: readonly string[];
  /** ISO 8601; never when absent. */
  readonly expires_at?: string | null;
}

export interface ApiKeyRecord {
  readonly id: string;
  readonly owner: string;
  readonly scopes: readonly string[];
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly rotated_at: string | null;
  readonly revoked_at: string | null;
}

/** The only reply in which the key itself stands. */
export interface ApiKeyWithSecret extends ApiKeyRecord {
  readonly key: string;
}

/** One finding inside a request; `pointer` is a JSON pointer into the body, or `?name`. */
export interface ProblemItem {
  readonly pointer: string;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly expected?: string | number;
  readonly actual?: string | number;
}

/** RFC 9457, as every error reply carries it. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance?: string;
  readonly code: ErrorCode;
  readonly request_id?: string;
  readonly errors?: readonly ProblemItem[];
  readonly retryable: boolean;
  /** Of a streamed write: its rows before this one are durable. */
  readonly committed_count?: number;
  readonly sequence?: number;
}
