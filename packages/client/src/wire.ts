// What crosses the wire, in the names of the wire. Generated from the schemas of the server by
// `npm run openapi`; do not edit. types.ts has what the client adds.

import type { ErrorCode } from '../../../src/common/errors.js';
import type { TextLanguage } from '../../../src/common/text-settings.js';
import type { DeclaredTypes, JsonObject, Metric } from '../../../src/common/types.js';

/** What a named vector is to be. */
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

/** What a named vector is. */
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
  /** Generated when absent. */
  readonly id?: string;
  /**
   * The length of the unnamed vector, which every record has. Without it records have only the
   * named and sparse vectors and the text that the collection defines, of which it needs one.
   */
  readonly dimension?: number;
  /**
   * Of the unnamed vector; with `dimension` only. `cosine` by default; `hamming` for elements
   * of `bit`.
   */
  readonly metric?: Metric;
  /** Of the unnamed vector; with `dimension` only. `float32` by default. */
  readonly element_type?: 'float32' | 'float16' | 'bfloat16' | 'int8' | 'bit';
  /**
   * Named vectors, beside or in place of the unnamed one: each record may have or lack each of
   * them. At most 32, with at most 65536 dimensions in all. Others can be added later.
   */
  readonly vectors?: Readonly<Record<string, NamedVectorInput>>;
  /**
   * Sparse vectors, compared by the dot product: each record may have or lack each of them.
   * Their settings are empty objects. At most 32, with other names than those in `vectors`.
   * Others can be added later.
   */
  readonly sparse_vectors?: Readonly<Record<string, Readonly<Record<string, never>>>>;
  /** Text for people. By default `null`. */
  readonly description?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
  readonly text?: TextSettingsInput;
  /**
   * When vectors expire that are written without `expires_at`, in seconds after their write;
   * null for never. A change is for later writes.
   */
  readonly ttl_seconds?: number | null;
  /** Types of metadata by path; null or absent for none. */
  readonly schema?: DeclaredTypes | null;
  /** What turns texts into its vectors; null or absent for nothing. */
  readonly embedding?: EmbeddingInput | null;
  /**
   * How many nodes of a cluster hold the collection; null or absent for all of them. Any node
   * can be asked for it. While there are fewer nodes, fewer hold it. It is stored, and has no
   * effect, on a service that is alone.
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
  /**
   * Bytes of mapped files, whose memory the system takes back when it needs it; not part of
   * `host_bytes`.
   */
  readonly mapped_bytes: number;
  /** Bytes of the memory of GPUs. */
  readonly device_bytes: number;
}

/** A collection, its settings and its state. */
export interface CollectionRecord {
  readonly id: string;
  /** Of the unnamed vector; it and `metric` are absent without one. */
  readonly dimension?: number;
  readonly metric?: Metric;
  readonly element_type?: 'float32' | 'float16' | 'bfloat16' | 'int8' | 'bit';
  /** The named vectors; absent without any. */
  readonly vectors?: Readonly<Record<string, NamedVectorSettings>>;
  /** The sparse vectors; absent without any. */
  readonly sparse_vectors?: Readonly<Record<string, Readonly<Record<string, never>>>>;
  /** Text for people. */
  readonly description: string | null;
  /** Text by name, for people and tools. */
  readonly labels: Readonly<Record<string, string>>;
  readonly text?: TextSettings;
  /**
   * When vectors expire that are written without `expires_at`, in seconds after their write;
   * absent for never.
   */
  readonly ttl_seconds?: number;
  /** Absent without declared types. */
  readonly schema?: DeclaredTypes;
  /** Absent without an endpoint. */
  readonly embedding?: EmbeddingInput;
  /** How many nodes of a cluster are to hold it; absent for all of them. */
  readonly replication_factor?: number;
  /**
   * The names of the nodes that hold it; absent where all nodes do, and for a service that is
   * alone.
   */
  readonly nodes?: readonly string[];
  readonly move?: CollectionMoveUnderWay;
  /**
   * `loading`: it is not loaded since the start; its counts and bytes are 0 here, and requests
   * for it wait. `failed`: the data of this collection is damaged. Other collections are
   * available. `elsewhere`: other nodes of the cluster hold it, and did not tell its counts,
   * which are 0 here.
   */
  readonly status: 'loading' | 'ready' | 'failed' | 'elsewhere';
  /** The number of vectors that it has. */
  readonly vector_count: number;
  /** The sequence of the last visible write. */
  readonly sequence: number;
  /** When it was created. */
  readonly created_at: string;
  /** When it was last written to, or its settings were last changed. */
  readonly updated_at: string;
  readonly engine: EngineChoice;
  readonly memory: MemoryUse;
  /**
   * Segment files and the log after them. Clones share files with their originals where the
   * file system can.
   */
  readonly disk_bytes: number;
}

/**
 * The node that takes the place of another one of `nodes` when it has brought the collection
 * in; absent while there is none.
 */
export interface CollectionMoveUnderWay {
  /** The node that brings the collection in. */
  readonly to: string;
  /** Absent for one more node. */
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
  /** Rows, with those that only snapshots see. */
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
  /** Of all segments. */
  readonly file_bytes: number;
  /** Writes that are in the log only; the next start reads them from there. */
  readonly log_bytes: number;
}

/** Indexes text of the metadata, for queries by words. */
export interface TextSettingsInput {
  /** Metadata paths whose strings, and strings in arrays, are searched as one text: at most 16. */
  readonly fields: readonly string[];
  /**
   * The language of the Snowball algorithm that reduces words to their stems, in texts and
   * queries; null for words as they are. By default `null`.
   */
  readonly language?: TextLanguage | null;
  /**
   * Words that are not searched: at most 1000. Compared before words are reduced to stems,
   * without case. By default `[]`.
   */
  readonly stop_words?: readonly string[];
  /** BM25: how soon repetitions of a word stop counting. By default `1.2`. */
  readonly k1?: number;
  /** BM25: how much long texts are marked down. By default `0.75`. */
  readonly b?: number;
}

/** The index of text of a collection; absent without one. */
export interface TextSettings {
  /** Metadata paths whose strings, and strings in arrays, are searched as one text: at most 16. */
  readonly fields: readonly string[];
  /**
   * The language of the Snowball algorithm that reduces words to their stems, in texts and
   * queries; null for words as they are.
   */
  readonly language: TextLanguage | null;
  /**
   * Words that are not searched: at most 1000. Compared before words are reduced to stems,
   * without case.
   */
  readonly stop_words: readonly string[];
  /** BM25: how soon repetitions of a word stop counting. */
  readonly k1: number;
  /** BM25: how much long texts are marked down. */
  readonly b: number;
}

/** Absent members but the id are those of the collection. */
export interface CollectionClone {
  /** Generated when absent. */
  readonly id?: string;
  /** Text for people. */
  readonly description?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * Turns texts into vectors: vectors and queries may then have `embed`, a text, in place of
 * values.
 */
export interface EmbeddingInput {
  /** The name of an endpoint in the configuration of the server. */
  readonly endpoint: string;
  /** The model to ask for. */
  readonly model: string;
  /**
   * Whether to ask for vectors of the dimension of the collection (`dimensions`), which some
   * models allow. By default `false`.
   */
  readonly sends_dimension?: boolean;
}

/** A further name of a collection. */
export interface AliasRecord {
  readonly name: string;
  readonly collection: string;
  /** When the alias was made. */
  readonly created_at: string;
  /** When it was last pointed to a collection. */
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

/** A vector to write, by its values. */
export interface VectorInput<Values = readonly number[], Metadata = JsonObject> {
  /** Generated (a ULID) and returned when absent. */
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
   * When the vector expires (RFC 3339); it is deleted within about a second then. Null: never.
   * Absent: after `ttl_seconds` of the collection, if it has them.
   */
  readonly expires_at?: string | null;
  readonly values: Values;
}

/** A vector to write, by a text that an embedding endpoint turns into its values. */
export interface TextInput<Values = readonly number[], Metadata = JsonObject> {
  /** Generated (a ULID) and returned when absent. */
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
   * When the vector expires (RFC 3339); it is deleted within about a second then. Null: never.
   * Absent: after `ttl_seconds` of the collection, if it has them.
   */
  readonly expires_at?: string | null;
  /**
   * A text, which the embedding endpoint of the collection turns into the vector; in place of
   * it.
   */
  readonly embed: string;
}

/** A record to write to a collection without the unnamed vector. */
export interface RecordInput<Values = readonly number[], Metadata = JsonObject> {
  /** Generated (a ULID) and returned when absent. */
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
   * When the vector expires (RFC 3339); it is deleted within about a second then. Null: never.
   * Absent: after `ttl_seconds` of the collection, if it has them.
   */
  readonly expires_at?: string | null;
}

/** What is new of a vector; the rest of it stays. */
export interface PatchInput<Values = readonly number[], Metadata = JsonObject> {
  /** Of a vector that exists. */
  readonly id: string;
  /** A JSON merge patch (RFC 7396): members replace others, and null removes them. */
  readonly metadata?: Metadata;
  readonly values?: Values;
  /**
   * A text, which the embedding endpoint of the collection turns into the vector; in place of
   * it.
   */
  readonly embed?: string;
  readonly vectors?: Readonly<Record<string, Values | readonly Values[] | null>>;
  /** The same for sparse vectors. */
  readonly sparse_vectors?: Readonly<Record<string, SparseVector | null>>;
  /** When the vector expires (RFC 3339); null for never. Absent: as it is. */
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

/** A stored vector, or what of it was asked for. */
export interface StoredVector<Values = readonly number[], Metadata = JsonObject> {
  readonly id: string;
  readonly values?: Values;
  /** The named vectors that it has, with `values`; only in a collection with named vectors. */
  readonly vectors?: Readonly<Record<string, Values | readonly Values[]>>;
  /** The same for sparse vectors. */
  readonly sparse_vectors?: Readonly<Record<string, SparseVector>>;
  readonly metadata?: Metadata;
  /** The sequence at which the vector was last written, for `if_sequence`; if requested. */
  readonly sequence?: number;
  /** Only where one vector is read or several are fetched, if it expires. */
  readonly expires_at?: string;
}

/** Sent when the write is durable on disk and visible to every later read. */
export interface VectorsWritten {
  /** The vectors that were written. */
  readonly upserted_count: number;
  /** Those of them that are new. */
  readonly inserted_count: number;
  /** Those of them that replaced another one. */
  readonly updated_count: number;
  /** All ids in the order of the body, when at least one was generated. Absent for streams. */
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

/** How many vectors are deleted. */
export interface DeleteManyReply {
  /** The vectors that were deleted, or with `dry_run` would be. */
  readonly deleted_count: number;
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
  /**
   * Metadata paths that the request names and no vector of the collection has, or had before a
   * write; on the first page, and absent without any.
   */
  readonly warnings?: readonly Warning[];
}

/** How many vectors are changed. */
export interface UpdateManyReply {
  /** The vectors that changed. Those that were as they should be do not count. */
  readonly updated_count: number;
  /** Whether `limit` left vectors to change. */
  readonly has_more: boolean;
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
  /**
   * Metadata paths that the request names and no vector of the collection has, or had before a
   * write; on the first page, and absent without any.
   */
  readonly warnings?: readonly Warning[];
}

/** The vectors that were asked for. */
export interface FetchReply<Values = readonly number[], Metadata = JsonObject> {
  /** In the order of the requested ids. */
  readonly vectors: readonly StoredVector<Values, Metadata>[];
  /** The ids that no vector has. */
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
   * Metadata paths that the request names and no vector of the collection has, or had before a
   * write; on the first page, and absent without any.
   */
  readonly warnings?: readonly Warning[];
}

/** What to sort by; later keys order what earlier ones leave equal. */
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
  /**
   * A text, which the embedding endpoint of the collection turns into the vector; in place of
   * it.
   */
  readonly embed?: string;
  readonly recommend?: Recommend;
  readonly discover?: Discover;
  readonly text?: TextQuery;
  /**
   * A sparse vector, compared with the sparse vector `using` by the dot product. Vectors
   * without a common index are left out.
   */
  readonly sparse?: SparseVector;
  /**
   * The named vector to search, instead of the unnamed one; with `sparse`, the sparse one.
   * Vectors without it are left out.
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
  /** Page size. When absent: `top_k`, or the default page size when that is absent too. */
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
   * Whether matches have their metadata; a list of paths for these alone, with the objects that
   * they are in. By default `false`.
   */
  readonly include_metadata?: boolean | readonly string[];
  /** `base64` returns vectors as base64 of little-endian float32. By default `false`. */
  readonly include_values?: boolean | 'base64';
  /**
   * Whether matches have `sequence`, which `if_sequence` of a write takes as a condition. By
   * default `false`.
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
  /** Whether the reply has `explain`: how the result was found. By default `false`. */
  readonly explain?: boolean;
}

/**
 * Words to search for, in place of a vector: the matches are ranked by BM25. For collections
 * with `text`.
 */
export interface TextQuery {
  /**
   * Text whose words are searched for, in any order: at most 256 different ones. A word that
   * occurs twice counts twice.
   */
  readonly query: string;
  /** Whether vectors match that have any of the words, or all of them. By default `any`. */
  readonly match?: 'any' | 'all';
}

/** Finds vectors by examples, of which there are at most 64. */
export interface Recommend {
  /** What the result is to be near to. By default `[]`. */
  readonly positive?: readonly (string | readonly number[])[];
  /** What the result is not to be near to. By default `[]`. */
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

/** Two examples, of which the result is to be nearer to the positive one. */
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
  /** What the result is to be near to. */
  readonly target?: string | readonly number[];
  /** Pairs, of which the result is to be nearer to the positive one. By default `[]`. */
  readonly context?: readonly ExamplePair[];
  /** Whether examples that are given by their ids may be in the result. By default `false`. */
  readonly include_examples?: boolean;
}

/**
 * Diversifies the result by maximal marginal relevance: the nearest candidate comes first,
 * then again and again the one with the highest `lambda` * its score - (1 - `lambda`) * its
 * highest score with a match before it, of equal ones the first. `top_k` is at most the
 * number of candidates. Not together with `sort` or `group_by`.
 */
export interface Mmr {
  /** From 0, which prefers what is different, to 1, which keeps the order. By default `0.5`. */
  readonly lambda?: number;
  /** The number of nearest vectors to choose from; by default 100, or `top_k` if that is more. */
  readonly candidates?: number;
}

/**
 * Ranks by several rankings together: the score of a vector is the sum of what it gets from
 * each part that ranks it. Ranks are those among all vectors that pass the filters and that
 * the part can rank. Vectors that parts name by `id` have a rank, but are excluded from the
 * result.
 */
export interface Fusion<Values = readonly number[], Filter = JsonObject> {
  /**
   * `rrf`: weight / (`rank_constant` + rank), the best having rank 1. `weighted`: weight *
   * score. By default `rrf`.
   */
  readonly kind?: 'rrf' | 'weighted';
  /** Of `rrf`: how soon ranks count less. By default `60`. */
  readonly rank_constant?: number;
  /**
   * Of `weighted`: `max` divides the scores of each part by the absolute value of its best one.
   * By default `none`.
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
  /**
   * A text, which the embedding endpoint of the collection turns into the vector; in place of
   * it.
   */
  readonly embed?: string;
  readonly recommend?: Recommend;
  readonly discover?: Discover;
  readonly text?: TextQuery;
  /**
   * A sparse vector, compared with the sparse vector `using` by the dot product. Vectors
   * without a common index are left out.
   */
  readonly sparse?: SparseVector;
  /**
   * The named vector to search, instead of the unnamed one; with `sparse`, the sparse one.
   * Vectors without it are left out.
   */
  readonly using?: string;
  /** Used instead of the collection's metric. */
  readonly metric?: Metric;
  /** What it ranks must pass this and the filter of the query. */
  readonly filter?: Filter;
  /** It ranks only so many vectors, its best, which is faster; all that pass by default. */
  readonly limit?: number;
  /** How much it counts beside the other parts. By default `1`. */
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
  /**
   * A text, which the embedding endpoint of the collection turns into the vector; in place of
   * it.
   */
  readonly embed?: string;
  readonly recommend?: Recommend;
  readonly discover?: Discover;
  readonly text?: TextQuery;
  /**
   * A sparse vector, compared with the sparse vector `using` by the dot product. Vectors
   * without a common index are left out.
   */
  readonly sparse?: SparseVector;
  /**
   * The named vector to search, instead of the unnamed one; with `sparse`, the sparse one.
   * Vectors without it are left out.
   */
  readonly using?: string;
  /** Used instead of the collection's metric. */
  readonly metric?: Metric;
  readonly fusion?: Fusion<Values, Filter>;
  /** Vectors must pass this and the filter of the query. */
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
  /** The value of the group that it belongs to; with `group_by` only. */
  readonly group?: string | number | boolean;
  /** The sequence of the write that made it as it is; with `include_sequence` only. */
  readonly sequence?: number;
  readonly metadata?: Metadata;
  readonly values?: Values;
  readonly vectors?: Readonly<Record<string, Values | readonly Values[]>>;
  readonly sparse_vectors?: Readonly<Record<string, SparseVector>>;
}

/** How the result was found. */
export interface Explain {
  /**
   * What found the result: the name of an engine, `text`, `sparse` and `fusion` for queries
   * with these, `max_sim` for multi-vectors.
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
   * `sparse` those that match it, with `fusion` those that any part ranks. On the first page
   * and on pages with an `offset`.
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
   * Metadata paths that the request names and no vector of the collection has, or had before a
   * write; on the first page, and absent without any.
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
   * Whether the conditions of the filter on this path are left out for this facet, so that it
   * also has the values that were not chosen. For the other facets and the rest of the reply
   * they count. By default `false`.
   */
  readonly ignore_own_filter?: boolean;
}

/** A path whose numbers are summarized. */
export interface StatsRequest {
  /** A path in the metadata, as in filters. */
  readonly path: string;
  /** Buckets of the numbers; absent for none. */
  readonly histogram?: HistogramRequest;
}

/**
 * Summarizes the scores, as replies show them, of all vectors that pass the filter and have
 * at least `score_threshold`. Every one of them is scored, which takes longer than a search.
 */
export interface ScoreStatsRequest {
  /** Buckets of the numbers; absent for none. */
  readonly histogram?: HistogramRequest;
}

/** What to count and to summarize. */
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

/** Buckets of equal width from `min` to `max`. A single one when all numbers are equal. */
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
   * Metadata paths that the request names and no vector of the collection has, or had before a
   * write; on the first page, and absent without any.
   */
  readonly warnings?: readonly Warning[];
}

/** Something in the request that is allowed, but probably a mistake. */
export interface Warning {
  /** What kind of warning it is. */
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
  /** Absent, as what follows, without numbers. */
  readonly min?: number;
  /** The greatest number. */
  readonly max?: number;
  /** The exact sum of the float64 values, rounded once. */
  readonly sum?: number;
  /** The exact mean, rounded once. */
  readonly mean?: number;
  readonly histogram?: Histogram;
}

/** A page of the paths that metadata has. */
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
   * Metadata paths that the request names and no vector of the collection has, or had before a
   * write; on the first page, and absent without any.
   */
  readonly warnings?: readonly Warning[];
}

/** A path of the metadata and what is there. */
export interface FoundPath {
  /** The path in the metadata. */
  readonly path: string;
  /** The vectors that have the path, also with null. */
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
  /** The numbers: of an array, each number in it. */
  readonly count: number;
  /** The vectors without a number. */
  readonly missing_count: number;
  /** Absent, as what follows, without numbers. */
  readonly min?: number;
  /** The greatest number. */
  readonly max?: number;
  /** The exact sum of the float64 values, rounded once. */
  readonly sum?: number;
  /** The exact mean, rounded once. */
  readonly mean?: number;
  readonly histogram?: Histogram;
}

/** Which share of the exact results the other search found. */
export interface RecallReply {
  /** The mean of `recalls`. */
  readonly recall: number;
  /** The number of vectors that were searched for. */
  readonly query_count: number;
  /** The length of the lists of ids, if it is the same for all. */
  readonly k?: number;
  /** The recall of each query. */
  readonly recalls: readonly number[];
  /** The sequence of the last write that the reply reflects; usable as `min_sequence`. */
  readonly sequence: number;
  /**
   * Metadata paths that the request names and no vector of the collection has, or had before a
   * write; on the first page, and absent without any.
   */
  readonly warnings?: readonly Warning[];
}

/** What the service is. Links are relative to the URL of this document. */
export interface ServiceInfo {
  /** The name of the program. */
  readonly name: 'Sagitta';
  /** The version of the program. */
  readonly version: string;
  /** The prefix of versioned paths. */
  readonly api: 'v1';
  /** The web page for people; null if this server has none. */
  readonly console: string | null;
  /** The API reference. */
  readonly docs: string;
  /** The OpenAPI document. */
  readonly openapi: string;
  /** Whether requests will be answered. */
  readonly ready: string;
}

/** A collection whose requests wait, or are not answered. */
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
  /** `starting`: requests are not answered yet; `stopping`: no longer. */
  readonly status: 'starting' | 'ready' | 'stopping';
  /** Why it is not ready. */
  readonly reason?: string;
  /**
   * How many collections are not loaded since the start. A request for one of them has it
   * loaded next, and waits for it.
   */
  readonly collections_loading: number;
  /** The first 100. */
  readonly collections_not_ready: readonly CollectionNotReady[];
}

/** A node of the cluster that was heard of lately. */
export interface ClusterNode {
  /** The name of the node, as it is configured. */
  readonly name: string;
  /** Where the other nodes reach it; empty until requests are answered. */
  readonly url: string;
  /** Where the node may fail together with others; empty where that is not configured. */
  readonly zone: string;
  /** The version of the program. */
  readonly version: string;
  /** `joining`: requests are not answered yet; `leaving`: it is about to stop. */
  readonly state: 'joining' | 'serving' | 'leaving';
  /** Of how many collections the node carries out the writes. */
  readonly collection_count: number;
  /** How many collections the node holds. */
  readonly held_count: number;
  /**
   * `draining`: it is to be stopped, and other nodes have yet to take over from it; `drained`:
   * it can be stopped.
   */
  readonly drain: 'none' | 'draining' | 'drained';
}

/** The cluster as one of its nodes sees it. */
export interface Cluster {
  /** The name of the node that replies; null for a service that is alone. */
  readonly node: string | null;
  /**
   * The name of the node that creates, changes and deletes collections, aliases and API keys,
   * as far as this one knows; null for none.
   */
  readonly leader: string | null;
  /** The nodes in the order of their names; empty for a service that is alone. */
  readonly nodes: readonly ClusterNode[];
  /** As this node has found it; null for a service that is alone. */
  readonly durability: ClusterDurability | null;
}

/** Whether the logs of the cluster keep what was acknowledged. */
export interface ClusterDurability {
  /**
   * `verified`: every NATS server syncs each message before it acknowledges it; `unverified`:
   * that is not known; `insufficient`: what was acknowledged can be lost.
   */
  readonly state: 'verified' | 'unverified' | 'insufficient';
  /** What was found, and what to do about it. */
  readonly detail: string;
}

/** What a node of the cluster has of a collection. */
export interface NodeDigest {
  /** The name of the node. */
  readonly node: string;
  /** The number of vectors at the sequence. */
  readonly vector_count?: number;
  /** 64 hexadecimal digits. */
  readonly digest?: string;
  /** Why the node has no digest, or one of less than was committed. */
  readonly problem?: string;
}

/** A digest of what a collection has at a sequence. */
export interface CollectionDigest {
  /** The sequence of the write up to which the collection was read. */
  readonly sequence: number;
  /** The number of vectors at that sequence. */
  readonly vector_count: number;
  /** 64 hexadecimal digits. */
  readonly digest: string;
  /**
   * With `all_nodes`: the nodes of the cluster in the order of their names; empty for a service
   * that is alone.
   */
  readonly nodes?: readonly NodeDigest[];
}

/** What belongs together among the logs and the shared files of a cluster. */
export interface VerifiedFiles {
  /**
   * `log`: the records of a log; `archive`: its chunks among the shared files; `snapshot`: what
   * new nodes start from; `origin`: what a clone had before its first write.
   */
  readonly kind: 'log' | 'archive' | 'snapshot' | 'origin';
  /** Name of the log or the snapshot. */
  readonly name: string;
  /** Records of a log, chunks of an archive, files of the others. */
  readonly count: number;
  /** Their bytes. */
  readonly byte_count: number;
  /** What is wrong; null when everything is as it was written. */
  readonly problem: string | null;
}

/** Whether the logs and the shared files of the cluster are as they were written. */
export interface ClusterFiles {
  /** Everything that was read; empty for a service that is alone. */
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
  /** A rate limit in place of that of the service; absent or null for none. By default `null`. */
  readonly rate_limit?: ApiKeyRateLimitInput | null;
}

/** The rate limit of a key, in place of that of the service. All who use the key share it. */
export interface ApiKeyRateLimit {
  /**
   * Reads, and writes, per second. A request counts as the number of its queries or of the
   * vectors that it reads or writes, at least 1.
   */
  readonly per_second: number;
  /** How many reads or writes are allowed at once. */
  readonly burst: number;
}

/** Without `burst`, as many at once as in one second. */
export interface ApiKeyRateLimitInput {
  /**
   * Reads, and writes, per second. A request counts as the number of its queries or of the
   * vectors that it reads or writes, at least 1.
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
  /** When the key last got a new secret; null if it has its first one. */
  readonly rotated_at: string | null;
  /** When the key was revoked; null if it was not. */
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
  /** When the key last got a new secret; null if it has its first one. */
  readonly rotated_at: string | null;
  /** When the key was revoked; null if it was not. */
  readonly revoked_at: string | null;
  /** Send it as `Authorization: Bearer …`. It is returned only once. */
  readonly key: string;
}

/** An operation on the service that was done or attempted. */
export interface AuditEvent {
  /** Counts the events of the data directory. */
  readonly sequence: number;
  /** When it happened. */
  readonly time: string;
  /** What the operation is about, and what was done with it. */
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
  /** Who: the id that `GET /principal` returns. */
  readonly principal: string;
  /** The address of the client; `local` for the socket in the data directory. */
  readonly client: string;
  /**
   * The node of the cluster that was asked, if it has sent the request to this node to be
   * carried out.
   */
  readonly via: string | null;
  /** The id or name of the object, as far as the request named one. */
  readonly target: string | null;
  /** The HTTP status of the reply. */
  readonly status: number;
  /** The `X-Request-Id` of the request. */
  readonly request_id: string;
  /** The trace that the request belongs to; null without one. */
  readonly trace_id: string | null;
  /** Attempts without a valid credential that were left out before this one. */
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
  /** The number of kept events that were asked for. */
  readonly total: number;
  /**
   * When the oldest event happened that is kept; null if there is none. The newest 10000 are
   * kept.
   */
  readonly since: string | null;
}

/** A scope, and the collections that it is for. */
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

/** The caller: who its credential says that it is. */
export interface PrincipalRecord {
  /** As in the audit log: the kind, and for credentials `:` and their name. */
  readonly id: string;
  /**
   * `anonymous` where no credential is required; `operator` on the socket in the data
   * directory.
   */
  readonly kind: 'anonymous' | 'operator' | 'key' | 'token' | 'certificate';
  /** What the caller may do; no order. */
  readonly grants: readonly Grant[];
  /** Whether requests need a credential: always, once there is one. */
  readonly credentials_required: boolean;
  /** The record of the API key that the caller presents; null for others. */
  readonly key: ApiKeyRecord | null;
}

/** One thing that is wrong with a request. */
export interface ProblemItem {
  /** A JSON pointer into the body, or `?name` for a query parameter. */
  readonly pointer: string;
  readonly code: ErrorCode;
  /** What was found and what was expected. */
  readonly detail: string;
  /** The limit, the type or the values that were expected. */
  readonly expected?: string | number;
  /** What was found in its place. */
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
