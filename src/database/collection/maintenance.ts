// Checkpoints and compactions of a collection, in the background and one at a time.
//
// A checkpoint writes sealed segments to files, and then names them in the manifest and trims the log in one
// transaction. Before the transaction everything is in the log, after it the trimmed part is in the files; a crash in
// between leaves files that no manifest names. A compaction rewrites segments without the rows that no snapshot can see
// any more, in the same steps. Readers keep their views.

import type { Clock } from '../../common/clock.js';
import { SagittaError } from '../../common/errors.js';
import { collectGarbageSoon } from '../../common/garbage.js';
import type { Limits } from '../../common/limits.js';
import { Lock } from '../../common/lock.js';
import type { Logger } from '../../common/logger.js';
import type { RowEncoder } from '../../common/types.js';
import type { WorkerPool } from '../../platform/pool.js';
import { compactSegmentsTask } from '../../segment/compaction.js';
import { SEGMENT_BYTES_MAX, Segment } from '../../segment/segment.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { DatabaseObserver } from '../api/observer.js';
import { logName } from '../layout/keys.js';
import type { CollectionDefinition, Manifest, ManifestSegment } from '../layout/manifest.js';
import { adoptFiles, type SharedFiles } from './adoption.js';
import { BackgroundIndexing, type IndexingServices } from './background-indexing.js';
import type { Collection } from './collection.js';
import { CollectionFiles } from './collection-files.js';
import { copyStored } from './copy-stored.js';
import type { SegmentBlocks } from './rows.js';

/** Replaying a record takes as long as replaying this many further bytes of a long one, some 30 µs. */
const RECORD_COST_BYTES = 4 * 1024;
/**
 * A log with more bytes, including the cost of its records, is checkpointed even if no segment is full. This bounds the
 * replay at start to about a second: 128 MB of long records, or 28,000 writes of one short row.
 */
const LOG_COST_MAX = 128 * 1024 * 1024;
/** At a graceful stop a longer log is checkpointed; a shorter log is replayed quickly. */
const LOG_COST_AT_STOP_MAX = 8 * 1024 * 1024;
/** A segment is rewritten when this share of its rows can be removed. */
const GONE_SHARE_MIN = 0.25;
/**
 * Full segments that may wait for their files during maintenance before writes have to wait. A load faster than the
 * disk would otherwise fill the memory.
 */
const UNWRITTEN_SEGMENTS_MAX = 6;
/**
 * A node that follows a log waits for the files of the log's owner, and writes its own only if it would otherwise have
 * more sealed segments in memory, or a log that costs this many times as much.
 */
const FOLLOWED_SEGMENTS_MAX = 3;
const FOLLOWED_LOG_FACTOR = 2;
/** Neighbouring small segments that are merged together; merging fewer would copy rows too often. */
const SMALL_RUN_MIN = 4;
/** Delay before the next attempt after a failure, such as a full disk. */
const RETRY_MS = 10_000;

/** The services that the collections of a database share. */
export interface CollectionServices extends IndexingServices {
  readonly store: Store;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Frees what the engine and the filter cache keep for a segment that no longer exists. */
  readonly unloadSegment: (segment: SegmentBlocks) => void;
  /** Creates the codes that the engine scans; null if it scans values. */
  readonly encoder: RowEncoder | null;
  readonly observer: DatabaseObserver;
}

export interface MaintenanceOptions extends CollectionServices {
  readonly collection: Collection;
  readonly manifest: Manifest;
  /** Whether other nodes read the files. */
  readonly areFilesShared: boolean;
}

export class Maintenance {
  readonly #options: MaintenanceOptions;
  readonly #lock = new Lock();
  readonly #indexing: BackgroundIndexing;
  readonly #files: CollectionFiles;
  #isScheduled = false;
  #isClosed = false;
  #notBeforeMs = 0;
  /** Writes that wait for a checkpoint. */
  #waiters: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MaintenanceOptions) {
    this.#options = options;
    this.#indexing = new BackgroundIndexing(options, options.collection, options.logger);
    const { collection, store, pool, manifest, areFilesShared } = options;
    this.#files = new CollectionFiles({
      store,
      pool,
      manifest,
      added: collection.addedFiles,
      incarnation: collection.incarnation,
      areShared: areFilesShared,
      whenStored: () => collection.whenStored(),
      onCommitting: () => this.#releaseWaiters(),
    });
  }

  /** Starts maintenance and indexing that are due, in the background. It is cheap, because it is called after every commit. */
  startIfDue(): void {
    this.#indexing.soon();
    if (this.#isScheduled || this.#isClosed || !this.#isDue()) return;
    if (this.#options.clock.now() < this.#notBeforeMs) return;
    this.#start();
  }

  /** Resolves after the next checkpoint or when maintenance fails; undefined if writes need not wait. */
  whenRoom(): Promise<void> | undefined {
    // A commit would wait for the write that waits here.
    if (!this.#isScheduled || this.#files.isCommitting) return undefined;
    if (this.#unwrittenCount <= UNWRITTEN_SEGMENTS_MAX) return undefined;
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  #releaseWaiters(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  /** Bytes of the segment files by number. A clone may share them with its source. */
  get fileBytes(): ReadonlyMap<number, number> {
    const named = this.#files.namedThrough(Number.POSITIVE_INFINITY);
    return new Map(named.map(({ number, byteLength }) => [number, byteLength]));
  }

  /** Bytes of the files that were written or fetched since the collection was loaded. */
  get writtenBytes(): number {
    return this.#files.writtenBytes;
  }

  /** Bytes of the log that no checkpoint has trimmed. */
  get logBytes(): number {
    const { collection, store } = this.#options;
    return store.logBytes(logName(collection.incarnation));
  }

  /** How long the log takes to replay, in bytes of long records. */
  get #logCost(): number {
    const { collection, store } = this.#options;
    const recordCount = store.logRecordCount(logName(collection.incarnation));
    return this.logBytes + RECORD_COST_BYTES * recordCount;
  }

  /** Sealed segments without a file. */
  get #unwrittenCount(): number {
    const { segments } = this.#options.collection.rows;
    const writtenCount = this.#files.namedThrough(Number.POSITIVE_INFINITY).length;
    return segments.filter(({ isSealed }) => isSealed).length - writtenCount;
  }

  /** Checkpoints and compacts now if due; tests and tools call it instead of waiting. */
  runNow(): Promise<void> {
    return this.#lock.run(async () => {
      try {
        // Damaged data must not get into a new file, whose checksum would be valid.
        await this.#options.collection.whenVerified();
        this.#options.collection.requireIntact();
        if (this.#isCheckpointDue()) await this.#checkpoint();
        if (!this.#isFollowing) await this.#compact();
      } catch (error) {
        await this.#files.removeUnnamed();
        throw error;
      }
    });
  }

  /**
   * Copies the current state of the collection to an incarnation that nothing names yet. Segment files are shared if
   * the file system supports it. Resolves with the definition at the time of the copy. Throws `collection_unavailable`
   * if the collection is closed.
   */
  copyTo(incarnation: string): Promise<CollectionDefinition> {
    return this.#lock.run(async () => {
      const { collection, store } = this.#options;
      if (this.#isClosed) {
        throw new SagittaError(
          'collection_unavailable',
          `Collection "${collection.definition.id}" was closed before it could be cloned.`,
        );
      }
      await collection.whenVerified();
      collection.requireIntact();
      // After the checkpoint the log contains only writes that arrive during the copy.
      collection.rows.sealActive();
      await this.#checkpoint();
      await collection.whenStored();
      const { sequence, definition } = collection;
      const source = {
        incarnation: collection.incarnation,
        manifest: this.#files.manifest,
        sequence,
      };
      await copyStored(store, source, incarnation);
      return definition;
    });
  }

  /**
   * Uses the files that the owner of the log has shared in place of those of this node. Resolves with false if that must
   * wait, because snapshots that requests may still read need rows that the shared files lack. Throws
   * `collection_unavailable` if the collection is closed, what fetching a file throws, and an error for other rows.
   */
  adopt(shared: SharedFiles): Promise<boolean> {
    return this.#lock.run(async () => {
      const { collection } = this.#options;
      if (this.#isClosed) {
        throw new SagittaError(
          'collection_unavailable',
          `Collection "${collection.definition.id}" was closed.`,
        );
      }
      await collection.whenVerified();
      collection.requireIntact();
      try {
        const replaced = await adoptFiles(shared, { ...this.#options, files: this.#files });
        if (replaced !== null) await this.#removeReplaced(replaced);
        return replaced !== null;
      } catch (error) {
        await this.#files.removeUnnamed();
        throw error;
      } finally {
        this.#releaseWaiters();
        this.#indexing.soon();
        collectGarbageSoon();
      }
    });
  }

  /** Waits for maintenance in progress and starts no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#indexing.close();
    clearTimeout(this.#timer);
    await this.#lock.run(async () => {});
  }

  /** Closes, and checkpoints a long log. The writer must be closed. */
  async closeWithCheckpoint(): Promise<void> {
    await this.close();
    const { collection, logger } = this.#options;
    if (this.#logCost <= (this.#isFollowing ? LOG_COST_MAX : LOG_COST_AT_STOP_MAX)) return;
    try {
      await collection.whenVerified();
      collection.requireIntact();
      collection.rows.sealActive();
      await this.#checkpoint();
    } catch (error) {
      logger.warn(
        { err: error },
        'checkpoint at shutdown failed; the log is replayed at the next start',
      );
    }
  }

  #start(): void {
    this.#isScheduled = true;
    this.runNow()
      .catch((error: unknown) => {
        const { collection, clock, logger } = this.#options;
        this.#notBeforeMs = clock.now() + RETRY_MS;
        this.#options.observer.count('sagitta_maintenance_failures_total', 1);
        logger.error(
          { collection: collection.definition.id, err: error },
          'maintenance failed; it will be retried, and the log keeps what is not in files',
        );
        return true;
      })
      .then((hasFailed) => {
        this.#isScheduled = false;
        this.#releaseWaiters();
        // Compacted segments have no indexes yet.
        this.#indexing.soon();
        // Without another write nothing else would retry, or start what has become due.
        if (hasFailed === true) this.#startAfter(RETRY_MS);
        else if (!this.#isClosed && this.#isDue()) this.#start();
        else this.#scheduleCompaction();
      });
  }

  #startAfter(delayMs: number): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      if (!this.#isScheduled) this.#start();
    }, delayMs).unref();
  }

  /** Recently ended rows can be removed after the retention; without a write nothing else would start that. */
  #scheduleCompaction(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const hasEnded = this.#writtenSegments().some(
      (segment) => segment.rowCount > segment.liveCount,
    );
    if (hasEnded) this.#startAfter(this.#options.limits.retentionMs * 1.1);
  }

  /** Whether another node writes and compacts the files. */
  get #isFollowing(): boolean {
    return !this.#options.collection.isWritable;
  }

  #isDue(): boolean {
    if (this.#isCheckpointDue()) return true;
    // Writing the file of a segment removes its dropped vectors.
    const { segments } = this.#options.collection.rows;
    return !this.#isFollowing && segments.some(({ hasDroppedVectors }) => hasDroppedVectors);
  }

  #isCheckpointDue(): boolean {
    const hasAdded = this.#options.collection.addedFiles.named.length > 0;
    // Naming files that were added costs nothing.
    if (hasAdded && this.#unwrittenCount === 0) return true;
    if (!this.#isFollowing) return this.#unwrittenCount > 0 || this.#logCost > LOG_COST_MAX;
    return (
      this.#unwrittenCount > FOLLOWED_SEGMENTS_MAX ||
      this.#logCost > FOLLOWED_LOG_FACTOR * LOG_COST_MAX
    );
  }

  async #checkpoint(): Promise<void> {
    const startedAt = performance.now();
    const { collection } = this.#options;
    const files = this.#files;
    const { manifest } = files;
    const { incarnation, rows } = collection;
    if (this.#logCost > LOG_COST_MAX) rows.sealActive();
    const segments = rows.segments.filter(({ isSealed }) => isSealed);
    const { checkpointSequence, partialRowCount } = checkpointOf(collection);
    const writtenAtMs = collection.writtenAtMs;
    const named = files.namedThrough(checkpointSequence);
    const written = new Map(named.map((entry) => [entry.number, entry]));
    const entries: ManifestSegment[] = [];
    const operations: StoreOperation[] = [];
    const fresh = segments.filter(({ number }) => !written.has(number));
    for (const segment of segments) {
      const entry = written.get(segment.number);
      if (entry === undefined) await this.#makeHeads(segment);
      const after = entry === undefined ? 0 : manifest.checkpointSequence;
      entries.push(entry ?? (await files.write(segment)));
      operations.push(...files.deletions(segment, after, checkpointSequence));
    }
    await files.commit(
      {
        ...manifest,
        checkpointSequence,
        partialRowCount,
        nextSegmentNumber: rows.nextSegmentNumber,
        writtenAtMs,
        segments: entries,
      },
      [
        ...operations,
        { kind: 'trim', log: logName(incarnation), throughSequence: checkpointSequence },
      ],
    );
    for (const segment of fresh) await files.mapSegment(segment);
    // Sealing and writing leave buffers of tens of megabytes.
    if (fresh.length > 0) collectGarbageSoon();
    this.#releaseWaiters();
    const seconds = (performance.now() - startedAt) / 1000;
    this.#options.observer.observe('sagitta_checkpoint_seconds', seconds);
  }

  async #compact(): Promise<void> {
    const { collection, limits, pool, encoder } = this.#options;
    const files = this.#files;
    const { rows } = collection;
    const { checkpointSequence } = files.manifest;
    const horizonSequence = Math.min(collection.retainedSince(), checkpointSequence);
    const old = chooseRun(this.#writtenSegments(), horizonSequence, limits);
    if (old.length === 0) return;

    const startedAt = performance.now();
    const number = rows.takeSegmentNumber();
    const compacted = await pool.run(compactSegmentsTask, {
      inputs: old.map((segment) => segment.toData()),
      horizonSequence,
      key: rows.segmentKey(number),
      number,
      rowsMax: limits.segmentRowsMax,
      columnsMax: limits.metadataColumnsMax,
    });
    collection.requireIntact(old);
    const segment = compacted.data === null ? null : Segment.fromData(compacted.data);
    await segment?.encode(encoder);
    if (segment !== null) await this.#makeHeads(segment);
    const moveDeletions = () => {
      if (segment === null) return;
      for (const [index, mapping] of compacted.mappings.entries()) {
        copyDeletions(old[index]!, segment, mapping);
      }
    };
    moveDeletions();
    const entries = files.manifest.segments.filter(
      (entry) => !old.some((gone) => gone.number === entry.number),
    );
    const at = files.manifest.segments.findIndex((entry) => entry.number === old[0]!.number);
    if (segment !== null) entries.splice(at, 0, await files.write(segment));
    await files.commit(
      {
        ...files.manifest,
        horizonSequence: Math.max(files.manifest.horizonSequence, horizonSequence),
        nextSegmentNumber: rows.nextSegmentNumber,
        segments: entries,
      },
      [
        ...files.withoutDeletions(old),
        ...(segment === null ? [] : files.deletions(segment, 0, checkpointSequence)),
      ],
    );
    // Rows were deleted while the files were written. No await may come between here and the swap.
    moveDeletions();
    rows.replace(old, segment === null ? [] : [segment]);
    collection.raiseHorizon(horizonSequence);
    await this.#removeReplaced(old);
    if (segment !== null) await files.mapSegment(segment);
    collectGarbageSoon();
    const goneCount = rowsIn(old) - (segment?.rowCount ?? 0);
    const { observer } = this.#options;
    observer.observe('sagitta_compaction_seconds', (performance.now() - startedAt) / 1000);
    observer.count('sagitta_rows_compacted_total', goneCount);
  }

  async #removeReplaced(old: readonly Segment[]): Promise<void> {
    for (const gone of old) this.#options.unloadSegment(gone);
    await this.#files.remove(old);
  }

  /** Before the file is written, so that heads are made once. Searches do without them in the meantime. */
  async #makeHeads(segment: Segment): Promise<void> {
    const { encoder, collection } = this.#options;
    if (encoder === null) return;
    await segment.makeHeads(encoder, collection.rows.segments);
    const { segments } = collection.rows;
    const active = segments.at(-1);
    if (active !== undefined && !active.isSealed)
      await active.makeGrowingHeads([...segments, segment]);
  }

  #writtenSegments(): Segment[] {
    const numbers = new Set(this.#files.manifest.segments.map(({ number }) => number));
    return this.#options.collection.rows.segments.filter(({ number }) => numbers.has(number));
  }
}

function rowsIn(segments: readonly Segment[]): number {
  return segments.reduce((count, { rowCount }) => count + rowCount, 0);
}

/** The last sequence whose rows are all in sealed segments, and the number of rows of the next sequence in them. */
function checkpointOf(collection: Collection): {
  checkpointSequence: number;
  partialRowCount: number;
} {
  const { segments } = collection.rows;
  const active = segments.at(-1);
  if (active === undefined || active.isSealed || active.rowCount === 0) {
    return { checkpointSequence: collection.sequence, partialRowCount: 0 };
  }
  const firstActiveSequence = active.insertedSequence(0);
  let partialRowCount = 0;
  for (let i = segments.length - 2; i >= 0; i--) {
    const segment = segments[i]!;
    const rowCount = segment.rowCount - segment.rowCountAt(firstActiveSequence - 1);
    partialRowCount += rowCount;
    if (rowCount < segment.rowCount) break;
  }
  return { checkpointSequence: firstActiveSequence - 1, partialRowCount };
}

/**
 * Neighbouring segments to rewrite as one, because they are small, have many removable
 * rows or have dropped vectors.
 */
function chooseRun(
  segments: readonly Segment[],
  horizonSequence: number,
  { segmentRowsMax, segmentValueBytesMax: vectorBytesMax }: Limits,
): Segment[] {
  let run: Segment[] = [];
  let remaining = 0;
  let listBytes = 0;
  let textBytes = 0;
  let hasWorn = false;
  for (const segment of segments) {
    const goneCount = segment.deletedCountAt(horizonSequence);
    const keptCount = segment.rowCount - goneCount;
    const isWorn = goneCount >= segment.rowCount * GONE_SHARE_MIN || segment.hasDroppedVectors;
    const rowBytes = segment.rowBytesWith(run);
    const rowsMax = Math.min(segmentRowsMax, Math.ceil(vectorBytesMax / rowBytes));
    const isCandidate = isWorn || keptCount <= rowsMax / 2;
    const lists = listBytes + segment.listBytes;
    const vectorBytes = (remaining + keptCount) * rowBytes + lists;
    const fits =
      remaining + keptCount <= rowsMax &&
      (lists === 0 || vectorBytes <= vectorBytesMax) &&
      vectorBytes + textBytes + segment.textBytes <= SEGMENT_BYTES_MAX;
    if (!fits || !isCandidate) {
      if (hasWorn || run.length >= SMALL_RUN_MIN) return run;
      run = [];
      remaining = 0;
      listBytes = 0;
      textBytes = 0;
      hasWorn = false;
      if (!isCandidate) continue;
    }
    run.push(segment);
    remaining += keptCount;
    listBytes += segment.listBytes;
    textBytes += segment.textBytes;
    hasWorn ||= isWorn;
  }
  return hasWorn || run.length >= SMALL_RUN_MIN ? run : [];
}

/** `mapping[row]` is the index of the row in `target`, or -1 if it was removed. */
function copyDeletions(source: Segment, target: Segment, mapping: Int32Array): void {
  for (let row = 0; row < source.rowCount; row++) {
    const sequence = source.deletedSequence(row);
    const to = mapping[row]!;
    if (sequence === Number.POSITIVE_INFINITY || to < 0) continue;
    if (target.deletedSequence(to) === Number.POSITIVE_INFINITY) target.markDeleted(to, sequence);
  }
}
