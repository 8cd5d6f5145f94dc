// Requests and replies of the database, beside those of queries (query/query-api.ts). Vectors are
// Float32Arrays, metadata is the JSON text as sent, and every failure that a caller can cause is a
// SagittaError.

import type { ElementType } from '../../common/elements.js';
import type { TextSettings } from '../../common/text-settings.js';
import type {
  DeclaredTypes,
  EmbeddingSource,
  FieldShape,
  FieldShapes,
  JsonObject,
  Metric,
  NamedValues,
  SparseVectors,
  VectorShape,
} from '../../common/types.js';
import type { Vector } from '../../common/vectors.js';
import type { IncludeMetadata, Page, SortKey } from './query-api.js';
import type { Warning } from './warning.js';

export interface CollectionInput {
  /** Generated when absent. */
  readonly id?: string | undefined;
  readonly vectors: FieldShapes;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** When vectors expire that state no expiry, counted from their write; null or absent for never. */
  readonly ttlSeconds?: number | null | undefined;
  /** Types of metadata by path; null or absent for none. */
  readonly schema?: DeclaredTypes | null | undefined;
  /** Absent for no index of text. */
  readonly text?: TextSettings | undefined;
  /** Turns texts into vectors; null or absent for none. */
  readonly embedding?: EmbeddingSource | null | undefined;
  /** How many nodes of a cluster are to hold it; null or absent for all. Without effect on a service that is alone. */
  readonly replicationFactor?: number | null | undefined;
}

/** Absent members stay as they are. */
export interface CollectionChange
  extends Pick<CollectionInput, 'ttlSeconds' | 'schema' | 'embedding' | 'replicationFactor'>,
    Pick<CloneInput, 'description' | 'labels'>,
    VectorsChange {}

/** Vectors to add, and with null to drop, by name; the others stay. */
export interface VectorsChange {
  /** Dense vectors and multi-vectors. */
  readonly vectors?: Readonly<Record<string, FieldShape | null>> | undefined;
  /** Sparse vectors. */
  readonly sparseVectors?: Readonly<Record<string, FieldShape | null>> | undefined;
}

/** Sparse vectors by name. They have no settings. */
type SparseShapes = Readonly<Record<string, Readonly<Record<string, never>>>>;

/** What a clone has in place of what its source has; absent members are those of the source. */
export interface CloneInput {
  /** Generated when absent. */
  readonly id?: string | undefined;
  readonly description?: string | null | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** An alias to make or to move, or to remove. */
export interface AliasChange {
  readonly name: string;
  /** The id or an alias of the collection to point to; null for none. */
  readonly collection: string | null;
}

export interface AliasRecord {
  readonly name: string;
  /** The id of the collection that it points to. */
  readonly collection: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface AliasesPage extends Page {
  readonly aliases: readonly AliasRecord[];
  /** The number of aliases that the caller may see. */
  readonly total: number;
}

export interface CollectionRecord {
  readonly id: string;
  /** Of the unnamed vector; both are absent for a collection without it. */
  readonly dimension?: number | undefined;
  readonly metric?: Metric | undefined;
  /** Absent for float32. */
  readonly elementType?: ElementType;
  /** Absent for none. */
  /** Named dense vectors and multi-vectors. */
  readonly vectors?:
    | Readonly<
        Record<
          string,
          VectorShape & { readonly elementType?: ElementType; readonly multi?: boolean }
        >
      >
    | undefined;
  readonly sparseVectors?: SparseShapes | undefined;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** Absent when vectors without an expiry of their own stay for ever. */
  readonly ttlSeconds?: number;
  /** Types of metadata by path; absent without any. */
  readonly schema?: DeclaredTypes;
  readonly text?: TextSettings | undefined;
  /** Turns texts into vectors; absent without one. */
  readonly embedding?: EmbeddingSource;
  /** How many nodes of a cluster are to hold it; absent for all. */
  readonly replicationFactor?: number;
  /** The nodes that hold it; absent where all do, and for a service that is alone. */
  readonly nodes?: readonly string[];
  /** The node that brings it in, and the one whose place that takes, if any; absent while there is none. */
  readonly move?: { readonly to: string; readonly from?: string };
  /**
   * `failed`: its data is damaged. It answers `collection_unavailable`; other collections are not affected.
   * `elsewhere`: other nodes hold it, and this one does not know its counts.
   */
  readonly status: 'loading' | 'ready' | 'failed' | 'elsewhere';
  /** Why the collection is not ready, without paths of the host; absent when it is ready. */
  readonly statusReason?: string;
  readonly vectorCount: number;
  /** The sequence of the last visible write. */
  readonly sequence: number;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  readonly updatedAt: string;
  /** The engine that searches, and why it was chosen. */
  readonly engine: { readonly name: string; readonly reason: string };
  readonly memory: MemoryUse;
  /** The segments' files and the log that no checkpoint has trimmed; 0 until it is loaded. */
  readonly diskBytes: number;
}

interface MemoryUse {
  readonly hostBytes: number;
  /** Mapped files, whose memory the system can take back; not part of `hostBytes`. */
  readonly mappedBytes: number;
  readonly deviceBytes: number;
}

export interface SegmentRecord {
  readonly number: number;
  /** `active` takes rows, `sealed` waits for its file, `stored` has one. */
  readonly state: 'active' | 'sealed' | 'stored';
  /** Rows, with those that only snapshots see. */
  readonly rowCount: number;
  /** Live rows. */
  readonly vectorCount: number;
  /** Without the index of ids, which all segments of the collection share. */
  readonly memory: MemoryUse;
  /** 0 without a file. */
  readonly fileBytes: number;
}

export interface SegmentsPage extends Page {
  readonly segments: readonly SegmentRecord[];
  readonly total: number;
  /** Of all segments of the collection. */
  readonly fileBytes: number;
  readonly logBytes: number;
}

/** `patch`: existing vectors get what the rows have, and keep the rest. */
export type WriteMode = 'upsert' | 'insert' | 'update' | 'patch';

export interface WriteResult {
  readonly insertedCount: number;
  readonly updatedCount: number;
  /** The sequence of this write. */
  readonly sequence: number;
}

/** The progress of a stream of writes. */
export interface StreamProgress {
  readonly batchCount: number;
  /** Rows of the stream so far, as many as its first `batchCount` batches have. */
  readonly rowCount: number;
  readonly insertedCount: number;
  readonly updatedCount: number;
  /** The sequence of the last write; undefined when there is none. */
  readonly sequence: number | undefined;
}

export interface DeleteResult {
  readonly deletedCount: number;
  /** The sequence of this delete, or the current one when nothing was deleted. */
  readonly sequence: number;
  /** About the filter, in the state before. */
  readonly warnings?: readonly Warning[] | undefined;
}

/** The phases of a write. */
export interface CommitTimings {
  /** When it was submitted to the writer, by `performance.now()`. */
  readonly submittedAtMs: number;
  /** Wait for the commit before it, and preparation of its own commit. */
  readonly waitMs: number;
  /** Commit, until it was on disk. */
  readonly commitMs: number;
}

export type OnCommitted = (timings: CommitTimings) => void;

export interface VectorRecord {
  readonly id: string;
  /** Different after every write of this vector. */
  readonly version: string;
  readonly values?: Float32Array;
  /** The named vectors that it has; with values, where the collection has any. */
  readonly vectors?: NamedValues;
  /** The same for sparse vectors. */
  readonly sparseVectors?: SparseVectors;
  /** JSON text, exactly as sent. */
  readonly metadata?: string;
  /** Of the write that made it as it is. */
  readonly sequence?: number;
  /** ISO 8601, UTC; absent for a vector that does not expire. */
  readonly expiresAt?: string;
}

export interface Include {
  readonly values: boolean;
  readonly metadata: IncludeMetadata;
  readonly sequence?: boolean;
  readonly expiry?: boolean;
}

export interface ListRequest {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  /** With an offset: the page at that place of the snapshot, which the cursor only names. */
  readonly cursor?: string | undefined;
  readonly filter?: JsonObject | undefined;
  /** Absent: in order of arrival, or as on the first page. */
  readonly sort?: readonly SortKey[] | undefined;
  /** Absent: as on the first page when there is a cursor, else metadata only. */
  readonly includeValues?: boolean | undefined;
  readonly includeMetadata?: IncludeMetadata | undefined;
}

export interface ListReply extends Page {
  readonly vectors: readonly VectorRecord[];
  /** On the first page. */
  readonly warnings?: readonly Warning[] | undefined;
}

/** The vectors that a delete or an update is about. */
export type VectorSelection =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'filter'; readonly filter: JsonObject }
  | { readonly kind: 'all' };

/** Both as JSON text of an object. */
export type MetadataChange =
  /** A JSON merge patch. */
  | { readonly kind: 'patch'; readonly text: string }
  | { readonly kind: 'replace'; readonly text: string };

export interface UpdateResult {
  /** The vectors that the update has changed; those that were as it would leave them are not written. */
  readonly updatedCount: number;
  /** Whether the limit was reached before all vectors were changed. */
  readonly hasMore: boolean;
  /** The sequence of this update, or the current one when nothing was changed. */
  readonly sequence: number;
  /** About the filter, in the state before. */
  readonly warnings?: readonly Warning[] | undefined;
}

export interface IdempotencyRequest {
  /** Principal, method and route: the same key in another scope is another key. */
  readonly scope: string;
  readonly key: string;
  /** A digest of everything that the reply depends on. */
  readonly payloadDigest: string;
  /** Of the collection that is written to; absent for a change of the catalogue. */
  readonly incarnation?: string | undefined;
}

/** A page of the collections, or of the aliases of collections. */
export interface CollectionsRequest {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** The collections that the caller may see; absent for all. */
  readonly isVisible?: (id: string) => boolean;
}

export interface CollectionsPage extends Page {
  readonly collections: readonly CollectionRecord[];
  /** The number of collections that the caller may see. */
  readonly total: number;
}

export interface VectorPatch {
  /** A JSON merge patch, as text. */
  readonly metadata?: string | undefined;
  /** Vectors to set by name, '' for the unnamed one, or with null to remove. */
  readonly vectors?: ReadonlyMap<string, Vector | null> | undefined;
  /** Throws `precondition_failed` unless this is the vector's version. */
  readonly ifVersion?: string | undefined;
  /** Throws `precondition_failed` unless this is the vector's sequence. */
  readonly ifSequence?: number | undefined;
  /** Milliseconds since the Unix epoch, Infinity for never; undefined for the expiry that it has. */
  readonly expiresAtMs?: number | undefined;
  readonly onCommitted?: OnCommitted | undefined;
}

/** For operations that may take long. The signal aborts when the caller no longer waits. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}
