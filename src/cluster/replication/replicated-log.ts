// A log as one node uses it. The node either follows it, and stores and applies what others commit, or leads it, and
// commits itself. Its store has the place in the log up to which it has everything, in the transaction of what is
// there, so that a restart goes on from there. Memory may be one commit ahead of it: the log is what lasts.

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

/** Until more is read, what was read is applied. */
const UNAPPLIED_BYTES_MAX = 64 * 1024 * 1024;
/** Between attempts to read a log that does not answer, or whose records could not be stored. */
const RETRY_MS = 500;
/** The only shard so far. */
const SHARD = 0;
/** The summary of the commit by which the owner of a log lets another process take over. */
const RELEASED = Buffer.from('released');

export interface ReplicatedLogOptions {
  readonly log: CollectionLog;
  /** Names the log, also in the store. */
  readonly name: string;
  readonly store: Store;
  /** Whether a commit may be applied, and acknowledged, before the store has it. */
  readonly mayRunAhead: boolean;
  /** The process, as it appears in records of epochs. */
  readonly owner: string;
  /**
   * Stores operations in one transaction and applies them. Resolves when they are applied, and `stored` when they are
   * stored. Memory may have them already, if the store could not take them before.
   */
  readonly apply: (
    operations: readonly StoreOperation[],
  ) => Promise<{ readonly stored: Promise<void> }>;
  /**
   * Makes the store have a place in the log that is farther, with what belongs there: called where it has none, or
   * where the log no longer goes on from it.
   */
  readonly load: (signal: AbortSignal) => Promise<void>;
  /** Changes operations before this node commits them. */
  readonly prepare: (operations: readonly StoreOperation[]) => readonly StoreOperation[];
  /** Told when a process has taken over, or with an empty text when the owner has released the log. */
  readonly onOwner: (owner: string) => void;
  /** Told after each commit of this node. */
  readonly onCommitted: (position: number, operations: readonly StoreOperation[]) => void;
  /** Told whenever the store could not take what the log has. */
  readonly onStoreFailed: () => void;
  /** Told what this node has committed or applied. */
  readonly onBytes: (byteCount: number) => void;
  readonly logger: Logger;
}

export class ReplicatedLog implements CommitLog {
  readonly name: string;
  readonly #options: ReplicatedLogOptions;
  readonly #closing = new AbortController();
  readonly #applied: Milestones;
  /** Up to where everything is applied. */
  #place: AppliedPosition;
  /** Up to where the store has everything; from here on the log is read. */
  #stored: AppliedPosition;
  /** Everything up to here is applied: a record, or a barrier after it. */
  #appliedPosition: number;
  /** Of the last record that was ever applied. */
  #recordPosition: number;
  /** What is being stored, or could not be. One at a time: the store must not have a record without those before it. */
  #storing: Promise<void> | null = null;
  /** Null while the log is followed. */
  #writer: LogWriter | null = null;
  #following: { readonly end: AbortController; readonly ended: Promise<void> } | null = null;
  /** Whether the log is followed whenever it is not led. */
  #mayFollow = false;
  /** Whether it is read to take it over, or to catch up. */
  #isReading = false;
  /** Aborted when this node takes over. */
  #becameWriter = new AbortController();
  /** The next check of being current, which has not begun. */
  #nextCheck: Promise<void> | null = null;
  #lastCheck: Promise<void> = Promise.resolve();
  /** The commit or change of role that was asked for last; each waits for the one before. */
  #last: Promise<unknown> = Promise.resolve();
  #failure: Error | null = null;

  /** Throws `data_corrupt`. */
  constructor(options: ReplicatedLogOptions) {
    this.#options = options;
    this.name = options.name;
    this.#place = readAppliedPosition(options.store, options.name);
    this.#stored = this.#place;
    this.#appliedPosition = this.#place.position;
    this.#recordPosition = this.#place.position;
    this.#applied = new Milestones(this.#appliedPosition);
  }

  get isWritable(): boolean {
    return this.#writer !== null;
  }

  /** The process that took over last and has not released the log, as far as this node has read; empty for none. */
  get owner(): string {
    return this.#place.owner;
  }

  /** Of the last record that the store has. */
  get position(): number {
    return this.#stored.position;
  }

  /** To the last record that the store has. */
  get link(): LogLink {
    const { position, digest, epoch } = this.#stored;
    return { position, digest, epoch };
  }

  /** Of the last record that is applied. Barriers after it do not count: only followers read them. */
  get recordPosition(): number {
    return this.#recordPosition;
  }

  /** Why the log cannot be followed at the moment; null when it can. */
  get failure(): Error | null {
    return this.#failure;
  }

  whenStored(): Promise<void> | undefined {
    if (this.#storing !== null) return this.#storing;
    const isBehind = this.#stored.position < this.#recordPosition;
    return isBehind ? Promise.reject(notStored(new Error('it is read again'))) : undefined;
  }

  async commit(operations: readonly StoreOperation[]): Promise<void> {
    // It does not wait for a take-over under way, which waits for what writers have to do before.
    if (this.#writer === null) throw noLeaderError();
    await this.#inOrder(() => this.#commit(operations));
  }

  /** The same unless the epoch has ended since: another node may have owned the log in between. */
  async commitInEpoch(operations: readonly StoreOperation[], epoch: number): Promise<void> {
    await this.#inOrder(() => {
      if (this.#writer?.epoch !== epoch) throw noLeaderError();
      return this.#commit(operations);
    });
  }

  /** Stores and applies what was committed before the call. Not while the log is followed. */
  catchUp(signal: AbortSignal): Promise<void> {
    return this.#inOrder(async () => {
      assert(this.#following === null, `${this.name} is not followed`);
      // Whoever leads has everything.
      if (this.#writer !== null) return;
      await this.#whileReading(async () => {
        await this.#endStoring();
        await this.#whileLoaded(signal, () => this.#readToEnd(signal));
      });
    });
  }

  async #readToEnd(signal: AbortSignal): Promise<void> {
    const records: LogRecord[] = [];
    let byteCount = 0;
    for await (const record of this.#options.log.readToEnd(this.#place, { signal })) {
      records.push(record);
      byteCount += byteCountOf(record);
      if (byteCount < UNAPPLIED_BYTES_MAX) continue;
      await this.#applyAndStore(records.splice(0));
      byteCount = 0;
    }
    await this.#applyAndStore(records);
  }

  /** Reads, and where the log has been cut beyond the place, begins again with another one. */
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

  /** From now on, what others commit is stored and applied, whenever this node does not lead. */
  follow(): void {
    this.#mayFollow = true;
    this.#followUnlessLeading();
  }

  #followUnlessLeading(): void {
    const isBusy = this.#isReading || this.#following !== null || this.#writer !== null;
    if (!this.#mayFollow || isBusy || this.#closing.signal.aborted) return;
    const end = new AbortController();
    this.#following = { end, ended: this.#followUntil(end.signal) };
  }

  /**
   * Takes over: when it resolves, this node has everything, and is the one that commits. `whenOwned` is waited for
   * in between; its signal is aborted when the log is closed, since it may wait for what closes it. `check` may throw for
   * what others have written, before any of it is stored. Resolves with the process that owned the log before; empty for
   * none.
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
          const from = { owner, after: this.#place, onRecord, signal: ended };
          writer = await log.takeOver(from).catch((error: unknown) => {
            const isKnown = error instanceof SagittaError || error instanceof LogTrimmedError;
            // Otherwise the servers that have the log did not answer.
            throw isKnown || ended.aborted ? error : noLeaderError(error);
          });
          check(records);
          previousOwner = ownerBefore(writer.epoch, records, this.#place.owner);
          try {
            await this.#applyAndStore(records);
          } catch (error) {
            // Others take it for the owner, and may be able to apply the records.
            await this.#giveUp(writer).catch(() => {});
            throw error;
          }
        });
        await whenOwned(ended);
        ended.throwIfAborted();
        this.#writer = writer;
        this.#becameWriter.abort();
        this.#becameWriter = new AbortController();
        this.#recovered();
      });
      return previousOwner;
    });
  }

  /** Ends the commit under way, if any, and lets another process take over at once. */
  release(): Promise<void> {
    return this.#inOrder(async () => {
      const writer = this.#writer;
      if (writer === null) return;
      this.#writer = null;
      try {
        const outcome = await writer.append(commitOf([], RELEASED));
        if (outcome.kind === 'committed') await this.#store([], { ...outcome.link, owner: '' });
        await this.#storing;
      } finally {
        // Without the record the others take over when this process is silent or leaving.
        this.#stopLeading();
      }
    });
  }

  /** Ends the commit under way, if any, and follows. */
  stepDown(): Promise<void> {
    return this.#inOrder(async () => this.#stopLeading());
  }

  /**
   * Resolves when everything up to a position is applied here. Rejects with the reason of the signal.
   */
  whenApplied(position: number, signal: AbortSignal): Promise<void> {
    return this.#applied.wait(position, signal);
  }

  /** Resolves when everything that was committed before the call is applied here. */
  async whenCurrent(signal: AbortSignal): Promise<void> {
    // Whoever asks while one check is under way shares the next one.
    this.#nextCheck ??= this.#lastCheck.then(() => {
      const check = this.#check();
      this.#lastCheck = check.catch(() => {});
      this.#nextCheck = null;
      return check;
    });
    signal.throwIfAborted();
    await unlessAborted(this.#nextCheck, signal);
  }

  /** Tries until the log answers: whoever waits has a deadline, before which JetStream may elect another leader. */
  async #check(): Promise<void> {
    const closing = this.#closing.signal;
    for (;;) {
      const became = this.#becameWriter.signal;
      try {
        // Whoever leads does not read barriers, but nobody else has committed anything if it still can.
        if (this.#writer !== null) return await this.commit([]);
        const position = await this.#options.log.barrier();
        return await this.whenApplied(position, AbortSignal.any([became, closing]));
      } catch (error) {
        if (closing.aborted) throw error;
        if (!became.aborted) await sleep(RETRY_MS, undefined, { signal: closing }).catch(() => {});
      }
    }
  }

  /** Of the last take-over that this node knows of. */
  get epoch(): number {
    return this.#place.epoch;
  }

  /** Removes the records before one that the log keeps. */
  trimBefore(position: number): Promise<void> {
    return this.#options.log.trimBefore(position);
  }

  /** Stops. Nothing can be committed or followed afterwards. */
  async close(): Promise<void> {
    this.#closing.abort(stopping());
    await this.#stopFollowing();
    await this.#last;
    await this.#endStoring();
    this.#writer = null;
  }

  /** Stops, and removes the place from the store: the log is gone. */
  async forget(): Promise<void> {
    await this.close();
    await this.#options.store.commit([{ kind: 'remove', key: appliedPositionKey(this.name) }]);
  }

  async #commit(asked: readonly StoreOperation[]): Promise<void> {
    const operations = this.#options.prepare(asked);
    const writer = this.#writer;
    if (writer === null) throw noLeaderError();
    const { logger } = this.#options;
    const commit = commitOf(operations);
    let outcome = await writer.append(commit);
    if (outcome.kind === 'unknown') {
      logger.warn(
        { log: this.name, err: outcome.cause },
        'the outcome of a commit is not known yet',
      );
      outcome = await this.#settle(writer);
      logger.info({ log: this.name, outcome: outcome.kind }, 'the outcome of the commit is known');
    }
    switch (outcome.kind) {
      case 'committed': {
        const place = { ...outcome.link, owner: this.#place.owner };
        try {
          await this.#store(operations, place);
        } catch (error) {
          await this.#giveUp(writer);
          throw notStored(error as Error);
        }
        this.#options.onCommitted(place.position, operations);
        this.#options.onBytes(byteCountOf({ kind: 'commit', link: place, commit }));
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
        logger.warn({ log: this.name, owner: outcome.owner }, 'another node has taken over');
        this.#stopLeading();
        throw noLeaderError();
    }
  }

  /** What was committed here. When it resolves it is being stored, or, if memory may not run ahead, it is. */
  async #store(operations: readonly StoreOperation[], place: AppliedPosition): Promise<void> {
    await this.#storing;
    const { store, mayRunAhead } = this.#options;
    const stored = store.commit([...operations, appliedPositionOperation(this.name, place)]);
    this.#startStoring(this.#watch(stored), place);
    if (!mayRunAhead) await this.#storing;
    this.#advance(place);
  }

  #startStoring(stored: Promise<void>, place: AppliedPosition): void {
    const storing = stored.then(() => {
      this.#stored = place;
      if (this.#storing === storing) this.#storing = null;
    });
    this.#storing = storing;
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
    stored.catch(() => this.#options.onStoreFailed());
    return stored;
  }

  /** The log has what the store could not take: it is read again from there, and others may own the log meanwhile. */
  async #giveUp(writer: LogWriter): Promise<void> {
    this.#writer = null;
    // Where it is not accepted, this node takes over again.
    await writer.append(commitOf([], RELEASED));
    this.#stopLeading();
  }

  /** Called before the log is read from where the store has it, and nothing else is stored. */
  async #endStoring(): Promise<void> {
    await this.#storing?.catch(() => {});
    this.#storing = null;
    this.#place = this.#stored;
  }

  async #settle(writer: LogWriter): ReturnType<LogWriter['settle']> {
    try {
      return await writer.settle(this.#closing.signal);
    } catch (error) {
      // It stops, or the log is damaged. Whether the commit is there, this process can no longer find out.
      this.#stopLeading();
      throw new MaybeCommittedError(
        'outcome_unknown',
        'Whether the write took effect is not known: this node stopped before it could find out. Send it again with its idempotency key, or read what it was to write.',
        { cause: error },
      );
    }
  }

  /** The log is not followed meanwhile. */
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
    this.#writer = null;
    this.#followUnlessLeading();
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

  /** Reads until the signal is aborted, and applies what was read while the next is on its way. */
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
    try {
      for await (const record of this.#options.log.read(this.#place, { signal })) {
        // What comes after a record that failed is not applied without it, even if it was on its way.
        if (failed.signal.aborted) break;
        this.#recovered();
        unapplied.push(record);
        byteCount += byteCountOf(record);
        applying ??= apply();
        if (byteCount >= UNAPPLIED_BYTES_MAX) await applying;
      }
    } finally {
      // Whoever reads on does so after what was read.
      await applying;
    }
    if (failed.signal.aborted) throw failed.signal.reason;
  }

  /** Stores and applies records, with the place after them, in one transaction. They can be read before they are stored. */
  async #applyAndStore(records: readonly LogRecord[]): Promise<void> {
    let place = this.#place;
    let barrier = 0;
    const operations: StoreOperation[] = [];
    for (const record of records) {
      if (record.kind === 'barrier') {
        barrier = record.position;
      } else if (record.kind === 'epoch') {
        place = { ...record.link, owner: record.owner };
      } else {
        place = { ...record.link, owner: isRelease(record) ? '' : place.owner };
        const where = `Position ${record.link.position} of ${this.name}`;
        for (const { bytes } of record.commit.fragments) {
          operations.push(...decodeOperations(bytes, where));
        }
      }
    }
    const { store, apply, onBytes } = this.#options;
    const placing = appliedPositionOperation(this.name, place);
    if (operations.length > 0) {
      const applying = apply([...operations, placing]);
      this.#startStoring(
        applying.then(({ stored }) => this.#watch(stored)),
        place,
      );
      await applying;
    } else if (place !== this.#place) {
      this.#startStoring(this.#watch(store.commit([placing])), place);
    }
    this.#advance(place, barrier);
    onBytes(records.reduce((sum, record) => sum + byteCountOf(record), 0));
    await this.#storing;
  }

  #advance(place: AppliedPosition, barrier = 0): void {
    const { owner } = this.#place;
    this.#place = place;
    this.#recordPosition = Math.max(this.#recordPosition, place.position);
    this.#appliedPosition = Math.max(this.#appliedPosition, place.position, barrier);
    if (place.owner !== owner) this.#options.onOwner(place.owner);
    this.#applied.reach(this.#appliedPosition);
  }

  #report(error: Error): void {
    const isNew = this.#failure?.message !== error.message;
    this.#failure = error;
    if (!isNew) return;
    const { logger } = this.#options;
    const isLasting = error instanceof LogTrimmedError || error instanceof SagittaError;
    const details = { log: this.name, err: error };
    if (isLasting) logger.error(details, 'the log cannot be followed');
    else logger.warn(details, 'the log cannot be followed at the moment; it is tried again');
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

function isRelease(record: LogRecord): boolean {
  return record.kind === 'commit' && RELEASED.equals(record.commit.summary);
}

/** Of the records before an epoch: who owned the log then. */
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
    `The write took effect, but the node that writes could not store it: ${cause.message}`,
    { cause },
  );
}

function stopping(): SagittaError {
  return new SagittaError('stopping', 'The service is stopping.', { retryAfterSeconds: 5 });
}
