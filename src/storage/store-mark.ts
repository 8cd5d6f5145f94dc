// The file beside lmdb's that has the number and the digest of the last commit. lmdb has two states, of its
// last two transactions, and damage can lead it to the older one, or to parts of still older ones; the mark
// shows that commits are missing. It is written after the commit is on disk and before it is acknowledged, so
// that it is never ahead of intact tables. It is not synced: after a power failure it may be behind them.

import { constants } from 'node:fs';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crcOf } from '../platform/crc32.js';
import { FILE_MODE } from './disk.js';
import { DIGEST_BYTES } from './log-chain.js';
import { isAfter, type StoreHead } from './store-head.js';

export const MARK_FILE = 'store.mark';

export interface Mark {
  readonly number: number;
  readonly digest: Buffer;
}

const MAGIC = Buffer.from('SGTMARK1');
const SLOT_BYTES = MAGIC.byteLength + 8 + DIGEST_BYTES + 4;
/** Each slot is in a block of its own: a write that is torn, or a damaged block, leaves the other one. */
const SLOT_DISTANCE = 4096;
const FILE_BYTES = 2 * SLOT_DISTANCE;

export class MarkFile {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #warn: (message: string) => void;
  #hasFailed = false;

  private constructor(path: string, file: FileHandle, warn: (message: string) => void) {
    this.#path = path;
    this.#file = file;
    this.#warn = warn;
  }

  /**
   * Opens the file, or makes it, for writing. `warn` is told when it cannot be written later. Throws errors of
   * the system.
   */
  static async open(directory: string, warn: (message: string) => void): Promise<MarkFile> {
    const path = join(directory, MARK_FILE);
    const file = await open(path, constants.O_RDWR | constants.O_CREAT, FILE_MODE);
    try {
      const { size } = await file.stat();
      // With its blocks, so that later writes need no space.
      if (size < FILE_BYTES) await writeWhole(file, Buffer.alloc(FILE_BYTES - size), size);
      return new MarkFile(path, file, warn);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /**
   * Never throws: the commit is on disk, and a mark that stays behind it shows less, but nothing wrong. The next
   * commit writes it again.
   */
  async write(mark: Mark): Promise<void> {
    try {
      await this.#put(mark);
      this.#hasFailed = false;
    } catch (error) {
      if (this.#hasFailed) return;
      this.#hasFailed = true;
      this.#warn(
        `The file ${this.#path} cannot be written: ${(error as Error).message}. Commits are on disk, but the loss of the last ones would not be noticed.`,
      );
    }
  }

  /** The slots are written in turns. */
  async #put({ number, digest }: Mark): Promise<void> {
    const slot = Buffer.alloc(SLOT_BYTES);
    slot.set(MAGIC);
    slot.writeBigUInt64BE(BigInt(number), MAGIC.byteLength);
    slot.set(digest, MAGIC.byteLength + 8);
    slot.writeUInt32BE(crcOf(slot.subarray(0, -4)), SLOT_BYTES - 4);
    await writeWhole(this.#file, slot, (number % 2) * SLOT_DISTANCE);
  }

  /** Writes the mark as the only one and syncs the file. Throws errors of the system. */
  async reset(mark: Mark): Promise<void> {
    await writeWhole(this.#file, Buffer.alloc(FILE_BYTES), 0);
    await this.#put(mark);
    await this.#file.sync();
  }

  /** Syncs the file, so that the mark is not behind after an orderly stop. */
  async close(): Promise<void> {
    await this.#file.sync().catch(() => {});
    await this.#file.close();
  }
}

/** The system may write less than it is asked to. */
async function writeWhole(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.byteLength; ) {
    const length = bytes.byteLength - at;
    at += (await file.write(bytes, at, length, position + at)).bytesWritten;
  }
}

/** The newer mark of the file; undefined when there is none that is intact. */
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

export interface MarkFinding {
  /** `behind`, `missing`: the mark is replaced. Otherwise commits of the store are missing. */
  readonly kind: 'equal' | 'behind' | 'missing' | 'lost';
  readonly what: string;
}

/** Compares the mark with the head of the tables. */
export function compareMark(mark: Mark | undefined, head: StoreHead): MarkFinding {
  if (mark === undefined) {
    const what =
      'is missing or damaged: whether the last commits are in the store cannot be checked';
    return { kind: 'missing', what };
  }
  const { number, digest } = mark;
  if (number > head.number) {
    const what = `the store ends with commit ${head.number}, but ${MARK_FILE} says that commit ${number} was written: ${number - head.number} commits are missing`;
    return { kind: 'lost', what };
  }
  const isDifferent =
    (number === head.number && !digest.equals(head.digest)) ||
    (number === head.number - 1 && !isAfter(head, digest));
  if (isDifferent) {
    const what = `commit ${number} of the store is not the one that ${MARK_FILE} was written for: one of them is of another time or another store`;
    return { kind: 'lost', what };
  }
  if (number === head.number) return { kind: 'equal', what: '' };
  const what = `is ${head.number - number} commits behind the store, as after a power failure`;
  return { kind: 'behind', what };
}
