// Requests and replies of the database, except those of queries (query-api.ts). Vectors are Float32Arrays, metadata is
// the JSON text as sent, and every failure that a caller can cause is a SagittaError.

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
  /** Lifetime, from their write, of vectors without an expiry of their own; null or absent for no limit. */
  readonly ttlSeconds?: number | null | undefined;
  /** Types of metadata by path; null or absent for none. */
  readonly schema?: DeclaredTypes | null | undefined;
  /** Settings of the text index; absent for no index. */
  readonly text?: TextSettings | undefined;
  /** The service that turns texts into vectors; null or absent for none. */
  readonly embed?: EmbeddingSource | null | undefined;
  /** The number of nodes of a cluster that hold the collection; null or absent for all. No effect without a cluster. */
  readonly replicationFactor?: number | null | undefined;
}

/** Absent members leave their setting unchanged. */
export interface CollectionChange
  extends Pick<CollectionInput, 'ttlSeconds' | 'schema' | 'embed' | 'replicationFactor'>,
    Pick<CloneInput, 'description' | 'labels'>,
    VectorsChange {}

/** Vectors to add by name, or to drop where the value is null; vectors that are not named stay. */
export interface VectorsChange {
  /** Dense vectors and multi-vectors. */
  readonly vectors?: Readonly<Record<string, FieldShape | null>> | undefined;
  /** Sparse vectors. */
  readonly sparseVectors?: Readonly<Record<string, FieldShape | null>> | undefined;
}

/** Sparse vectors by name. They have no settings. */
type SparseShapes = Readonly<Record<string, Readonly<Record<string, never>>>>;

/** Settings of a clone that differ from those of its source. */
export interface CloneInput {
  /** Generated when absent. */
  readonly id?: string | undefined;
  readonly description?: string | null | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** An alias to create, move or remove. */
export interface AliasChange {
  readonly name: string;
  /** The id or an alias of the target collection; null removes the alias. */
  readonly collection: string | null;
}

export interface AliasRecord {
  readonly name: string;
  /** The id of the target collection. */
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
  /** The dimension of the unnamed vector; absent, like its metric, in a collection without one. */
  readonly dimension?: number | undefined;
  readonly metric?: Metric | undefined;
  /** Absent for float32. */
  readonly elementType?: ElementType;
  /** Named dense vectors and multi-vectors; absent for none. */
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
  /** Absent when vectors without an expiry of their own stay forever. */
  readonly ttlSeconds?: number;
  /** Types of metadata by path; absent without any. */
  readonly schema?: DeclaredTypes;
  readonly text?: TextSettings | undefined;
  /** The service that turns texts into vectors; absent for none. */
  readonly embed?: EmbeddingSource;
  /** The number of nodes of a cluster that should hold the collection; absent for all. */
  readonly replicationFactor?: number;
  /** The nodes that hold the collection; absent when all do, and without a cluster. */
  readonly nodes?: readonly string[];
  /** The node that is loading a copy, and the node that it replaces, if any; absent while no copy moves. */
  readonly move?: { readonly to: string; readonly from?: string };
  /**
   * `failed`: the data is damaged, and requests get `collection_unavailable`; other collections are not affected.
   * `elsewhere`: other nodes hold the collection, and this one does not know its counts.
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
  /** The engine in use, and why it was chosen. */
  readonly engine: { readonly name: string; readonly reason: string };
  readonly memory: MemoryUse;
  /** Segment files plus the log that no checkpoint has trimmed; 0 until the collection is loaded. */
  readonly diskBytes: number;
}

interface MemoryUse {
  readonly hostBytes: number;
  /** Mapped files, whose memory the system can reclaim; not part of `hostBytes`. */
  readonly mappedBytes: number;
  readonly deviceBytes: number;
}

export interface SegmentRecord {
  readonly number: number;
  /** An `active` segment accepts rows, a `sealed` one waits for its file, a `stored` one has a file. */
  readonly state: 'active' | 'sealed' | 'stored';
  /** All rows, including those that only older snapshots see. */
  readonly rowCount: number;
  /** Live rows. */
  readonly vectorCount: number;
  /** Excludes the id index, which all segments of the collection share. */
  readonly memory: MemoryUse;
  /** 0 for a segment without a file. */
  readonly fileBytes: number;
}

export interface SegmentsPage extends Page {
  readonly segments: readonly SegmentRecord[];
  readonly total: number;
  /** Bytes of the files of all segments, not only of this page. */
  readonly fileBytes: number;
  readonly logBytes: number;
}

/** `patch` merges rows into existing vectors, which keep what the rows do not name. */
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
  /** Rows in the first `batchCount` batches. */
  readonly rowCount: number;
  readonly insertedCount: number;
  readonly updatedCount: number;
  /** The sequence of the last write; undefined before the first. */
  readonly sequence: number | undefined;
}

export interface DeleteResult {
  readonly deletedCount: number;
  /** The sequence of this delete, or the current one when nothing was deleted. */
  readonly sequence: number;
  /** Warnings about the filter, against the state before the delete. */
  readonly warnings?: readonly Warning[] | undefined;
}

/** The phases of a write. */
export interface CommitTimings {
  /** When the write was submitted, by `performance.now()`. */
  readonly submittedAtMs: number;
  /** Wait for the previous commit plus preparation of this one. */
  readonly waitMs: number;
  /** Commit time, until the write was on disk. */
  readonly commitMs: number;
}

export type OnCommitted = (timings: CommitTimings) => void;

export interface VectorRecord {
  readonly id: string;
  /** Changes with every write of this vector. */
  readonly version: string;
  readonly values?: Float32Array;
  /** Named vectors; present when values are included and the collection has named vectors. */
  readonly vectors?: NamedValues;
  /** Sparse vectors; present when values are included and the collection has sparse vectors. */
  readonly sparseVectors?: SparseVectors;
  /** JSON text, exactly as sent. */
  readonly metadata?: string;
  /** The sequence of the last write of this vector. */
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
  /** Together with an offset, the cursor only names the snapshot. */
  readonly cursor?: string | undefined;
  readonly filter?: JsonObject | undefined;
  /** Absent for the order of arrival, or with a cursor for that of the first page. */
  readonly sort?: readonly SortKey[] | undefined;
  /** Absent for metadata only, or with a cursor for what the first page included. */
  readonly includeValues?: boolean | undefined;
  readonly includeMetadata?: IncludeMetadata | undefined;
}

export interface ListReply extends Page {
  readonly vectors: readonly VectorRecord[];
  /** Present on the first page only. */
  readonly warnings?: readonly Warning[] | undefined;
}

/** The vectors that a delete or an update applies to. */
export type VectorSelection =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'filter'; readonly filter: JsonObject }
  | { readonly kind: 'all' };

/** A change of metadata, as the JSON text of an object. */
export type MetadataChange =
  /** A JSON merge patch. */
  | { readonly kind: 'patch'; readonly text: string }
  | { readonly kind: 'replace'; readonly text: string };

export interface UpdateResult {
  /** Vectors that the update changed. Vectors that already had the new metadata are not written. */
  readonly updatedCount: number;
  /** Whether the limit was reached before all vectors were changed. */
  readonly hasMore: boolean;
  /** The sequence of this update, or the current one when nothing was changed. */
  readonly sequence: number;
  /** Warnings about the filter, against the state before the update. */
  readonly warnings?: readonly Warning[] | undefined;
}

export interface IdempotencyRequest {
  /** Principal, method and route. Keys of different scopes are independent. */
  readonly scope: string;
  readonly key: string;
  /** A digest of everything that the reply depends on. */
  readonly payloadDigest: string;
  /** The incarnation of the collection that is written to; absent for a change of the catalogue. */
  readonly incarnation?: string | undefined;
}

/** Requests a page of collections or of aliases. */
export interface CollectionsRequest {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** Decides which collections the caller may see; absent for all. */
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
  /** Milliseconds since the Unix epoch, Infinity for never; undefined leaves the expiry unchanged. */
  readonly expiresAtMs?: number | undefined;
  readonly onCommitted?: OnCommitted | undefined;
}

/** Options of operations that may take long. The signal aborts when the caller stops waiting. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}
