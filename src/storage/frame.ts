// A frame is what one group of commits adds to a journal file: a header, a directory of the changes, and the bodies,
// which are records and long values. The directory holds a checksum for each body; header and directory have their own,
// and the header contains the digest of the previous frame. A frame thus shows whether it is complete and whether it
// follows the previous one. The checksum is CRC-32 rather than CRC-32C because zlib has it even without the addon for
// files; with carry-less multiplication both are equally fast.
//
// Header, little-endian: mark (4 bytes), CRC-32 of the rest of the header (4), frame number (8, a float), directory
// length (4), CRC-32 of the directory (4), total body length (8, a float), digest of the previous frame (16). Checksums
// start from the seed, a random number of the store, so bytes that a client stored are never mistaken for a frame.

import { hash } from 'node:crypto';
import { crcOf } from '../platform/crc32.js';
import { type Extent, isExtent, type StoredValue } from './extent.js';
import type { Change } from './store-state.js';

export const DIGEST_BYTES = 16;
export const FRAME_MARK = Buffer.from('SGF1');
export const HEADER_BYTES = 48;
/** Longer values become bodies. */
const INLINE_BYTES_MAX = 256;
/** Shorter bodies are copied into one part, so that a write has few parts. */
const SHORT_BYTES_MAX = 64 * 1024;

/** The last frame that was read or written. */
export interface Head {
  /** Frames are numbered from 1 without gaps. */
  readonly number: number;
  readonly digest: Buffer;
}

/** The head before the first frame of a base. */
export const NO_FRAME: Head = { number: 0, digest: Buffer.alloc(DIGEST_BYTES) };
/** The seed for the frames of a base, which itself stores the seed for all other frames. */
export const BASE_SEED = 0;

/** The first and the last entry of a base. The state is the one after the frame that `end` names. */
type BaseEntry =
  | { readonly kind: 'format'; readonly version: number; readonly seed: number }
  | ({ readonly kind: 'end' } & Head);

export type FrameEntry = Change | BaseEntry;

/** The bytes to write, or where they already are. Bytes must not change until the frame is written. */
type Content = Uint8Array | Extent;

export type EntryToWrite =
  | Exclude<FrameEntry, { kind: 'append' | 'put' }>
  | (Omit<Extract<Change, { kind: 'append' }>, 'extent'> & { readonly extent: Content })
  | (Omit<Extract<Change, { kind: 'put' }>, 'value'> & { readonly value: Content });

export interface Frame {
  readonly head: Head;
  readonly previousDigest: Buffer;
  readonly directory: Buffer;
  /** In bytes from the start of the file. */
  readonly offset: number;
  /** Offset of the next frame. */
  readonly end: number;
}

/** The encoding of a member. A `key` has one byte per character; a `record`, unlike a `value`, is never inline. */
type Layout = 'text' | 'key' | 'number' | 'digest' | 'record' | 'value';

/** The members of each kind of entry. On disk, an entry begins with its index in this list. */
const MEMBERS: readonly (readonly [FrameEntry['kind'], Readonly<Record<string, Layout>>])[] = [
  ['format', { version: 'number', seed: 'number' }],
  ['append', { log: 'text', sequence: 'number', extent: 'record' }],
  ['put', { key: 'key', value: 'value' }],
  ['remove', { key: 'key' }],
  ['removeRange', { start: 'key', end: 'key' }],
  ['trim', { log: 'text', throughSequence: 'number' }],
  ['dropLog', { log: 'text' }],
  ['log', { log: 'text', last: 'number', through: 'number' }],
  ['end', { number: 'number', digest: 'digest' }],
];

/** Shared by all empty values, as there may be very many. */
const EMPTY = new Uint8Array(0);

/** Encodings of the content of a record or value. */
const INLINE = 0;
const BODY = 1;
const ELSEWHERE = 2;

export class FrameBuilder {
  #bytes = Buffer.allocUnsafe(1024);
  #at = HEADER_BYTES;
  readonly #bodies: Uint8Array[] = [];
  #bodyBytes = 0;

  /** Size of the frame so far. */
  get byteLength(): number {
    return this.#at + this.#bodyBytes;
  }

  get isEmpty(): boolean {
    return this.#at === HEADER_BYTES;
  }

  add(entry: EntryToWrite): void {
    const index = MEMBERS.findIndex(([kind]) => kind === entry.kind);
    this.#byte(index);
    const values = entry as unknown as Readonly<Record<string, never>>;
    for (const [name, layout] of Object.entries(MEMBERS[index]![1])) {
      this.#write(layout, values[name]!);
    }
  }

  /** Returns the frame as parts to write in sequence at `offset`, and as a reader will find it there. */
  finish(previous: Head, offset: number, seed: number): { parts: Uint8Array[]; frame: Frame } {
    const bytes = this.#bytes.subarray(0, this.#at);
    FRAME_MARK.copy(bytes);
    bytes.writeDoubleLE(previous.number + 1, 8);
    bytes.writeUInt32LE(this.#at - HEADER_BYTES, 16);
    bytes.writeUInt32LE(crcOf(bytes.subarray(HEADER_BYTES), seed), 20);
    bytes.writeDoubleLE(this.#bodyBytes, 24);
    bytes.set(previous.digest, 32);
    bytes.writeUInt32LE(crcOf(bytes.subarray(8, HEADER_BYTES), seed), 4);
    return { parts: mergeShortParts([bytes, ...this.#bodies]), frame: frameOf(bytes, offset) };
  }

  #write(layout: Layout, value: string & number & Buffer & Content): void {
    switch (layout) {
      case 'text':
      case 'key': {
        const encoding = layout === 'text' ? 'utf8' : 'latin1';
        const byteLength = Buffer.byteLength(value, encoding);
        this.#room(2 + byteLength);
        this.#at = this.#bytes.writeUInt16LE(byteLength, this.#at);
        this.#at += this.#bytes.write(value, this.#at, encoding);
        break;
      }
      case 'number':
        this.#number(value);
        break;
      case 'digest':
        this.#copy(value);
        break;
      case 'record':
      case 'value':
        this.#content(value, layout === 'value');
        break;
    }
  }

  #content(content: Content, mayBeInline: boolean): void {
    if (!(content instanceof Uint8Array)) {
      this.#byte(ELSEWHERE);
      this.#number(content.byteLength);
      this.#number(content.checksum);
      this.#number(content.file);
      this.#number(content.offset);
    } else if (mayBeInline && content.byteLength <= INLINE_BYTES_MAX) {
      this.#byte(INLINE);
      this.#number(content.byteLength);
      this.#copy(content);
    } else {
      this.#byte(BODY);
      this.#number(content.byteLength);
      this.#number(crcOf(content));
      this.#bodies.push(content);
      this.#bodyBytes += content.byteLength;
    }
  }

  #byte(value: number): void {
    this.#room(1);
    this.#at = this.#bytes.writeUInt8(value, this.#at);
  }

  #number(value: number): void {
    this.#room(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  #copy(bytes: Uint8Array): void {
    this.#room(bytes.byteLength);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.byteLength;
  }

  #room(byteLength: number): void {
    const needed = this.#at + byteLength;
    if (needed <= this.#bytes.byteLength) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.byteLength));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}

/** Merges adjacent short parts into one. */
function mergeShortParts(parts: readonly Uint8Array[]): Uint8Array[] {
  const result: Uint8Array[] = [];
  let short: Uint8Array[] = [];
  const endShort = () => {
    if (short.length > 0) result.push(short.length === 1 ? short[0]! : Buffer.concat(short));
    short = [];
  };
  for (const part of parts) {
    if (part.byteLength > SHORT_BYTES_MAX) {
      endShort();
      result.push(part);
    } else if (part.byteLength > 0) short.push(part);
  }
  endShort();
  return result;
}

/** Returns the length of the directory after this header; undefined if these bytes are not a header. */
export function directoryBytesOf(header: Buffer, seed: number): number | undefined {
  const isHeader =
    header.byteLength === HEADER_BYTES &&
    header.subarray(0, 4).equals(FRAME_MARK) &&
    header.readUInt32LE(4) === crcOf(header.subarray(8), seed);
  return isHeader ? header.readUInt32LE(16) : undefined;
}

/** Returns the frame with this header and directory; undefined if the checksum of the directory does not match. */
export function openFrame(bytes: Buffer, offset: number, seed: number): Frame | undefined {
  const isWhole = bytes.readUInt32LE(20) === crcOf(bytes.subarray(HEADER_BYTES), seed);
  return isWhole ? frameOf(bytes, offset) : undefined;
}

function frameOf(bytes: Buffer, offset: number): Frame {
  return {
    head: {
      number: bytes.readDoubleLE(8),
      digest: hash('sha256', bytes, 'buffer').subarray(0, DIGEST_BYTES),
    },
    previousDigest: bytes.subarray(32, HEADER_BYTES),
    directory: bytes.subarray(HEADER_BYTES),
    offset,
    end: offset + bytes.byteLength + bytes.readDoubleLE(24),
  };
}

/** The entries of a frame in order. Throws RangeError for a directory that no version has written. */
export function* entriesOf(frame: Frame, file: number): Iterable<FrameEntry> {
  const reader = new DirectoryReader(frame, file);
  while (!reader.isAtEnd) yield reader.entry();
}

class DirectoryReader {
  readonly #bytes: Buffer;
  #at = 0;
  readonly #file: number;
  /** Offset of the next body. */
  #bodyOffset: number;

  constructor({ directory, offset }: Frame, file: number) {
    this.#bytes = directory;
    this.#file = file;
    this.#bodyOffset = offset + HEADER_BYTES + directory.byteLength;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.byteLength;
  }

  entry(): FrameEntry {
    const index = this.#bytes.readUInt8(this.#at++);
    const members = MEMBERS[index];
    if (members === undefined) throw new RangeError(`an entry of the unknown kind ${index}`);
    const entry: Record<string, unknown> = { kind: members[0] };
    for (const [name, layout] of Object.entries(members[1])) entry[name] = this.#read(layout);
    return entry as unknown as FrameEntry;
  }

  #read(layout: Layout): unknown {
    switch (layout) {
      case 'text':
      case 'key': {
        const byteLength = this.#bytes.readUInt16LE(this.#at);
        this.#at += 2;
        return this.#slice(byteLength).toString(layout === 'text' ? 'utf8' : 'latin1');
      }
      case 'number':
        return this.#number();
      case 'digest':
        return Buffer.from(this.#slice(DIGEST_BYTES));
      case 'record':
      case 'value':
        return this.#content();
    }
  }

  #content(): StoredValue {
    const how = this.#bytes.readUInt8(this.#at++);
    const byteLength = this.#number();
    if (how === INLINE) return byteLength === 0 ? EMPTY : new Uint8Array(this.#slice(byteLength));
    const checksum = this.#number();
    if (how === ELSEWHERE) {
      return { file: this.#number(), offset: this.#number(), byteLength, checksum };
    }
    const offset = this.#bodyOffset;
    this.#bodyOffset += byteLength;
    return { file: this.#file, offset, byteLength, checksum };
  }

  #number(): number {
    this.#at += 8;
    return this.#bytes.readDoubleLE(this.#at - 8);
  }

  #slice(byteLength: number): Buffer {
    this.#at += byteLength;
    return this.#bytes.subarray(this.#at - byteLength, this.#at);
  }
}

/** Returns where the bytes of an entry are; undefined if the entry has none, or contains them. */
export function extentOf(entry: FrameEntry): Extent | undefined {
  if (entry.kind === 'append') return entry.extent;
  return entry.kind === 'put' && isExtent(entry.value) ? entry.value : undefined;
}
