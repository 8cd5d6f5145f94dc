// The journal of an open store: commits are frames that are added to its last log, and are on the disk when they have been
// added. From time to time a base is written with the whole state, and the files that nothing refers to are removed.

import { fdatasync as fdatasyncWithCallback, ftruncateSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SagittaError } from '../common/errors.js';
import { type BaseSource, writeBase } from './base.js';
import {
  diskSpace,
  hasFreeSpace,
  isDiskLow,
  REMOVAL_SPACE_BYTES,
  requireFreeSpace,
  syncFolder,
  translateDiskError,
  writeAll,
} from './disk.js';
import { entriesOf, type FrameBuilder, type Head } from './frame.js';
import { JOURNAL_FOLDER, type JournalFiles } from './journal-files.js';
import type { BaseSize, JournalContent, LogEnd } from './journal-reader.js';
import { type Change, StoreState } from './store-state.js';

const fdatasync = promisify(fdatasyncWithCallback);

export interface JournalOptions {
  readonly directory: string;
  readonly files: JournalFiles;
  readonly content: JournalContent;
  readonly warn: (message: string) => void;
  /** A log that has this many bytes is followed by another one. */
  readonly logBytesMax?: number | undefined;
}

const LOG_BYTES_MAX = 64 * 1024 * 1024;
/** A base is written after the bytes of a log, or so many times those of the last base: a start reads no more. */
const BASE_AFTER_RATIO = 4;
/** With less than this share of its bytes in use, what is left of a log moves into the next base. */
const LIVE_SHARE_MIN = 0.25;
/** The same with less free space than this, where room is worth more than the time to copy. */
const LIVE_SHARE_MIN_FULL = 0.9;
const FULL_BYTES = 4 * REMOVAL_SPACE_BYTES;
/** A base is written early when it gives so much space back, on a disk with little room. */
const RELEASED_BYTES_MIN = 1024 * 1024;
/** There logs are shorter, so that what is in use of one can be copied into the space that is left for removals. */
const SHORT_LOG_BYTES_MAX = REMOVAL_SPACE_BYTES / 2;
/** What a base leaves free. */
const SPARE_BYTES = 1024 * 1024;

/**
 * Written behind the last frame, so that further ones change no length of a file, whose sync would take longer. Of this,
 * `RESERVE_BYTES` are left to commits that remove something: deletions and checkpoints, which succeed on a full disk.
 */
const AHEAD_BYTES = 1024 * 1024;
const RESERVE_BYTES = 256 * 1024;
/** Longer frames are followed by the reserve only. */
const SHORT_FRAME_BYTES_MAX = 64 * 1024;
const ZEROS = Buffer.alloc(AHEAD_BYTES);
/** Short commits that remove nothing leave nothing to do. */
const UNTIDY_BYTES_MAX = 64 * 1024;
/** After a base failed. */
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
  /** Of all frames after the base. */
  #bytesSinceBase: number;
  /** The log that is added to. */
  #log: { readonly number: number; readonly descriptor: number };
  /** Where the next frame is written, and up to where the file has been written. */
  #offset: number;
  #endOfFile: number;
  #basing: Promise<void> | undefined;
  #isClosing = false;
  /** By the monotonic clock, in milliseconds: a base that failed is not tried again before. */
  #nextBaseMs = 0;
  #hasBaseFailed = false;
  /** Of frames since `tidy` looked for work; infinite when something was removed. */
  #untidyBytes = Infinity;
  /** Files with records that are damaged, and so not copied. */
  readonly #damaged = new Set<number>();

  private constructor(options: JournalOptions, log: Pick<LogEnd, 'file' | 'offset'>) {
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
    this.#log = { number: log.file, descriptor: files.openForWriting(log.file) };
    this.#offset = log.offset;
    this.#endOfFile = Math.max(log.offset, files.sizeOf(log.file));
  }

  /** Goes on where the journal ends; a frame that was not finished is cut off. Throws errors of the system. */
  static async open(options: JournalOptions): Promise<Journal> {
    const { files, content } = options;
    const last = content.last ?? { file: content.base.number + 1, offset: 0 };
    const journal = new Journal(options, last);
    if (content.isTorn) await journal.#clearTail();
    if (content.last !== null) await journal.#writeAgain(content.last);
    await fdatasync(journal.#log.descriptor);
    await syncFolder(journal.#folder);
    await files.removeUnfinished();
    await journal.tidy();
    return journal;
  }

  /** Of the last commit. */
  get head(): Head {
    return this.#head;
  }

  /** What a base of the present state says of the journal. */
  get origin(): { readonly head: Head; readonly seed: number } {
    return { head: this.#head, seed: this.#seed };
  }

  /**
   * Adds the frame, whose changes the state has when this resolves. `mayUseReserve`: on a full disk. Throws
   * `storage_full`, and nothing was added then, and errors of the system, after which nothing can be added.
   */
  async add(builder: FrameBuilder, mayUseReserve: boolean): Promise<void> {
    if (!mayUseReserve) {
      await this.#makeRoom(builder.byteLength + REMOVAL_SPACE_BYTES);
      if (this.#isLogFull()) await this.#startLog(this.files.nextNumber);
    }
    const { parts, frame } = builder.finish(this.#head, this.#offset, this.#seed);
    if (frame.end + RESERVE_BYTES <= this.#endOfFile) await this.#write(parts);
    else {
      const isShort = builder.byteLength <= SHORT_FRAME_BYTES_MAX;
      const ahead = isShort ? AHEAD_BYTES : RESERVE_BYTES;
      try {
        await this.#write([...parts, ZEROS.subarray(0, ahead)]);
        this.#endOfFile = frame.end + ahead;
      } catch (error) {
        const isFull = error instanceof SagittaError;
        if (!isFull || !mayUseReserve || frame.end > this.#endOfFile) throw error;
        await this.#write(parts);
      }
    }
    this.#bytesSinceBase += frame.end - frame.offset;
    this.#offset = frame.end;
    this.#head = frame.head;
    this.#untidyBytes += frame.end - frame.offset;
    for (const entry of entriesOf(frame, this.#log.number)) {
      this.state.apply(entry as Change);
      if (entry.kind !== 'append' && entry.kind !== 'put') this.#untidyBytes = Infinity;
    }
  }

  #isLogFull(): boolean {
    if (this.#offset >= this.#logBytesMax) return true;
    return this.#offset >= SHORT_LOG_BYTES_MAX && isDiskLow(this.#directory);
  }

  /** Waits for bases that give space back until there is so much. Throws `storage_full`. */
  async #makeRoom(byteCount: number): Promise<void> {
    while (!hasFreeSpace(this.#directory, byteCount)) {
      this.#untidyBytes = Infinity;
      await this.tidy();
      if (this.#basing === undefined) requireFreeSpace(this.#directory, byteCount);
      await this.#basing;
    }
  }

  /** Throws `storage_full`, after which the next start does not find any of it, and errors of the system. */
  async #write(parts: readonly Uint8Array[]): Promise<void> {
    try {
      await writeAll(this.#log.descriptor, parts, this.#offset);
    } catch (error) {
      const translated = translateDiskError(error);
      if (translated instanceof SagittaError) {
        await this.#clearTail();
        await fdatasync(this.#log.descriptor);
      }
      throw translated;
    }
  }

  /** Leaves nothing behind the last frame but what is written ahead, which a full disk may need. Throws errors of the system. */
  async #clearTail(): Promise<void> {
    const { descriptor } = this.#log;
    this.#endOfFile = Math.min(this.#endOfFile, this.#offset + AHEAD_BYTES);
    ftruncateSync(descriptor, this.#endOfFile);
    await writeAll(descriptor, [ZEROS.subarray(0, this.#endOfFile - this.#offset)], this.#offset);
  }

  /**
   * After a write that failed, the memory of the system may have what the disk has not, and take it for written: what a
   * start has read and nobody was told of is written again. Throws errors of the system.
   */
  async #writeAgain({ file, offset, unsureFrom }: LogEnd): Promise<void> {
    if (unsureFrom === offset) return;
    const bytes = this.files.readBytes(file, unsureFrom, offset - unsureFrom);
    await writeAll(this.#log.descriptor, [bytes], unsureFrom);
  }

  /** Makes the next log. Throws `storage_full` and errors of the system; the log is then the one before. */
  async #startLog(number: number): Promise<void> {
    try {
      const descriptor = this.files.openForWriting(number);
      const reserved = await this.#reserveIn(descriptor);
      await syncFolder(this.#folder);
      // What was written ahead is needed no longer.
      this.#cut();
      this.#log = { number, descriptor };
      this.#offset = 0;
      this.#endOfFile = reserved;
    } catch (error) {
      if (this.files.has(number)) await this.files.remove([number]);
      throw translateDiskError(error);
    }
  }

  /**
   * Writes the reserve ahead in a new log, and returns how much that is: half on a full disk, where the present log gives
   * up its own for that and for the base that is to make room. Throws errors of the system.
   */
  async #reserveIn(descriptor: number): Promise<number> {
    const reserve = ZEROS.subarray(0, RESERVE_BYTES);
    try {
      await writeAll(descriptor, [reserve], 0);
      return RESERVE_BYTES;
    } catch (error) {
      if (!(translateDiskError(error) instanceof SagittaError)) throw error;
    }
    ftruncateSync(descriptor, 0);
    this.#cut();
    try {
      await writeAll(descriptor, [reserve.subarray(0, RESERVE_BYTES / 2)], 0);
      return RESERVE_BYTES / 2;
    } catch (error) {
      ftruncateSync(descriptor, 0);
      await writeAll(this.#log.descriptor, [reserve], this.#offset);
      this.#endOfFile = this.#offset + RESERVE_BYTES;
      throw error;
    }
  }

  #cut(): void {
    ftruncateSync(this.#log.descriptor, this.#offset);
    this.#endOfFile = this.#offset;
  }

  /** Removes files that are not needed, and begins a base when it is time. To be called between frames; never throws. */
  async tidy(): Promise<void> {
    if (this.#untidyBytes < UNTIDY_BYTES_MAX) return;
    this.#untidyBytes = 0;
    await this.#removeDead();
    if (this.#basing !== undefined || !this.#isBaseDue()) return;
    const isUnused = this.#offset === 0 && !this.files.has(this.#log.number - 1);
    try {
      // The logs after the base have greater numbers.
      if (!isUnused) await this.#startLog(this.files.nextNumber + 1);
    } catch (error) {
      this.#noteFailedBase(error);
      return;
    }
    this.#basing = this.#replaceBase(this.#log.number - 1)
      .then(() => this.#removeDead())
      .finally(() => {
        this.#basing = undefined;
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
    if (!isDiskLow(this.#directory)) return false;
    // A base costs what is in it: on a disk that is not full yet, it has to be worth that.
    const cost = hasFreeSpace(this.#directory, FULL_BYTES) ? this.#base.byteLength : 0;
    return this.#releasableBytes() >= Math.max(RELEASED_BYTES_MIN, cost);
  }

  /** What the next base would give back to the file system. */
  #releasableBytes(): number {
    let byteLength = 0;
    for (const number of this.#filesToEmpty())
      byteLength += this.#bytesIn(number) - this.#liveBytesIn(number);
    return byteLength;
  }

  /** The files that the next base does not refer to: nothing is in use of them, or little, which it has itself. */
  #filesToEmpty(): Set<number> {
    const { freeBytes } = diskSpace(this.#directory);
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

  /** Of a base, without the entries, which the next one has as well. */
  #bytesIn(number: number): number {
    if (number === this.#base.number) return this.#base.bodyBytes;
    return number === this.#log.number ? this.#offset : this.files.sizeOf(number);
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
        // What is damaged stays where it is, so that its reader finds the damage.
        content: (place) => {
          if (!emptied.has(place.file)) return undefined;
          const bytes = this.files.readIntact(place);
          if (bytes === undefined) this.#damaged.add(place.file);
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
      this.#noteFailedBase(error);
    } finally {
      release();
    }
  }

  #noteFailedBase(error: unknown): void {
    this.#nextBaseMs = performance.now() + BASE_PAUSE_MS;
    if (this.#isClosing || this.#hasBaseFailed) return;
    this.#hasBaseFailed = true;
    this.#warn(
      `The state of the store could not be written to ${this.#folder}: ${(error as Error).message}. It is tried again; until then the journal grows.`,
    );
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#basing;
    this.files.close();
  }
}
