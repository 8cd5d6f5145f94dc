// The numbered files of a journal. Commits add frames to logs; a base holds the state from which the logs after it
// continue. Everything that is read is checked against its checksum.

import {
  closeSync,
  close as closeWithCallback,
  constants,
  fstatSync,
  fstat as fstatWithCallback,
  open as openWithCallback,
  readSync,
} from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SagittaError } from '../common/errors.js';
import { crcOf } from '../platform/crc32.js';
import { FILE_MODE, syncFolder } from './disk.js';
import type { Extent } from './extent.js';

const close = promisify(closeWithCallback);
const fstat = promisify(fstatWithCallback);
const open = promisify(openWithCallback);

export const JOURNAL_FOLDER = 'journal';
export const UNFINISHED_SUFFIX = '.unfinished';

export type FileKind = 'log' | 'base';

interface JournalFile {
  readonly number: number;
  readonly kind: FileKind;
  readonly descriptor: number;
  byteLength: number;
}

const NAME_PATTERN = /^(\d{8,})\.(log|base)$/;

export function fileName(number: number, kind: FileKind): string {
  return `${String(number).padStart(8, '0')}.${kind}`;
}

export class JournalFiles {
  /** The data directory or the backup. */
  readonly directory: string;
  readonly #folder: string;
  readonly #files = new Map<number, JournalFile>();
  /** Number of readers that still need the files that existed when they began. */
  #retainCount = 0;
  readonly #removed = new Set<number>();

  private constructor(directory: string) {
    this.directory = directory;
    this.#folder = join(directory, JOURNAL_FOLDER);
  }

  /** Ignores unfinished files. Throws errors of the system. */
  static async open(directory: string): Promise<JournalFiles> {
    const files = new JournalFiles(directory);
    try {
      for (const name of (await readdir(files.#folder)).sort()) {
        const [, digits, kind] = NAME_PATTERN.exec(name) ?? [];
        if (digits !== undefined)
          await files.#open(Number(digits), kind as FileKind, constants.O_RDONLY);
      }
    } catch (error) {
      files.close();
      throw error;
    }
    return files;
  }

  /** Sorted, ascending. */
  numbersOf(kind: FileKind): number[] {
    const found = [...this.#files.values()].filter((file) => file.kind === kind);
    return found.map(({ number }) => number).sort((a, b) => a - b);
  }

  /** All files except those that will be removed when their readers are done. */
  get numbers(): number[] {
    return [...this.#files.keys()].filter((number) => !this.#removed.has(number));
  }

  /** One more than the greatest file number. */
  get nextNumber(): number {
    return Math.max(0, ...this.#files.keys()) + 1;
  }

  has(number: number): boolean {
    return this.#files.has(number);
  }

  /** For a missing file, the message names both possible paths. */
  pathOf(number: number): string {
    const file = this.#files.get(number);
    if (file !== undefined) return join(this.#folder, fileName(number, file.kind));
    return `${join(this.#folder, fileName(number, 'log'))} or ${fileName(number, 'base')}`;
  }

  /** Creates a log or opens an existing one. Each write to it is on disk when it returns. */
  async openForWriting(number: number): Promise<number> {
    const before = this.#files.get(number);
    const { O_RDWR, O_CREAT, O_DSYNC } = constants;
    const file = await this.#open(number, 'log', O_RDWR | O_CREAT | O_DSYNC);
    if (before !== undefined) await close(before.descriptor);
    return file.descriptor;
  }

  /**
   * Adds a base that `write` writes and syncs; it gets its final name once it is complete. Throws errors of the system
   * and those of `write`, and then adds nothing.
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
      await this.#open(number, 'base', constants.O_RDONLY);
      return written;
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {});
      throw error;
    }
  }

  async #open(number: number, kind: FileKind, flags: number): Promise<JournalFile> {
    const descriptor = await open(join(this.#folder, fileName(number, kind)), flags, FILE_MODE);
    const { size } = await fstat(descriptor);
    const file = { number, kind, descriptor, byteLength: size };
    this.#files.set(number, file);
    return file;
  }

  /** Total size of all files. */
  get byteLength(): number {
    return this.numbers.reduce((sum, number) => sum + this.sizeOf(number), 0);
  }

  /** Reads the size from the disk, for a start. */
  measure(number: number): number {
    const file = this.#files.get(number)!;
    file.byteLength = fstatSync(file.descriptor).size;
    return file.byteLength;
  }

  /** The size is remembered, so that a disk that does not respond cannot block the caller. */
  sizeOf(number: number): number {
    return this.#files.get(number)!.byteLength;
  }

  /** Notes that the writer of a log has changed its size. */
  setSize(number: number, byteLength: number): void {
    this.#files.get(number)!.byteLength = byteLength;
  }

  /** Returns fewer bytes at the end of the file. Throws `data_corrupt` if the file cannot be read. */
  readBytes(number: number, offset: number, byteLength: number): Buffer {
    const file = this.#files.get(number);
    if (file === undefined) throw damagedFile(this.pathOf(number), 'it is missing');
    // Short records share buffers, because a start reads many.
    const bytes = Buffer.allocUnsafe(byteLength);
    let at = 0;
    try {
      while (at < byteLength) {
        const count = readSync(file.descriptor, bytes, at, byteLength - at, offset + at);
        if (count === 0) break;
        at += count;
      }
    } catch (error) {
      throw damagedFile(this.pathOf(number), (error as Error).message);
    }
    return bytes.subarray(0, at);
  }

  /** Returns undefined if the bytes do not match their checksum, or cannot be read. The caller owns the result. */
  readIntact(extent: Extent): Uint8Array | undefined {
    let bytes: Buffer;
    try {
      bytes = this.readBytes(extent.file, extent.offset, extent.byteLength);
    } catch {
      return undefined;
    }
    if (!isContent(bytes, extent)) return undefined;
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Whether the bytes match their checksum. Throws `data_corrupt` if they cannot be read. */
  isIntact(extent: Extent): boolean {
    return isContent(this.readBytes(extent.file, extent.offset, extent.byteLength), extent);
  }

  /**
   * Like `readIntact`, but throws `data_corrupt`; `what` names the content in the message. The caller owns the result.
   */
  read(extent: Extent, what: () => string): Uint8Array {
    const bytes = this.readIntact(extent);
    if (bytes !== undefined) return bytes;
    throw damagedFile(
      this.pathOf(extent.file),
      `${what()} at offset ${extent.offset} cannot be read or does not match its checksum`,
    );
  }

  /** Keeps removed files until the returned function is called. */
  retain(): () => void {
    this.#retainCount++;
    let isRetained = true;
    return () => {
      if (!isRetained) return;
      isRetained = false;
      if (--this.#retainCount === 0) void this.remove([]);
    };
  }

  /** Removes bases whose process died before they were finished. */
  async removeUnfinished(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      if (name.endsWith(UNFINISHED_SUFFIX)) await rm(join(this.#folder, name), { force: true });
    }
  }

  /** Never throws: the next start removes what is left. */
  async remove(numbers: readonly number[]): Promise<void> {
    for (const number of numbers) this.#removed.add(number);
    if (this.#retainCount > 0) return;
    const removed = [...this.#removed].map((number) => {
      const { descriptor } = this.#files.get(number)!;
      return { descriptor, path: this.pathOf(number) };
    });
    for (const number of this.#removed) this.#files.delete(number);
    this.#removed.clear();
    for (const { descriptor, path } of removed) {
      await close(descriptor).catch(() => {});
      await rm(path, { force: true }).catch(() => {});
    }
  }

  /** Files that are still in use are removed by the next start. */
  close(): void {
    for (const { descriptor } of this.#files.values()) closeSync(descriptor);
    this.#files.clear();
    this.#removed.clear();
  }
}

function isContent(bytes: Uint8Array, { byteLength, checksum }: Extent): boolean {
  return bytes.byteLength === byteLength && crcOf(bytes) === checksum;
}

export function damagedFile(path: string, what: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `The file ${path} is damaged: ${what.replace(/\.$/, '')}. Run "sagitta verify" to find other damage, and restore a backup.`,
  );
}
