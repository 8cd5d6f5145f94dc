// The files of a journal, which are numbered: logs, to which commits add frames, and bases, which have the state from
// which the logs after them go on. What is read of them has its checksum compared.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SagittaError } from '../common/errors.js';
import { crcOf } from '../platform/crc32.js';
import { FILE_MODE, syncFolder } from './disk.js';
import type { Place } from './place.js';

export const JOURNAL_FOLDER = 'journal';
export const UNFINISHED_SUFFIX = '.unfinished';

export type FileKind = 'log' | 'base';

interface JournalFile {
  readonly number: number;
  readonly kind: FileKind;
  readonly descriptor: number;
}

const NAME_PATTERN = /^(\d{8,})\.(log|base)$/;

export function fileName(number: number, kind: FileKind): string {
  return `${String(number).padStart(8, '0')}.${kind}`;
}

export class JournalFiles {
  /** The data directory, or the backup. */
  readonly directory: string;
  readonly #folder: string;
  readonly #files = new Map<number, JournalFile>();
  /** Readers that need the files that there were when they began. */
  #retainCount = 0;
  readonly #removed = new Set<number>();

  private constructor(directory: string) {
    this.directory = directory;
    this.#folder = join(directory, JOURNAL_FOLDER);
  }

  /** Without unfinished files. Throws errors of the system. */
  static async open(directory: string): Promise<JournalFiles> {
    const files = new JournalFiles(directory);
    try {
      for (const name of (await readdir(files.#folder)).sort()) {
        const [, digits, kind] = NAME_PATTERN.exec(name) ?? [];
        if (digits !== undefined) files.#open(Number(digits), kind as FileKind, constants.O_RDONLY);
      }
    } catch (error) {
      files.close();
      throw error;
    }
    return files;
  }

  /** Ascending. */
  numbersOf(kind: FileKind): number[] {
    const found = [...this.#files.values()].filter((file) => file.kind === kind);
    return found.map(({ number }) => number).sort((a, b) => a - b);
  }

  /** Without those that are removed when their readers have ended. */
  get numbers(): number[] {
    return [...this.#files.keys()].filter((number) => !this.#removed.has(number));
  }

  /** Greater than the number of every file. */
  get nextNumber(): number {
    return Math.max(0, ...this.#files.keys()) + 1;
  }

  has(number: number): boolean {
    return this.#files.has(number);
  }

  /** Both names that it can have had, for a file that is missing. */
  pathOf(number: number): string {
    const file = this.#files.get(number);
    if (file !== undefined) return join(this.#folder, fileName(number, file.kind));
    return `${join(this.#folder, fileName(number, 'log'))} or ${fileName(number, 'base')}`;
  }

  /** Makes a log, or opens one for writing; each write to it is on the disk when it returns. */
  openForWriting(number: number): number {
    const before = this.#files.get(number);
    const { O_RDWR, O_CREAT, O_DSYNC } = constants;
    const file = this.#open(number, 'log', O_RDWR | O_CREAT | O_DSYNC);
    if (before !== undefined) closeSync(before.descriptor);
    return file.descriptor;
  }

  /**
   * Adds a base that `write` writes and syncs; it gets its name when it is whole. Throws errors of the
   * system, and those of `write`; there is no base then.
   */
  async addBase<Written>(
    number: number,
    write: (path: string) => Promise<Written>,
  ): Promise<Written> {
    const path = join(this.#folder, fileName(number, 'base'));
    const unfinished = `${path}${UNFINISHED_SUFFIX}`;
    try {
      const written = await write(unfinished);
      await rename(unfinished, path);
      await syncFolder(this.#folder);
      this.#open(number, 'base', constants.O_RDONLY);
      return written;
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {});
      throw error;
    }
  }

  #open(number: number, kind: FileKind, flags: number): JournalFile {
    const descriptor = openSync(join(this.#folder, fileName(number, kind)), flags, FILE_MODE);
    const file = { number, kind, descriptor };
    this.#files.set(number, file);
    return file;
  }

  /** The bytes of all files together. */
  get byteLength(): number {
    return this.numbers.reduce((sum, number) => sum + this.sizeOf(number), 0);
  }

  sizeOf(number: number): number {
    return fstatSync(this.#files.get(number)!.descriptor).size;
  }

  /** Fewer bytes at the end of the file. Throws `data_corrupt` where it cannot be read. */
  readBytes(number: number, offset: number, byteLength: number): Buffer {
    const file = this.#files.get(number);
    const path = this.pathOf(number);
    if (file === undefined) throw damagedFile(path, 'it is missing');
    const bytes = Buffer.allocUnsafeSlow(byteLength);
    let at = 0;
    try {
      while (at < byteLength) {
        const count = readSync(file.descriptor, bytes, at, byteLength - at, offset + at);
        if (count === 0) break;
        at += count;
      }
    } catch (error) {
      throw damagedFile(path, (error as Error).message);
    }
    return bytes.subarray(0, at);
  }

  /** Owned by the caller; undefined when the bytes are not those that were written, or cannot be read. */
  readIntact(place: Place): Uint8Array | undefined {
    let bytes: Buffer;
    try {
      bytes = this.readBytes(place.file, place.offset, place.byteLength);
    } catch {
      return undefined;
    }
    if (!isContent(bytes, place)) return undefined;
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Whether the bytes are those that were written. Throws `data_corrupt` where they cannot be read. */
  isIntact(place: Place): boolean {
    return isContent(this.readBytes(place.file, place.offset, place.byteLength), place);
  }

  /** Owned by the caller. Throws `data_corrupt` when the bytes are not those that were written; `what` they are. */
  read(place: Place, what: () => string): Uint8Array {
    const bytes = this.readIntact(place);
    if (bytes !== undefined) return bytes;
    throw damagedFile(
      this.pathOf(place.file),
      `${what()}, at offset ${place.offset}, cannot be read or does not have the checksum that it was written with`,
    );
  }

  /** Until the returned function is called, files that are removed stay. */
  retain(): () => void {
    this.#retainCount++;
    let isRetained = true;
    return () => {
      if (!isRetained) return;
      isRetained = false;
      if (--this.#retainCount === 0) void this.remove([]);
    };
  }

  /** Bases that were not finished when their process ended. */
  async removeUnfinished(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      if (name.endsWith(UNFINISHED_SUFFIX)) await rm(join(this.#folder, name), { force: true });
    }
  }

  /** Never throws: what stays is removed by the next start. */
  async remove(numbers: readonly number[]): Promise<void> {
    for (const number of numbers) this.#removed.add(number);
    if (this.#retainCount > 0) return;
    const paths = [...this.#removed].map((number) => this.pathOf(number));
    for (const number of this.#removed) {
      closeSync(this.#files.get(number)!.descriptor);
      this.#files.delete(number);
    }
    this.#removed.clear();
    for (const path of paths) await rm(path, { force: true }).catch(() => {});
  }

  /** Files whose readers have not ended are removed by the next start. */
  close(): void {
    for (const { descriptor } of this.#files.values()) closeSync(descriptor);
    this.#files.clear();
    this.#removed.clear();
  }
}

function isContent(bytes: Uint8Array, { byteLength, checksum }: Place): boolean {
  return bytes.byteLength === byteLength && crcOf(bytes) === checksum;
}

export function damagedFile(path: string, what: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `The file ${path} is damaged: ${what.replace(/\.$/, '')}. Run "sagitta verify" to find other damage, and restore a backup.`,
  );
}
