// What crosses the wire, in the names of the wire. Generated from the schemas of the server by
// `npm run openapi`; do not edit. types.ts has what the client adds.

import type { ErrorCode } from '../../../src/common/errors.js';
import type { ProblemCode } from '../../../src/common/problems.js';
import type { TextLanguage } from '../../../src/common/text-settings.js';
import type { DeclaredTypes, JsonObject, Metric } from '../../../src/common/types.js';

/** A named vector to create. */
export interface NamedVectorInput {
  /** The length of the vector. */
  readonly dimension: number;
  /** `cosine` by default; `hamming` for elements of `bit`. */
  readonly metric?: Metric;
  readonly element_type?: 'float32' | 'float16' | 'bfloat16' | 'int8' | 'bit';
  /**
   * Whether a record has a list of vectors under this name, which `multi_vector` compares by
   * MaxSim. For `cosine` and `dot`.
   */
  readonly multi?: boolean;
}

/** The settings of a named vector. */
export interface NamedVectorSettings {
  /** The length of the vector. */
  readonly dimension: number;
  readonly metric: Metric;
  readonly element_type?: 'float32' | 'float16' | 'bfloat16' | 'int8' | 'bit';
  /** Records have a list of vectors under this name. */
  readonly multi?: true;
}

/** A collection to create. */
export interface CollectionInput {
  /** By default generated. */
  readonly id?: string;
  /**
   * The length of the unnamed vector, which every record has. Without it, records have only the
   * named and sparse vectors and the text that the collection defines, of which it needs at
   * least one.
   */
  readonly dimension?: number;
  /**
   * The metric of the unnamed vector; only with `dimension`. `cosine` by default; `hamming` for
   * elements of `bit`.
   */
  readonly metric?: Metric;
  /** The element type of the unnamed vector; only with `dimension`. `float32` by default. */
  readonly element_type?: 'float32' | 'float16' | 'bfloat16' | 'int8' | 'bit';
  /**
   * Named vectors, in addition to or instead of the unnamed one. Each record may have any of
   * them. At most 32, with at most 65536 dimensions in total. Others can be added later.
   */
  readonly vectors?: Readonly<Record<string, NamedVectorInput>>;
  /**
   * Sparse vectors, compared by the dot product. Each record may have any of them. Their
   * settings are empty objects. At most 32, with names that do not occur in `vectors`. Others
   * can be added later.
   */
  readonly sparse_vectors?: Readonly<Record<string, Readonly<Record<string, never>>>>;
  /** Text for people. By default `null`. */
  readonly description?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
  readonly text?: TextSettingsInput;
  /**
   * Seconds from the write of a vector without `expires_at` to its expiry; null for never. A
   * change applies to later writes.
   */
  readonly ttl_seconds?: number | null;
  /** Types of metadata by path; null or absent for none. */
  readonly schema?: DeclaredTypes | null;
  /** The model that turns texts into unnamed vectors. Null or absent if the collection has none. */
  readonly embed?: 'builtin' | EmbeddingInput | null;
  /**
   * The number of nodes of a cluster that hold the collection; null or absent for all. Requests
   * can be sent to any node. While the cluster has fewer nodes, fewer hold it. It has no effect
   * outside a cluster, where it is only stored.
   */
  readonly replication_factor?: number | null;
}

/** The engine that searches the collection. */
export interface EngineChoice {
  /** The name of the engine. */
  readonly name: string;
  /** Why this engine was chosen. */
  readonly reason: string;
}

/** Memory in use. */
export interface MemoryUse {
  /** Bytes of the main memory. */
  readonly host_bytes: number;
  /** Bytes of mapped files, whose memory the system can reclaim; not part of `host_bytes`. */
  readonly mapped_bytes: number;
  /** Bytes of the memory of GPUs. */
  readonly device_bytes: number;
}

/** A collection, its settings and its state. */
export interface CollectionRecord {
  readonly id: string;
  /** The length of the unnamed vector; absent, like `metric`, if there is none. */
  readonly dimension?: number;
  readonly metric?: Metric;
  readonly element_type?: 'float32' | 'float16' | 'bfloat16' | 'int8' | 'bit';
  /** The named vectors; absent if there are none. */
  readonly vectors?: Readonly<Record<string, NamedVectorSettings>>;
  /** The sparse vectors; absent if there are none. */
  readonly sparse_vectors?: Readonly<Record<string, Readonly<Record<string, never>>>>;
  /** Text for people. */
  readonly description: string | null;
  /** Text by name, for people and tools. */
  readonly labels: Readonly<Record<string, string>>;
  readonly text?: TextSettings;
  /** Seconds from the write of a vector without `expires_at` to its expiry; absent for never. */
  readonly ttl_seconds?: number;
  /** The declared types; absent if there are none. */
  readonly schema?: DeclaredTypes;
  /** What turns texts into unnamed vectors; absent if nothing does. */
  readonly embed?: EmbeddingInput;
  /** The intended number of nodes that hold it; absent for all. */
  readonly replication_factor?: number;
  /** The names of the nodes that hold it; absent if all nodes do, and outside a cluster. */
  readonly nodes?: readonly string[];
  readonly move?: CollectionMoveUnderWay;
  /**
   * `loading`: it has not been loaded since the start; its counts and bytes are 0, and requests
   * for it wait. `failed`: the data of this collection is damaged; other collections are
   * available. `elsewhere`: other nodes of the cluster hold it and did not report its counts,
   * which are 0.
   */
  readonly status: 'loading' | 'ready' | 'failed' | 'elsewhere';
  /** The number of vectors. */
  readonly vector_count: number;
  /** The sequence of the last visible write. */
  readonly sequence: number;
  /** When it was created. */
  readonly created_at: string;
  /** The time of the last write or the last change of settings. */
  readonly updated_at: string;
  readonly engine: EngineChoice;
  readonly memory: MemoryUse;
  /**
   * The size of segment files and the log. Clones share files with their originals if the file
   * system supports links.
   */
  readonly disk_bytes: number;
}

/**
 * A move in progress: the node that joins `nodes`, or replaces one of them, when it has
 * loaded the collection; absent if there is none.
 */
export interface CollectionMoveUnderWay {
  /** The node that is loading the collection. */
  readonly to: string;
  /** The node that it replaces; absent for an additional node. */
  readonly from?: string;
}

/** A page of the collections. */
export interface CollectionPage {
  /** In the order of their ids. */
  readonly collections: readonly CollectionRecord[];
  /** The token of the next page; absent on the last page. */
  readonly next_cursor?: string;
  /** Whether there is another page. */
  readonly has_more: boolean;
  /** The number of collections. */
  readonly total: number;
}

/** Consecutive rows of a collection, which are stored together. */
export interface SegmentRecord {
  /** The number of the segment in its collection, from 1. */
  readonly number: number;
  /** `active` takes new rows, `sealed` waits for its file, `stored` has one. */
  readonly state: 'active' | 'sealed' | 'stored';
  /** Rows, including those that only snapshots see. */
  readonly row_count: number;
  /** Rows that are neither deleted nor replaced. */
  readonly vector_count: number;
  readonly memory: MemoryUse;
  /** The size of its file; 0 without one. */
  readonly file_bytes: number;
}

/** A page of the segments of a collection. */
export interface SegmentPage {
  /** In the order of their numbers. */
  readonly segments: readonly SegmentRecord[];
  /** The token of the next page; absent on the last page. */
  readonly next_cursor?: string;
  /** Whether there is another page. */
  readonly has_more: boolean;
  /** The number of segments. */
  readonly total: number;
  /** The total size of segment files. */
  readonly file_bytes: number;
  /** The size of writes that are only in the log, from which the next start reads them. */
  readonly log_bytes: number;
}

/** Indexes text of the metadata for full-text queries. */
export interface TextSettingsInput {
  /** Metadata paths whose strings, and strings in arrays, are searched as one text: at most 16. */
  readonly fields: readonly string[];
  /**
   * The language of the Snowball algorithm that reduces words to their stems, in texts and
   * queries; null for unchanged words. By default `null`.
   */
  readonly language?: TextLanguage | null;
  /**
   * Words that are ignored, at most 1000. Compared before stemming, regardless of case. By
   * default `[]`.
   */
  readonly stop_words?: readonly string[];
  /** BM25: how quickly repetitions of a word stop counting. By default `1.2`. */
  readonly k1?: number;
  /** BM25: how much long texts are penalized. By default `0.75`. */
  readonly b?: number;
}

/** The text index of a collection; absent if there is none. */
export interface TextSettings {
  /** Metadata paths whose strings, and strings in arrays, are searched as one text: at most 16. */
  readonly fields: readonly string[];
  /**
   * The language of the Snowball algorithm that reduces words to their stems, in texts and
   * queries; null for unchanged words.
   */
  readonly language: TextLanguage | null;
  /** Words that are ignored, at most 1000. Compared before stemming, regardless of case. */
  readonly stop_words: readonly string[];
  /** BM25: how quickly repetitions of a word stop counting. */
  readonly k1: number;
  /** BM25: how much long texts are penalized. */
  readonly b: number;
}

/** Absent members other than the id are copied from the collection. */
export interface CollectionClone {
  /** By default generated. */
  readonly id?: string;
  /** Text for people. */
  readonly description?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * Turns texts into vectors: vectors and queries may contain `embed`, a text, in place of
 * values.
 */
export interface EmbeddingInput {
  /**
   * The name of an endpoint in the configuration of the server, or `builtin` for the built-in
   * model.
   */
  readonly endpoint: string;
  /** The model to use; that of `builtin` with its version. */
  readonly model: string;
  /**
   * Whether to request vectors of the dimension of the collection (`dimensions`), which some
   * models support. By default `false`.
   */
  readonly sends_dimension?: boolean;
}

/** Another name of a collection. */
export interface AliasRecord {
  readonly name: string;
  readonly collection: string;
  /** When the alias was created. */
  readonly created_at: string;
  /** When the alias was last set. */
  readonly updated_at: string;
}

/** A page of the aliases. */
export interface AliasPage {
  /** In the order of their names. */
  readonly aliases: readonly AliasRecord[];
  /** The token of the next page; absent on the last page. */
  readonly next_cursor?: string;
  /** Whether there is another page. */
  readonly has_more: boolean;
  /** The number of aliases. */
  readonly total: number;
}

/** A vector given by its values. */
export interface VectorInput<Values = readonly number[], Metadata = JsonObject> {
  /** If absent, a ULID is generated and returned. */
  readonly id?: string;
  readonly vectors?: Readonly<Record<string, Values | readonly Values[]>>;
  readonly sparse_vectors?: Readonly<Record<string, SparseVector>>;
  readonly metadata?: Metadata;
  /**
   * Writes only if the vector was last written at this sequence, or with 0 if it does not
   * exist; otherwise 412 `precondition_failed`, and nothing of the request is written.
   */
  readonly if_sequence?: number;
  /**
   * When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
   * Absent: after `ttl_seconds` of the collection, if set.
   */
  readonly expires_at?: string | null;
  readonly values: Values;
}

/** A vector given by a text, which the model of the collection turns into its values. */
export interface TextInput<Values = readonly number[], Metadata = JsonObject> {
  /** If absent, a ULID is generated and returned. */
  readonly id?: string;
  readonly vectors?: Readonly<Record<string, Values | readonly Values[]>>;
  readonly sparse_vectors?: Readonly<Record<string, SparseVector>>;
  readonly metadata?: Metadata;
  /**
   * Writes only if the vector was last written at this sequence, or with 0 if it does not
   * exist; otherwise 412 `precondition_failed`, and nothing of the request is written.
   */
  readonly if_sequence?: number;
  /**
   * When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
   * Absent: after `ttl_seconds` of the collection, if set.
   */
  readonly expires_at?: string | null;
  /** A text in place of the vector, into which the model of the collection turns it. */
  readonly embed: string;
}

/** A record of a collection without the unnamed vector. */
export interface RecordInput<Values = readonly number[], Metadata = JsonObject> {
  /** If absent, a ULID is generated and returned. */
  readonly id?: string;
  readonly vectors?: Readonly<Record<string, Values | readonly Values[]>>;
  readonly sparse_vectors?: Readonly<Record<string, SparseVector>>;
  readonly metadata?: Metadata;
  /**
   * Writes only if the vector was last written at this sequence, or with 0 if it does not
   * exist; otherwise 412 `precondition_failed`, and nothing of the request is written.
   */
  readonly if_sequence?: number;
  /**
   * When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
   * Absent: after `ttl_seconds` of the collection, if set.
   */
  readonly expires_at?: string | null;
}

/** The changes of a vector; the rest is unchanged. */
export interface PatchInput<Values = readonly number[], Metadata = JsonObject> {
  /** The id of an existing vector. */
  readonly id: string;
  /** A JSON merge patch (RFC 7396): members replace others, and null removes them. */
  readonly metadata?: Metadata;
  readonly values?: Values;
  /** A text in place of the vector, into which the model of the collection turns it. */
  readonly embed?: string;
  readonly vectors?: Readonly<Record<string, Values | readonly Values[] | null>>;
  /** The same for sparse vectors. */
  readonly sparse_vectors?: Readonly<Record<string, SparseVector | null>>;
  /** When the vector expires (RFC 3339); null for never. Absent: unchanged. */
  readonly expires_at?: string | null;
  /**
   * Writes only if the vector was last written at this sequence, or with 0 if it does not
   * exist; otherwise 412 `precondition_failed`, and nothing of the request is written.
   */
  readonly if_sequence?: number;
}

/**
 * A sparse vector: distinct indices in any order, and the value of each. Stored as float32,
 * in the order of the indices; values that are 0 or not finite as float32 are rejected.
 */
export interface SparseVector {
  /** The indices of the elements that are not 0. */
  readonly indices: readonly number[];
  /** The value of each index, in the same order. */
  readonly values: readonly number[];
}

/** A stored vector, or the requested members of it. */
export interface StoredVector<Values = readonly number[], Metadata = JsonObject> {
  readonly id: string;
  readonly values?: Values;
  /**
   * The named vectors of the record, if `values` are requested; only in a collection with named
   * vectors.
   */
  readonly vectors?: Readonly<Record<string, Values | readonly Values[]>>;
  /** The same for sparse vectors. */
  readonly sparse_vectors?: Readonly<Record<string, SparseVector>>;
  readonly metadata?: Metadata;
  /** The sequence at which the vector was last written, for `if_sequence`; if requested. */
  readonly sequence?: number;
  /** The expiry, if any; only if one vector is read or several are fetched. */
  readonly expires_at?: string;
}

/** Sent when the write is durable on disk and visible to every later read. */
export interface VectorsWritten {
  /** The number of written vectors. */
  readonly upserted_count: number;
  /** The number of those that are new. */
  readonly inserted_count: number;
  /** The number of those that replaced another vector. */
  readonly updated_count: number;
  /** All ids in the order of the body, if at least one was generated. Absent for streams. */
  readonly ids?: readonly string[];
  /** For streams: the number of atomic writes. */
  readonly batch_count?: number;
  /** For streams: the rows that an earlier attempt with the same idempotency key had written. */
  readonly resumed_count?: number;
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
}

/** The vector is written. */
export interface PutReply {
  readonly id: string;
  readonly collection: string;
  /** Whether there was no vector with the id. */
  readonly created: boolean;
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
}

/** The vector is changed. */
export interface PatchReply {
  readonly id: string;
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
}

/** The vector is deleted. */
export interface DeleteReply {
  readonly id: string;
  /** Always true. */
  readonly deleted: true;
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
}

/** The number of deleted vectors. */
export interface DeleteManyReply {
  /** The number of vectors that were deleted or, with `dry_run`, would be. */
  readonly deleted_count: number;
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
  /**
   * Metadata paths in the request that no vector of the collection has, or had before a write;
   * on the first page, and absent if there are none.
   */
  readonly warnings?: readonly Warning[];
}

/** The number of changed vectors. */
export interface UpdateManyReply {
  /** The number of vectors that changed. Vectors that already had the new metadata do not count. */
  readonly updated_count: number;
  /** Whether `limit` left vectors unchanged that still need the change. */
  readonly has_more: boolean;
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
  /**
   * Metadata paths in the request that no vector of the collection has, or had before a write;
   * on the first page, and absent if there are none.
   */
  readonly warnings?: readonly Warning[];
}

/** The requested vectors. */
export interface FetchReply<Values = readonly number[], Metadata = JsonObject> {
  /** In the order of the requested ids. */
  readonly vectors: readonly StoredVector<Values, Metadata>[];
  /** The ids that do not exist. */
  readonly not_found: readonly string[];
}

/** A page of the vectors of a collection. */
export interface VectorPage<Values = readonly number[], Metadata = JsonObject> {
  /** In insertion order, or as `sort` says. */
  readonly vectors: readonly StoredVector<Values, Metadata>[];
  /** The token of the next page; absent on the last page. */
  readonly next_cursor?: string;
  /** Whether there is another page. */
  readonly has_more: boolean;
  /** The vectors that pass the filter; only when paging by `offset` or with `sort`. */
  readonly total?: number;
  /**
   * Metadata paths in the request that no vector of the collection has, or had before a write;
   * on the first page, and absent if there are none.
   */
  readonly warnings?: readonly Warning[];
}

/** A sort key; later keys break ties of earlier ones. */
export interface SortKey {
  /** A path in the metadata, or `$id` for the id; in queries also `id`, and `score`. */
  readonly field: string;
  /** Ascending or descending. By default `asc`. */
  readonly order?: 'asc' | 'desc';
}

/**
 * Exactly one of `vector`, `id`, `multi_vector`, `embed`, `recommend`, `discover`, `text`,
 * `sparse` and `fusion`, or a `cursor` alone. `limit`, `offset` and `cursor` may be in the
 * query string instead.
 */
export interface Query<Values = readonly number[], Filter = JsonObject> {
  /** A vector to search with. */
  readonly vector?: Values;
  /** A stored vector to search with. It is excluded from its own result. */
  readonly id?: string;
  readonly multi_vector?: readonly Values[];
  /** A text in place of the vector, into which the model of the collection turns it. */
  readonly embed?: string;
  readonly recommend?: Recommend;
  readonly discover?: Discover;
  readonly text?: TextQuery;
  /**
   * A sparse vector, compared with the sparse vector `using` by the dot product. Vectors
   * without a common index are excluded.
   */
  readonly sparse?: SparseVector;
  /**
   * The named vector to search instead of the unnamed one; with `sparse`, the sparse vector.
   * Records without it are excluded.
   */
  readonly using?: string;
  /** Used instead of the collection's metric. */
  readonly metric?: Metric;
  readonly fusion?: Fusion<Values, Filter>;
  readonly prefetch?: Prefetch<Values, Filter>;
  readonly mmr?: Mmr;
  /**
   * The number of nearest vectors to return, 10 if neither `limit`, `score_threshold` nor
   * `cursor` says otherwise: at most 10000 without `limit`, which returns them in pages. With
   * `limit` and no `top_k` the pages go through all vectors that pass the filter; with
   * `score_threshold` and no `top_k`, through all that have at least that score.
   */
  readonly top_k?: number;
  /** Page size. By default `top_k`, or the default page size if that is absent too. */
  readonly limit?: number;
  /**
   * The number of records to skip. Large offsets cost more, and pages shift when data changes
   * between requests; a cursor avoids both. Not together with `cursor`.
   */
  readonly offset?: number;
  /**
   * The `next_cursor` of the previous page. Send it alone or with the same fields as for the
   * first page. Not together with `offset`.
   */
  readonly cursor?: string;
  /**
   * Applied to the whole collection before scoring: the reply has min(top_k, vectors that pass)
   * matches.
   */
  readonly filter?: Filter;
  /**
   * Whether matches contain metadata; with a list of paths, only these, within their enclosing
   * objects. By default `false`.
   */
  readonly include_metadata?: boolean | readonly string[];
  /** `base64` returns vectors as base64 of little-endian float32. By default `false`. */
  readonly include_values?: boolean | 'base64';
  /**
   * Whether matches contain `sequence`, for use in `if_sequence` of a write. By default
   * `false`.
   */
  readonly include_sequence?: boolean;
  /** Sorts the `top_k` nearest vectors, at most 10000, in another order. */
  readonly sort?: readonly SortKey[];
  /**
   * Returns the best matches of each distinct value of a metadata path: the groups whose best
   * match is nearest, each with its `group_size` nearest vectors. `top_k`, `limit` and `offset`
   * then count groups. A vector without a value (missing, null, an object, an array without
   * scalars) is in no group; an array is in the group of each of its distinct elements. With
   * `limit` or `score_threshold` and no `top_k`: all groups, at most 10000. Not together with
   * `sort`.
   */
  readonly group_by?: string;
  /**
   * The number of matches per group; with 1, all matches have distinct values unless these are
   * arrays. A page has at most 10000 matches. By default `1`.
   */
  readonly group_size?: number;
  /**
   * Return only matches with at least this score, compared with scores as replies show them.
   * Without `top_k` all such matches are returned, in pages of `limit` (default 100). With
   * `sort` only the `top_k` nearest are considered.
   */
  readonly score_threshold?: number;
  /** Answer from a snapshot that includes the write with this sequence. */
  readonly min_sequence?: number;
  /**
   * Counts the values of each path over all vectors that pass the filter. The count of a value
   * is the number of vectors that the filter `{path: value}` selects: strings, numbers and
   * booleans count, and an array counts once for each of its distinct elements.
   */
  readonly facets?: readonly FacetRequest[];
  /**
   * Summarizes the numbers of each path over all vectors that pass the filter; other values are
   * ignored.
   */
  readonly stats?: readonly StatsRequest[];
  readonly score_stats?: ScoreStatsRequest;
  /** Whether the reply contains `explain`: how the result was found. By default `false`. */
  readonly explain?: boolean;
}

/**
 * Words to search for in place of a vector. Matches are ranked by BM25. Only for collections
 * with `text`.
 */
export interface TextQuery {
  /**
   * Text whose words are searched for, in any order: at most 256 different ones. A word that
   * occurs twice counts twice.
   */
  readonly query: string;
  /** Whether vectors must contain any of the words or all of them. By default `any`. */
  readonly match?: 'any' | 'all';
}

/** Finds vectors by at most 64 examples. */
export interface Recommend {
  /** What the result should be near to. By default `[]`. */
  readonly positive?: readonly (string | readonly number[])[];
  /** What the result should not be near to. By default `[]`. */
  readonly negative?: readonly (string | readonly number[])[];
  /**
   * `average_vector`: searches with the mean of the positive examples, or with twice that mean
   * minus the mean of the negative ones; under `cosine` of examples of length 1. `best_score`:
   * with the highest scores p of a vector with a positive and n with a negative example, its
   * score is s(p) if p > n, else -s(n), where s(x) = (1 + x / (1 + |x|)) / 2. `sum_scores`: the
   * sum of its scores with the positive examples, minus that with the negative ones. The last
   * two need no positive example, and their matches have no `distance`. By default
   * `average_vector`.
   */
  readonly strategy?: 'average_vector' | 'best_score' | 'sum_scores';
  /** Whether examples that are given by their ids may be in the result. By default `false`. */
  readonly include_examples?: boolean;
}

/** Two examples; the result should be nearer to the positive one. */
export interface ExamplePair {
  readonly positive: string | readonly number[];
  readonly negative: string | readonly number[];
}

/**
 * Finds vectors on the positive side of pairs of examples, of which there are at most 64 with
 * the target. With a target, a vector scores 1 for each pair whose positive is nearer, -1 for
 * each whose negative is, plus s(its score with the target), s as for `best_score`. Without
 * one, its score is the sum of d / (1 + |d|) over the pairs, where d = min(0, score with the
 * positive - score with the negative). Matches have no `distance`.
 */
export interface Discover {
  /** What the result should be near to. */
  readonly target?: string | readonly number[];
  /** Pairs; the result should be nearer to the positive example of each. By default `[]`. */
  readonly context?: readonly ExamplePair[];
  /** Whether examples that are given by their ids may be in the result. By default `false`. */
  readonly include_examples?: boolean;
}

/**
 * Diversifies the result by maximal marginal relevance: the nearest candidate comes first,
 * then repeatedly the one with the highest `lambda` * its score - (1 - `lambda`) * its
 * highest score with an earlier match, the first of equal ones. `top_k` is at most the number
 * of candidates. Not together with `sort` or `group_by`.
 */
export interface Mmr {
  /** From 0, which prefers what is different, to 1, which keeps the order. By default `0.5`. */
  readonly lambda?: number;
  /** The number of nearest vectors to choose from; by default 100, or `top_k` if that is more. */
  readonly candidates?: number;
}

/**
 * Combines several rankings: the score of a vector is the sum of its contributions from each
 * part that ranks it. Ranks are those among all vectors that pass the filters and that the
 * part can rank. Vectors that parts name by `id` have a rank but are excluded from the
 * result.
 */
export interface Fusion<Values = readonly number[], Filter = JsonObject> {
  /**
   * `rrf`: weight / (`rank_constant` + rank), the best having rank 1. `weighted`: weight *
   * score. By default `rrf`.
   */
  readonly kind?: 'rrf' | 'weighted';
  /** For `rrf`: the larger it is, the less the first ranks dominate. By default `60`. */
  readonly rank_constant?: number;
  /**
   * For `weighted`: `max` divides the scores of each part by the absolute value of its best
   * one. By default `none`.
   */
  readonly normalize?: 'none' | 'max';
  /** The rankings. */
  readonly parts: readonly FusionPart<Values, Filter>[];
}

/**
 * One ranking of a fusion: exactly one of `vector`, `id`, `multi_vector`, `embed`,
 * `recommend`, `discover`, `text` and `sparse`.
 */
export interface FusionPart<Values = readonly number[], Filter = JsonObject> {
  /** A vector to search with. */
  readonly vector?: Values;
  /** A stored vector to search with. It is excluded from its own result. */
  readonly id?: string;
  readonly multi_vector?: readonly Values[];
  /** A text in place of the vector, into which the model of the collection turns it. */
  readonly embed?: string;
  readonly recommend?: Recommend;
  readonly discover?: Discover;
  readonly text?: TextQuery;
  /**
   * A sparse vector, compared with the sparse vector `using` by the dot product. Vectors
   * without a common index are excluded.
   */
  readonly sparse?: SparseVector;
  /**
   * The named vector to search instead of the unnamed one; with `sparse`, the sparse vector.
   * Records without it are excluded.
   */
  readonly using?: string;
  /** Used instead of the collection's metric. */
  readonly metric?: Metric;
  /** Vectors must pass this filter and that of the query. */
  readonly filter?: Filter;
  /**
   * The number of best vectors that the part ranks, by default all that pass. A limit is
   * faster.
   */
  readonly limit?: number;
  /** The weight relative to the other parts. By default `1`. */
  readonly weight?: number;
}

/**
 * A first stage: the query searches only the best vectors by another ranking, exactly. It has
 * exactly one of `vector`, `id`, `multi_vector`, `embed`, `recommend`, `discover`, `text`,
 * `sparse` and `fusion`.
 */
export interface Prefetch<Values = readonly number[], Filter = JsonObject> {
  /** A vector to search with. */
  readonly vector?: Values;
  /** A stored vector to search with. It is excluded from its own result. */
  readonly id?: string;
  readonly multi_vector?: readonly Values[];
  /** A text in place of the vector, into which the model of the collection turns it. */
  readonly embed?: string;
  readonly recommend?: Recommend;
  readonly discover?: Discover;
  readonly text?: TextQuery;
  /**
   * A sparse vector, compared with the sparse vector `using` by the dot product. Vectors
   * without a common index are excluded.
   */
  readonly sparse?: SparseVector;
  /**
   * The named vector to search instead of the unnamed one; with `sparse`, the sparse vector.
   * Records without it are excluded.
   */
  readonly using?: string;
  /** Used instead of the collection's metric. */
  readonly metric?: Metric;
  readonly fusion?: Fusion<Values, Filter>;
  /** Vectors must pass this filter and that of the query. */
  readonly filter?: Filter;
  /** The number of vectors that the query searches. */
  readonly limit: number;
}

/** A vector that was found. */
export interface Match<Values = readonly number[], Metadata = JsonObject> {
  readonly id: string;
  /** A higher score is better, for every metric. */
  readonly score: number;
  /** The L2 distance; `euclidean` only. */
  readonly distance?: number;
  /** The value of its group; only with `group_by`. */
  readonly group?: string | number | boolean;
  /** The sequence of its last write; only with `include_sequence`. */
  readonly sequence?: number;
  readonly metadata?: Metadata;
  readonly values?: Values;
  readonly vectors?: Readonly<Record<string, Values | readonly Values[]>>;
  readonly sparse_vectors?: Readonly<Record<string, SparseVector>>;
}

/** How the result was found. */
export interface Explain {
  /**
   * How the result was found: the name of an engine; `text`, `sparse` or `fusion` for queries
   * with these; `max_sim` for multi-vectors.
   */
  readonly engine: string;
  /** The segments of the snapshot. */
  readonly segment_count: number;
  /** The rows that were compared with the query. */
  readonly rows_scanned: number;
  /** The rows that pass the filter. */
  readonly rows_passed_filter: number;
  /** The rows whose exact scores were computed. */
  readonly candidates_rescored: number;
  /** Whether no vector outside the result can have a higher score than one in it. */
  readonly is_certified: boolean;
  /** Milliseconds for turning texts into vectors. */
  readonly embed_ms?: number;
  /** Milliseconds for the filter. */
  readonly filter_ms: number;
  /** Milliseconds for the search. */
  readonly search_ms: number;
  /** Milliseconds for making the reply. */
  readonly assemble_ms: number;
}

/** A page of matches. */
export interface QueryReply<Values = readonly number[], Metadata = JsonObject> {
  /** The nearest first, or as `sort` says. */
  readonly matches: readonly Match<Values, Metadata>[];
  /** The token of the next page; absent on the last page. */
  readonly next_cursor?: string;
  /** Whether there is another page. */
  readonly has_more: boolean;
  /**
   * The exact number of vectors that pass the filter and that the query ranks: with `text` or
   * `sparse` those that match, with `fusion` those that any part ranks. Present on the first
   * page and on pages with an `offset`.
   */
  readonly total?: number;
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
  /** In the order of the request. */
  readonly facets?: readonly Facet[];
  /** In the order of the request. */
  readonly stats?: readonly Stats[];
  readonly score_stats?: ScoreStats;
  /**
   * Metadata paths in the request that no vector of the collection has, or had before a write;
   * on the first page, and absent if there are none.
   */
  readonly warnings?: readonly Warning[];
  readonly explain?: Explain;
}

/** A path whose values are counted. */
export interface FacetRequest {
  /** A path in the metadata, as in filters. */
  readonly path: string;
  /** The number of values to return. By default `10`. */
  readonly limit?: number;
  /**
   * Whether this facet ignores the conditions of the filter on its own path, so that it also
   * contains values that are not selected. The conditions still apply to the other facets and
   * the rest of the reply. By default `false`.
   */
  readonly ignore_own_filter?: boolean;
}

/** A path whose numbers are summarized. */
export interface StatsRequest {
  /** A path in the metadata, as in filters. */
  readonly path: string;
  /** Buckets of the numbers; absent for no histogram. */
  readonly histogram?: HistogramRequest;
}

/**
 * Summarizes the scores, as replies show them, of all vectors that pass the filter and have
 * at least `score_threshold`. Every one of them is scored, which takes longer than a search.
 */
export interface ScoreStatsRequest {
  /** Buckets of the numbers; absent for no histogram. */
  readonly histogram?: HistogramRequest;
}

/** What to count and summarize. */
export interface AggregateRequest<Filter = JsonObject> {
  /** Only the vectors that pass. */
  readonly filter?: Filter;
  /**
   * Counts the values of each path over all vectors that pass the filter. The count of a value
   * is the number of vectors that the filter `{path: value}` selects: strings, numbers and
   * booleans count, and an array counts once for each of its distinct elements.
   */
  readonly facets?: readonly FacetRequest[];
  /**
   * Summarizes the numbers of each path over all vectors that pass the filter; other values are
   * ignored.
   */
  readonly stats?: readonly StatsRequest[];
  /** Answer from a snapshot that includes the write with this sequence. */
  readonly min_sequence?: number;
}

/** Buckets of equal width from `min` to `max`; a single bucket if all numbers are equal. */
export interface HistogramRequest {
  /** The number of buckets. By default `10`. */
  readonly bucket_count?: number;
  /** By default the least number. */
  readonly min?: number;
  /** By default the greatest number. */
  readonly max?: number;
}

/** What was counted and summarized. */
export interface AggregateReply {
  /** The vectors that pass the filter. */
  readonly count: number;
  /** In the order of the request. */
  readonly facets?: readonly Facet[];
  /** In the order of the request. */
  readonly stats?: readonly Stats[];
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
  /**
   * Metadata paths in the request that no vector of the collection has, or had before a write;
   * on the first page, and absent if there are none.
   */
  readonly warnings?: readonly Warning[];
}

/** Something in the request that is allowed, but probably a mistake. */
export interface Warning {
  /** The kind of the warning. */
  readonly code: 'unknown_path';
  /** The member of the request that names the path. */
  readonly in: string;
  /** The path. */
  readonly path: string;
  /** A sentence for people. */
  readonly detail: string;
}

/** A summary of scores. */
export interface ScoreStats {
  /** The vectors whose scores are summarized. */
  readonly count: number;
  /** The least number. Absent without numbers, like the following members. */
  readonly min?: number;
  /** The greatest number. */
  readonly max?: number;
  /** The exact sum of the float64 values, rounded once. */
  readonly sum?: number;
  /** The exact mean, rounded once. */
  readonly mean?: number;
  readonly histogram?: Histogram;
}

/** A page of the paths in the metadata. */
export interface FoundSchema {
  /** In the order of their characters. */
  readonly paths: readonly FoundPath[];
  /** Whether there is another page. */
  readonly has_more: boolean;
  /** The `after` of the next page; absent on the last page. */
  readonly next_after?: string;
  /** The vectors that pass the filter. */
  readonly count: number;
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
  /**
   * Metadata paths in the request that no vector of the collection has, or had before a write;
   * on the first page, and absent if there are none.
   */
  readonly warnings?: readonly Warning[];
}

/** A path of the metadata and what is there. */
export interface FoundPath {
  /** The path in the metadata. */
  readonly path: string;
  /** The vectors that have the path, also those with null. */
  readonly count: number;
  /** The vectors by the type of their value. */
  readonly types: TypeCounts;
  /** The elements of arrays by their type. */
  readonly element_types?: TypeCounts;
  /** Distinct strings, numbers and booleans, also in arrays. */
  readonly distinct_count: number;
  /**
   * False for paths with more than 10 000 values in a segment: there are at least
   * `distinct_count` values.
   */
  readonly is_distinct_exact: boolean;
  /** The least number, if any. */
  readonly min?: number;
  /** The greatest number, if any. */
  readonly max?: number;
}

/** Values by type. */
export interface TypeCounts {
  /** Nulls. */
  readonly null: number;
  /** Booleans. */
  readonly boolean: number;
  /** Numbers. */
  readonly number: number;
  /** Strings. */
  readonly string: number;
  /** Arrays. */
  readonly array: number;
  /** Objects. */
  readonly object: number;
}

/** A value and how often it occurs. */
export interface FacetValue {
  /** A value at the path. */
  readonly value: string | number | boolean;
  /** The vectors that have this value. */
  readonly count: number;
}

/** The values at a path. */
export interface Facet {
  /** The path in the metadata. */
  readonly path: string;
  /**
   * The most frequent first. Equal counts: numbers before strings before booleans, each in
   * ascending order.
   */
  readonly values: readonly FacetValue[];
  /** All distinct values, returned or not. */
  readonly distinct_count: number;
  /** The vectors without a value. */
  readonly missing_count: number;
}

/** A range of numbers and how many are in it. */
export interface HistogramBucket {
  /** The least number that belongs to the bucket. */
  readonly from: number;
  /** Belongs to the next bucket, except in the last one. */
  readonly to: number;
  /** The numbers in the bucket. */
  readonly count: number;
}

/** How numbers are distributed. */
export interface Histogram {
  /** In ascending order. */
  readonly buckets: readonly HistogramBucket[];
  /** Numbers below `min`. */
  readonly below_count: number;
  /** Numbers above `max`. */
  readonly above_count: number;
}

/** A summary of the numbers at a path. */
export interface Stats {
  /** The path in the metadata. */
  readonly path: string;
  /** The number of numbers; each number in an array counts. */
  readonly count: number;
  /** The vectors without a number. */
  readonly missing_count: number;
  /** The least number. Absent without numbers, like the following members. */
  readonly min?: number;
  /** The greatest number. */
  readonly max?: number;
  /** The exact sum of the float64 values, rounded once. */
  readonly sum?: number;
  /** The exact mean, rounded once. */
  readonly mean?: number;
  readonly histogram?: Histogram;
}

/** The share of the exact results that the other search found. */
export interface RecallReply {
  /** The mean of `recalls`. */
  readonly recall: number;
  /** The number of query vectors. */
  readonly query_count: number;
  /** The length of the lists of ids, if it is the same for all of them. */
  readonly k?: number;
  /** The recall of each query. */
  readonly recalls: readonly number[];
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
  /**
   * Metadata paths in the request that no vector of the collection has, or had before a write;
   * on the first page, and absent if there are none.
   */
  readonly warnings?: readonly Warning[];
}

/** Describes the service. Links are relative to the URL of this document. */
export interface ServiceInfo {
  /** The name of the program. */
  readonly name: 'Sagitta';
  /** The version of the program. */
  readonly version: string;
  /** The prefix of versioned paths. */
  readonly api: 'v1';
  /** The web console; null if this server has none. */
  readonly console: string | null;
  /** The API reference. */
  readonly docs: string;
  /** The OpenAPI document. */
  readonly openapi: string;
  /** Whether requests will be answered. */
  readonly ready: string;
}

/** What a server has done in the last minutes. */
export interface Traffic {
  /** The node of the cluster that answers, for itself; null outside a cluster. */
  readonly node: string | null;
  /** Oldest first; the last one is current. */
  readonly intervals: readonly TrafficInterval[];
  /** Collections with queries or writes, in the order of their ids. */
  readonly collections: readonly CollectionTraffic[];
  /** The 20 slowest, slowest first. */
  readonly slow_queries: readonly SlowQuery[];
}

/** The requests of 30 seconds. */
export interface TrafficInterval {
  /** When the interval began. */
  readonly time: string;
  /** Its length so far: 30, and less for the interval of the start and for the current one. */
  readonly seconds: number;
  /** The number of requests that ended. */
  readonly requests: number;
  /** How many of them ended with a status of 400 or more. */
  readonly errors: number;
  /** The median duration of requests in milliseconds, within a fifth; null if there were none. */
  readonly p50_ms: number | null;
  /**
   * The duration that 95 % of requests did not exceed, in milliseconds, within a fifth; null if
   * there were none.
   */
  readonly p95_ms: number | null;
  /**
   * The duration that 99 % of requests did not exceed, in milliseconds, within a fifth; null if
   * there were none.
   */
  readonly p99_ms: number | null;
  /** The number of vectors that were inserted or updated. */
  readonly rows_written: number;
}

/** The queries and writes of a collection. */
export interface CollectionTraffic {
  /**
   * The id of the collection; null for the sum of all that are not listed, because there are
   * many or the caller may not see them.
   */
  readonly id: string | null;
  /** The number of queries answered. Each page and each query of a batch counts. */
  readonly queries: number;
  /** The number of vectors that were inserted or updated. */
  readonly rows_written: number;
  /** The median duration of queries in milliseconds, within a fifth; null if there were none. */
  readonly p50_ms: number | null;
  /**
   * The duration that 95 % of queries did not exceed, in milliseconds, within a fifth; null if
   * there were none.
   */
  readonly p95_ms: number | null;
  /**
   * The duration that 99 % of queries did not exceed, in milliseconds, within a fifth; null if
   * there were none.
   */
  readonly p99_ms: number | null;
}

/** One of the slowest queries, without vectors, values and metadata paths. */
export interface SlowQuery {
  /** When the query ended. */
  readonly time: string;
  /** The id of the collection. */
  readonly collection: string;
  /** The `X-Request-Id` of the request. */
  readonly request_id: string;
  /** The sum of the members that follow, without the time of the upload. */
  readonly milliseconds: number;
  /** Reading the body. */
  readonly parse_ms?: number;
  /** Turning texts into vectors. */
  readonly embed_ms?: number;
  /** Planning the query. */
  readonly plan_ms?: number;
  /** Evaluating the filter. */
  readonly filter_ms?: number;
  /** Waiting for the engine. */
  readonly wait_ms?: number;
  /** Searching. */
  readonly search_ms?: number;
  /** Reading ids, metadata and values. */
  readonly assemble_ms?: number;
  /** Writing the reply. */
  readonly reply_ms?: number;
  /** While the process was busy with something else. */
  readonly other_ms?: number;
  /** What the query ranks by; `continued` for a page by its cursor, `batch` for several queries. */
  readonly kind:
    | 'vector'
    | 'id'
    | 'multi_vector'
    | 'text'
    | 'sparse'
    | 'embed'
    | 'recommend'
    | 'discover'
    | 'fusion'
    | 'continued'
    | 'batch';
  /** The number of queries of a batch. */
  readonly query_count?: number;
  /** The number of matches requested. */
  readonly top_k?: number;
  /** The size of the page requested. */
  readonly limit?: number;
  /** The structure of the filter, with `f1`, `f2` … for paths and `?` for values. */
  readonly filter?: string;
  /** The number of rows searched. */
  readonly rows_scanned?: number;
  /** The number of rows whose exact score was computed. */
  readonly rows_rescored?: number;
  /** The code of the error, if it failed. */
  readonly code?: string;
}

/** A collection whose requests wait or are refused. */
export interface CollectionNotReady {
  /** The id of the collection. */
  readonly id: string;
  /** `loading`: a request for it waits; `failed`: its data is damaged, and it stays unavailable. */
  readonly status: 'loading' | 'failed';
  /** Why it is not ready. */
  readonly reason: string;
}

/** Whether requests are answered. */
export interface Readiness {
  /**
   * `starting`: requests are not answered yet; `stopping`: they are no longer answered;
   * `not_writable`, only with `for=write`: reads are answered, and writes fail or wait.
   */
  readonly status: 'starting' | 'ready' | 'stopping' | 'not_writable';
  /** Why it is not ready. */
  readonly reason?: string;
  /**
   * The number of collections that have not been loaded since the start. A request for one of
   * them loads it next and waits for it.
   */
  readonly collections_loading: number;
  /** The first 100. */
  readonly collections_not_ready: readonly CollectionNotReady[];
  /** What is wrong at the moment, for clients that may read metrics; empty for others. */
  readonly problems: readonly ServiceProblem[];
}

/** What is wrong with a service at the moment. */
export interface ServiceProblem {
  readonly code: ProblemCode;
  /** What was found, and what to do. */
  readonly detail: string;
  /** How long it has lasted. */
  readonly seconds: number;
  /** Whether writes fail or wait because of it. */
  readonly blocks_writes: boolean;
}

/** A NATS server that stores the log of the catalogue. */
export interface LogServer {
  /** The name of the NATS server. */
  readonly name: string;
  /** Whether it leads the log. */
  readonly is_leader: boolean;
  /** How long the leader has not heard from it; up to 2 while nothing is written. */
  readonly silent_seconds: number;
  /** Operations of the log that it has not received yet. */
  readonly lag: number;
}

/** What is wrong with the log of a collection. */
export interface CollectionProblem {
  /** The id of the collection. */
  readonly id: string;
  readonly code: ProblemCode;
  /** What was found, and what to do. */
  readonly detail: string;
}

/** A node of the cluster that the replying node has heard from. */
export interface ClusterNode {
  /** The configured name of the node. */
  readonly name: string;
  /** The URL for other nodes; empty until the node answers requests. */
  readonly url: string;
  /** The failure domain of the node; empty if none is configured. */
  readonly zone: string;
  /** The version of the program. */
  readonly version: string;
  /**
   * `joining`: requests are not answered yet; `leaving`: it is about to stop; `absent`: the
   * replying node has not heard from it recently, although it did not leave.
   */
  readonly state: 'joining' | 'serving' | 'leaving' | 'absent';
  /** The number of collections whose writes the node carries out. */
  readonly collection_count: number;
  /** The number of collections that the node holds. */
  readonly held_count: number;
  /**
   * `draining`: it is to be stopped, and other nodes have yet to take over from it; `drained`:
   * it can be stopped.
   */
  readonly drain: 'none' | 'draining' | 'drained';
  /** How long it has not been heard from, if it is absent; otherwise 0. */
  readonly silent_seconds: number;
  /** What is wrong with it, as it has announced itself; empty for an absent node. */
  readonly problems: readonly ServiceProblem[];
}

/** The cluster as seen by one of its nodes. */
export interface Cluster {
  /** The name of the node that replies; null outside a cluster. */
  readonly node: string | null;
  /**
   * The name of the node that creates, changes and deletes collections, aliases and API keys,
   * as far as this node knows; null if there is none.
   */
  readonly leader: string | null;
  /**
   * Whether a write through the replying node would succeed now, as `GET /readyz?for=write`
   * says.
   */
  readonly is_writable: boolean;
  /** The nodes in the order of their names; empty outside a cluster. */
  readonly nodes: readonly ClusterNode[];
  /** The first 100 collections with a problem that the replying node as a whole does not have. */
  readonly collections: readonly CollectionProblem[];
  /** The NATS servers that store the log of the catalogue; empty if they are unknown. */
  readonly log_servers: readonly LogServer[];
  /** As determined by this node; null outside a cluster. */
  readonly durability: ClusterDurability | null;
}

/** Whether the logs of the cluster preserve acknowledged writes. */
export interface ClusterDurability {
  /**
   * `verified`: every NATS server syncs each message before it acknowledges it; `unverified`:
   * this is unknown; `insufficient`: acknowledged writes can be lost.
   */
  readonly state: 'verified' | 'unverified' | 'insufficient';
  /** What was found, and what to do about it. */
  readonly detail: string;
}

/** The digest of a collection on a node of the cluster. */
export interface NodeDigest {
  /** The name of the node. */
  readonly node: string;
  /** The number of vectors at the sequence. */
  readonly vector_count?: number;
  /** 64 hexadecimal digits. */
  readonly digest?: string;
  /** Why the digest is missing, or does not cover all committed writes. */
  readonly problem?: string;
}

/** A digest of the content of a collection at a sequence. */
export interface CollectionDigest {
  /** The sequence of the write up to which the collection was read. */
  readonly sequence: number;
  /** The number of vectors at that sequence. */
  readonly vector_count: number;
  /** 64 hexadecimal digits. */
  readonly digest: string;
  /**
   * With `all_nodes`: the nodes of the cluster in the order of their names; empty outside a
   * cluster.
   */
  readonly nodes?: readonly NodeDigest[];
}

/** A log, or a group of shared files, of the cluster. */
export interface VerifiedFiles {
  /**
   * `log`: the records of a log; `archive`: its chunks among the shared files; `snapshot`: what
   * new nodes start from; `origin`: what a clone had before its first write.
   */
  readonly kind: 'log' | 'archive' | 'snapshot' | 'origin';
  /** The name of the log or the log snapshot. */
  readonly name: string;
  /** Records of a log, chunks of an archive, or files. */
  readonly count: number;
  /** Their size in bytes. */
  readonly byte_count: number;
  /** What is damaged; null if nothing is. */
  readonly problem: string | null;
}

/** The state of the logs and the shared files of the cluster. */
export interface ClusterFiles {
  /** Everything that was read; empty outside a cluster. */
  readonly files: readonly VerifiedFiles[];
}

/** A folder that contains a data directory as of one point in time. */
export interface BackupRecord {
  /** The name of its folder in the backup directory. */
  readonly name: string;
  /** The time of the snapshot. */
  readonly created_at: string;
  /** The size of all its files. */
  readonly byte_length: number;
  /** The number of collections. */
  readonly collections: number;
}

/** A key to create. */
export interface ApiKeyInput {
  /** A description of who uses the key. */
  readonly owner: string;
  /**
   * What the key allows. Every scope but `metrics:read` may be limited to collections by a
   * glob, as in `vectors:read:catalog-*` (`*` matches any characters, `?` one).
   */
  readonly scopes: readonly string[];
  /** When the key expires; absent or null for never. By default `null`. */
  readonly expires_at?: string | null;
  /**
   * Origins of the only web pages that may use the key: the header `Origin` of a request must
   * be one of them; null for no restriction. Browsers set the header, and other programs can
   * send any. By default `null`.
   */
  readonly allowed_origins?: readonly string[] | null;
  /** A rate limit instead of that of the service; absent or null for none. By default `null`. */
  readonly rate_limit?: ApiKeyRateLimitInput | null;
}

/** The rate limit of a key, instead of that of the service. All users of the key share it. */
export interface ApiKeyRateLimit {
  /**
   * Reads and writes per second, each. A request counts as the number of its queries, or of the
   * vectors that it reads or writes, but at least 1.
   */
  readonly per_second: number;
  /** How many reads or writes are allowed at once. */
  readonly burst: number;
}

/** By default, `burst` is the number per second. */
export interface ApiKeyRateLimitInput {
  /**
   * Reads and writes per second, each. A request counts as the number of its queries, or of the
   * vectors that it reads or writes, but at least 1.
   */
  readonly per_second: number;
  /** How many reads or writes are allowed at once. */
  readonly burst?: number;
}

/** A key without its secret, which only the reply that created the key contains. */
export interface ApiKeyRecord {
  readonly id: string;
  /** A description of who uses the key. */
  readonly owner: string;
  /** What the key allows. */
  readonly scopes: readonly string[];
  /**
   * Origins of the only web pages that may use the key: the header `Origin` of a request must
   * be one of them; null for no restriction. Browsers set the header, and other programs can
   * send any.
   */
  readonly allowed_origins: readonly string[] | null;
  /** Null if the limits of the service apply. */
  readonly rate_limit: ApiKeyRateLimit | null;
  /** When the key was created. */
  readonly created_at: string;
  /** Null if the key does not expire. */
  readonly expires_at: string | null;
  /** When the key was last rotated; null if it never was. */
  readonly rotated_at: string | null;
  /** When the key was revoked; null if it is not revoked. */
  readonly revoked_at: string | null;
}

/** A key with its secret, which no other reply contains. */
export interface ApiKeyWithSecret {
  readonly id: string;
  /** A description of who uses the key. */
  readonly owner: string;
  /** What the key allows. */
  readonly scopes: readonly string[];
  /**
   * Origins of the only web pages that may use the key: the header `Origin` of a request must
   * be one of them; null for no restriction. Browsers set the header, and other programs can
   * send any.
   */
  readonly allowed_origins: readonly string[] | null;
  /** Null if the limits of the service apply. */
  readonly rate_limit: ApiKeyRateLimit | null;
  /** When the key was created. */
  readonly created_at: string;
  /** Null if the key does not expire. */
  readonly expires_at: string | null;
  /** When the key was last rotated; null if it never was. */
  readonly rotated_at: string | null;
  /** When the key was revoked; null if it is not revoked. */
  readonly revoked_at: string | null;
  /** Send it as `Authorization: Bearer …`. It is returned only once. */
  readonly key: string;
}

/** An operation on the service that was carried out or attempted. */
export interface AuditEvent {
  /** The number of the event in the data directory. */
  readonly sequence: number;
  /** When it happened. */
  readonly time: string;
  /** The kind of object and the action. */
  readonly operation:
    | 'collection.create'
    | 'collection.update'
    | 'collection.clone'
    | 'collection.rename'
    | 'collection.move'
    | 'collection.delete'
    | 'alias.set'
    | 'alias.change'
    | 'alias.delete'
    | 'key.create'
    | 'key.rotate'
    | 'key.revoke'
    | 'backup.create'
    | 'node.drain'
    | 'node.undrain';
  readonly outcome: 'succeeded' | 'refused' | 'failed';
  /** The id of the principal, as `GET /principal` returns it. */
  readonly principal: string;
  /** The address of the client; `local` for the socket in the data directory. */
  readonly client: string;
  /** The node of the cluster that received the request, if it forwarded it to this node. */
  readonly via: string | null;
  /** The id or name of the object, if the request named one. */
  readonly target: string | null;
  /** The HTTP status of the reply. */
  readonly status: number;
  /** The `X-Request-Id` of the request. */
  readonly request_id: string;
  /** The trace that the request belongs to; null without one. */
  readonly trace_id: string | null;
  /** The number of omitted attempts without a valid credential before this one. */
  readonly unlogged_count: number;
}

/** A page of the audit events. */
export interface AuditPage {
  /** Newest first. */
  readonly events: readonly AuditEvent[];
  /** The token of the next page; absent on the last page. */
  readonly next_cursor?: string;
  /** Whether there is another page. */
  readonly has_more: boolean;
  /** The number of kept events that match. */
  readonly total: number;
  /** The time of the oldest kept event; null if there is none. The newest 10000 are kept. */
  readonly since: string | null;
}

/** A scope and the collections that it applies to. */
export interface Grant {
  /** `admin` includes all others. */
  readonly scope:
    | 'collections:read'
    | 'collections:write'
    | 'vectors:read'
    | 'vectors:write'
    | 'metrics:read'
    | 'admin';
  /** A glob of collection ids: `*` matches any characters, `?` one. */
  readonly collections: string;
}

/** The caller, as identified by its credential. */
export interface PrincipalRecord {
  /** The id in the audit log: the kind and, for credentials, `:` and their name. */
  readonly id: string;
  /** `anonymous` if no credential is required; `operator` on the socket in the data directory. */
  readonly kind: 'anonymous' | 'operator' | 'key' | 'token' | 'certificate';
  /** What the caller may do, in no particular order. */
  readonly grants: readonly Grant[];
  /** Whether requests need a credential, which is the case once there is one. */
  readonly credentials_required: boolean;
  /**
   * Whether the server has a directory for backups, without which `/backups` answers with an
   * error.
   */
  readonly backups_configured: boolean;
  /** The record of the API key that the caller presents; null for other credentials. */
  readonly key: ApiKeyRecord | null;
}

/** A problem in a request. */
export interface ProblemItem {
  /** A JSON pointer into the body, or `?name` for a query parameter. */
  readonly pointer: string;
  readonly code: ErrorCode;
  /** What was found and what was expected. */
  readonly detail: string;
  /** The limit, the type or the values that were expected. */
  readonly expected?: string | number;
  /** What was found. */
  readonly actual?: string | number;
}

/** Any error, as in RFC 9457. */
export interface Problem {
  /** `urn:sagitta:error:` followed by the code. */
  readonly type: string;
  /** The meaning of the code. */
  readonly title: string;
  /** The HTTP status of the reply. */
  readonly status: number;
  /** What was found, what was expected and where. */
  readonly detail: string;
  /** The path of the request. */
  readonly instance: string;
  readonly code: ErrorCode;
  /** The value of `X-Request-Id`, which is also in the server log. */
  readonly request_id: string;
  /**
   * Whether the same request can succeed later. A write that is not idempotent by itself needs
   * an idempotency key for that.
   */
  readonly retryable: boolean;
  /** The first 100 issues. */
  readonly errors?: readonly ProblemItem[];
  /** For streamed writes: the number of rows that are durable. Later rows were not written. */
  readonly committed_count?: number;
  /** For streamed writes: the sequence of the last durable write, if any. */
  readonly sequence?: number;
}
