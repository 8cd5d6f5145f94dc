// A frame is what one group of commits adds to a file of the journal: a header, a directory with what changes, and the
// bodies, which are records and long values. The directory has the checksum of every body; header and directory have
// their own, and the header the digest of the frame before. So a frame shows by itself whether it is whole, and whether it
// follows the one before it. CRC-32 and not CRC-32C, since zlib has it where the addon for files is not built; with carry-less
// multiplication both take the same time.
//
// Header, little-endian: mark (4 bytes), CRC-32 of what follows it in the header (4), number of the frame (8, a float),
// length of the directory (4), CRC-32 of the directory (4), length of the bodies (8, a float), digest of the frame before
// (16). Checksums continue from a random number of the store, the seed, so that bytes which a client has stored are never
// taken for a frame.

import { hash } from 'node:crypto';
import { crcOf } from '../platform/crc32.js';
import { isPlace, type Place, type StoredValue } from './place.js';
import type { Change } from './store-state.js';

export const DIGEST_BYTES = 16;
export const FRAME_MARK = Buffer.from('SGF1');
export const HEADER_BYTES = 48;
/** Longer values are bodies. */
const INLINE_BYTES_MAX = 256;
/** Shorter bodies are copied together, so that a write has few parts. */
const GATHERED_BYTES_MAX = 64 * 1024;

/** Up to where a journal has been followed. */
export interface Head {
  /** Of the last frame; frames are numbered from 1 on without gaps. */
  readonly number: number;
  /** Of the last frame. */
  readonly digest: Buffer;
}

/** Before the first frame of a base. */
export const NO_FRAME: Head = { number: 0, digest: Buffer.alloc(DIGEST_BYTES) };
/** Of the frames of a base, which has the seed of the others. */
export const BASE_SEED = 0;

/** What a base begins with, and what it ends with: the state is that after this frame of the journal. */
type BaseEntry =
  | { readonly kind: 'format'; readonly version: number; readonly seed: number }
  | ({ readonly kind: 'end' } & Head);

/** What a frame consists of. */
export type FrameEntry = Change | BaseEntry;

/** Bytes that the frame is to have, or where they are already. They must not change until the frame is written. */
type Content = Uint8Array | Place;

export type EntryToWrite =
  | Exclude<FrameEntry, { kind: 'append' | 'put' }>
  | (Omit<Extract<Change, { kind: 'append' }>, 'place'> & { readonly place: Content })
  | (Omit<Extract<Change, { kind: 'put' }>, 'value'> & { readonly value: Content });

export interface Frame {
  readonly head: Head;
  readonly previousDigest: Buffer;
  readonly directory: Buffer;
  /** In bytes, from the start of the file. */
  readonly offset: number;
  /** Where the next frame begins. */
  readonly end: number;
}

/** How a member of an entry is written. `key`: one byte per character; `value`: a record is never `inline`. */
type Layout = 'text' | 'key' | 'number' | 'digest' | 'record' | 'value';

/** By kind; an entry begins with the index of its kind. */
const MEMBERS: readonly (readonly [FrameEntry['kind'], Readonly<Record<string, Layout>>])[] = [
  ['format', { version: 'number', seed: 'number' }],
  ['append', { log: 'text', sequence: 'number', place: 'record' }],
  ['put', { key: 'key', value: 'value' }],
  ['remove', { key: 'key' }],
  ['removeRange', { start: 'key', end: 'key' }],
  ['trim', { log: 'text', throughSequence: 'number' }],
  ['dropLog', { log: 'text' }],
  ['log', { log: 'text', last: 'number', through: 'number' }],
  ['end', { number: 'number', digest: 'digest' }],
];

/** One for all, as there may be very many. */
const EMPTY = new Uint8Array(0);

/** How the content of a record or value is written. */
const INLINE = 0;
const BODY = 1;
const ELSEWHERE = 2;

/** Collects the entries of a frame. */
export class FrameBuilder {
  #bytes = Buffer.allocUnsafe(1024);
  #at = HEADER_BYTES;
  readonly #bodies: Uint8Array[] = [];
  #bodyBytes = 0;

  /** Of the frame so far. */
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

  /** The frame as parts to be written one after another at `offset`, and what a reader finds there. */
  finish(previous: Head, offset: number, seed: number): { parts: Uint8Array[]; frame: Frame } {
    const bytes = this.#bytes.subarray(0, this.#at);
    FRAME_MARK.copy(bytes);
    bytes.writeDoubleLE(previous.number + 1, 8);
    bytes.writeUInt32LE(this.#at - HEADER_BYTES, 16);
    bytes.writeUInt32LE(crcOf(bytes.subarray(HEADER_BYTES), seed), 20);
    bytes.writeDoubleLE(this.#bodyBytes, 24);
    bytes.set(previous.digest, 32);
    bytes.writeUInt32LE(crcOf(bytes.subarray(8, HEADER_BYTES), seed), 4);
    return { parts: gathered([bytes, ...this.#bodies]), frame: frameOf(bytes, offset) };
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

/** Copies neighbours that are short into one part. */
function gathered(parts: readonly Uint8Array[]): Uint8Array[] {
  const result: Uint8Array[] = [];
  let short: Uint8Array[] = [];
  const endShort = () => {
    if (short.length > 0) result.push(short.length === 1 ? short[0]! : Buffer.concat(short));
    short = [];
  };
  for (const part of parts) {
    if (part.byteLength > GATHERED_BYTES_MAX) {
      endShort();
      result.push(part);
    } else if (part.byteLength > 0) short.push(part);
  }
  endShort();
  return result;
}

/** The length of the directory behind these bytes; undefined when they are not the header of a frame. */
export function directoryBytesOf(header: Buffer, seed: number): number | undefined {
  const isHeader =
    header.byteLength === HEADER_BYTES &&
    header.subarray(0, 4).equals(FRAME_MARK) &&
    header.readUInt32LE(4) === crcOf(header.subarray(8), seed);
  return isHeader ? header.readUInt32LE(16) : undefined;
}

/** The frame with this header and directory; undefined unless the directory has its checksum. */
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

/** The entries of a frame of this file, in order. Throws RangeError for a directory that nobody has written. */
export function* entriesOf(frame: Frame, file: number): Iterable<FrameEntry> {
  const reader = new DirectoryReader(frame, file);
  while (!reader.isAtEnd) yield reader.entry();
}

class DirectoryReader {
  readonly #bytes: Buffer;
  #at = 0;
  readonly #file: number;
  /** Where the next body is. */
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

/** Where the bytes of an entry are; undefined for one that has none, or has them itself. */
export function placeOf(entry: FrameEntry): Place | undefined {
  if (entry.kind === 'append') return entry.place;
  return entry.kind === 'put' && isPlace(entry.value) ? entry.value : undefined;
}
