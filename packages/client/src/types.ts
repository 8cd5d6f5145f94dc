// The types of requests and replies: the wire types, which wire.ts generates from the server's schemas,
// and the client's additions to them, such as vectors as Float32Arrays.

import type { AuditKind, AuditOperation, AuditOutcome } from '../../../src/common/audit.js';
import type { JsonObject, Metric } from '../../../src/common/types.js';
import type { Filter, MetadataPath } from './filter.js';
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
  CollectionProblem,
  CollectionRecord,
  CollectionTraffic,
  DeleteManyReply,
  DeleteReply,
  Discover,
  EmbeddingInput,
  EngineChoice,
  ExamplePair,
  Explain,
  Facet,
  FacetValue,
  FoundPath,
  FoundSchema,
  Grant,
  Histogram,
  HistogramBucket,
  HistogramRequest,
  LogServer,
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
  ServiceProblem,
  SlowQuery,
  SparseVector,
  Stats,
  TextQuery,
  TextSettings,
  TextSettingsInput,
  Traffic,
  TrafficInterval,
  TypeCounts,
  UpdateManyReply,
  VerifiedFiles,
  Warning,
} from './wire.js';

/** Numbers, a typed array (sent as base64 of float32), or base64 of little-endian float32. */
export type VectorValues = readonly number[] | Float32Array | Float64Array | string;

/**
 * A vector with its values, with a text for the server to embed, or with neither for a collection without the unnamed
 * vector.
 */
export type VectorInput<Metadata extends object = JsonObject> =
  | (wire.VectorInput<VectorValues, Metadata> & { readonly embed?: never })
  | (wire.TextInput<VectorValues, Metadata> & { readonly values?: never })
  | (wire.RecordInput<VectorValues, Metadata> & {
      readonly values?: never;
      readonly embed?: never;
    });

/** A change of an existing vector; absent members stay as they are. */
export type PatchInput<Metadata extends object = JsonObject> = Omit<
  wire.PatchInput<VectorValues>,
  'metadata'
> & {
  /** A JSON merge patch (RFC 7396): members replace others, and null removes them. */
  readonly metadata?: MetadataPatch<Metadata>;
};

/**
 * The form in which vectors are returned: numbers, base64 (queries only), or a Float32Array, for which the
 * client requests base64 where the server offers it, to avoid parsing decimal text.
 */
export type IncludeValues = boolean | 'base64' | 'float32';

/** The forms of vectors in replies that do not offer base64. */
export type PlainValues = boolean | 'float32';

/** The type of vectors in a reply, by what was requested. */
export type ValuesOf<Requested extends IncludeValues> = Requested extends 'float32'
  ? Float32Array
  : Requested extends 'base64'
    ? string
    : readonly number[];

/** The value of `include_metadata`: all metadata, none, or only some paths. */
export type IncludeMetadata<Metadata extends object = JsonObject> =
  | boolean
  | readonly MetadataPath<Metadata>[];

/** The members that a reply always has, by what was requested. */
type Present<Metadata, Asked extends IncludeValues, Included extends IncludeMetadata> = ([
  Included,
] extends [true]
  ? { readonly metadata: Metadata }
  : [Included] extends [readonly string[]]
    ? { readonly metadata: Metadata }
    : unknown) &
  ([Asked] extends [false] ? unknown : WithValues<Asked>);

/** The type of the returned metadata: every member is optional if only some paths were requested. */
type Selected<Metadata, Included extends IncludeMetadata> = Included extends readonly string[]
  ? PartOf<Metadata>
  : Metadata;

type PartOf<Value> = string extends keyof Value
  ? Value
  : Value extends readonly unknown[]
    ? Value
    : Value extends object
      ? { readonly [Name in keyof Value]?: PartOf<Value[Name]> }
      : Value;

/** Values are optional if the request's option is only known at run time. */
type WithValues<Asked extends IncludeValues> = [false] extends [Asked]
  ? unknown
  : { readonly values: ValuesOf<Asked> };

export interface StoredVector<Metadata = JsonObject, Values = readonly number[]>
  extends wire.StoredVector<Values, Metadata> {
  /** From the ETag header of the reply, for `ifMatch`; only when a single vector was requested. */
  readonly etag?: string;
}

/**
 * A stored vector in the reply to a request with these options. In a collection without the unnamed vector, `values` is
 * always absent.
 */
export type ReadVector<
  Metadata = JsonObject,
  Asked extends IncludeValues = IncludeValues,
  Included extends IncludeMetadata = IncludeMetadata,
> = StoredVector<Selected<Metadata, Included>, ValuesOf<Asked>> &
  Present<Selected<Metadata, Included>, Asked, Included>;

export interface FetchReply<Vector = StoredVector> extends Omit<wire.FetchReply, 'vectors'> {
  readonly vectors: readonly Vector[];
}

export interface VectorPage<Vector = StoredVector> extends Omit<wire.VectorPage, 'vectors'> {
  readonly vectors: readonly Vector[];
}

/** The modes that write whole vectors; the mode `patch` takes a PatchInput instead. */
export type WriteMode = 'upsert' | 'insert' | 'update';

/** The counts that only replies to streamed writes have. */
type StreamCounts = 'batch_count' | 'resumed_count';

export type WriteReply = Omit<wire.VectorsWritten, StreamCounts>;

/** The reply to a streamed write. */
export type WriteStreamReply = Omit<wire.VectorsWritten, 'ids' | StreamCounts> &
  Required<Pick<wire.VectorsWritten, StreamCounts>>;

/** A JSON merge patch (RFC 7396): members replace those of the stored metadata, and null removes them. */
export type MetadataPatch<Metadata extends object = JsonObject> = string extends keyof Metadata
  ? JsonObject
  : { readonly [Name in keyof Metadata]?: MemberPatch<Metadata[Name]> | null };

type MemberPatch<Member> = Member extends readonly unknown[]
  ? Member
  : Member extends object
    ? MetadataPatch<Member>
    : Member;

/** Exactly one of `patch` and `metadata`. */
export type MetadataChange<Metadata extends object = JsonObject> = ExactlyOne<{
  readonly patch: MetadataPatch<Metadata>;
  readonly metadata: Metadata;
}>;

/** Exactly one of `ids`, `filter` and `all`. */
export type VectorSelection<Metadata extends object = JsonObject> = ExactlyOne<{
  readonly ids: readonly string[];
  readonly filter: Filter<Metadata>;
  readonly all: true;
}>;

/** Without a filter, all vectors are counted. */
export interface CountRequest<Metadata extends object = JsonObject> {
  readonly filter?: Filter<Metadata>;
}

/** Results of another search, to be compared with the exact neighbours. */
export interface RecallRequest<Metadata extends object = JsonObject> {
  readonly vectors: readonly VectorValues[];
  /** The ids that the other search found for each vector. */
  readonly ids: readonly (readonly string[])[];
  /** Only vectors whose metadata matches count as neighbours. */
  readonly filter?: Filter<Metadata>;
  /** Overrides the collection's metric. */
  readonly metric?: Metric;
  /** The named vector to search, instead of the unnamed one. */
  readonly using?: string;
  readonly min_sequence?: number;
}

/** A path whose values are to be counted. */
export type FacetRequest<Metadata extends object = JsonObject> = OnPath<
  wire.FacetRequest,
  'path',
  MetadataPath<Metadata>
>;

/** A path whose numbers are to be summarized. */
export type StatsRequest<Metadata extends object = JsonObject> = OnPath<
  wire.StatsRequest,
  'path',
  MetadataPath<Metadata>
>;

/** A sort key of a list or, with `score` and `id`, of a query. */
export type SortKey<Metadata extends object = JsonObject, Other extends string = '$id'> = OnPath<
  wire.SortKey,
  'field',
  MetadataPath<Metadata> | Other
>;

type OnPath<Shape, Name extends keyof Shape, Path> = WithMembers<
  Shape,
  { readonly [Each in Name]: Path }
>;

interface Summaries<Metadata extends object> {
  readonly facets?: readonly FacetRequest<Metadata>[];
  readonly stats?: readonly StatsRequest<Metadata>[];
}

export type AggregateRequest<Metadata extends object = JsonObject> = WithMembers<
  wire.AggregateRequest<Filter<Metadata>>,
  Summaries<Metadata>
>;

export interface ListRequest<
  Metadata extends object = JsonObject,
  Requested extends PlainValues = PlainValues,
  Included extends IncludeMetadata<Metadata> = IncludeMetadata<Metadata>,
> {
  readonly limit?: number;
  readonly offset?: number;
  /** With `offset`, returns the page at that offset in the cursor's snapshot. */
  readonly cursor?: string;
  readonly filter?: Filter<Metadata>;
  /** By metadata paths and `$id`; in insertion order when absent. */
  readonly sort?: readonly SortKey<Metadata>[];
  readonly include_metadata?: Included;
  readonly include_values?: Requested;
}

export interface SchemaRequest<Metadata extends object = JsonObject> {
  readonly filter?: Filter<Metadata>;
  readonly limit?: number;
  /** Only paths after this one: the `next_after` of the previous page. */
  readonly after?: string;
}

/** Has exactly one member to rank by. */
export type FusionPart<Metadata extends object = JsonObject> = RankedByOne<
  wire.FusionPart<VectorValues, Filter<Metadata>>,
  Exclude<Ranked, 'fusion'>
>;

export type Fusion<Metadata extends object = JsonObject> = WithMembers<
  wire.Fusion,
  { readonly parts: readonly FusionPart<Metadata>[] }
>;

/** Has exactly one member to rank by. */
export type Prefetch<Metadata extends object = JsonObject> = RankedByOne<
  WithMembers<
    wire.Prefetch<VectorValues, Filter<Metadata>>,
    { readonly fusion?: Fusion<Metadata> }
  >,
  Ranked
>;

/** The members to rank by; a query, a part of a fusion and a prefetch each have exactly one. */
type Ranked =
  | 'vector'
  | 'id'
  | 'multi_vector'
  | 'embed'
  | 'recommend'
  | 'discover'
  | 'text'
  | 'sparse'
  | 'fusion';

/** All members that a query may have. */
export interface QueryMembers<
  Metadata extends object = JsonObject,
  Requested extends IncludeValues = IncludeValues,
  Included extends IncludeMetadata<Metadata> = IncludeMetadata<Metadata>,
> extends Omit<
      wire.Query<VectorValues, Filter<Metadata>>,
      | 'include_values'
      | 'include_metadata'
      | 'sort'
      | 'group_by'
      | 'fusion'
      | 'prefetch'
      | keyof Summaries<Metadata>
    >,
    Summaries<Metadata> {
  readonly include_values?: Requested;
  readonly include_metadata?: Included;
  readonly fusion?: Fusion<Metadata>;
  readonly prefetch?: Prefetch<Metadata>;
  readonly group_by?: MetadataPath<Metadata>;
  readonly sort?: readonly SortKey<Metadata, '$id' | 'id' | 'score'>[];
}

/** Unlike a plain union of objects, this rejects a variable with two of the members. */
type ExactlyOne<Members> = {
  [Name in keyof Members]-?: Required<Pick<Members, Name>> & {
    readonly [Other in Exclude<keyof Members, Name>]?: never;
  };
}[keyof Members];

type RankedByOne<Members, Names extends keyof Members & Ranked> = Omit<Members, Names> &
  ExactlyOne<Pick<Members, Names>>;

type WithMembers<Shape, Members> = Omit<Shape, keyof Members> & Members;

/** A query has exactly one member to rank by, or a cursor alone. */
export type QueryRequest<
  Metadata extends object = JsonObject,
  Requested extends IncludeValues = IncludeValues,
  Included extends IncludeMetadata<Metadata> = IncludeMetadata<Metadata>,
> = Omit<QueryMembers<Metadata, Requested, Included>, Ranked> &
  (
    | ExactlyOne<Pick<QueryMembers<Metadata>, Ranked>>
    | ({ readonly cursor: string } & { readonly [Name in Ranked]?: never })
  );

/** A vector in the result of a query. */
export type Match<Metadata = JsonObject, Values = ValuesOf<IncludeValues>> = wire.Match<
  Values,
  Metadata
>;

/** A match in the reply to a query with these options. */
export type FoundMatch<
  Metadata = JsonObject,
  Asked extends IncludeValues = IncludeValues,
  Included extends IncludeMetadata = IncludeMetadata,
> = Match<Selected<Metadata, Included>, ValuesOf<Asked>> &
  Present<Selected<Metadata, Included>, Asked, Included>;

export interface QueryReply<Found = Match> extends Omit<wire.QueryReply, 'matches'> {
  /** Nearest first, or sorted by `sort`. */
  readonly matches: readonly Found[];
}

/** A row of the collection and its matches, if any. */
export interface JoinRow {
  readonly id: string;
  readonly matches: readonly Omit<wire.Match, 'values'>[];
}

export interface AuditRequest {
  readonly principal?: string;
  /** `collection.delete`, or `collection` for all operations on collections. */
  readonly operation?: AuditOperation | AuditKind;
  readonly outcome?: AuditOutcome;
  readonly target?: string;
  /** ISO 8601, from `since` (inclusive) until `until` (exclusive). */
  readonly since?: string;
  readonly until?: string;
  /** The page size. */
  readonly limit?: number;
}

/** Every limit of the server, by name: `top_k_max`, `page_limit_max`, … */
export type Limits = Readonly<Record<string, number>>;

/** An error reply as RFC 9457 describes it. Proxies between client and server may leave members out. */
export type Problem = Omit<wire.Problem, 'instance' | 'request_id'> &
  Partial<Pick<wire.Problem, 'instance' | 'request_id'>>;
