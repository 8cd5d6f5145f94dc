// What Sagitta needs of a disk: ordered durable logs, small keyed values that commit with them,
// and named blobs. A replicated log (one stream a collection, stream sequence = collection
// sequence) can stand behind the same interface, so nothing outside this folder may know lmdb.

/** A key is a path of parts, ordered part by part by their UTF-8 bytes. Parts are never empty. */
export type StoreKey = readonly string[];

export type StoreOperation =
  /** Adds a record; `sequence` is greater than any the log ever had. */
  | {
      readonly kind: 'append';
      readonly log: string;
      readonly sequence: number;
      readonly record: Uint8Array;
    }
  /** Removes the records up to and including `throughSequence`. */
  | { readonly kind: 'trim'; readonly log: string; readonly throughSequence: number }
  /** Removes the whole log for good: its name is not used again. */
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
   * later read sees them. Commits called while another is being written share the next fsync; the
   * order of calls is the order of effects. Throws `storage_full` when there is no room, and then
   * nothing was written. The caller leaves records and values as they are until it settles.
   */
  commit(operations: readonly StoreOperation[]): Promise<void>;
  get(key: StoreKey): Uint8Array | undefined;
  /** Entries whose key starts with `prefix`, in key order. */
  list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }>;
  /** Records with a sequence greater than `afterSequence`, in order. */
  readLog(log: string, afterSequence: number): Iterable<LogEntry>;
  /** Bytes of the records of a log that this store appended or read since it was opened and that are not trimmed. O(1). */
  logBytes(log: string): number;

  /** Writes a blob whole: a reader sees the old state or all of it, and it is on disk when this resolves. Parts are written one after another. */
  writeBlob(name: string, parts: Iterable<Uint8Array>): Promise<void>;
  /** The whole blob in one SharedArrayBuffer, or undefined when there is none. */
  readBlob(name: string): Promise<Uint8Array | undefined>;
  removeBlob(name: string): Promise<void>;
  /** Names of all blobs that start with `prefix`, sorted. Unfinished writes of a process that died are not among them (and are deleted on open). */
  listBlobs(prefix?: string): Promise<string[]>;

  /** Waits for running commits. No call is allowed after. */
  close(): Promise<void>;
}

/** What a backup reads of the moment that it keeps. */
export type ListKept = (
  prefix: StoreKey,
) => Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }>;

/** A store whose data are files. */
export interface DiskStore extends Store {
  /**
   * Copies the state of one moment after the call, and so every commit that resolved before it, into
   * a new folder that another store can be opened on, while commits and blobs go on here. `choose`
   * says which blobs belong to it, and how many collections they are. The folder appears whole or
   * not at all. Throws `backup_exists`, `overloaded` while another backup is made, `stopping` when
   * the store is closed meanwhile, `invalid_request` for a folder inside the store's own, and
   * `storage_full`; then nothing is left of it.
   */
  backup(
    folder: string,
    choose: (list: ListKept) => Promise<{ blobNames: readonly string[]; collectionCount: number }>,
  ): Promise<{ createdAt: string; byteLength: number; collectionCount: number }>;
}
