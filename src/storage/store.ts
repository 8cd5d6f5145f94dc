// The interface of storage: ordered durable logs, small keyed values that commit with them, and named
// blobs. A replicated log (one stream per collection, stream sequence = collection sequence) could
// implement it, too, so nothing outside this folder may depend on how it is stored.

import type { FileMapping } from '../common/types.js';

/** A path of parts that are not empty; keys sort part by part by their UTF-8 bytes. */
export type StoreKey = readonly string[];

export type StoreOperation =
  /** Adds a record; `sequence` is greater than every sequence the log ever had. */
  | {
      readonly kind: 'append';
      readonly log: string;
      readonly sequence: number;
      readonly record: Uint8Array;
    }
  /** Removes the records up to and including `throughSequence`. */
  | { readonly kind: 'trim'; readonly log: string; readonly throughSequence: number }
  /** Removes the whole log. Its name cannot be used again. */
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
   * Applies all operations or none, in order. Resolves when they are on disk (fsynced) and every
   * later read sees them. Commits called while another one is written share the next fsync; they
   * take effect in the order of the calls. Throws `storage_full` when there is no space; nothing was
   * written then. The caller must not change records and values until it settles.
   */
  commit(operations: readonly StoreOperation[]): Promise<void>;
  get(key: StoreKey): Uint8Array | undefined;
  /** Entries whose key starts with `prefix`, in key order. A value is read when it is first used, at once or never. */
  list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }>;
  /** How many entries have a key that starts with `prefix`. */
  count(prefix: StoreKey): number;
  /** Records with a sequence greater than `afterSequence`, in order. */
  readLog(log: string, afterSequence: number): Iterable<LogEntry>;
  /** Bytes of the untrimmed records of a log. O(1). */
  logBytes(log: string): number;

  /** Writes the parts one after another. A reader sees the old blob or the whole new one, which is on disk when this resolves. */
  writeBlob(name: string, parts: Iterable<Uint8Array>): Promise<void>;
  /** The whole blob in one SharedArrayBuffer, or undefined when there is none. */
  readBlob(name: string): Promise<Uint8Array | undefined>;
  /** The blob as a mapped file; null when there is none, or when it is to be read. It stays valid after `removeBlob`. */
  mapBlob(name: string): Promise<FileMapping | null>;
  /** Makes a blob that has the bytes of another one, and shares its file where the file system can. It is on disk when this resolves. */
  copyBlob(from: string, to: string): Promise<void>;
  removeBlob(name: string): Promise<void>;
  /** The names of all blobs that start with `prefix`, sorted. Unfinished writes are not included. */
  listBlobs(prefix?: string): Promise<string[]>;

  /** Drops a log so that its name can be used again, from the first sequence on, when this resolves. */
  eraseLog(log: string): Promise<void>;
  /**
   * Calls `use` with the state of one moment after the call, which has every commit that resolved before it. Commits
   * and blobs continue meanwhile.
   */
  withSnapshot<Result>(use: (snapshot: StoreSnapshot) => Promise<Result>): Promise<Result>;

  /** Waits for running commits and snapshots. The store must not be used afterwards. */
  close(): Promise<void>;
}

/** What can be read of a state: of the present one, or of that of a moment. */
export type StateReader = Pick<Store, 'get' | 'list' | 'readLog' | 'readBlob'>;

export interface StoreSnapshot extends StateReader {
  /** Ends reading but of blobs. Until then the space of what is removed is not used again. */
  endEntries(): void;
}

/** Lists entries of the moment that a backup has, in key order. */
export type ListEntries = (
  prefix: StoreKey,
) => Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }>;

/** A store on disk. */
export interface DiskStore extends Store {
  /** What logs and values take on the disk, in bytes. */
  readonly storedBytes: number;
  /** Closes the store. One that was new when it was opened is removed, with whatever was written to it. */
  closeAndRemoveIfNew(): Promise<void>;
  /**
   * Copies the state of one moment after the call, and so every commit that resolved before it, into
   * a new folder that can be opened as a store. Commits and blobs continue meanwhile. `choose` returns
   * the blobs to include and the number of collections. The folder appears complete or not at all.
   * Throws `backup_exists`, `overloaded` while another backup is made, `stopping` when the store is
   * closed meanwhile, `invalid_request` for a folder inside the data directory, and `storage_full`;
   * nothing is then left of it.
   */
  backup(
    folder: string,
    choose: (
      list: ListEntries,
    ) => Promise<{ blobNames: readonly string[]; collectionCount: number }>,
  ): Promise<{ createdAt: string; byteLength: number; collectionCount: number }>;
}
