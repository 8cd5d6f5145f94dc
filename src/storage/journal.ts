// The journal of an open store. Each commit group is a frame that is appended to the last log and is on disk once
// added. From time to time a base with the whole state is written, and files that nothing refers to are removed.

import { join } from 'node:path';
import { SagittaError } from '../common/errors.js';
import { type BaseSource, writeBase } from './base.js';
import {
  REMOVAL_SPACE_BYTES,
  readDiskSpace,
  storageFull,
  syncFolder,
  translateDiskError,
} from './disk.js';
import { entriesOf, type FrameBuilder, type Head } from './frame.js';
import { FrameWriter } from './frame-writer.js';
import { JOURNAL_FOLDER, type JournalFiles } from './journal-files.js';
import type { BaseSize, JournalContent } from './journal-reader.js';
import { type Change, StoreState } from './store-state.js';

export interface JournalOptions {
  readonly directory: string;
  readonly files: JournalFiles;
  readonly content: JournalContent;
  readonly warn: (message: string) => void;
  /** Size at which a log is closed and the next one begins. */
  readonly logBytesMax?: number | undefined;
}

const LOG_BYTES_MAX = 64 * 1024 * 1024;
/**
 * A base is due once the frames after the last one take more than a full log and more than this many times the size of
 * the last base. This bounds what a start has to read.
 */
const BASE_AFTER_RATIO = 4;
/** If less than this share of a file is in use, the rest of it moves into the next base. */
const LIVE_SHARE_MIN = 0.25;
/** The share on a nearly full disk, where space is worth more than the time to copy. */
const LIVE_SHARE_MIN_FULL = 0.9;
const FULL_BYTES = 4 * REMOVAL_SPACE_BYTES;
/** With less free space, space is freed in advance. */
const LOW_BYTES = 1024 * 1024 * 1024;
/** How long ample free space is taken for granted. A disk that other programs fill meanwhile refuses the write itself. */
const FREE_MS_MAX = 1_000;
/** On a disk with little free space, a base is written early if it frees at least this much. */
const RELEASED_BYTES_MIN = 1024 * 1024;
/** Logs are shorter there, so that the used part of one fits into the space reserved for removals. */
const SHORT_LOG_BYTES_MAX = REMOVAL_SPACE_BYTES / 2;
/** Space that a base leaves free. */
const SPARE_BYTES = 1024 * 1024;

/** Short commits that remove nothing leave nothing to tidy. */
const UNTIDY_BYTES_MAX = 64 * 1024;
/** Pause after a failed base. */
const BASE_PAUSE_MS = 1_000;

export class Journal {
  readonly files: JournalFiles;
  readonly state: StoreState;
  readonly #directory: string;
  readonly #folder: string;
  readonly #warn: (message: string) => void;
  readonly #seed: number;
  readonly #logBytesMax: number;
  #head: Head;
  #base: BaseSize;
  /** Total size of the frames after the base. */
  #bytesSinceBase: number;
  /** The log that frames are appended to. */
  #log: FrameWriter;
  #baseWrite: Promise<void> | undefined;
  /** Free space on the disk when it was last read. */
  #freeBytes = Infinity;
  /** When ample free space is read again, on `performance.now`. */
  #freeUntilMs = 0;
  #isClosing = false;
  /** When a failed base may be retried, in milliseconds of the monotonic clock. */
  #nextBaseMs = 0;
  #hasBaseFailed = false;
  /** Bytes added since `tidy` last looked for work; infinite once something was removed. */
  #untidyBytes = Infinity;
  /** Files with damaged records, which are therefore not emptied. */
  readonly #damaged = new Set<number>();

  private constructor(options: JournalOptions, log: FrameWriter) {
    const { directory, files, content, warn, logBytesMax = LOG_BYTES_MAX } = options;
    this.files = files;
    this.state = content.state;
    this.#directory = directory;
    this.#folder = join(directory, JOURNAL_FOLDER);
    this.#warn = warn;
    this.#seed = content.seed;
    this.#logBytesMax = logBytesMax;
    this.#head = content.head;
    this.#base = content.base;
    this.#bytesSinceBase = content.logBytes;
    this.#log = log;
  }

  /** Continues where the journal ends, and cuts off an unfinished frame. Throws errors of the system. */
  static async open(options: JournalOptions): Promise<Journal> {
    const { files, content } = options;
    const last = content.last ?? { file: content.base.number + 1, offset: 0 };
    const log = await FrameWriter.open(files, last);
    const journal = new Journal(options, log);
    if (content.isTorn) await log.clearTail();
    if (content.last !== null) await log.rewriteUnacknowledged(files, content.last);
    await log.sync();
    await syncFolder(journal.#folder);
    await files.removeUnfinished();
    await journal.tidy();
    return journal;
  }

  get head(): Head {
    return this.#head;
  }

  /** The head and the seed that a base of the current state has to record. */
  get origin(): { readonly head: Head; readonly seed: number } {
    return { head: this.#head, seed: this.#seed };
  }

  /**
   * Appends the frame and applies its changes to the state. `mayUseReserve` allows the reserve to be used on a full
   * disk. Throws `storage_full` if nothing was added, and errors of the system, after which no frame can be added.
   */
  async add(builder: FrameBuilder, mayUseReserve: boolean): Promise<void> {
    if (!mayUseReserve) {
      await this.#makeRoom(builder.byteLength + REMOVAL_SPACE_BYTES);
      if (this.#isLogFull()) await this.#startLog(this.files.nextNumber);
    }
    const finished = builder.finish(this.#head, this.#log.offset, this.#seed);
    await this.#log.append(finished, mayUseReserve);
    const { frame } = finished;
    this.#bytesSinceBase += frame.end - frame.offset;
    this.#head = frame.head;
    this.#untidyBytes += frame.end - frame.offset;
    for (const entry of entriesOf(frame, this.#log.number)) {
      this.state.apply(entry as Change);
      if (entry.kind !== 'append' && entry.kind !== 'put') this.#untidyBytes = Infinity;
    }
  }

  #isLogFull(): boolean {
    if (this.#log.offset >= this.#logBytesMax) return true;
    return this.#log.offset >= SHORT_LOG_BYTES_MAX && this.#freeBytes < LOW_BYTES;
  }

  /** Waits for bases to free space. Throws `storage_full`. */
  async #makeRoom(byteCount: number): Promise<void> {
    // Asking the system takes another thread, and longer than a small write.
    const isAmple = this.#freeBytes - byteCount >= LOW_BYTES;
    if (!isAmple || performance.now() >= this.#freeUntilMs) await this.#readFreeBytes();
    while (this.#freeBytes < byteCount) {
      this.#untidyBytes = Infinity;
      await this.tidy();
      const isWriting = this.#baseWrite !== undefined;
      await this.#baseWrite;
      await this.#readFreeBytes();
      if (!isWriting && this.#freeBytes < byteCount) throw storageFull();
    }
  }

  async #readFreeBytes(): Promise<void> {
    this.#freeBytes = (await readDiskSpace(this.#directory)).freeBytes;
    this.#freeUntilMs = performance.now() + FREE_MS_MAX;
  }

  /** Throws `storage_full` and errors of the system, and then keeps the current log. */
  async #startLog(number: number): Promise<void> {
    try {
      const next = await this.#log.startNext(this.files, number);
      await syncFolder(this.#folder);
      // The current log no longer needs what was written ahead.
      await this.#log.cut();
      this.#log = next;
    } catch (error) {
      if (this.files.has(number)) await this.files.remove([number]);
      throw translateDiskError(error);
    }
  }

  /** Removes unneeded files and starts a base if one is due. Must be called between frames; never throws. */
  async tidy(): Promise<void> {
    if (this.#untidyBytes < UNTIDY_BYTES_MAX) return;
    this.#untidyBytes = 0;
    await this.#removeDead();
    if (this.#baseWrite !== undefined) return;
    const isUnused = this.#log.offset === 0 && !this.files.has(this.#log.number - 1);
    try {
      await this.#readFreeBytes();
      if (!this.#isBaseDue()) return;
      // Leaves a number for the base, which precedes the logs after it.
      if (!isUnused) await this.#startLog(this.files.nextNumber + 1);
      await this.#readFreeBytes();
    } catch (error) {
      this.#reportFailedBase(error);
      return;
    }
    this.#baseWrite = this.#replaceBase(this.#log.number - 1)
      .then(() => this.#removeDead())
      .finally(() => {
        this.#baseWrite = undefined;
      });
  }

  async #removeDead(): Promise<void> {
    const isDead = (number: number) =>
      number < this.#base.number && !this.state.liveBytes.has(number);
    await this.files.remove(this.files.numbers.filter(isDead));
  }

  #isBaseDue(): boolean {
    if (this.#isClosing || performance.now() < this.#nextBaseMs) return false;
    const due = Math.max(this.#logBytesMax, BASE_AFTER_RATIO * this.#base.byteLength);
    if (this.#bytesSinceBase >= due) return true;
    if (this.#freeBytes >= LOW_BYTES) return false;
    // A base takes up space itself. Unless the disk is full, it must free at least as much.
    const cost = this.#freeBytes >= FULL_BYTES ? this.#base.byteLength : 0;
    return this.#releasableBytes() >= Math.max(RELEASED_BYTES_MIN, cost);
  }

  /** Space that the next base would free. */
  #releasableBytes(): number {
    let byteLength = 0;
    for (const number of this.#filesToEmpty())
      byteLength += this.#bytesIn(number) - this.#liveBytesIn(number);
    return byteLength;
  }

  /**
   * Files that the next base will not refer to: those without content in use, and those with so little that it is
   * copied.
   */
  #filesToEmpty(): Set<number> {
    const freeBytes = this.#freeBytes;
    const share = freeBytes < FULL_BYTES ? LIVE_SHARE_MIN_FULL : LIVE_SHARE_MIN;
    const isLittleUsed = (number: number) =>
      this.#liveBytesIn(number) < share * this.#bytesIn(number) && !this.#damaged.has(number);
    const ascending = this.files.numbers
      .filter((number) => this.#liveBytesIn(number) === 0 || isLittleUsed(number))
      .sort((a, b) => this.#liveBytesIn(a) - this.#liveBytesIn(b));
    let copiedBytes = 0;
    const copies = (number: number) => {
      copiedBytes += this.#liveBytesIn(number);
      return copiedBytes;
    };
    return new Set(
      ascending.filter((number) => copies(number) === 0 || copiedBytes <= freeBytes - SPARE_BYTES),
    );
  }

  #liveBytesIn(number: number): number {
    return this.state.liveBytes.get(number) ?? 0;
  }

  /** Excludes the entries of a base, as the next one has them as well. */
  #bytesIn(number: number): number {
    if (number === this.#base.number) return this.#base.bodyBytes;
    return number === this.#log.number ? this.#log.offset : this.files.sizeOf(number);
  }

  /** Never throws. */
  async #replaceBase(number: number): Promise<void> {
    const state = new StoreState(this.state);
    const bytesBefore = this.#bytesSinceBase;
    const emptied = this.#filesToEmpty();
    const release = this.files.retain();
    try {
      const source: BaseSource = {
        state,
        head: this.#head,
        seed: this.#seed,
        // Damaged content stays in place so that its reader reports the damage.
        content: (extent) => {
          if (!emptied.has(extent.file)) return undefined;
          const bytes = this.files.readIntact(extent);
          if (bytes === undefined) this.#damaged.add(extent.file);
          return bytes;
        },
        onFrame: () => {
          if (this.#isClosing) throw new SagittaError('stopping', 'The store is closed.');
        },
      };
      const { byteLength, moves } = await this.files.addBase(number, (path) =>
        writeBase(path, number, source),
      );
      for (const move of moves) this.state.move(move);
      const bodyBytes = moves.reduce((sum, { to }) => sum + to.byteLength, 0);
      this.#base = { number, byteLength, bodyBytes };
      this.#hasBaseFailed = false;
      this.#bytesSinceBase -= bytesBefore;
    } catch (error) {
      this.#reportFailedBase(error);
    } finally {
      release();
    }
  }

  #reportFailedBase(error: unknown): void {
    this.#nextBaseMs = performance.now() + BASE_PAUSE_MS;
    if (this.#isClosing || this.#hasBaseFailed) return;
    this.#hasBaseFailed = true;
    this.#warn(
      `The state of the store could not be written to ${this.#folder}: ${(error as Error).message}. It will be tried again; until then the journal grows.`,
    );
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#baseWrite;
    this.files.close();
  }
}
