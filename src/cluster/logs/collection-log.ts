// The log of a collection: the commits of its writers in one order, each of them whole or absent. Several processes may
// try to write; records of epochs decide which one may. The commits form a chain of digests, so a reader notices a record
// that is missing, damaged or replaced.

/** A record of the chain, after which a log can be read. */
export interface LogLink {
  /** Increases along the log, with gaps; 0 before the first record. */
  readonly position: number;
  /** SHA-256 of the record, in hexadecimal digits; empty before the first one. */
  readonly digest: string;
  /** The epoch of the last writer that took over; 0 before the first one. */
  readonly epoch: number;
}

export const LOG_START: LogLink = { position: 0, digest: '', epoch: 0 };

/** The operations of one commit for one shard, cut into messages where they are too large for one. */
export interface CommitFragment {
  readonly shard: number;
  readonly bytes: Uint8Array;
}

export interface Commit {
  /** The sequences of the collection that the commit uses; both 0 if it uses none. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** At most one for each shard. */
  readonly fragments: readonly CommitFragment[];
  /** Read by every replica, whichever shards it holds. At most `SUMMARY_BYTES_MAX`. */
  readonly summary: Uint8Array;
}

export const SUMMARY_BYTES_MAX = 256 * 1024;

export type LogRecord =
  /** `commit.fragments` are those of the shards that are read. */
  | { readonly kind: 'commit'; readonly link: LogLink; readonly commit: Commit }
  /** A writer has taken over; earlier ones can no longer append. */
  | { readonly kind: 'epoch'; readonly link: LogLink; readonly owner: string }
  /** A reader that gets this has read everything that was committed before the barrier was requested. */
  | { readonly kind: 'barrier'; readonly position: number };

/** The bytes of the fragments that were read. */
export function byteCountOf(record: LogRecord): number {
  if (record.kind !== 'commit') return 0;
  return record.commit.fragments.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

export type AppendOutcome =
  /** The commit is durable and every reader will see it. */
  | { readonly kind: 'committed'; readonly link: LogLink }
  /** The commit is not in the log and never will be; the writer may go on. */
  | { readonly kind: 'absent'; readonly cause: Error }
  /** Another writer has taken over. The commit is not in the log and never will be. */
  | { readonly kind: 'fenced'; readonly epoch: number; readonly owner: string }
  /** Not known yet; `settle` finds out. */
  | { readonly kind: 'unknown'; readonly cause: Error };

export type SettledOutcome = Exclude<AppendOutcome, { kind: 'unknown' }>;

/** The right to append, until another writer takes over. */
export interface LogWriter {
  readonly epoch: number;
  /** The last record known to be in the log. */
  readonly head: LogLink;
  /** One at a time, after the outcome of the previous one is known. The caller must not change the bytes until it resolves. */
  append(commit: Commit): Promise<AppendOutcome>;
  /**
   * Finds out what became of a commit whose outcome is unknown. Retries until the log answers, or rejects with the
   * reason of the signal.
   */
  settle(signal: AbortSignal): Promise<SettledOutcome>;
}

export interface ReadOptions {
  /** The shards whose fragments are read; all of them by default. */
  readonly shards?: readonly number[];
  /** Ends the read, which then returns. */
  readonly signal: AbortSignal;
  /** Called when the log answers, also if it has no records to yield. */
  readonly onOpen?: () => void;
  /**
   * Whether somebody waits for records, as by default. Otherwise a reader that gets none may take minutes to notice that
   * the log has some, should the connection to it hang.
   */
  readonly isAwaited?: () => boolean;
}

export interface CollectionLog {
  /**
   * Becomes the writer. Calls `onRecord`, which must not throw, with every record after `after` up to and including the
   * one of the new epoch. Throws what `read` throws, and the reason of the signal.
   */
  takeOver(options: {
    /** Names this process in messages. */
    readonly owner: string;
    readonly after: LogLink;
    readonly onRecord: (record: LogRecord) => void;
    readonly signal: AbortSignal;
  }): Promise<LogWriter>;
  /**
   * Appends a barrier and returns its position: a reader that has reached it has read everything that was committed
   * before the call.
   */
  barrier(): Promise<number>;
  /**
   * Yields the records after `after`, which must be in the log or be its start, and then new ones as they are committed.
   * Throws `data_corrupt` when a record is missing or damaged, `configuration_invalid` for a format that this version
   * does not know, and LogTrimmedError.
   */
  read(after: LogLink, options: ReadOptions): AsyncIterable<LogRecord>;
  /** Like `read`, but ends with what was committed before the call, and yields no barriers. */
  readToEnd(after: LogLink, options: ReadOptions): AsyncIterable<LogRecord>;
  /** Removes the records before a position, which must be that of a record of the chain. */
  trimBefore(position: number): Promise<void>;
  /** Removes the log with all of its records. */
  drop(): Promise<void>;
}

/** The log no longer holds the records after the position where a read should start. */
export class LogTrimmedError extends Error {
  constructor(log: string, afterPosition: number, firstPosition: number) {
    super(
      `The log ${log} begins at position ${firstPosition}; the records after ${afterPosition} have been removed. Read a snapshot or the archive first.`,
    );
  }
}

/** Whether data of a log is wrong or missing, so that reading the same replica again does not help. */
export function isDamage(error: unknown): boolean {
  return error instanceof LogTrimmedError || (error as { code?: unknown }).code === 'data_corrupt';
}
