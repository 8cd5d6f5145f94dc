// Requests and replies of the database, beside those of queries (query/query-api.ts). Vectors are
// Float32Arrays, metadata is the JSON text as sent, and every failure that a caller can cause is a
// SagittaError.

import type { Principal } from '../common/access.js';
import type { JsonObject, Metric } from '../common/types.js';
import type { Page } from './query/query-api.js';

export interface CollectionInput {
  /** Generated when absent. */
  readonly id?: string | undefined;
  readonly dimension: number;
  readonly metric: Metric;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
}

export interface CollectionRecord {
  readonly id: string;
  readonly dimension: number;
  readonly metric: Metric;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** `failed`: its data is damaged; it answers `collection_unavailable` and the others serve. */
  readonly status: 'loading' | 'ready' | 'failed';
  /** Why it is not ready, in words that name no path of the host; absent when it is. */
  readonly statusReason?: string;
  readonly vectorCount: number;
  /** The last write that is visible. */
  readonly sequence: number;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  readonly updatedAt: string;
  /** The engine that answers, and why it was chosen. */
  readonly engine: { readonly name: string; readonly reason: string };
  readonly memory: { readonly hostBytes: number; readonly deviceBytes: number };
}

/** What a collection expects of its vectors. */
export type CollectionShape = Pick<CollectionRecord, 'dimension' | 'metric'>;

export type WriteMode = 'upsert' | 'insert' | 'update';

export interface WriteResult {
  readonly insertedCount: number;
  readonly updatedCount: number;
  /** The sequence of this write. */
  readonly sequence: number;
}

/** How far a stream of writes has come. */
export interface StreamProgress {
  readonly batchCount: number;
  /** The rows of the stream before row `rowCount`. */
  readonly rowCount: number;
  readonly insertedCount: number;
  readonly updatedCount: number;
  /** Of its last write; undefined when there is none. */
  readonly sequence: number | undefined;
}

export interface DeleteResult {
  readonly deletedCount: number;
  /** The sequence of this delete, or the current one when nothing was deleted. */
  readonly sequence: number;
}

/** Where the time of a write went. */
export interface CommitTimings {
  /** When it was handed to the writer, by `performance.now()`. */
  readonly submittedAtMs: number;
  /** For the commit before it, and for the preparation of its own. */
  readonly waitMs: number;
  /** Until it was on disk. */
  readonly commitMs: number;
}

export type OnCommitted = (timings: CommitTimings) => void;

export interface VectorRecord {
  readonly id: string;
  /** Changes with every write of this vector. */
  readonly version: string;
  readonly values?: Float32Array;
  /** JSON text, exactly as sent. */
  readonly metadata?: string;
}

export interface Include {
  readonly values: boolean;
  readonly metadata: boolean;
}

export interface ListRequest {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly cursor?: string | undefined;
  readonly filter?: JsonObject | undefined;
  /** Absent: as on the first page of the cursor, else metadata only. */
  readonly includeValues?: boolean | undefined;
  readonly includeMetadata?: boolean | undefined;
}

export interface ListReply extends Page {
  readonly vectors: readonly VectorRecord[];
}

export type DeleteSelection =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'filter'; readonly filter: JsonObject }
  | { readonly kind: 'all' };

export interface IdempotencyRequest {
  /** Principal, method and route: the same key elsewhere is another key. */
  readonly scope: string;
  readonly key: string;
  /** A digest of everything that the reply depends on. */
  readonly payloadDigest: string;
}

export interface ApiKeyRecord {
  /** Also in the key itself: `sk_<id>_<secret>`. */
  readonly id: string;
  /** For whom it was made, in the words of who made it. */
  readonly owner: string;
  /** As sent: `vectors:read`, `vectors:write:catalog-*`. */
  readonly scopes: readonly string[];
  /** ISO 8601, UTC, as all times here. */
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly rotatedAt: string | null;
  readonly revokedAt: string | null;
}

export interface ApiKeyInput {
  readonly owner: string;
  readonly scopes: readonly string[];
  /** ISO 8601; null for never. */
  readonly expiresAt: string | null;
}

/** Keys are stored as digests: `key`, the secret itself, is in the reply that made it and nowhere else. */
export interface ApiKeyService {
  /** Whether a key was ever made, be it revoked or expired since. */
  readonly isInUse: boolean;
  /** Throws `credentials_invalid`, without telling whether the key is unknown, wrong, revoked or expired. */
  verify(key: string): Principal;
  /** Throws `invalid_request` with an item for each thing that is wrong, and `limit_exceeded`. */
  create(input: ApiKeyInput): Promise<{ record: ApiKeyRecord; key: string }>;
  /** In the order in which they were made, also those that are revoked or expired. */
  list(): readonly ApiKeyRecord[];
  /** Throws `key_not_found`. */
  get(id: string): ApiKeyRecord;
  /**
   * A new secret under the same id. The old one goes on for `graceMs`, 0 for not at all. Throws
   * `key_not_found`, also for a key that is revoked or has expired.
   */
  rotate(id: string, options: { graceMs: number }): Promise<{ record: ApiKeyRecord; key: string }>;
  /**
   * From when it resolves the key is refused, on open connections too. Of a key that is revoked
   * already it changes nothing. Throws `key_not_found`.
   */
  revoke(id: string): Promise<ApiKeyRecord>;
}

export interface BackupRecord {
  readonly name: string;
  /** The moment that it keeps. ISO 8601, UTC. */
  readonly createdAt: string;
  readonly byteLength: number;
  readonly collectionCount: number;
}

/** One backup at a time: another one throws `overloaded`. */
export interface BackupService {
  /**
   * In the configured directory, under a name made of the time when none is given. Everything that
   * was acknowledged before the call is in it. Throws `backups_not_configured`, `backup_exists`,
   * `storage_full`, and then nothing is left of it.
   */
  create(name?: string): Promise<BackupRecord>;
  /** The same in a folder of the machine; for who may write there anyway. */
  createAt(folder: string): Promise<Omit<BackupRecord, 'name'>>;
  /** In the order of their names. Throws `backups_not_configured`. */
  list(): Promise<BackupRecord[]>;
}

export interface CollectionsRequest {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** Of which collections the caller may know; absent for all. */
  readonly isVisible?: (id: string) => boolean;
}

export interface CollectionsPage extends Page {
  readonly collections: readonly CollectionRecord[];
  /** Of those that are visible. */
  readonly total: number;
}

export interface VectorPatch {
  /** A JSON merge patch, as text. */
  readonly metadata?: string | undefined;
  readonly values?: Float32Array | undefined;
  /** Throws `precondition_failed` unless this is the vector's version. */
  readonly ifVersion?: string | undefined;
  readonly onCommitted?: OnCommitted | undefined;
}

/** Of what may take long: aborted when nobody waits for it any more. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}
