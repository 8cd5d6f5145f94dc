// A log as one node uses it. The node either owns it and commits to it, or follows it, and stores and applies what others
// commit. The store records the applied position in the transaction of the operations, and a restart goes on from there.
// Memory may be one commit ahead of the store, since the log is durable.

import { setTimeout as sleep } from 'node:timers/promises';
import { assert, noLeaderError, SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { Milestones } from '../../common/milestones.js';
import { unlessAborted } from '../../common/when-aborted.js';
import { type CommitLog, MaybeCommittedError } from '../../storage/commit-log.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import {
  type AppliedPosition,
  appliedPositionKey,
  appliedPositionOperation,
  findAppliedPosition,
  readAppliedPosition,
} from '../logs/applied-position.js';
import {
  byteCountOf,
  type CollectionLog,
  type Commit,
  type LogLink,
  type LogRecord,
  LogTrimmedError,
  type LogWriter,
} from '../logs/collection-log.js';
import { decodeOperations, encodeOperations } from '../logs/operations.js';

/** Bytes read ahead before they are applied. */
const UNAPPLIED_BYTES_MAX = 64 * 1024 * 1024;
/** The pause after a log did not answer, or its records could not be stored. */
const RETRY_MS = 500;
/**
 * How long a commit whose outcome is unknown waits for the log. With the time that a stream takes to give up a
 * publication, clients get an answer within ten seconds; a new leader of the stream is usually elected before that.
 */
const SETTLE_MS_MAX = 6_000;
/** How long a commit that is in the log waits for the store, for the same reason. */
const STORE_MS_MAX = 4_000;
/** All operations go to one shard so far. */
const SHARD = 0;
/** The summary of the commit with which an owner releases a log. */
const RELEASED = Buffer.from('released');

export interface ReplicatedLogOptions {
  readonly log: CollectionLog;
  /** The name of the log, also in the store. */
  readonly name: string;
  readonly store: Store;
  /** Whether a commit may be applied, and acknowledged, before the store has it. */
  readonly mayRunAhead: boolean;
  /** The process, as it appears in records of epochs. */
  readonly owner: string;
  /**
   * Stores operations in one transaction and applies them. Resolves when they are applied, and `stored` when they are
   * stored. They may be in memory already, after an attempt to store them failed.
   */
  readonly apply: (
    operations: readonly StoreOperation[],
  ) => Promise<{ readonly stored: Promise<void> }>;
  /**
   * Brings the state of the log in the store to a later position: called for a store without an applied position, or
   * with one from which the log no longer goes on.
   */
  readonly load: (signal: AbortSignal) => Promise<void>;
  /** Changes operations before this node commits them. */
  readonly prepare: (operations: readonly StoreOperation[]) => readonly StoreOperation[];
  /** Called when a process has taken over, or with an empty text when the owner has released the log. */
  readonly onOwner: (owner: string) => void;
  /** Called when this process has become, or is no longer, the one that may commit. */
  readonly onRole: () => void;
  /** Called after each commit of this node. */
  readonly onCommitted: (position: number, operations: readonly StoreOperation[]) => void;
  /** Called when the store could not store what is in the log. */
  readonly onStoreFailed: (error: Error) => void;
  /** Called with the bytes that this node has committed or applied. */
  readonly onBytes: (byteCount: number) => void;
  readonly logger: Logger;
}

export class ReplicatedLog implements CommitLog {
  readonly name: string;
  readonly #options: ReplicatedLogOptions;
  readonly #closing = new AbortController();
  readonly #milestones: Milestones;
  /** The position up to which everything is applied in memory. */
  #applied: AppliedPosition;
  /** The position up to which everything is stored, from which the log is read. */
  #stored: AppliedPosition;
  /** The highest applied record, or a barrier after it. */
  #appliedPosition: number;
  /** The highest record that was ever applied. */
  #recordPosition: number;
  /** The commit being stored, or one that failed. One at a time: a store must not contain a record without those before. */
  #storing: Promise<void> | null = null;
  /** When that began, on `performance.now`. */
  #storingAtMs = 0;
  /** The commit of which the store took too long: it is read again from the log, since it is not in memory. */
  #abandoned: Promise<void> | null = null;
  /** Null while the log is followed. */
  #writer: LogWriter | null = null;
  #following: { readonly end: AbortController; readonly ended: Promise<void> } | null = null;
  /** Whether the log is followed while this node does not own it. */
  #mayFollow = false;
  /** Whether the log may have records that its reader has missed. */
  #isDoubted = false;
  /** Whether the log is being read to take it over or to catch up. */
  #isReading = false;
  /** Aborted when this node takes over. */
  #becameWriter = new AbortController();
  /** The next check for being current, which has not begun. */
  #nextCheck: Promise<void> | null = null;
  #lastCheck: Promise<void> = Promise.resolve();
  /** The last commit or change of role; each waits for the one before. */
  #last: Promise<unknown> = Promise.resolve();
  #failure: Error | null = null;
  /** When the running commit began, on `performance.now`; null without one. */
  #commitAtMs: number | null = null;

  /** Throws `data_corrupt`. */
  constructor(options: ReplicatedLogOptions) {
    this.#options = options;
    this.name = options.name;
    this.#applied = readAppliedPosition(options.store, options.name);
    this.#stored = this.#applied;
    this.#appliedPosition = this.#applied.position;
    this.#recordPosition = this.#applied.position;
    this.#milestones = new Milestones(this.#appliedPosition);
  }

  get isWritable(): boolean {
    return this.#writer !== null;
  }

  /** The process that took over last and has not released the log, as far as this node has read it; empty for none. */
  get owner(): string {
    return this.#applied.owner;
  }

  /** The position of the last stored record. */
  get position(): number {
    return this.#stored.position;
  }

  /** The last stored record. */
  get link(): LogLink {
    const { position, digest, epoch } = this.#stored;
    return { position, digest, epoch };
  }

  /** The position of the last applied record. Barriers after it do not count, since only followers read them. */
  get recordPosition(): number {
    return this.#recordPosition;
  }

  /** Why the log cannot be followed at the moment; null when it can. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** How long the running commit has waited for the log, or for the store, in milliseconds; 0 without one. */
  get waitingMs(): number {
    return this.#commitAtMs === null ? 0 : performance.now() - this.#commitAtMs;
  }

  /** How long the store has been busy with a commit, in milliseconds; 0 if it is not. */
  get storingMs(): number {
    return this.#storing === null ? 0 : performance.now() - this.#storingAtMs;
  }

  whenStored(): Promise<void> | undefined {
    if (this.#storing !== null) return this.#storing;
    const isBehind = this.#stored.position < this.#recordPosition;
    return isBehind
      ? Promise.reject(notStored(new Error('it is being read again from the log')))
      : undefined;
  }

  async commit(operations: readonly StoreOperation[]): Promise<void> {
    // Does not wait for a take-over, which may itself wait for writers.
    if (this.#writer === null) throw noLeaderError();
    await this.#inOrder(() => this.#commit(operations));
  }

  /** Like `commit`, but throws `no_leader` if another node may have owned the log since the epoch began. */
  async commitInEpoch(operations: readonly StoreOperation[], epoch: number): Promise<void> {
    await this.#inOrder(() => {
      if (this.#writer?.epoch !== epoch) throw noLeaderError();
      return this.#commit(operations);
    });
  }

  /**
   * Stores and applies what was committed before the call. Waits as long as the log does not answer, unless it is closed:
   * the log of a deleted collection never answers. Must not be called while the log is followed.
   */
  catchUp(ended: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([ended, this.#closing.signal]);
    return this.#inOrder(async () => {
      assert(this.#following === null, `${this.name} is not followed`);
      // The owner has everything.
      if (this.#writer !== null) return;
      await this.#whileReading(async () => {
        for (;;) {
          await this.#endStoring();
          try {
            await this.#whileLoaded(signal, () => this.#readToEnd(signal));
            return this.#recovered();
          } catch (error) {
            if (signal.aborted || isLasting(error)) throw error;
            this.#report(error as Error);
            await sleep(RETRY_MS, undefined, { signal });
          }
        }
      });
    });
  }

  async #readToEnd(signal: AbortSignal): Promise<void> {
    const records: LogRecord[] = [];
    let byteCount = 0;
    for await (const record of this.#options.log.readToEnd(this.#applied, { signal })) {
      records.push(record);
      byteCount += byteCountOf(record);
      if (byteCount < UNAPPLIED_BYTES_MAX) continue;
      await this.#applyAndStore(records.splice(0));
      byteCount = 0;
    }
    await this.#applyAndStore(records);
  }

  /** Reads. If the log was trimmed beyond the stored position, loads a later state and reads again. */
  async #whileLoaded(signal: AbortSignal, read: () => Promise<void>): Promise<void> {
    const { store, load, logger } = this.#options;
    if (findAppliedPosition(store, this.name) === undefined) await this.#load(load, signal);
    for (;;) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof LogTrimmedError) || signal.aborted) throw error;
        logger.warn(
          { log: this.name, position: this.position, err: error },
          'this node was away for longer than the log and its archive reach; its state is replaced by a snapshot',
        );
        await this.#load(load, signal);
      }
    }
  }

  async #load(load: ReplicatedLogOptions['load'], signal: AbortSignal): Promise<void> {
    await this.#endStoring();
    await load(signal);
    this.#stored = readAppliedPosition(this.#options.store, this.name);
    this.#advance(this.#stored);
  }

  /** From now on, the commits of others are stored and applied while this node does not own the log. */
  follow(): void {
    this.#mayFollow = true;
    this.#followUnlessLeading();
  }

  /** Follows the log until the work is done. Nothing is applied after that. */
  async followDuring(work: () => Promise<void>): Promise<void> {
    this.follow();
    try {
      await work();
    } finally {
      this.#mayFollow = false;
      await this.#inOrder(() => this.#stopFollowing());
    }
  }

  /** Called when this node seems to lack records: a reader that gets nothing connects to the log again. */
  readOn(): void {
    this.#isDoubted = true;
  }

  #followUnlessLeading(): void {
    const isBusy = this.#isReading || this.#following !== null || this.#writer !== null;
    if (!this.#mayFollow || isBusy || this.#closing.signal.aborted) return;
    const end = new AbortController();
    this.#following = { end, ended: this.#followUntil(end.signal) };
  }

  /**
   * Takes over: when it resolves, this node has applied everything and is the only one that can commit. `check` may
   * reject the records of others before they are stored. `whenOwned` is awaited before the first commit; its signal is
   * aborted when the log is closed, since it may wait for the code that closes it. Resolves with the process that owned
   * the log before; empty for none.
   */
  lead(
    signal: AbortSignal,
    {
      whenOwned = async () => {},
      check = () => {},
    }: {
      readonly whenOwned?: (signal: AbortSignal) => Promise<void>;
      readonly check?: (records: readonly LogRecord[]) => void;
    } = {},
  ): Promise<string> {
    return this.#inOrder(async () => {
      if (this.#writer !== null) return this.owner;
      let previousOwner = '';
      const ended = AbortSignal.any([signal, this.#closing.signal]);
      await this.#whileReading(async () => {
        await this.#stopFollowing();
        await this.#endStoring();
        let writer!: LogWriter;
        await this.#whileLoaded(ended, async () => {
          const records: LogRecord[] = [];
          const { log, owner } = this.#options;
          const onRecord = (record: LogRecord) => records.push(record);
          const from = { owner, after: this.#applied, onRecord, signal: ended };
          writer = await log.takeOver(from).catch((error: unknown) => {
            throw isLasting(error) || ended.aborted ? error : noLeaderError(error);
          });
          check(records);
          previousOwner = ownerBefore(writer.epoch, records, this.#applied.owner);
          try {
            await this.#applyAndStore(records);
          } catch (error) {
            // Other nodes take this one for the owner, and may be able to apply the records.
            await this.#giveUp(writer).catch(() => {});
            throw error;
          }
        });
        await whenOwned(ended);
        ended.throwIfAborted();
        this.#setWriter(writer);
        this.#becameWriter.abort();
        this.#becameWriter = new AbortController();
        this.#recovered();
      });
      return previousOwner;
    });
  }

  /** Finishes a running commit, and lets another process take over immediately. */
  release(): Promise<void> {
    return this.#inOrder(async () => {
      const writer = this.#writer;
      if (writer === null) return;
      this.#setWriter(null);
      try {
        const outcome = await writer.append(commitOf([], RELEASED));
        if (outcome.kind === 'committed') await this.#store([], { ...outcome.link, owner: '' });
        await this.#storing;
      } finally {
        // Without the record, others take over once this process is silent or leaving.
        this.#stopLeading();
      }
    });
  }

  /** Finishes a running commit, and follows the log. */
  stepDown(): Promise<void> {
    return this.#inOrder(async () => this.#stopLeading());
  }

  /**
   * Resolves when everything up to a position is applied here. Rejects with the reason of the signal.
   */
  whenApplied(position: number, signal: AbortSignal): Promise<void> {
    return this.#milestones.wait(position, signal);
  }

  /** Resolves when everything that was committed before the call is applied here. */
  async whenCurrent(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    // Callers during a check share the next one.
    this.#nextCheck ??= this.#lastCheck.then(() => {
      const check = this.#check();
      this.#lastCheck = check.catch(() => {});
      this.#nextCheck = null;
      return check;
    });
    await unlessAborted(this.#nextCheck, signal);
  }

  /** Retries until the log answers: callers have a deadline, and JetStream may elect another leader before that. */
  async #check(): Promise<void> {
    const closing = this.#closing.signal;
    for (;;) {
      const became = this.#becameWriter.signal;
      try {
        // The owner does not read barriers. If it can commit, no other process has committed anything.
        if (this.#writer !== null) return await this.commit([]);
        const position = await this.#options.log.barrier();
        return await this.whenApplied(position, AbortSignal.any([became, closing]));
      } catch {
        // The error may be that of a log that was removed, and says nothing to a client.
        if (closing.aborted) throw closing.reason;
        if (!became.aborted) await sleep(RETRY_MS, undefined, { signal: closing }).catch(() => {});
      }
    }
  }

  /** The epoch of the last take-over that this node knows of. */
  get epoch(): number {
    return this.#applied.epoch;
  }

  /** Removes the records before a position, which must be that of a record. */
  trimBefore(position: number): Promise<void> {
    return this.#options.log.trimBefore(position);
  }

  /** Ends commits and following for good. */
  async close(): Promise<void> {
    this.#closing.abort(stopping());
    await this.#stopFollowing();
    await this.#last;
    await this.#endStoring();
    this.#setWriter(null);
  }

  /** Closes the log and removes its applied position from the store. */
  async forget(): Promise<void> {
    await this.close();
    await this.#options.store.commit([{ kind: 'remove', key: appliedPositionKey(this.name) }]);
  }

  async #commit(asked: readonly StoreOperation[]): Promise<void> {
    this.#commitAtMs = performance.now();
    try {
      await this.#appendAndStore(asked);
    } finally {
      this.#commitAtMs = null;
    }
  }

  async #appendAndStore(asked: readonly StoreOperation[]): Promise<void> {
    const operations = this.#options.prepare(asked);
    const writer = this.#writer;
    if (writer === null) throw noLeaderError();
    const { logger } = this.#options;
    const commit = commitOf(operations);
    const outcome = await this.#append(writer, commit);
    switch (outcome.kind) {
      case 'committed': {
        const applied = { ...outcome.link, owner: this.#applied.owner };
        try {
          await this.#store(operations, applied);
        } catch (error) {
          await this.#giveUp(writer);
          throw notStored(error as Error);
        }
        this.#options.onCommitted(applied.position, operations);
        this.#options.onBytes(byteCountOf({ kind: 'commit', link: applied, commit }));
        return;
      }
      case 'absent':
        throw new SagittaError(
          'no_leader',
          `The write was not committed: ${outcome.cause.message}`,
          {
            cause: outcome.cause,
            retryAfterSeconds: 1,
          },
        );
      case 'fenced':
        logger.info({ log: this.name, owner: outcome.owner }, 'another node has taken over');
        this.#stopLeading();
        throw noLeaderError();
    }
  }

  async #append(writer: LogWriter, commit: Commit): ReturnType<LogWriter['settle']> {
    const { logger } = this.#options;
    const outcome = await writer.append(commit);
    if (outcome.kind !== 'unknown') return outcome;
    logger.info({ log: this.name, err: outcome.cause }, 'the outcome of a commit is unknown');
    const settled = await this.#settle(writer);
    logger.info({ log: this.name, outcome: settled.kind }, 'the outcome of the commit is known');
    return settled;
  }

  /** Stores a commit of this node. Resolves when that has begun, or if memory may not run ahead, when it is done. */
  async #store(operations: readonly StoreOperation[], applied: AppliedPosition): Promise<void> {
    if (this.#storing !== null) await inTime(this.#storing);
    const { store, mayRunAhead } = this.#options;
    const stored = store.commit([...operations, appliedPositionOperation(this.name, applied)]);
    this.#startStoring(this.#watch(stored), applied);
    if (!mayRunAhead) {
      const storing = this.#storing!;
      await inTime(storing).catch((error: unknown) => {
        this.#abandoned = storing;
        throw error;
      });
    }
    this.#advance(applied);
  }

  #startStoring(stored: Promise<void>, applied: AppliedPosition): void {
    const storing = stored.then(() => {
      if (this.#abandoned !== storing) this.#stored = applied;
      if (this.#storing === storing) this.#storing = null;
    });
    this.#storing = storing;
    this.#storingAtMs = performance.now();
    storing.catch((err: unknown) => {
      if (this.#writer === null) return;
      const { logger } = this.#options;
      logger.warn({ log: this.name, err }, 'a commit could not be stored; another node takes over');
      void this.#inOrder(async () => {
        if (this.#writer !== null) await this.#giveUp(this.#writer);
      });
    });
  }

  #watch(stored: Promise<void>): Promise<void> {
    stored.catch((error: Error) => this.#options.onStoreFailed(error));
    return stored;
  }

  /** Releases a log whose commits the store could not store. They are read again, and others may own the log meanwhile. */
  async #giveUp(writer: LogWriter): Promise<void> {
    this.#setWriter(null);
    // If the release is not accepted, this node takes over again.
    await writer.append(commitOf([], RELEASED));
    this.#stopLeading();
  }

  /** Waits until nothing is being stored, so that the log can be read from the stored position. */
  async #endStoring(): Promise<void> {
    await this.#storing?.catch(() => {});
    this.#storing = null;
    this.#applied = this.#stored;
  }

  /**
   * If the log does not answer in time, or is damaged, this node follows it, which tells whether the commit is in it, and
   * takes over again.
   */
  async #settle(writer: LogWriter): ReturnType<LogWriter['settle']> {
    const ended = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(SETTLE_MS_MAX)]);
    try {
      return await unlessAborted(writer.settle(ended), ended);
    } catch (error) {
      this.#stopLeading();
      throw new MaybeCommittedError(
        'outcome_unknown',
        'Whether the write took effect is not known: the log of the collection did not answer in time. Send it again with its idempotency key, or read what it should have written.',
        { cause: error },
      );
    }
  }

  /** Runs `read` while the log is not followed. */
  async #whileReading(read: () => Promise<void>): Promise<void> {
    this.#isReading = true;
    try {
      await read();
    } finally {
      this.#isReading = false;
      this.#followUnlessLeading();
    }
  }

  #stopLeading(): void {
    this.#setWriter(null);
    this.#followUnlessLeading();
  }

  #setWriter(writer: LogWriter | null): void {
    const isChanged = this.#writer !== writer;
    this.#writer = writer;
    if (isChanged) this.#options.onRole();
  }

  async #stopFollowing(): Promise<void> {
    const following = this.#following;
    following?.end.abort();
    await following?.ended;
    this.#following = null;
  }

  async #followUntil(end: AbortSignal): Promise<void> {
    while (!end.aborted) {
      try {
        await this.#whileLoaded(end, () => this.#followOnce(end));
      } catch (error) {
        if (end.aborted) return;
        this.#report(error as Error);
        await sleep(RETRY_MS, undefined, { signal: end }).catch(() => {});
      }
    }
  }

  /** Reads until the signal is aborted, and applies records while the next ones are read. */
  async #followOnce(end: AbortSignal): Promise<void> {
    await this.#endStoring();
    const failed = new AbortController();
    const signal = AbortSignal.any([end, failed.signal]);
    let unapplied: LogRecord[] = [];
    let byteCount = 0;
    let applying: Promise<void> | null = null;
    const apply = async () => {
      try {
        while (unapplied.length > 0 && !failed.signal.aborted) {
          const records = unapplied;
          unapplied = [];
          byteCount = 0;
          await this.#applyAndStore(records);
        }
      } catch (error) {
        failed.abort(error);
      } finally {
        applying = null;
      }
    };
    // An intact log may have nothing new; a damaged one answers, too.
    const onOpen = () => {
      this.#isDoubted = false;
      if (!isLasting(this.#failure)) this.#recovered();
    };
    const isAwaited = () => this.#isDoubted || this.#milestones.isAwaited;
    try {
      const options = { signal, onOpen, isAwaited };
      for await (const record of this.#options.log.read(this.#applied, options)) {
        // Records after a failed one must not be applied without it.
        if (failed.signal.aborted) break;
        this.#recovered();
        unapplied.push(record);
        byteCount += byteCountOf(record);
        applying ??= apply();
        if (byteCount >= UNAPPLIED_BYTES_MAX) await applying;
      }
    } finally {
      // The next read starts after the records that were applied.
      await applying;
    }
    if (failed.signal.aborted) throw failed.signal.reason;
  }

  /** Stores records with the position after them in one transaction, and applies them, possibly before they are stored. */
  async #applyAndStore(records: readonly LogRecord[]): Promise<void> {
    let applied = this.#applied;
    let barrier = 0;
    const operations: StoreOperation[] = [];
    for (const record of records) {
      if (record.kind === 'barrier') {
        barrier = record.position;
      } else if (record.kind === 'epoch') {
        applied = { ...record.link, owner: record.owner };
      } else {
        applied = { ...record.link, owner: isRelease(record) ? '' : applied.owner };
        const where = `Position ${record.link.position} of ${this.name}`;
        for (const { bytes } of record.commit.fragments) {
          operations.push(...decodeOperations(bytes, where));
        }
      }
    }
    const { store, apply, onBytes } = this.#options;
    const positionOperation = appliedPositionOperation(this.name, applied);
    if (operations.length > 0) {
      const applying = apply([...operations, positionOperation]);
      this.#startStoring(
        applying.then(({ stored }) => this.#watch(stored)),
        applied,
      );
      await applying;
    } else if (applied !== this.#applied) {
      this.#startStoring(this.#watch(store.commit([positionOperation])), applied);
    }
    this.#advance(applied, barrier);
    onBytes(records.reduce((sum, record) => sum + byteCountOf(record), 0));
    await this.#storing;
  }

  #advance(applied: AppliedPosition, barrier = 0): void {
    const { owner } = this.#applied;
    this.#applied = applied;
    this.#recordPosition = Math.max(this.#recordPosition, applied.position);
    this.#appliedPosition = Math.max(this.#appliedPosition, applied.position, barrier);
    if (applied.owner !== owner) this.#options.onOwner(applied.owner);
    this.#milestones.reach(this.#appliedPosition);
  }

  #report(error: Error): void {
    const isNew = this.#failure?.message !== error.message;
    this.#failure = error;
    if (!isNew) return;
    const { logger } = this.#options;
    const details = { log: this.name, err: error };
    if (isLasting(error)) logger.error(details, 'the log cannot be followed');
    else logger.info(details, 'the log cannot be followed at the moment; this node will retry');
  }

  #recovered(): void {
    if (this.#failure === null) return;
    this.#failure = null;
    this.#options.logger.info({ log: this.name }, 'the log can be followed again');
  }

  #inOrder<Result>(section: () => Promise<Result>): Promise<Result> {
    const running = this.#last.then(section);
    this.#last = running.catch(() => {});
    return running;
  }
}

/** Whether reading again does not help. Otherwise the servers of the log did not answer. */
function isLasting(error: unknown): boolean {
  return error instanceof LogTrimmedError || error instanceof SagittaError;
}

/** Rejects if the store does not end a commit in time. */
function inTime(storing: Promise<void>): Promise<void> {
  return unlessAborted(storing, AbortSignal.timeout(STORE_MS_MAX));
}

function isRelease(record: LogRecord): boolean {
  return record.kind === 'commit' && RELEASED.equals(record.commit.summary);
}

/** The owner of a log before an epoch, from the records before it; `first` before all of them. */
function ownerBefore(epoch: number, records: readonly LogRecord[], first: string): string {
  let owner = first;
  for (const record of records) {
    if (record.kind === 'epoch' && record.link.epoch >= epoch) break;
    if (record.kind === 'epoch') owner = record.owner;
    if (isRelease(record)) owner = '';
  }
  return owner;
}

function commitOf(operations: readonly StoreOperation[], summary = new Uint8Array()): Commit {
  const sequences = operations.flatMap((operation) =>
    operation.kind === 'append' ? operation.sequence : [],
  );
  return {
    firstSequence: sequences[0] ?? 0,
    lastSequence: sequences.at(-1) ?? 0,
    fragments: [{ shard: SHARD, bytes: encodeOperations(operations) }],
    summary,
  };
}

function notStored(cause: Error): MaybeCommittedError {
  return new MaybeCommittedError(
    'outcome_unknown',
    `The write took effect, but the node that owns the log could not store it: ${cause.message}`,
    { cause },
  );
}

function stopping(): SagittaError {
  return new SagittaError('stopping', 'The service is stopping.', { retryAfterSeconds: 5 });
}
