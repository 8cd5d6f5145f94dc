// The file beside the journal with the number and digest of the last commit. A journal that was truncated or replaced
// by an older copy looks like one whose last write was torn; the mark reveals that commits are missing. It is never
// ahead of the journal and lags only milliseconds behind: it is written shortly after a commit, once for all commits in
// that time, and synced when no more follow. Each frame of the journal also implies that its predecessors were
// acknowledged.

import { constants } from 'node:fs';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { crcOf } from '../platform/crc32.js';
import { FILE_MODE, writeParts } from './disk.js';
import { DIGEST_BYTES, type Head } from './frame.js';

export const MARK_FILE = 'store.mark';

export type Mark = Head;

const MAGIC = Buffer.from('SGTMARK1');
const SLOT_BYTES = MAGIC.byteLength + 8 + DIGEST_BYTES + 4;
/** Each slot has its own disk block, so a torn write or a damaged block leaves the other slot intact. */
const SLOT_DISTANCE = 4096;
const FILE_BYTES = 2 * SLOT_DISTANCE;

/** Commits within this time share one write of the mark. */
const WRITE_MS = 5;
/** The mark is synced after this time without a commit. */
const SYNC_MS = 20;

export class MarkFile {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #warn: (message: string) => void;
  #hasFailed = false;
  #newest: Mark | undefined;
  #written: Mark | undefined;
  #synced: Mark | undefined;
  #following: Promise<void> | undefined;
  readonly #closing = new AbortController();

  private constructor(path: string, file: FileHandle, warn: (message: string) => void) {
    this.#path = path;
    this.#file = file;
    this.#warn = warn;
  }

  /** Opens or creates the file for writing. `warn` is called if a later write fails. Throws errors of the system. */
  static async open(directory: string, warn: (message: string) => void): Promise<MarkFile> {
    const path = join(directory, MARK_FILE);
    const file = await open(path, constants.O_RDWR | constants.O_CREAT, FILE_MODE);
    try {
      const { size } = await file.stat();
      // Allocates the blocks, so that later writes need no space.
      if (size < FILE_BYTES) await writeParts(file.fd, [Buffer.alloc(FILE_BYTES - size)], size);
      return new MarkFile(path, file, warn);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Must be called for each commit that is on disk; the mark is written soon after. */
  advance(mark: Mark): void {
    this.#newest = mark;
    this.#following ??= this.#follow();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#newest !== this.#synced) {
      const pauseMs = this.#newest === this.#written ? SYNC_MS : WRITE_MS;
      await sleep(pauseMs, undefined, { ref: false, signal }).catch(() => {});
      await this.#writeNewest();
    }
    this.#following = undefined;
  }

  /** Writes the newest mark, or syncs it if it was already written. Never throws. */
  async #writeNewest(): Promise<void> {
    const mark = this.#newest!;
    try {
      if (mark === this.#written) {
        await this.#file.datasync();
        this.#synced = mark;
      } else await this.#put(mark);
      this.#hasFailed = false;
    } catch (error) {
      // The commits are on disk, and an outdated mark detects less but reports nothing wrong.
      this.#synced = mark;
      if (!this.#hasFailed) {
        this.#warn(
          `The file ${this.#path} cannot be written: ${(error as Error).message}. Commits are on disk, but a later loss of the last ones would go unnoticed.`,
        );
      }
      this.#hasFailed = true;
    }
    this.#written = mark;
  }

  /** The slots are written alternately. */
  async #put({ number, digest }: Mark): Promise<void> {
    const slot = Buffer.alloc(SLOT_BYTES);
    slot.set(MAGIC);
    slot.writeBigUInt64BE(BigInt(number), MAGIC.byteLength);
    slot.set(digest, MAGIC.byteLength + 8);
    slot.writeUInt32BE(crcOf(slot.subarray(0, -4)), SLOT_BYTES - 4);
    await writeParts(this.#file.fd, [slot], (number % 2) * SLOT_DISTANCE);
  }

  /** Writes this mark as the only one and syncs the file. Throws errors of the system. */
  async reset(mark: Mark): Promise<void> {
    await writeParts(this.#file.fd, [Buffer.alloc(FILE_BYTES)], 0);
    await this.#put(mark);
    await this.#file.sync();
  }

  /** Writes and syncs the mark of the last commit. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#following;
    await this.#file.close();
  }
}

/** Returns the newer of the two marks; undefined if neither is intact. */
export async function readMark(directory: string): Promise<Mark | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readFile(join(directory, MARK_FILE));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const marks = [0, SLOT_DISTANCE].map((at) => decodeSlot(bytes.subarray(at, at + SLOT_BYTES)));
  const [first, second] = marks;
  if (first === undefined || second === undefined) return first ?? second;
  return first.number > second.number ? first : second;
}

function decodeSlot(slot: Buffer): Mark | undefined {
  if (slot.byteLength !== SLOT_BYTES || !slot.subarray(0, MAGIC.byteLength).equals(MAGIC)) {
    return undefined;
  }
  if (slot.readUInt32BE(SLOT_BYTES - 4) !== crcOf(slot.subarray(0, -4))) return undefined;
  return {
    number: Number(slot.readBigUInt64BE(MAGIC.byteLength)),
    digest: Buffer.from(slot.subarray(MAGIC.byteLength + 8, SLOT_BYTES - 4)),
  };
}

/** Describes how the mark differs from a journal that ends with `head`; undefined if they agree. */
export function describeMark(mark: Mark | undefined, head: Head): string | undefined {
  if (mark === undefined) {
    return 'is missing or damaged: it is unknown whether the store contains the last commits';
  }
  const count = head.number - mark.number;
  if (count <= 0) return undefined;
  return `is ${count === 1 ? '1 commit' : `${count} commits`} behind the store, as after a crash`;
}
