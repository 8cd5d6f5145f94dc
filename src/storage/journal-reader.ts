// Reads a journal from its newest base on. An incomplete frame with no complete frame after it is a torn write that was
// never acknowledged, unless the mark says otherwise; everything else is damage.

import { join } from 'node:path';
import { SagittaError } from '../common/errors.js';
import { Turns } from '../common/turns.js';
import {
  BASE_SEED,
  directoryBytesOf,
  entriesOf,
  extentOf,
  FRAME_MARK,
  type Frame,
  HEADER_BYTES,
  type Head,
  NO_FRAME,
  openFrame,
} from './frame.js';
import { JOURNAL_FOLDER, type JournalFiles } from './journal-files.js';
import { STORE_FORMAT_VERSION, unsupportedFormat } from './store-format.js';
import { MARK_FILE, type Mark } from './store-mark.js';
import { type Change, StoreState } from './store-state.js';

/** Receives the damaged file and what is wrong. A start throws there; an inspection continues after the damage. */
export type ReportDamage = (file: number, what: string) => void;

/** Sizes of the newest base. */
export interface BaseSize {
  readonly number: number;
  /** Total size of its frames. */
  readonly byteLength: number;
  /** Total size of the records and values in it. */
  readonly bodyBytes: number;
}

export interface LogEnd {
  readonly file: number;
  /** Where the next frame is written. */
  readonly offset: number;
  /** Start of the last frame if it may not have been acknowledged; otherwise equal to `offset`. */
  readonly unacknowledgedFrom: number;
}

export interface JournalContent {
  readonly state: StoreState;
  /** Seed of the frame checksums. */
  readonly seed: number;
  readonly head: Head;
  readonly base: BaseSize;
  /** Total size of the frames after the base. */
  readonly logBytes: number;
  /** The log to append to; null if none follows the base. */
  readonly last: LogEnd | null;
  /** Whether an unfinished frame follows the last one. */
  readonly isTorn: boolean;
}

export function missingBase(directory: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `The newest base is missing in ${join(directory, JOURNAL_FOLDER)}; the logs there cannot be read without it. Restore a backup.`,
  );
}

const WINDOW_BYTES = 1024 * 1024;
const ZEROS = Buffer.alloc(WINDOW_BYTES);

/**
 * Rejects with `configuration_invalid` for another format, `data_corrupt` if there is no base, and the reason of the
 * signal. Nothing is changed.
 */
export async function readJournal(
  files: JournalFiles,
  mark: Mark | undefined,
  report: ReportDamage,
  signal?: AbortSignal,
): Promise<JournalContent> {
  const number = files.numbersOf('base').at(-1);
  if (number === undefined) throw missingBase(files.directory);
  return new JournalReader(files, mark, report, new Turns(signal)).read(number);
}

class JournalReader {
  readonly #files: JournalFiles;
  readonly #mark: Mark | undefined;
  readonly #report: ReportDamage;
  readonly #turns: Turns;
  readonly #state = new StoreState();
  #head: Head = NO_FRAME;
  #seed = 0;
  #last: JournalContent['last'] = null;
  #isTorn = false;
  /** Where unreadable data begins after the last valid frame. */
  #unreadable: { readonly file: number; readonly offset: number } | undefined;

  constructor(files: JournalFiles, mark: Mark | undefined, report: ReportDamage, turns: Turns) {
    this.#files = files;
    this.#mark = mark;
    this.#report = report;
    this.#turns = turns;
  }

  async read(base: number): Promise<JournalContent> {
    const byteLength = await this.#readBase(base);
    const bodyBytes = this.#state.liveBytes.get(base) ?? 0;
    const logs = this.#files.numbersOf('log').filter((number) => number > base);
    // A log that was created but never used contains only zeros.
    const isEmpty = (log: number) => !new FrameReader(this.#files, log, this.#seed).hasData(0);
    let logBytes = 0;
    let end = { file: base, offset: byteLength };
    for (const [i, log] of logs.entries()) {
      const isLast = logs.slice(i + 1).every(isEmpty);
      const offset = await this.#readLog(log, isLast);
      logBytes += offset;
      end = { file: log, offset };
      if (!isLast) continue;
      // The missing commits were in the next log, if there is one.
      if (i + 1 < logs.length) end = { file: logs[i + 1]!, offset: 0 };
      break;
    }
    this.#requireAcknowledged(end);
    for (const file of this.#state.liveBytes.keys()) {
      if (!this.#files.has(file)) this.#report(file, 'it is missing, and records in it are in use');
    }
    return {
      state: this.#state,
      seed: this.#seed,
      head: this.#head,
      base: { number: base, byteLength, bodyBytes },
      logBytes,
      last: this.#last,
      isTorn: this.#isTorn,
    };
  }

  /** Returns the total size of its frames. */
  async #readBase(file: number): Promise<number> {
    const frames = new FrameReader(this.#files, file, BASE_SEED);
    let last = NO_FRAME;
    while (true) {
      const nextTurn = this.#turns.next();
      if (nextTurn !== undefined) await nextTurn;
      const at = frames.offset;
      const frame = frames.next();
      if (frame === undefined || !isNext(frame, last)) {
        this.#report(file, `at offset ${at}, its state is incomplete`);
        if (frame === undefined && !frames.skipToNext()) return at;
      }
      if (frame === undefined) continue;
      last = frame.head;
      for (const entry of entriesOf(frame, file)) {
        if (entry.kind === 'format') this.#begin(entry);
        else if (entry.kind !== 'end') this.#state.apply(entry);
        else {
          this.#advance(file, { number: entry.number, digest: entry.digest });
          return frames.offset;
        }
      }
    }
  }

  #begin({ version, seed }: { readonly version: number; readonly seed: number }): void {
    if (version !== STORE_FORMAT_VERSION) throw unsupportedFormat(this.#files.directory, version);
    this.#seed = seed;
  }

  /** Returns the total size of its frames. */
  async #readLog(file: number, isLast: boolean): Promise<number> {
    const frames = new FrameReader(this.#files, file, this.#seed);
    let unacknowledgedFrom = 0;
    while (true) {
      const nextTurn = this.#turns.next();
      if (nextTurn !== undefined) await nextTurn;
      const { offset } = frames;
      const frame = frames.next();
      const isTorn = isLast && frame !== undefined && this.#isTornBody(frames, frame);
      if (isTorn || (frame === undefined && !frames.skipToNext())) {
        const hasData = isTorn || frames.hasData(offset);
        // A log with a successor was truncated after its last frame.
        if (hasData || (!isLast && !frames.isAtEnd)) this.#unreadable ??= { file, offset };
        if (isLast) {
          this.#last = { file, offset, unacknowledgedFrom };
          this.#isTorn = hasData;
        }
        return offset;
      }
      if (frame === undefined) {
        this.#unreadable ??= { file, offset };
        continue;
      }
      if (!isNext(frame, this.#head)) this.#reportGap(file, offset, frame);
      this.#unreadable = undefined;
      for (const entry of entriesOf(frame, file)) this.#state.apply(entry as Change);
      this.#advance(file, frame.head);
      unacknowledgedFrom = this.#isMarked(frame) ? frame.end : frame.offset;
    }
  }

  #advance(file: number, head: Head): void {
    this.#head = head;
    if (this.#mark?.number !== head.number || this.#mark.digest.equals(head.digest)) return;
    this.#report(
      file,
      `commit ${head.number} does not match ${MARK_FILE}: one of the two is from another time or another store`,
    );
  }

  /** Called at the end of the journal. */
  #requireAcknowledged(end: { readonly file: number; readonly offset: number }): void {
    const acknowledged = this.#mark?.number ?? 0;
    const { number } = this.#head;
    if (acknowledged <= number) return;
    const at = this.#unreadable ?? end;
    this.#report(
      at.file,
      `it ends with commit ${number} at offset ${at.offset}, but ${MARK_FILE} says that commit ${acknowledged} was written: ${acknowledged - number} commits are missing or cannot be read`,
    );
  }

  #isMarked({ head }: Frame): boolean {
    return head.number <= (this.#mark?.number ?? 0);
  }

  /** Whether the last frame, which was not acknowledged, was written only in part. */
  #isTornBody(frames: FrameReader, frame: Frame): boolean {
    if (this.#isMarked(frame)) return false;
    const isFollowed = frames.skipToNext(frame.end);
    frames.offset = frame.end;
    return !isFollowed && !frames.isWhole(frame);
  }

  /** The unreadable data may be in an earlier file than the gap. */
  #reportGap(file: number, offset: number, frame: Frame): void {
    const at = this.#unreadable ?? { file, offset };
    const expected = this.#head.number + 1;
    const { number } = frame.head;
    const what =
      number > expected
        ? `commits ${expected} to ${number - 1} are missing or cannot be read`
        : `commit ${number} does not follow commit ${this.#head.number}: one of the two is from another time or another store`;
    this.#report(at.file, `at offset ${at.offset}, ${what}`);
  }
}

function isNext(frame: Frame, { number, digest }: Head): boolean {
  return frame.head.number === number + 1 && frame.previousDigest.equals(digest);
}

/** Reads the frames of a file in order. */
class FrameReader {
  readonly #file: number;
  readonly #files: JournalFiles;
  readonly #seed: number;
  readonly #size: number;
  /** Offset of the next frame. */
  offset = 0;
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;

  constructor(files: JournalFiles, file: number, seed: number) {
    this.#files = files;
    this.#file = file;
    this.#seed = seed;
    this.#size = files.measure(file);
  }

  /** Returns undefined if there is no frame here, or a damaged one. */
  next(): Frame | undefined {
    const frame = this.#frameAt(this.offset);
    if (frame !== undefined) this.offset = frame.end;
    return frame;
  }

  /** Moves to the first frame at or after `from`, at any offset; returns false if there is none. */
  skipToNext(from = this.offset + 1): boolean {
    // Usually it is there, and in the window.
    if (this.#frameAt(from) !== undefined) {
      this.offset = from;
      return true;
    }
    for (let start = from; start < this.#size; ) {
      const bytes = this.#read(start, WINDOW_BYTES);
      for (let at = bytes.indexOf(FRAME_MARK); at !== -1; at = bytes.indexOf(FRAME_MARK, at + 1)) {
        if (this.#frameAt(start + at) === undefined) continue;
        this.offset = start + at;
        return true;
      }
      // A frame mark may be split at the end of the window.
      start += Math.max(1, bytes.byteLength - FRAME_MARK.byteLength + 1);
    }
    return false;
  }

  get isAtEnd(): boolean {
    return this.offset >= this.#size;
  }

  /** Whether any byte from this offset on is not zero. */
  hasData(from: number): boolean {
    for (let start = from; start < this.#size; start += WINDOW_BYTES) {
      const bytes = this.#read(start, WINDOW_BYTES);
      if (!bytes.equals(ZEROS.subarray(0, bytes.byteLength))) return true;
    }
    return false;
  }

  /**
   * Whether all bodies of the frame match their checksums. Throws `data_corrupt` if they cannot be read, because a
   * failing disk must not make a frame look torn.
   */
  isWhole(frame: Frame): boolean {
    for (const entry of entriesOf(frame, this.#file)) {
      const content = extentOf(entry);
      if (content === undefined || content.file !== this.#file) continue;
      if (!this.#files.isIntact(content)) return false;
    }
    return true;
  }

  #frameAt(offset: number): Frame | undefined {
    const directoryBytes = directoryBytesOf(this.#bytes(offset, HEADER_BYTES), this.#seed);
    if (directoryBytes === undefined) return undefined;
    const byteLength = HEADER_BYTES + directoryBytes;
    if (offset + byteLength > this.#size) return undefined;
    return openFrame(Buffer.from(this.#bytes(offset, byteLength)), offset, this.#seed);
  }

  /** Returns fewer bytes at the end of the file. */
  #bytes(offset: number, byteLength: number): Buffer {
    const start = offset - this.#windowAt;
    if (start >= 0 && start + byteLength <= this.#window.byteLength) {
      return this.#window.subarray(start, start + byteLength);
    }
    this.#window = this.#read(offset, Math.max(byteLength, WINDOW_BYTES));
    this.#windowAt = offset;
    return this.#window.subarray(0, byteLength);
  }

  /** Returns fewer bytes at the end of the file, and allocates no memory for the missing ones. */
  #read(offset: number, byteLength: number): Buffer {
    const rest = Math.max(0, this.#size - offset);
    return this.#files.readBytes(this.#file, offset, Math.min(byteLength, rest));
  }
}
