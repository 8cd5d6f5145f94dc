// The journal of an open store: commits are frames that are added to its last log, and are on the disk when they have been
// added. From time to time a base is written with the whole state, and the files that nothing refers to are removed.

import { fdatasync as fdatasyncWithCallback, ftruncateSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SagittaError } from '../common/errors.js';
import { writeBase } from './base.js';
import {
  isDiskLow,
  REMOVAL_SPACE_BYTES,
  requireFreeSpace,
  syncFolder,
  translateDiskError,
  writeAll,
} from './disk.js';
import { entriesOf, type FrameBuilder, HEADER_BYTES, type Head } from './frame.js';
import { fileName, JOURNAL_FOLDER, type JournalFiles, UNFINISHED_SUFFIX } from './journal-files.js';
import type { JournalContent } from './journal-reader.js';
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
/** A base is written early when it gives so much space back, on a disk with little room. */
const RELEASED_BYTES_MIN = 1024 * 1024;

/**
 * Written behind the last frame, so that further ones change no length of a file, whose sync would take longer. Of this,
 * `RESERVE_BYTES` are left to commits that add no records: deletions and checkpoints, which succeed on a full disk.
 */
const AHEAD_BYTES = 1024 * 1024;
const RESERVE_BYTES = 256 * 1024;
/** Longer frames are followed by the reserve only. */
const SHORT_FRAME_BYTES_MAX = 64 * 1024;
const ZEROS = Buffer.alloc(AHEAD_BYTES);
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
  #base: { readonly number: number; readonly byteLength: number };
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

  private constructor(
    options: JournalOptions,
    log: { readonly file: number; readonly offset: number },
  ) {
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
    if (content.isTorn) journal.#cut();
    // What was not acknowledged may be in the memory of the system only.
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

  /** In bytes, of all files. */
  get byteLength(): number {
    return this.files.numbers.reduce((sum, number) => sum + this.files.sizeOf(number), 0);
  }

  /**
   * Adds the frame, whose changes the state has when this resolves. `addsRecords`: it may not use the reserve. Throws
   * `storage_full`, and nothing was added then, and errors of the system, after which nothing can be added.
   */
  async add(builder: FrameBuilder, addsRecords: boolean): Promise<void> {
    if (addsRecords) {
      requireFreeSpace(this.#directory, builder.byteLength + REMOVAL_SPACE_BYTES);
      if (this.#offset >= this.#logBytesMax) await this.#startLog(this.#nextNumber());
    }
    const { parts, frame } = builder.finish(this.#head, this.#offset, this.#seed);
    const isLonger = frame.end + (addsRecords ? RESERVE_BYTES : 0) > this.#endOfFile;
    const ahead = builder.byteLength > SHORT_FRAME_BYTES_MAX ? RESERVE_BYTES : AHEAD_BYTES;
    if (isLonger) parts.push(ZEROS.subarray(0, ahead));
    try {
      await writeAll(this.#log.descriptor, parts, this.#offset);
    } catch (error) {
      const translated = translateDiskError(error);
      if (translated instanceof SagittaError) await this.#undo();
      throw translated;
    }
    if (isLonger) this.#endOfFile = frame.end + ahead;
    this.#bytesSinceBase += frame.end - frame.offset;
    this.#offset = frame.end;
    this.#head = frame.head;
    for (const entry of entriesOf(frame, this.#log.number)) this.state.apply(entry as Change);
  }

  /** Makes sure that the next start does not find a frame that was refused. Throws errors of the system. */
  async #undo(): Promise<void> {
    const { descriptor } = this.#log;
    ftruncateSync(descriptor, this.#endOfFile);
    const byteLength = Math.min(HEADER_BYTES, this.#endOfFile - this.#offset);
    await writeAll(descriptor, [ZEROS.subarray(0, byteLength)], this.#offset);
    await fdatasync(descriptor);
  }

  /** Makes the next log. Throws `storage_full` and errors of the system. */
  async #startLog(number: number): Promise<void> {
    try {
      const descriptor = this.files.openForWriting(number);
      await syncFolder(this.#folder);
      // What was written ahead is needed no longer.
      this.#cut();
      this.#log = { number, descriptor };
      this.#offset = 0;
      this.#endOfFile = 0;
    } catch (error) {
      throw translateDiskError(error);
    }
  }

  #cut(): void {
    ftruncateSync(this.#log.descriptor, this.#offset);
    this.#endOfFile = this.#offset;
  }

  #nextNumber(): number {
    return Math.max(this.#base.number, ...this.files.numbers) + 1;
  }

  /** Removes files that are not needed, and begins a base when it is time. To be called between frames; never throws. */
  async tidy(): Promise<void> {
    const isDead = (number: number) =>
      number < this.#base.number && !this.state.liveBytes.has(number);
    await this.files.remove(this.files.numbers.filter(isDead));
    if (this.#basing !== undefined || !this.#isBaseDue()) return;
    const number = this.#nextNumber();
    try {
      // The logs after the base have greater numbers.
      await this.#startLog(number + 1);
    } catch (error) {
      this.#noteFailedBase(error);
      return;
    }
    this.#basing = this.#replaceBase(number).finally(() => {
      this.#basing = undefined;
    });
  }

  #isBaseDue(): boolean {
    if (this.#isClosing || performance.now() < this.#nextBaseMs) return false;
    const due = Math.max(this.#logBytesMax, BASE_AFTER_RATIO * this.#base.byteLength);
    if (this.#bytesSinceBase >= due) return true;
    return isDiskLow(this.#directory) && this.#releasableBytes() >= RELEASED_BYTES_MIN;
  }

  /** What the next base would give back to the file system. */
  #releasableBytes(): number {
    let byteLength = 0;
    for (const number of this.files.numbers) {
      if (this.#staysUsed(number)) continue;
      byteLength += this.#framesOf(number) - (this.state.liveBytes.get(number) ?? 0);
    }
    return byteLength;
  }

  /** Whether enough of a file is in use that bases refer to it. */
  #staysUsed(number: number): boolean {
    const live = this.state.liveBytes.get(number) ?? 0;
    return live > 0 && live >= LIVE_SHARE_MIN * this.#framesOf(number);
  }

  #framesOf(number: number): number {
    return number === this.#log.number ? this.#offset : this.files.sizeOf(number);
  }

  /** Never throws. */
  async #replaceBase(number: number): Promise<void> {
    const path = join(this.#folder, fileName(number, 'base'));
    const unfinished = `${path}${UNFINISHED_SUFFIX}`;
    const state = new StoreState(this.state);
    const bytesBefore = this.#bytesSinceBase;
    const staying = new Set(this.files.numbers.filter((each) => this.#staysUsed(each)));
    const release = this.files.retain();
    try {
      const { byteLength, moves } = await writeBase(unfinished, number, {
        state,
        head: this.#head,
        seed: this.#seed,
        // What is damaged stays where it is, so that its reader finds the damage.
        content: (place) => (staying.has(place.file) ? undefined : this.files.readIntact(place)),
        onFrame: () => {
          if (this.#isClosing) throw new SagittaError('stopping', 'The store is closed.');
        },
      });
      await rename(unfinished, path);
      await syncFolder(this.#folder);
      this.files.addBase(number);
      for (const move of moves) this.state.move(move);
      this.#base = { number, byteLength };
      this.#bytesSinceBase -= bytesBefore;
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {});
      this.#noteFailedBase(error);
    } finally {
      release();
    }
  }

  #noteFailedBase(error: unknown): void {
    this.#nextBaseMs = performance.now() + BASE_PAUSE_MS;
    if (this.#isClosing) return;
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
