// Zip archives: the directory, and the bytes of a member. Everything the archive states is checked: that
// records are where it says and lie apart, that both headers of a member agree, sizes, and CRC-32. Zip64 is
// supported; encrypted members and archives in several parts are not.

import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { crc32, createInflateRaw } from 'node:zlib';
import { CliError } from '../failure.js';
import { printable } from '../table.js';
import { CHUNK_BYTES, decompress, INFLATE_OPTIONS } from './source.js';

/** The end record of a zip file, which a comment of at most 65 535 bytes may follow. */
const END_BYTES = 22;
const COMMENT_BYTES_MAX = 65_535;
const END_MARK = 0x06054b50;
const LOCATOR_MARK = 0x07064b50;
const LOCATOR_BYTES = 20;
const LARGE_END_MARK = 0x06064b50;
const LARGE_END_BYTES = 56;
const ENTRY_MARK = 0x02014b50;
const ENTRY_BYTES = 46;
const LOCAL_MARK = 0x04034b50;
const LOCAL_BYTES = 30;
/** The extra field with the numbers that take more than four bytes. */
const LARGE_FIELD = 1;
/** Numbers that are in the extra field or the large end record. */
const IN_FIELD_16 = 0xffff;
const IN_FIELD_32 = 0xffffffff;
/** Far more members than anybody has in one archive. */
const DIRECTORY_BYTES_MAX = 64_000_000;
const ENCRYPTED_FLAG = 1;

const STORED = 0;
const DEFLATED = 8;

export interface ZipMember {
  /** May have any characters. */
  readonly name: string;
  readonly isCompressed: boolean;
  /** Offset of its bytes in the archive. */
  readonly start: number;
  readonly compressedBytes: number;
  readonly byteCount: number;
  readonly checksum: number;
}

interface Entry extends Omit<ZipMember, 'start' | 'isCompressed'> {
  readonly nameBytes: Uint8Array;
  readonly method: number;
  readonly flags: number;
  /** Of the local header. */
  readonly offset: number;
}

export class ZipArchive {
  /** For messages. */
  readonly #name: string;
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #entries: readonly Entry[];
  /** Where each member ends at the latest, by name. */
  readonly #ends: ReadonlyMap<string, number>;

  private constructor(file: ArchiveFile, entries: readonly Entry[], ends: Map<string, number>) {
    this.#name = file.name;
    this.#path = file.path;
    this.#handle = file.handle;
    this.#entries = entries;
    this.#ends = ends;
  }

  /** Throws CliError for a directory that is not valid. */
  static async open(file: ArchiveFile): Promise<ZipArchive> {
    const place = await findDirectory(file);
    const directory = await readExactly(file, place.offset, place.byteCount);
    const entries = entriesOf(file.name, directory, place.entryCount);
    return new ZipArchive(file, entries, endsOf(file.name, entries, place.offset));
  }

  /** In the order of the directory. */
  get names(): string[] {
    return this.#entries.map(({ name }) => name);
  }

  /** Throws CliError for a member that cannot be read. */
  async member(name: string): Promise<ZipMember> {
    const entry = this.#entries.find((each) => each.name === name)!;
    const { method, flags, nameBytes, offset, compressedBytes, byteCount, checksum } = entry;
    const label = `${this.#name}:${printable(name)}`;
    if ((flags & ENCRYPTED_FLAG) !== 0) throw new CliError(`${label}: the member is encrypted`);
    if (method !== STORED && method !== DEFLATED) {
      throw new CliError(`${label}: found compression method ${method}, expected none or deflate`);
    }
    if (method === STORED && compressedBytes !== byteCount) {
      throw damaged(label, `${compressedBytes} bytes are stored, but ${byteCount} are stated`);
    }
    const file = { name: this.#name, path: this.#path, handle: this.#handle };
    const local = await readExactly(file, offset, LOCAL_BYTES + nameBytes.length);
    const isSame =
      local.readUInt32LE(0) === LOCAL_MARK &&
      local.readUInt16LE(8) === method &&
      local.readUInt16LE(26) === nameBytes.length &&
      local.subarray(LOCAL_BYTES).equals(nameBytes);
    if (!isSame) throw damaged(label, 'its header differs from the directory');
    const start = offset + local.length + local.readUInt16LE(28);
    if (start + compressedBytes > this.#ends.get(name)!)
      throw damaged(label, 'its bytes overlap what follows');
    return { name, isCompressed: method === DEFLATED, start, compressedBytes, byteCount, checksum };
  }

  /**
   * The content of a member. Throws CliError when it has another length or checksum than stated, as soon
   * as that is known; a caller that stops earlier has unchecked bytes.
   */
  async *contentOf(member: ZipMember): AsyncGenerator<Uint8Array> {
    const label = `${this.#name}:${printable(member.name)}`;
    const raw = readRange(this.#path, member.start, member.compressedBytes);
    const content = member.isCompressed
      ? decompress(label, raw, createInflateRaw(INFLATE_OPTIONS))
      : raw;
    let byteCount = 0;
    let checksum = 0;
    for await (const chunk of content) {
      byteCount += chunk.length;
      if (byteCount > member.byteCount) break;
      checksum = crc32(chunk, checksum);
      yield chunk;
    }
    if (byteCount !== member.byteCount) {
      const found = byteCount > member.byteCount ? 'more' : String(byteCount);
      throw damaged(
        label,
        `found ${found} bytes, expected the ${member.byteCount} that are stated`,
      );
    }
    if (checksum === member.checksum) return;
    throw damaged(
      label,
      `its checksum (CRC-32) is ${hex(checksum)}, expected ${hex(member.checksum)}`,
    );
  }
}

export interface ArchiveFile {
  /** For messages. */
  readonly name: string;
  readonly path: string;
  readonly handle: FileHandle;
}

async function* readRange(
  path: string,
  start: number,
  byteCount: number,
): AsyncGenerator<Uint8Array> {
  // A stream cannot have an end before its start.
  if (byteCount === 0) return;
  const end = start + byteCount - 1;
  yield* createReadStream(path, { start, end, highWaterMark: CHUNK_BYTES });
}

interface DirectoryPlace {
  readonly offset: number;
  readonly byteCount: number;
  readonly entryCount: number;
}

/** https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.14 to 4.3.16. */
async function findDirectory(file: ArchiveFile): Promise<DirectoryPlace> {
  const { size } = await file.handle.stat();
  const tailBytes = Math.min(size, LOCATOR_BYTES + END_BYTES + COMMENT_BYTES_MAX);
  const tailStart = size - tailBytes;
  const tail = await readExactly(file, tailStart, tailBytes);
  const at = findEnd(tail);
  if (at === undefined) {
    throw damaged(file.name, 'it has no end record, so it is probably cut off');
  }
  let place: DirectoryPlace = {
    entryCount: tail.readUInt16LE(at + 10),
    byteCount: tail.readUInt32LE(at + 12),
    offset: tail.readUInt32LE(at + 16),
  };
  let disks = [tail.readUInt16LE(at + 4), tail.readUInt16LE(at + 6)];
  let end = tailStart + at;
  const isLarge =
    place.entryCount === IN_FIELD_16 ||
    place.byteCount === IN_FIELD_32 ||
    place.offset === IN_FIELD_32;
  const locatorAt = at - LOCATOR_BYTES;
  if (isLarge && locatorAt >= 0 && tail.readUInt32LE(locatorAt) === LOCATOR_MARK) {
    end = uint64(tail, locatorAt + 8);
    if (end + LARGE_END_BYTES > tailStart + locatorAt) {
      throw damaged(file.name, 'its end record is not where the archive says');
    }
    const record = await readExactly(file, end, LARGE_END_BYTES);
    if (record.readUInt32LE(0) !== LARGE_END_MARK) {
      throw damaged(file.name, 'its end record is not where the archive says');
    }
    disks = [record.readUInt32LE(16), record.readUInt32LE(20)];
    place = {
      entryCount: uint64(record, 32),
      byteCount: uint64(record, 40),
      offset: uint64(record, 48),
    };
  }
  if (disks.some((disk) => disk !== 0 && disk !== IN_FIELD_16)) {
    throw new CliError(`${file.name}: found one part of an archive, expected all in one file`);
  }
  if (place.byteCount > DIRECTORY_BYTES_MAX) {
    throw damaged(
      file.name,
      `its directory has ${place.byteCount} bytes, expected at most ${DIRECTORY_BYTES_MAX}`,
    );
  }
  if (place.offset + place.byteCount > end) {
    throw damaged(file.name, 'its directory is not where the end record says');
  }
  return place;
}

/** The last end record, whose comment fills the rest of the file. */
function findEnd(tail: Buffer): number | undefined {
  for (let at = tail.length - END_BYTES; at >= 0; at--) {
    if (tail.readUInt32LE(at) !== END_MARK) continue;
    if (at + END_BYTES + tail.readUInt16LE(at + 20) === tail.length) return at;
  }
  return undefined;
}

function entriesOf(file: string, directory: Buffer, entryCount: number): Entry[] {
  const entries = new Map<string, Entry>();
  let at = 0;
  while (at < directory.length) {
    const isWhole = at + ENTRY_BYTES <= directory.length;
    if (!isWhole || directory.readUInt32LE(at) !== ENTRY_MARK) {
      throw damaged(file, `entry ${entries.size + 1} of its directory is not valid`);
    }
    const nameEnd = at + ENTRY_BYTES + directory.readUInt16LE(at + 28);
    const extraEnd = nameEnd + directory.readUInt16LE(at + 30);
    const end = extraEnd + directory.readUInt16LE(at + 32);
    if (end > directory.length) {
      throw damaged(file, `entry ${entries.size + 1} of its directory is cut off`);
    }
    const nameBytes = directory.subarray(at + ENTRY_BYTES, nameEnd);
    const name = nameBytes.toString('utf8');
    if (entries.has(name)) throw damaged(file, `it has two members ${printable(name)}`);
    // A number that is too large for its four bytes is in the extra field, in this order.
    const large = largeNumbers(directory.subarray(nameEnd, extraEnd));
    const read = (from: number): number => {
      const value = directory.readUInt32LE(at + from);
      return value === IN_FIELD_32 ? (large.shift() ?? value) : value;
    };
    entries.set(name, {
      name,
      nameBytes,
      flags: directory.readUInt16LE(at + 8),
      method: directory.readUInt16LE(at + 10),
      checksum: directory.readUInt32LE(at + 16),
      byteCount: read(24),
      compressedBytes: read(20),
      offset: read(42),
    });
    at = end;
  }
  if (entries.size !== entryCount) {
    throw damaged(
      file,
      `its directory has ${entries.size} members, expected the ${entryCount} of the end record`,
    );
  }
  return [...entries.values()];
}

/** Where the next member or the directory begins, by name. Throws CliError for members that overlap. */
function endsOf(
  file: string,
  entries: readonly Entry[],
  directoryStart: number,
): Map<string, number> {
  const sorted = entries.toSorted((a, b) => a.offset - b.offset);
  const ends = new Map<string, number>();
  for (const [at, { name, nameBytes, offset, compressedBytes }] of sorted.entries()) {
    const end = sorted[at + 1]?.offset ?? directoryStart;
    if (offset + LOCAL_BYTES + nameBytes.length + compressedBytes > end) {
      throw damaged(file, `the bytes of ${printable(name)} overlap what follows`);
    }
    ends.set(name, end);
  }
  return ends;
}

function largeNumbers(extra: Buffer): number[] {
  for (let at = 0; at + 4 <= extra.length; ) {
    const end = at + 4 + extra.readUInt16LE(at + 2);
    if (extra.readUInt16LE(at) === LARGE_FIELD) {
      const numbers: number[] = [];
      for (let from = at + 4; from + 8 <= Math.min(end, extra.length); from += 8) {
        numbers.push(uint64(extra, from));
      }
      return numbers;
    }
    at = end;
  }
  return [];
}

/** Beyond 2^53 it is rounded, and so still beyond the end of any file. */
function uint64(bytes: Buffer, at: number): number {
  return Number(bytes.readBigUInt64LE(at));
}

function hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0');
}

async function readExactly(file: ArchiveFile, offset: number, length: number): Promise<Buffer> {
  const { size } = await file.handle.stat();
  if (offset + length > size) throw damaged(file.name, 'it ends within its records');
  const bytes = Buffer.alloc(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.handle.read(bytes, done, length - done, offset + done);
    if (bytesRead === 0) throw damaged(file.name, 'it ends within its records');
    done += bytesRead;
  }
  return bytes;
}

function damaged(name: string, reason: string): CliError {
  return new CliError(`${name}: not a valid zip archive: ${reason}`);
}
