// Takes snapshots of the logs that a node owns, one at a time, and removes what they make unnecessary. The record of a
// snapshot must be committed to the log in the epoch in which the snapshot was begun: a node that has lost the log since,
// even if it has regained it, removes nothing. While the secret of the nodes is being changed, the owner also seals the
// files of its logs again by the new one.

import type { Logger } from '../../common/logger.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { Archiver } from '../archive/archiver.js';
import type { SealedBlobs } from '../blobs/sealed-blobs.js';
import { isDamage, type LogLink } from '../logs/collection-log.js';
import type { StoreLayout } from './log-state.js';
import { SnapshotFiles } from './snapshot-files.js';
import {
  type LogSnapshot,
  readSnapshotRecord,
  type SnapshotRecord,
  snapshotOperation,
} from './snapshot-record.js';

/** A bound, since a new node reads the chunks after the newest snapshot one by one. */
const CHUNKS_BETWEEN_SNAPSHOTS_MAX = 5_000;
/**
 * Bytes of new files between two snapshots, if the log does not need one earlier. The nodes that follow a log keep rows
 * in memory until they can use its owner's files.
 */
const FILE_BYTES_MAX = 64 * 1024 * 1024;
/** The pause after a failed snapshot of a log, and after its files could not be sealed again. */
const RETRY_MS = 60_000;
/** The interval in which the files of a log are looked through: nodes with the old secret may still be writing some. */
const RESEAL_MS = 600_000;

/** A log of which snapshots are taken. */
export interface SnapshotSource {
  readonly name: string;
  /** Whether this node owns it. */
  readonly isWritable: boolean;
  readonly epoch: number;
  readonly link: LogLink;
  /** Throws `no_leader` unless this node has owned the log since the epoch began. */
  commitInEpoch(operations: readonly StoreOperation[], epoch: number): Promise<void>;
  /** Undefined when the store contains everything that was committed. */
  whenStored(): Promise<void> | undefined;
  trimBefore(position: number): Promise<void>;
}

export interface SnapshotterOptions {
  readonly store: Store;
  readonly blobs: SealedBlobs;
  readonly layout: StoreLayout;
  readonly archiver: Archiver;
  /** Bytes written to a log between two snapshots. */
  readonly logBytesMax: number;
  /** Bytes of the files that a collection has got since it was loaded. */
  readonly fileBytesOf: (log: string) => number;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** What has been written to a log since its last snapshot. */
interface Progress {
  readonly files: SnapshotFiles;
  byteCount: number;
  chunkCount: number;
  /** `fileBytesOf` at the last snapshot. */
  fileBytes: number;
  /** The newest snapshot that this node knows of. */
  newest: string | undefined;
  /** The time of the next attempt, on `performance.now`. */
  notBeforeMs: number;
  /** The time at which the files are to be sealed again, on `performance.now`. */
  resealAtMs: number;
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

  /** Snapshots that this node has taken, and attempts that failed. */
  get counts(): { readonly taken: number; readonly failed: number } {
    return { taken: this.#count, failed: this.#failureCount };
  }

  /** Called with the bytes that this node has committed or applied. */
  countBytes(log: string, byteCount: number): void {
    this.#progressOf(log).byteCount += byteCount;
  }

  /** Called periodically with the logs that this node owns. */
  run(owned: readonly SnapshotSource[]): void {
    const { blobs, logger, signal } = this.#options;
    if (this.#running !== null || signal.aborted) return;
    const due = owned.find((candidate) => this.#isDue(candidate));
    if (due !== undefined) {
      this.#start(due, this.#take(due), (err) => {
        this.#progressOf(due.name).notBeforeMs = performance.now() + RETRY_MS;
        this.#failureCount++;
        const text =
          'a snapshot of a log failed; the log is kept, and the snapshot will be retried';
        logger.warn({ err, log: due.name }, text);
      });
      return;
    }
    if (!blobs.isChangingSecret) return;
    const old = owned.find(({ name }) => performance.now() >= this.#progressOf(name).resealAtMs);
    if (old === undefined) return;
    this.#start(old, this.#reseal(old), (err) => {
      this.#progressOf(old.name).resealAtMs = performance.now() + RETRY_MS;
      const text = 'files of a log could not be signed with the new secret; this will be retried';
      logger.warn({ err, log: old.name }, text);
    });
  }

  #start(log: SnapshotSource, work: Promise<void>, onFailure: (error: unknown) => void): void {
    const { epoch } = log;
    const ended = work
      .catch((error: unknown) => {
        if (this.#isOwned(log, epoch)) onFailure(error);
      })
      .finally(() => {
        this.#running = null;
      });
    this.#running = { log: log.name, ended };
  }

  /** Resolves when nothing is being uploaded. */
  async settled(): Promise<void> {
    while (this.#running !== null) await this.#running.ended;
  }

  /** Called when this node no longer has the log. Resolves when nothing of it is being uploaded. */
  async forget(log: string): Promise<void> {
    if (this.#running?.log === log) await this.#running.ended;
    this.#progress.delete(log);
  }

  #isDue({ name }: SnapshotSource): boolean {
    const { archiver, store, logBytesMax, fileBytesOf } = this.#options;
    const progress = this.#progressOf(name);
    // A collection that was loaded again counts from 0.
    progress.fileBytes = Math.min(progress.fileBytes, fileBytesOf(name));
    const isLarge = () =>
      progress.byteCount >= logBytesMax ||
      fileBytesOf(name) - progress.fileBytes >= Math.min(logBytesMax, FILE_BYTES_MAX) ||
      archiver.chunkCountOf(name) - progress.chunkCount >= CHUNKS_BETWEEN_SNAPSHOTS_MAX;
    if (!isLarge() || performance.now() < progress.notBeforeMs) return false;
    // Another owner may have taken one in the meantime.
    const newest = readSnapshotRecord(store, name)?.name;
    if (newest === progress.newest) return true;
    progress.newest = newest;
    progress.byteCount = 0;
    progress.chunkCount = archiver.chunkCountOf(name);
    progress.fileBytes = fileBytesOf(name);
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
        fileBytes: 0,
        newest: readSnapshotRecord(store, log)?.name,
        notBeforeMs: 0,
        resealAtMs: 0,
      };
      this.#progress.set(log, progress);
    }
    return progress;
  }

  /**
   * Takes a snapshot of a log. Then removes the blobs that its record names, the archived records of the log before the
   * previous snapshot, and the archive before the one before that.
   */
  async #take(log: SnapshotSource): Promise<void> {
    const { store, layout, archiver, blobs, logger } = this.#options;
    const startedAtMs = performance.now();
    const { epoch, link, name: logName } = log;
    const progress = this.#progressOf(logName);
    const { files, byteCount } = progress;
    const chunkCount = archiver.chunkCountOf(logName);
    const fileBytes = this.#options.fileBytesOf(logName);
    const previous = readSnapshotRecord(store, logName);
    const check = () => {
      if (!this.#isOwned(log, epoch)) throw new Error(`This node no longer owns ${logName}.`);
    };
    const base = await this.#baseOf(files, previous);
    const taken = await files.upload({ store, layout, base: base?.name ?? null, check });
    const record = await this.#commitRecord(log, { epoch, taken, base, previous, files });
    progress.byteCount -= byteCount;
    progress.chunkCount = chunkCount;
    progress.fileBytes = fileBytes;
    progress.newest = taken.name;
    this.#count++;
    // The snapshot was taken later and contains at least this record.
    archiver.resumeAt(logName, link);
    for (const blob of record.removed) await blobs.remove(blob);
    // A node may have loaded the previous snapshot and be reading on from there.
    const archivedPosition = await archiver.endOf(logName);
    const before = Math.min(base?.position ?? 0, archivedPosition);
    if (before > 0) await log.trimBefore(before);
    // Such a node may read from the archive what the log contained before it was trimmed.
    if (previous?.previous != null) {
      await archiver.removeThrough(logName, previous.previous.position);
    }
    const milliseconds = Math.round(performance.now() - startedAtMs);
    logger.info({ log: logName, snapshot: taken.name, milliseconds }, 'snapshot of a log taken');
  }

  /** The snapshot before, which stays: that of the record, or the first one of a clone or of a founding node. */
  async #baseOf(
    files: SnapshotFiles,
    previous: SnapshotRecord | null,
  ): Promise<LogSnapshot | null> {
    if (previous !== null) return { name: previous.name, position: previous.position };
    for (const { name, position } of await files.list()) {
      if (position === 0 && (await files.isUsable(name))) return { name, position };
    }
    return null;
  }

  /** Seals the files of a log by the current secret, so that the earlier one can be removed. */
  async #reseal(log: SnapshotSource): Promise<void> {
    const { archiver, blobs, logger } = this.#options;
    const { epoch, name } = log;
    const progress = this.#progressOf(name);
    const indexes = (await progress.files.list()).map(({ name: each }) =>
      progress.files.indexOf(each),
    );
    const sealed = [...indexes, ...(await archiver.chunksOf(name))];
    for (const blob of sealed) {
      if (!this.#isOwned(log, epoch)) return;
      await blobs.reseal(blob).catch((err: unknown) => {
        if (!isDamage(err)) throw err;
        logger.error({ err, log: name }, 'a shared file is damaged and is not used');
      });
    }
    progress.resealAtMs = performance.now() + RESEAL_MS;
  }

  async #commitRecord(
    log: SnapshotSource,
    {
      epoch,
      taken,
      base,
      previous,
      files,
    }: {
      readonly epoch: number;
      readonly taken: LogSnapshot;
      readonly base: LogSnapshot | null;
      readonly previous: SnapshotRecord | null;
      readonly files: SnapshotFiles;
    },
  ): Promise<SnapshotRecord> {
    const kept = base === null ? [taken.name] : [taken.name, base.name];
    // A record names no file that was uploaded before the newest snapshot at that time (`mayName`). So a file from before
    // snapshot n is named before snapshot n + 1, if at all. Nodes may read from the position of the snapshot before
    // `base` on, and need no file from before the one before that.
    const removed = await files.findUnreferenced(kept, previous?.earlierPosition ?? 0);
    const earlierPosition = previous?.previous?.position ?? 0;
    const record: SnapshotRecord = { ...taken, previous: base, earlierPosition, removed };
    await log.commitInEpoch([snapshotOperation(log.name, record)], epoch);
    await log.whenStored();
    return record;
  }
}
