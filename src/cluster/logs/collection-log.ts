// The log of a collection: the commits of its writers in one order, each whole or not there at all. Several
// processes may try to write; records of epochs decide which of them may. The commits form a chain of digests,
// so that a reader notices a record that is missing, damaged, or that another one has taken the place of.

/** A place in a log: after this record of its chain. */
export interface LogLink {
  /** Ascends along the log, with gaps; 0 before the first record. */
  readonly position: number;
  /** SHA-256 of the record, in hexadecimal digits; empty before the first one. */
  readonly digest: string;
  /** Of the last writer that took over; 0 before the first one. */
  readonly epoch: number;
}

export const LOG_START: LogLink = { position: 0, digest: '', epoch: 0 };

/** What one commit writes for one shard. */
export interface CommitPart {
  readonly shard: number;
  readonly bytes: Uint8Array;
}

export interface Commit {
  /** The sequences of the collection that the commit takes; both 0 if it takes none. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** At most one for each shard. */
  readonly parts: readonly CommitPart[];
  /** What every replica needs, whichever shards it has. At most `SUMMARY_BYTES_MAX`. */
  readonly summary: Uint8Array;
}

export const SUMMARY_BYTES_MAX = 256 * 1024;

export type LogRecord =
  /** Of a read, `commit.parts` are those of its shards. */
  | { readonly kind: 'commit'; readonly link: LogLink; readonly commit: Commit }
  /** A writer has taken over; earlier ones can no longer append. */
  | { readonly kind: 'epoch'; readonly link: LogLink; readonly owner: string }
  /** Whoever reads this has read everything that was committed before the barrier was asked for. */
  | { readonly kind: 'barrier'; readonly position: number };

/** Of the parts that it has. */
export function byteCountOf(record: LogRecord): number {
  if (record.kind !== 'commit') return 0;
  return record.commit.parts.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

export type AppendOutcome =
  /** The commit is durable and every reader will see it. */
  | { readonly kind: 'committed'; readonly link: LogLink }
  /** The commit is not in the log and never will be; the writer may go on. */
  | { readonly kind: 'absent'; readonly cause: Error }
  /** Another writer has taken over. The commit is not in the log and never will be. */
  | { readonly kind: 'fenced'; readonly epoch: number; readonly owner: string }
  /** Nobody knows yet; `settle` finds out. */
  | { readonly kind: 'unknown'; readonly cause: Error };

export type SettledOutcome = Exclude<AppendOutcome, { kind: 'unknown' }>;

/** The right to append, until another writer takes over. */
export interface LogWriter {
  readonly epoch: number;
  /** After the last record known to be in the log. */
  readonly head: LogLink;
  /** One at a time: not before the outcome of the last one is known. The caller must not change the bytes until then. */
  append(commit: Commit): Promise<AppendOutcome>;
  /**
   * Finds out what became of a commit whose outcome is unknown. It tries until the log answers. Rejects with the
   * reason of the signal when that is aborted.
   */
  settle(signal: AbortSignal): Promise<SettledOutcome>;
}

export interface ReadOptions {
  /** The shards whose parts are read; all by default. */
  readonly shards?: readonly number[];
  /** Ends the read, which then returns. */
  readonly signal: AbortSignal;
}

export interface CollectionLog {
  /**
   * Becomes the writer. `onRecord` gets every record after `after` up to and including the one of the new epoch,
   * in order; it must not throw. Throws what `read` throws, and the reason of the signal when that is aborted.
   */
  takeOver(options: {
    /** Names this process in messages. */
    readonly owner: string;
    readonly after: LogLink;
    readonly onRecord: (record: LogRecord) => void;
    readonly signal: AbortSignal;
  }): Promise<LogWriter>;
  /**
   * The position of a new record that only marks a moment: a reader that has come to it has read everything that
   * was committed before the call.
   */
  barrier(): Promise<number>;
  /**
   * Records after `after`, which must be in the log or its start, and then new ones as they are committed.
   * Throws `data_corrupt` when a record is missing or damaged, `configuration_invalid` for one of a format that this
   * version does not know, and LogTrimmedError.
   */
  read(after: LogLink, options: ReadOptions): AsyncIterable<LogRecord>;
  /** Like `read`, without waiting and without barriers: what was committed before the call. */
  readToEnd(after: LogLink, options: ReadOptions): AsyncIterable<LogRecord>;
  /** Removes the records before a position, at which a record of the chain must stay. */
  trimBefore(position: number): Promise<void>;
  /** Removes the log with all of its records. */
  drop(): Promise<void>;
}

/** The log no longer has what follows the place where a read was to begin. */
export class LogTrimmedError extends Error {
  constructor(log: string, afterPosition: number, firstPosition: number) {
    super(
      `The log ${log} begins at position ${firstPosition}; the records after ${afterPosition} have been removed. Read a snapshot or the archive first.`,
    );
  }
}

/** Whether what a log has is wrong or missing: reading the same replica again does not help. */
export function isDamage(error: unknown): boolean {
  return error instanceof LogTrimmedError || (error as { code?: unknown }).code === 'data_corrupt';
}
