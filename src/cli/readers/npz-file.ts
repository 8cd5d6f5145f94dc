// NumPy's .npz archives: a zip file with a .npy file for each array, stored or deflated. One array is
// read, as a file of its own would be.

import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createInflateRaw } from 'node:zlib';
import { CliError, usageError } from '../failure.js';
import { openNpy } from './npy-file.js';
import type { ReadOptions, RowReader } from './row-batch.js';
import {
  CHUNK_BYTES,
  decompress,
  HEAD_BYTES,
  INFLATE_OPTIONS,
  type InputSource,
  skipBytes,
} from './source.js';

/** The end record of a zip file, which a comment of at most 65 535 bytes may follow. */
const END_BYTES = 22;
const TAIL_BYTES_MAX = END_BYTES + 65_535;
const END_MARK = 0x06054b50;
const LOCATOR_MARK = 0x07064b50;
const LOCATOR_BYTES = 20;
const ENTRY_MARK = 0x02014b50;
const ENTRY_BYTES = 46;
const LOCAL_BYTES = 30;
/** The extra field with the numbers that take more than four bytes. */
const ZIP64_FIELD = 1;
const MANY = 0xffffffff;
/** Far more arrays than anybody has in one archive. */
const DIRECTORY_BYTES_MAX = 64_000_000;

const STORED = 0;
const DEFLATED = 8;

interface Entry {
  readonly name: string;
  readonly method: number;
  /** Of the local header. */
  readonly offset: number;
  readonly compressedBytes: number;
}

const ARRAY_SUFFIX = '.npy';

/** Throws CliError when the archive has no such array, or several and none is named. */
export async function openNpz(source: InputSource, options: ReadOptions): Promise<RowReader> {
  const path = source.path!;
  const handle = await open(path);
  try {
    const entries = await readDirectory(handle, source);
    const entry = chooseArray(source.name, entries, options.dataset);
    const local = await readExactly(handle, source.name, entry.offset, LOCAL_BYTES);
    const start = entry.offset + LOCAL_BYTES + local.readUInt16LE(26) + local.readUInt16LE(28);
    const member = await openMember(source, entry, start);
    const place = entry.method === STORED ? { path, start } : undefined;
    return await openNpy(member, options, place);
  } finally {
    await handle.close();
  }
}

function chooseArray(file: string, entries: readonly Entry[], wanted: string | undefined): Entry {
  const arrays = entries.filter(({ name }) => name.endsWith(ARRAY_SUFFIX));
  const names = arrays.map(({ name }) => name.slice(0, -ARRAY_SUFFIX.length));
  const [first] = arrays;
  if (first === undefined) throw new CliError(`${file}: the archive contains no array (.npy)`);
  if (wanted === undefined && arrays.length === 1) return first;
  const at = wanted === undefined ? -1 : names.indexOf(wanted);
  if (at !== -1) return arrays[at]!;
  const found = wanted === undefined ? `found ${arrays.length} arrays` : `no array ${wanted}`;
  throw usageError(`${file}: ${found} (arrays: ${names.join(', ')}); choose one with --dataset`);
}

async function openMember(source: InputSource, entry: Entry, start: number): Promise<InputSource> {
  const { name, method, compressedBytes } = entry;
  const label = `${source.name}:${name}`;
  if (method !== STORED && method !== DEFLATED) {
    throw new CliError(`${label}: found compression method ${method}, expected none or deflate`);
  }
  async function* raw(from: number): AsyncGenerator<Uint8Array> {
    // A stream cannot have an end before its start.
    if (from >= compressedBytes) return;
    const end = start + compressedBytes - 1;
    yield* createReadStream(source.path!, { start: start + from, end, highWaterMark: CHUNK_BYTES });
  }
  const chunks = (from = 0): AsyncIterable<Uint8Array> => {
    if (method === STORED) return raw(from);
    return skipBytes(decompress(label, raw(0), createInflateRaw(INFLATE_OPTIONS)), from);
  };
  return {
    name: label,
    byteCount: undefined,
    bytesRead: () => 0,
    markRead: source.markRead,
    path: undefined,
    isCompressed: method === DEFLATED,
    head: await headOf(chunks()),
    chunks,
  };
}

async function headOf(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  let head = Buffer.alloc(0);
  for await (const chunk of chunks) {
    head = Buffer.concat([head, chunk]);
    if (head.length >= HEAD_BYTES) break;
  }
  return head.subarray(0, HEAD_BYTES);
}

/** https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.12 to 4.3.16. */
async function readDirectory(handle: FileHandle, source: InputSource): Promise<Entry[]> {
  const { name } = source;
  const byteCount = source.byteCount!;
  const tailBytes = Math.min(byteCount, TAIL_BYTES_MAX + LOCATOR_BYTES);
  const tail = await readExactly(handle, name, byteCount - tailBytes, tailBytes);
  let endAt = tail.length - END_BYTES;
  while (endAt >= 0 && tail.readUInt32LE(endAt) !== END_MARK) endAt--;
  if (endAt < 0) throw damaged(name, 'it has no end record, so it is probably cut off');
  let length = tail.readUInt32LE(endAt + 12);
  let offset = tail.readUInt32LE(endAt + 16);
  const locatorAt = endAt - LOCATOR_BYTES;
  if (locatorAt >= 0 && tail.readUInt32LE(locatorAt) === LOCATOR_MARK) {
    const end = await readExactly(handle, name, uint64(tail, locatorAt + 8), 56);
    length = uint64(end, 40);
    offset = uint64(end, 48);
  }
  if (length > DIRECTORY_BYTES_MAX) {
    throw damaged(
      name,
      `its directory has ${length} bytes, expected at most ${DIRECTORY_BYTES_MAX}`,
    );
  }
  return entriesOf(name, await readExactly(handle, name, offset, length));
}

function entriesOf(file: string, directory: Buffer): Entry[] {
  const entries: Entry[] = [];
  for (let at = 0; at + ENTRY_BYTES <= directory.length; ) {
    if (directory.readUInt32LE(at) !== ENTRY_MARK)
      throw damaged(file, 'its directory is not valid');
    const nameEnd = at + ENTRY_BYTES + directory.readUInt16LE(at + 28);
    const extraEnd = nameEnd + directory.readUInt16LE(at + 30);
    // A number that is too large for its four bytes is in the extra field, in this order.
    const large = largeNumbers(directory.subarray(nameEnd, extraEnd));
    const read = (from: number): number => {
      const value = directory.readUInt32LE(at + from);
      return value === MANY ? (large.shift() ?? value) : value;
    };
    read(24);
    const compressedBytes = read(20);
    const offset = read(42);
    const name = directory.toString('utf8', at + ENTRY_BYTES, nameEnd);
    entries.push({ name, method: directory.readUInt16LE(at + 10), offset, compressedBytes });
    at = extraEnd + directory.readUInt16LE(at + 32);
  }
  return entries;
}

function largeNumbers(extra: Buffer): number[] {
  for (let at = 0; at + 4 <= extra.length; ) {
    const end = at + 4 + extra.readUInt16LE(at + 2);
    if (extra.readUInt16LE(at) === ZIP64_FIELD) {
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

function uint64(bytes: Buffer, at: number): number {
  return Number(bytes.readBigUInt64LE(at));
}

async function readExactly(
  handle: FileHandle,
  name: string,
  offset: number,
  length: number,
): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await handle.read(bytes, 0, length, offset);
  if (bytesRead < length) throw damaged(name, 'it ends within its directory');
  return bytes;
}

function damaged(name: string, reason: string): CliError {
  return new CliError(`${name}: not a valid .npz archive: ${reason}`);
}
