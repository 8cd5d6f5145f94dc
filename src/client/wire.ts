// What crosses the wire, in the names of the wire. Generated from the schemas of the server by
// `npm run openapi`; do not edit. types.ts has what the client adds.

import type { ErrorCode } from '../common/errors.js';
import type { JsonObject, Metric } from '../common/types.js';

export interface CollectionInput {
  /** Generated when absent. */
  readonly id?: string;
  /** The length of every vector. */
  readonly dimension: number;
  readonly metric?: Metric;
  /** For people. */
  readonly description?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface CollectionRecord {
  readonly id: string;
  readonly dimension: number;
  readonly metric: Metric;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** `failed`: its data is damaged; other collections are served. */
  readonly status: 'loading' | 'ready' | 'failed';
  readonly vector_count: number;
  /** The last write that is visible. */
  readonly sequence: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly engine: {
    readonly name: string;
    /** Why this engine was chosen. */
    readonly reason: string;
  };
  readonly memory: {
    readonly host_bytes: number;
    readonly device_bytes: number;
  };
}

export interface CollectionPage {
  readonly collections: readonly CollectionRecord[];
  /** Token of the next page; absent when there is none. */
  readonly next_cursor?: string;
  /** Whether a further page exists. */
  readonly has_more: boolean;
  readonly total: number;
}

export interface VectorInput<Values = readonly number[]> {
  /** Generated (a ULID) and returned when absent. */
  readonly id?: string;
  readonly values: Values;
  readonly metadata?: JsonObject;
}

export interface StoredVector<Values = readonly number[]> {
  readonly id: string;
  readonly values?: Values;
  readonly metadata?: JsonObject;
}

/** The write is durable on disk and visible to every later read when this is sent. */
export interface VectorsWritten {
  readonly upserted_count: number;
  readonly inserted_count: number;
  readonly updated_count: number;
  /** All ids in the order of the body, when at least one was generated. Not of a stream. */
  readonly ids?: readonly string[];
  /** Of a stream: the writes that it took. Each was atomic. */
  readonly batch_count?: number;
  /** Of a stream: rows that an earlier attempt with the same key had made durable. */
  readonly resumed_count?: number;
  /** The write of the collection that the reply reflects; pass it as `min_sequence`. */
  readonly sequence: number;
}

export interface PutReply {
  readonly id: string;
  readonly collection: string;
  readonly created: boolean;
  /** The write of the collection that the reply reflects; pass it as `min_sequence`. */
  readonly sequence: number;
}

export interface PatchReply {
  readonly id: string;
  /** The write of the collection that the reply reflects; pass it as `min_sequence`. */
  readonly sequence: number;
}

export interface DeleteReply {
  readonly id: string;
  readonly deleted: true;
  /** The write of the collection that the reply reflects; pass it as `min_sequence`. */
  readonly sequence: number;
}

export interface DeleteManyReply {
  readonly deleted_count: number;
  /** The write of the collection that the reply reflects; pass it as `min_sequence`. */
  readonly sequence: number;
}

export interface FetchReply<Values = readonly number[]> {
  /** In the order of the ids asked for. */
  readonly vectors: readonly StoredVector<Values>[];
  readonly not_found: readonly string[];
}

/** In the order of arrival. */
export interface VectorPage<Values = readonly number[]> {
  readonly vectors: readonly StoredVector<Values>[];
  /** Token of the next page; absent when there is none. */
  readonly next_cursor?: string;
  /** Whether a further page exists. */
  readonly has_more: boolean;
  /** With the offset model only. */
  readonly total?: number;
}

/**
 * Exactly one of `vector` and `id`, or a `cursor` alone. `limit`, `offset` and `cursor` may
 * stand in the query string instead.
 */
export interface Query<Values = readonly number[]> {
  readonly vector?: Values;
  /** A stored vector to search with; it is left out of its own result. */
  readonly id?: string;
  /**
   * How many of the nearest to return: at most 10000 without `limit`, which makes pages of
   * them. With `limit` and no `top_k` the pages go through the whole filtered view; with
   * `score_threshold` and no `top_k`, through everything that has at least that score.
   */
  readonly top_k?: number;
  /** Page size; as many as `top_k` when absent, or a usual page where that is absent as well. */
  readonly limit?: number;
  /**
   * How many records to skip. Its cost grows with it, and pages can shift when data changes in
   * between; a cursor has neither flaw. Never together with `cursor`.
   */
  readonly offset?: number;
  /**
   * The `next_cursor` of the page before, unchanged. It may come alone, or with the fields of
   * the first page again; other values than those are refused. Never together with `offset`.
   */
  readonly cursor?: string;
  /**
   * Applied to the whole collection before scoring: the answer has min(top_k, rows that pass)
   * matches.
   */
  readonly filter?: JsonObject;
  readonly include_metadata?: boolean;
  /** `base64`: as the base64 text of little-endian float32. */
  readonly include_values?: boolean | 'base64';
  /** In place of the collection's. */
  readonly metric?: Metric;
  /** Another order of the `top_k` nearest, which are then at most 10000. */
  readonly sort?: readonly {
    /** A path in the metadata, `score` or `id`. */
    readonly field: string;
    readonly order?: 'asc' | 'desc';
  }[];
  /**
   * Only matches with at least this score, compared as it is shown. Without `top_k` all of
   * them: in pages of `limit`, 100 when absent. (With `sort` they are among the `top_k` nearest
   * in any case.)
   */
  readonly score_threshold?: number;
  /** Answer from a state that includes this write. */
  readonly min_sequence?: number;
  readonly explain?: boolean;
}

export interface Match<Values = readonly number[]> {
  readonly id: string;
  /** Higher is better, for every metric. */
  readonly score: number;
  /** L2; `euclidean` only. */
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

export interface QueryReply<Values = readonly number[]> {
  readonly matches: readonly Match<Values>[];
  /** Token of the next page; absent when there is none. */
  readonly next_cursor?: string;
  /** Whether a further page exists. */
  readonly has_more: boolean;
  /** The exact size of the filtered view; on first and offset pages. */
  readonly total?: number;
  /** The write of the collection that the reply reflects; pass it as `min_sequence`. */
  readonly sequence: number;
  readonly explain?: Explain;
}

export interface RecallReply {
  /** The mean over the queries. */
  readonly recall: number;
  readonly query_count: number;
  /** Where all lists are equally long. */
  readonly k?: number;
  /** Of each query. */
  readonly recalls: readonly number[];
  /** The write of the collection that the reply reflects; pass it as `min_sequence`. */
  readonly sequence: number;
}

export interface Readiness {
  readonly status: 'starting' | 'ready' | 'stopping';
  /** Why it is not ready. */
  readonly reason?: string;
  /** The first 100. */
  readonly collections_not_ready: readonly {
    readonly id: string;
    readonly status: 'loading' | 'failed';
    readonly reason: string;
  }[];
}

/** A folder that is a data directory of one moment. */
export interface BackupRecord {
  /** Of its folder in the directory of backups. */
  readonly name: string;
  /** The moment that it keeps. */
  readonly created_at: string;
  /** Of all its files. */
  readonly byte_length: number;
  /** How many there were. */
  readonly collections: number;
}

export interface ApiKeyInput {
  /** For whom the key is, in words of yours. */
  readonly owner: string;
  /**
   * What the key may do. Each is a scope, which but for `metrics:read` may be limited to
   * collections by a glob, as in `vectors:read:catalog-*` (`*` any characters, `?` one).
   */
  readonly scopes: readonly string[];
  /** From when on the key is refused; never when absent. */
  readonly expires_at?: string | null;
}

/** A key without its secret, which is in the reply that made it and nowhere else. */
export interface ApiKeyRecord {
  readonly id: string;
  /** For whom the key is, in words of yours. */
  readonly owner: string;
  readonly scopes: readonly string[];
  readonly created_at: string;
  /** Null: never. */
  readonly expires_at: string | null;
  readonly rotated_at: string | null;
  readonly revoked_at: string | null;
}

export interface ApiKeyWithSecret {
  readonly id: string;
  /** For whom the key is, in words of yours. */
  readonly owner: string;
  readonly scopes: readonly string[];
  readonly created_at: string;
  /** Null: never. */
  readonly expires_at: string | null;
  readonly rotated_at: string | null;
  readonly revoked_at: string | null;
  /** To be sent as `Authorization: Bearer …`. Shown this once: keep it now. */
  readonly key: string;
}

/** Any error, as in RFC 9457. */
export interface Problem {
  /** `urn:sagitta:error:` and the code. */
  readonly type: string;
  /** What the code means. */
  readonly title: string;
  /** The status of the reply. */
  readonly status: number;
  /** What was found, what was expected and where. */
  readonly detail: string;
  /** The path of the request. */
  readonly instance: string;
  readonly code: ErrorCode;
  /** As in `X-Request-Id`; the log has it too. */
  readonly request_id: string;
  /**
   * Whether the same request can succeed later. A write that is not idempotent by itself needs
   * an idempotency key for that.
   */
  readonly retryable: boolean;
  /** The first 100 findings. */
  readonly errors?: readonly {
    /** A JSON pointer into the body, or `?name` for a parameter of the query. */
    readonly pointer: string;
    readonly code: ErrorCode;
    readonly detail: string;
    readonly expected?: string | number;
    readonly actual?: string | number;
  }[];
  /** Of a stream of writes: its rows before this one are durable, and none from it on. */
  readonly committed_count?: number;
  /** Of the last write of the stream, where there was one. */
  readonly sequence?: number;
}
