// The types of requests and replies: those of the wire, which wire.ts has from the server's schemas,
// and what the client adds to them, such as vectors as Float32Arrays.

import type { JsonObject, Metric } from '../common/types.js';
import type { Filter } from './filter.js';
import type * as wire from './wire.js';

export type {
  AggregateReply,
  AliasPage,
  AliasRecord,
  ApiKeyInput,
  ApiKeyRateLimit,
  ApiKeyRateLimitInput,
  ApiKeyRecord,
  ApiKeyWithSecret,
  AuditEvent,
  AuditPage,
  BackupRecord,
  Cluster,
  ClusterDurability,
  ClusterFiles,
  ClusterNode,
  CollectionClone,
  CollectionDigest,
  CollectionInput,
  CollectionMoveUnderWay,
  CollectionNotReady,
  CollectionPage,
  CollectionRecord,
  DeleteManyReply,
  DeleteReply,
  Discover,
  EmbeddingInput,
  EngineChoice,
  ExamplePair,
  Explain,
  Facet,
  FacetRequest,
  FacetValue,
  FoundPath,
  FoundSchema,
  Grant,
  Histogram,
  HistogramBucket,
  HistogramRequest,
  MemoryUse,
  Mmr,
  NamedVectorInput,
  NamedVectorSettings,
  NodeDigest,
  PatchReply,
  PrincipalRecord,
  ProblemItem,
  PutReply,
  Readiness,
  RecallReply,
  Recommend,
  ScoreStats,
  ScoreStatsRequest,
  SegmentPage,
  SegmentRecord,
  ServiceInfo,
  SortKey,
  SparseVector,
  Stats,
  StatsRequest,
  TextQuery,
  TextSettings,
  TextSettingsInput,
  TypeCounts,
  UpdateManyReply,
  VerifiedFiles,
} from './wire.js';

/** Numbers, a typed array (sent as base64 of float32), or base64 of little-endian float32. */
export type VectorValues = readonly number[] | Float32Array | Float64Array | string;

/**
 * A vector with its values, with a text that the server turns into them, or with neither for a collection
 * without the unnamed vector.
 */
export type VectorInput<Metadata extends object = JsonObject> =
  | (wire.VectorInput<VectorValues, Metadata> & { readonly embed?: never })
  | (wire.TextInput<VectorValues, Metadata> & { readonly values?: never })
  | (wire.RecordInput<VectorValues, Metadata> & {
      readonly values?: never;
      readonly embed?: never;
    });

/**
 * The form in which vectors are returned: numbers, the wire's base64 (queries only), or a
 * Float32Array, for which the client requests base64 where the server offers it, so that no decimal
 * text is parsed.
 */
export type IncludeValues = boolean | 'base64' | 'float32';

/** The forms of vectors for requests whose replies cannot be base64. */
export type PlainValues = boolean | 'float32';

/** The type of vectors in a reply, by what was requested. */
export type ValuesOf<Requested extends IncludeValues> = Requested extends 'float32'
  ? Float32Array
  : Requested extends 'base64'
    ? string
    : readonly number[];

export interface StoredVector<Values = readonly number[], Metadata = JsonObject>
  extends wire.StoredVector<Values, Metadata> {
  /** From the ETag header of the reply, for `ifMatch`; only when a single vector was requested. */
  readonly etag?: string;
}

export interface FetchReply<Values = readonly number[], Metadata = JsonObject>
  extends Omit<wire.FetchReply, 'vectors'> {
  readonly vectors: readonly StoredVector<Values, Metadata>[];
}

export interface VectorPage<Values = readonly number[], Metadata = JsonObject>
  extends Omit<wire.VectorPage, 'vectors'> {
  readonly vectors: readonly StoredVector<Values, Metadata>[];
}

export type WriteMode = 'upsert' | 'insert' | 'update';

/** The counts of a streamed write, which replies to other writes lack. */
type StreamCounts = 'batch_count' | 'resumed_count';

export type WriteReply = Omit<wire.VectorsWritten, StreamCounts>;

/** The reply to a streamed write. */
export type WriteStreamReply = Omit<wire.VectorsWritten, 'ids' | StreamCounts> &
  Required<Pick<wire.VectorsWritten, StreamCounts>>;

/** A JSON merge patch (RFC 7396): members replace those of the metadata, and null removes them. */
export type MetadataPatch<Metadata extends object = JsonObject> = string extends keyof Metadata
  ? JsonObject
  : { readonly [Name in keyof Metadata]?: MemberPatch<Metadata[Name]> | null };

type MemberPatch<Member> = Member extends readonly unknown[]
  ? Member
  : Member extends object
    ? MetadataPatch<Member>
    : Member;

/** Exactly one of the two. */
export type MetadataChange<Metadata extends object = JsonObject> =
  | { readonly patch: MetadataPatch<Metadata> }
  | { readonly metadata: Metadata };

export type VectorSelection<Metadata extends object = JsonObject> =
  | { readonly ids: readonly string[] }
  | { readonly filter: Filter<Metadata> }
  | { readonly all: true };

/** What is counted: everything when absent. */
export interface CountRequest<Metadata extends object = JsonObject> {
  readonly filter?: Filter<Metadata>;
}

/** Results from elsewhere, to compare with the exact ones. */
export interface RecallRequest<Metadata extends object = JsonObject> {
  readonly vectors: readonly VectorValues[];
  /** What was found for each vector. */
  readonly ids: readonly (readonly string[])[];
  /** Only vectors whose metadata matches count as neighbours. */
  readonly filter?: Filter<Metadata>;
  /** In place of the collection's metric. */
  readonly metric?: Metric;
  /** The named vector to search, instead of the unnamed one. */
  readonly using?: string;
  readonly min_sequence?: number;
}

export type AggregateRequest<Metadata extends object = JsonObject> = wire.AggregateRequest<
  Filter<Metadata>
>;

export interface ListRequest<
  Requested extends PlainValues = PlainValues,
  Metadata extends object = JsonObject,
> {
  readonly limit?: number;
  readonly offset?: number;
  /** With `offset`: the page at that place of the snapshot that the cursor continues. */
  readonly cursor?: string;
  readonly filter?: Filter<Metadata>;
  /** By metadata paths and `$id`; in insertion order when absent. */
  readonly sort?: readonly wire.SortKey[];
  readonly include_metadata?: boolean;
  readonly include_values?: Requested;
}

export interface SchemaRequest<Metadata extends object = JsonObject> {
  readonly filter?: Filter<Metadata>;
  readonly limit?: number;
  /** Only paths after this one: the `next_after` of the page before. */
  readonly after?: string;
}

export type Fusion<Metadata extends object = JsonObject> = wire.Fusion<
  VectorValues,
  Filter<Metadata>
>;

export type FusionPart<Metadata extends object = JsonObject> = wire.FusionPart<
  VectorValues,
  Filter<Metadata>
>;

export type Prefetch<Metadata extends object = JsonObject> = wire.Prefetch<
  VectorValues,
  Filter<Metadata>
>;

export interface QueryRequest<
  Requested extends IncludeValues = IncludeValues,
  Metadata extends object = JsonObject,
> extends Omit<wire.Query<VectorValues, Filter<Metadata>>, 'include_values'> {
  readonly include_values?: Requested;
}

export type Match<Values = ValuesOf<IncludeValues>, Metadata = JsonObject> = wire.Match<
  Values,
  Metadata
>;

export type QueryReply<Values = ValuesOf<IncludeValues>, Metadata = JsonObject> = wire.QueryReply<
  Values,
  Metadata
>;

/** A row of the collection and its matches, of which there may be none. */
export interface JoinRow {
  readonly id: string;
  readonly matches: readonly Omit<wire.Match, 'values'>[];
}

export interface AuditRequest {
  readonly principal?: string;
  /** `collection.delete`, or `collection` for all operations on collections. */
  readonly operation?: wire.AuditEvent['operation'] | 'collection' | 'alias' | 'key' | 'backup';
  readonly outcome?: wire.AuditEvent['outcome'];
  readonly target?: string;
  /** ISO 8601; the first moment that counts, and the first that does not. */
  readonly since?: string;
  readonly until?: string;
  /** The page size. */
  readonly limit?: number;
}

/** Every bound of the service, by name: `top_k_max`, `page_limit_max`, … */
export type Limits = Readonly<Record<string, number>>;

/** An error reply as RFC 9457 describes it. Proxies between client and server may leave members out. */
export type Problem = Omit<wire.Problem, 'instance' | 'request_id'> &
  Partial<Pick<wire.Problem, 'instance' | 'request_id'>>;
