// When a node makes snapshots, of the logs that it owns, and what it removes afterwards. One at a time. The record of
// a snapshot is a commit in its log, of the epoch in which the snapshot was begun: whoever has lost the log in
// between, even if it has it again, removes nothing.

import type { Logger } from '../../common/logger.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { Archiver } from '../archive/archiver.js';
import type { Blobs } from '../blobs/blobs.js';
import type { LogLink } from '../logs/collection-log.js';
import type { StoreLayout } from './log-state.js';
import { SnapshotFiles } from './snapshot-files.js';
import {
  type LogSnapshot,
  readSnapshotRecord,
  type SnapshotRecord,
  snapshotOperation,
} from './snapshot-record.js';

/** A new node reads the chunks of the archive that the newest snapshot does not have one by one. */
const CHUNKS_BETWEEN_SNAPSHOTS_MAX = 5_000;
/** After a snapshot of a log that failed. */
const RETRY_MS = 60_000;

/** A log, as far as snapshots are about it. */
export interface SnapshotSource {
  readonly name: string;
  /** Whether this node owns it. */
  readonly isWritable: boolean;
  readonly epoch: number;
  readonly link: LogLink;
  /** Throws `no_leader` when this node has not owned the log ever since the epoch began. */
  commitInEpoch(operations: readonly StoreOperation[], epoch: number): Promise<void>;
  /** Undefined when the store has everything that was committed. */
  whenStored(): Promise<void> | undefined;
  trimBefore(position: number): Promise<void>;
}

export interface SnapshotterOptions {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly layout: StoreLayout;
  readonly archiver: Archiver;
  /** A snapshot is made when so much has been written to a log since its last one. */
  readonly logBytes: number;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Of a log, since its last snapshot. */
interface Progress {
  readonly files: SnapshotFiles;
  byteCount: number;
  chunkCount: number;
  /** The newest one that this node knows of. */
  newest: string | undefined;
  /** By `performance.now`. */
  notBeforeMs: number;
}

export class Snapshotter {
  readonly #options: SnapshotterOptions;
  readonly #progress = new Map<string, Progress>();
  #running: { readonly log: string; readonly ended: Promise<void> } | null = null;
  #count = 0;
  #failureCount = 0;

  constructor(options: SnapshotterOptions) {
    this.#options = options;
  }

  /** Snapshots that this node has made, and those that it could not make. */
  get counts(): { readonly made: number; readonly failed: number } {
    return { made: this.#count, failed: this.#failureCount };
  }

  /** Called for what this node has committed or applied. */
  countBytes(log: string, byteCount: number): void {
    this.#progressOf(log).byteCount += byteCount;
  }

  /** Called again and again, with the logs that this node owns. */
  run(owned: readonly SnapshotSource[]): void {
    if (this.#running !== null || this.#options.signal.aborted) return;
    const log = owned.find((candidate) => this.#isDue(candidate));
    if (log === undefined) return;
    const { epoch } = log;
    const ended = this.#make(log)
      .catch((err: unknown) => {
        if (!this.#isOwned(log, epoch)) return;
        this.#progressOf(log.name).notBeforeMs = performance.now() + RETRY_MS;
        this.#failureCount++;
        this.#options.logger.warn(
          { err, log: log.name },
          'a snapshot of a log failed; the log is kept, and it is tried again',
        );
      })
      .finally(() => {
        this.#running = null;
      });
    this.#running = { log: log.name, ended };
  }

  /** Resolves when no snapshot is being made. */
  async settled(): Promise<void> {
    while (this.#running !== null) await this.#running.ended;
  }

  /** Called when this node no longer has the log. When it resolves, nothing of it is uploaded any more. */
  async forget(log: string): Promise<void> {
    if (this.#running?.log === log) await this.#running.ended;
    this.#progress.delete(log);
  }

  #isDue({ name }: SnapshotSource): boolean {
    const { archiver, store, logBytes } = this.#options;
    const progress = this.#progressOf(name);
    const isLarge = () =>
      progress.byteCount >= logBytes ||
      archiver.chunkCountOf(name) - progress.chunkCount >= CHUNKS_BETWEEN_SNAPSHOTS_MAX;
    if (!isLarge() || performance.now() < progress.notBeforeMs) return false;
    // Another owner may have made one in the meantime.
    const newest = readSnapshotRecord(store, name)?.name;
    if (newest === progress.newest) return true;
    progress.newest = newest;
    progress.byteCount = 0;
    progress.chunkCount = archiver.chunkCountOf(name);
    return false;
  }

  #isOwned(log: SnapshotSource, epoch: number): boolean {
    return log.isWritable && log.epoch === epoch && !this.#options.signal.aborted;
  }

  #progressOf(log: string): Progress {
    let progress = this.#progress.get(log);
    if (progress === undefined) {
      const { blobs, store } = this.#options;
      progress = {
        files: new SnapshotFiles(blobs, log),
        byteCount: 0,
        chunkCount: 0,
        newest: readSnapshotRecord(store, log)?.name,
        notBeforeMs: 0,
      };
      this.#progress.set(log, progress);
    }
    return progress;
  }

  /**
   * Makes a snapshot of a log. Then removes the blobs that its record names, what the log has before the snapshot
   * before, as far as it is archived, and what the archive has before the one before that.
   */
  async #make(log: SnapshotSource): Promise<void> {
    const { store, layout, archiver, blobs, logger } = this.#options;
    const startedAtMs = performance.now();
    const { epoch, link, name: logName } = log;
    const progress = this.#progressOf(logName);
    const { files, byteCount } = progress;
    const chunkCount = archiver.chunkCountOf(logName);
    const previous = readSnapshotRecord(store, logName);
    const check = () => {
      if (!this.#isOwned(log, epoch)) throw new Error(`This node no longer owns ${logName}.`);
    };
    const base = await this.#baseOf(files, previous);
    const made = await files.upload({ store, layout, base: base?.name ?? null, check });
    const record = await this.#commitRecord(log, { epoch, made, base, files });
    progress.byteCount -= byteCount;
    progress.chunkCount = chunkCount;
    progress.newest = made.name;
    this.#count++;
    // The copy was made later, and has at least this.
    archiver.resumeAt(logName, link);
    for (const blob of record.removed) await blobs.remove(blob);
    // A node may have begun with the one before, and be on its way from there.
    const archivedPosition = await archiver.endOf(logName);
    const before = Math.min(base?.position ?? 0, archivedPosition);
    if (before > 0) await log.trimBefore(before);
    // It may read from the archive what the log had before it was shortened.
    if (previous?.previous != null) {
      await archiver.removeThrough(logName, previous.previous.position);
    }
    const milliseconds = Math.round(performance.now() - startedAtMs);
    logger.info({ log: logName, snapshot: made.name, milliseconds }, 'snapshot of a log made');
  }

  /** The snapshot before, which stays: of the record, or what a clone or a founding node has begun with. */
  async #baseOf(
    files: SnapshotFiles,
    previous: SnapshotRecord | null,
  ): Promise<LogSnapshot | null> {
    if (previous !== null) return { name: previous.name, position: previous.position };
    const listed = await files.list();
    return listed.find(({ position }) => position === 0) ?? null;
  }

  async #commitRecord(
    log: SnapshotSource,
    {
      epoch,
      made,
      base,
      files,
    }: {
      readonly epoch: number;
      readonly made: LogSnapshot;
      readonly base: LogSnapshot | null;
      readonly files: SnapshotFiles;
    },
  ): Promise<SnapshotRecord> {
    const kept = base === null ? [made.name] : [made.name, base.name];
    const removed = await files.blobsBeside(kept);
    const record: SnapshotRecord = { ...made, previous: base, removed };
    await log.commitInEpoch([snapshotOperation(log.name, record)], epoch);
    await log.whenStored();
    return record;
  }
}
