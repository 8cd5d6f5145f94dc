// The interface of storage: ordered durable logs, small keyed values that commit with them, and named blobs. A
// replicated log could implement it as well, so nothing outside this folder may depend on how data is stored.

import type { FileMapping } from '../common/types.js';
import type { FileParts } from './disk.js';
import type { PartialBlobContent } from './partial-blob.js';
import type { PartialFilesUse } from './partial-files.js';

/** A path of non-empty parts. Keys sort part by part, by their UTF-8 bytes. */
export type StoreKey = readonly string[];

export type StoreOperation =
  /** Adds a record. `sequence` must be greater than every earlier sequence of the log. */
  | {
      readonly kind: 'append';
      readonly log: string;
      readonly sequence: number;
      readonly record: Uint8Array;
    }
  /** Removes the records up to and including `throughSequence`. */
  | { readonly kind: 'trim'; readonly log: string; readonly throughSequence: number }
  /** Removes the whole log, whose name must not be used again. */
  | { readonly kind: 'dropLog'; readonly log: string }
  | { readonly kind: 'put'; readonly key: StoreKey; readonly value: Uint8Array }
  | { readonly kind: 'remove'; readonly key: StoreKey }
  /** Removes every key that starts with these parts. */
  | { readonly kind: 'removeUnder'; readonly prefix: StoreKey };

export interface LogEntry {
  readonly sequence: number;
  /** Owned by the caller. */
  readonly record: Uint8Array;
}

export interface Store {
  /**
   * Applies all operations in order, or none. Resolves when they are on disk (fsynced) and visible to every later read.
   * Commits made during a write share the next fsync and take effect in the order of the calls. Throws `storage_full`
   * if there is no space; nothing was written then. The caller must not change records and values until it settles.
   */
  commit(operations: readonly StoreOperation[]): Promise<void>;
  get(key: StoreKey): Uint8Array | undefined;
  /** Entries whose key starts with `prefix`, in key order. Read `value` during its iteration step, or not at all. */
  list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }>;
  /** Number of entries whose key starts with `prefix`. */
  count(prefix: StoreKey): number;
  /** Records with a sequence greater than `afterSequence`, in order. */
  readLog(log: string, afterSequence: number): Iterable<LogEntry>;
  /** Total size of the untrimmed records of a log. O(1). */
  logBytes(log: string): number;
  /** The number of records in a log. */
  logRecordCount(log: string): number;

  /**
   * Writes the parts in sequence. Readers see either the old blob or the complete new one, which is on disk when this
   * resolves.
   */
  writeBlob(name: string, parts: FileParts): Promise<void>;
  /** Whether blobs can be kept in part: the store has a source of blocks, and files are mapped. */
  readonly canPartial: boolean;
  /**
   * Writes a blob of which only some blocks are kept on this disk; the others are fetched from the source of blocks when
   * they are read. Otherwise like `writeBlob`. To be called only if `canPartial`.
   */
  writePartialBlob(name: string, content: PartialBlobContent): Promise<void>;
  /**
   * Returns the whole blob in one SharedArrayBuffer, or undefined if it does not exist. Throws `collection_unavailable`
   * if blocks that are not kept cannot be fetched.
   */
  readBlob(name: string): Promise<Uint8Array | undefined>;
  /**
   * Returns the blob as a mapped file; null if it does not exist, or should be read instead. The mapping stays valid
   * after `removeBlob`. A thread that reads a block of it that is not kept waits until it was fetched.
   */
  mapBlob(name: string): Promise<FileMapping | null>;
  /** Copies a blob, sharing its file if the file system can and all of it is kept. The copy is on disk when this resolves. */
  copyBlob(from: string, to: string): Promise<void>;
  removeBlob(name: string): Promise<void>;
  /** Sorted names of all blobs that start with `prefix`, without unfinished writes. */
  listBlobs(prefix?: string): Promise<string[]>;

  /** Drops a log. Its name can be used again, starting with any sequence, when this resolves. */
  eraseLog(log: string): Promise<void>;
  /**
   * Calls `use` with the state at one moment after the call, which includes every commit that resolved before the call.
   * Commits and blob writes continue meanwhile.
   */
  withSnapshot<Result>(use: (snapshot: StoreSnapshot) => Promise<Result>): Promise<Result>;

  /** Waits for running commits and snapshots. The store must not be used afterwards. */
  close(): Promise<void>;
}

/** The reads that both a store and a snapshot offer. */
export type StateReader = Pick<Store, 'get' | 'list' | 'readLog' | 'readBlob'>;

export interface StoreSnapshot extends StateReader {
  /** Ends all reads except those of blobs. Until then, the space of removed entries is not reused. */
  endEntries(): void;
}

/** Lists entries of the backed-up state in key order. */
export type ListEntries = (
  prefix: StoreKey,
) => Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }>;

export interface DiskStore extends Store {
  /** Disk space used by logs and values. */
  readonly storedBytes: number;
  /** The disk space of blobs that are kept in part; null if the store has no source of blocks. */
  readonly partialUse: PartialFilesUse | null;
  /** Closes the store. If it was created when it was opened, it is removed together with everything written to it. */
  closeAndRemoveIfNew(): Promise<void>;
  /**
   * Copies the state at one moment after the call, which includes every commit that resolved before the call, to a new
   * folder that can be opened as a store. Commits and blob writes continue meanwhile. `choose` returns the blobs to
   * include and the number of collections. The folder appears complete or not at all. Throws `backup_exists`,
   * `overloaded` if another backup is running, `stopping` if the store is closed meanwhile, `invalid_request` for a
   * folder inside the data directory, and `storage_full`; nothing remains of a failed backup.
   */
  backup(
    folder: string,
    choose: (
      list: ListEntries,
    ) => Promise<{ blobNames: readonly string[]; collectionCount: number }>,
  ): Promise<{ createdAt: string; byteLength: number; collectionCount: number }>;
}
