// Appends frames to the last log of a journal; a frame is on disk once it is appended. Zeros are written ahead, so that
// appending does not change the length of the file, and some of them are reserved for removals on a full disk.

import { fdatasync as fdatasyncWithCallback, ftruncate as ftruncateWithCallback } from 'node:fs';
import { promisify } from 'node:util';
import { SagittaError } from '../common/errors.js';
import { translateDiskError, writeParts } from './disk.js';
import type { FrameBuilder } from './frame.js';
import type { JournalFiles } from './journal-files.js';
import type { LogEnd } from './journal-reader.js';

const fdatasync = promisify(fdatasyncWithCallback);
const ftruncate = promisify(ftruncateWithCallback);

/**
 * Zeros written after the last frame, so that appending does not change the length of the file, which would make a sync
 * slower. The last `RESERVE_BYTES` of them are kept for commits that remove something, such as deletions and
 * checkpoints, which therefore succeed on a full disk.
 */
const AHEAD_BYTES = 1024 * 1024;
const RESERVE_BYTES = 256 * 1024;
/** After longer frames, only the reserve is written ahead. */
const SHORT_FRAME_BYTES_MAX = 64 * 1024;
const ZEROS = Buffer.alloc(AHEAD_BYTES);

export class FrameWriter {
  readonly number: number;
  readonly #files: JournalFiles;
  readonly #descriptor: number;
  /** Where the next frame goes. */
  #offset: number;

  private constructor(files: JournalFiles, number: number, descriptor: number, offset: number) {
    this.number = number;
    this.#files = files;
    this.#descriptor = descriptor;
    this.#offset = offset;
  }

  /** Continues a log at the offset, or creates it. */
  static async open(
    files: JournalFiles,
    { file, offset }: Pick<LogEnd, 'file' | 'offset'>,
  ): Promise<FrameWriter> {
    const descriptor = await files.openForWriting(file);
    const writer = new FrameWriter(files, file, descriptor, offset);
    writer.#endOfFile = Math.max(offset, files.sizeOf(file));
    return writer;
  }

  /** How far the file has been written. */
  get #endOfFile(): number {
    return this.#files.sizeOf(this.number);
  }

  set #endOfFile(byteLength: number) {
    this.#files.setSize(this.number, byteLength);
  }

  get offset(): number {
    return this.#offset;
  }

  /**
   * Appends a frame that was finished for the current offset. `mayUseReserve` allows the reserve to be used on a full
   * disk. Throws `storage_full` if nothing was appended, and errors of the system, after which nothing can be appended.
   */
  async append(
    { parts, frame }: ReturnType<FrameBuilder['finish']>,
    mayUseReserve: boolean,
  ): Promise<void> {
    if (frame.end + RESERVE_BYTES <= this.#endOfFile) await this.#write(parts);
    else {
      const isShort = frame.end - frame.offset <= SHORT_FRAME_BYTES_MAX;
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
    this.#offset = frame.end;
  }

  /** Throws errors of the system, and `storage_full`, after which the next start finds no part of the write. */
  async #write(parts: readonly Uint8Array[]): Promise<void> {
    try {
      await writeParts(this.#descriptor, parts, this.#offset);
    } catch (error) {
      const translated = translateDiskError(error);
      if (translated instanceof SagittaError) {
        await this.clearTail();
        await this.sync();
      }
      throw translated;
    }
  }

  /**
   * Clears everything after the last frame except the zeros written ahead, which a full disk may need. Throws errors of
   * the system.
   */
  async clearTail(): Promise<void> {
    this.#endOfFile = Math.min(this.#endOfFile, this.#offset + AHEAD_BYTES);
    await ftruncate(this.#descriptor, this.#endOfFile);
    const tail = ZEROS.subarray(0, this.#endOfFile - this.#offset);
    await writeParts(this.#descriptor, [tail], this.#offset);
  }

  /**
   * After a failed write, the page cache may hold data that is not on disk but counts as written. Frames that the start
   * has read and that may not have been acknowledged are therefore written again. Throws errors of the system.
   */
  async rewriteUnacknowledged(files: JournalFiles, end: LogEnd): Promise<void> {
    const { file, offset, unacknowledgedFrom } = end;
    if (unacknowledgedFrom === offset) return;
    const bytes = files.readBytes(file, unacknowledgedFrom, offset - unacknowledgedFrom);
    await writeParts(this.#descriptor, [bytes], unacknowledgedFrom);
  }

  async sync(): Promise<void> {
    await fdatasync(this.#descriptor);
  }

  /** Creates the log after this one. Throws errors of the system; this log then remains usable. */
  async startNext(files: JournalFiles, number: number): Promise<FrameWriter> {
    const descriptor = await files.openForWriting(number);
    const next = new FrameWriter(files, number, descriptor, 0);
    next.#endOfFile = await this.#reserveIn(descriptor);
    return next;
  }

  /**
   * Writes the reserve of a new log and returns its size. On a full disk it is half as large, and this log gives up its
   * own reserve for it and for the base that should free space.
   */
  async #reserveIn(descriptor: number): Promise<number> {
    const reserve = ZEROS.subarray(0, RESERVE_BYTES);
    try {
      await writeParts(descriptor, [reserve], 0);
      return RESERVE_BYTES;
    } catch (error) {
      if (!(translateDiskError(error) instanceof SagittaError)) throw error;
    }
    await ftruncate(descriptor, 0);
    await this.cut();
    try {
      await writeParts(descriptor, [reserve.subarray(0, RESERVE_BYTES / 2)], 0);
      return RESERVE_BYTES / 2;
    } catch (error) {
      await ftruncate(descriptor, 0);
      await writeParts(this.#descriptor, [reserve], this.#offset);
      this.#endOfFile = this.#offset + RESERVE_BYTES;
      throw error;
    }
  }

  /** Gives up what was written ahead. */
  async cut(): Promise<void> {
    await ftruncate(this.#descriptor, this.#offset);
    this.#endOfFile = this.#offset;
  }
}
