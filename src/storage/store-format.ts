// The format of a data directory: names of files, tables and their keys, and the version.
//
// Keys are bytes that sort like the keys: part by part, each by its UTF-8 bytes. A part may hold any
// characters: it ends with 0x00, and a 0x00 or 0x01 inside it is written as two bytes. A record of a
// log is stored under the log's name and its sequence, eight bytes, high byte first.

import { assert, SagittaError } from '../common/errors.js';
import type { StoreKey } from './store.js';

/** Names in a data directory. */
export const STORE_FILE = 'store.lmdb';
export const BLOB_FOLDER = 'segments';

export const FORMAT_VERSION = 1;

export function newerFormat(directory: string, found: string): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    `The data directory ${directory} has format version ${found}; this Sagitta reads version ${FORMAT_VERSION}. Start the version that wrote it, or name another directory.`,
  );
}

/** `values` and `records` by the keys of store-keys.ts; `trims`: by log, how far it is trimmed. */
export type TableName = 'values' | 'records' | 'trims';

/** The mark of a log that is gone as a whole: past every sequence. */
export const DROPPED = Number.MAX_SAFE_INTEGER;

/** lmdb takes 1 978 bytes with pages of 4 096; eight are left for a sequence or the end of a range. */
const KEY_BYTES_MAX = 1970;
const SEQUENCE_BYTES = 8;
/** UTF-8 has no such byte: with it behind a prefix, every key under the prefix comes before. */
const AFTER_ALL = Buffer.of(0xff);
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Where the format version is stored in the table `meta`. */
export const FORMAT_KEY = encodeKey(['format']);

/** From `start` to before `end`. */
export interface KeyRange {
  readonly start: Buffer;
  readonly end: Buffer;
}

export function encodeKey(key: StoreKey): Buffer {
  assert(key.length > 0, 'a key has a part');
  return encodeParts(key);
}

export function decodeKey(bytes: Uint8Array): string[] {
  const parts = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    .toString('utf8')
    .split('\u0000');
  return parts.slice(0, -1).map(unescapePart);
}

/** Every key that starts with these parts; all keys when there are none. */
export function rangeUnder(prefix: StoreKey): KeyRange {
  if (prefix.length === 0) return { start: Buffer.of(0), end: AFTER_ALL };
  const start = encodeParts(prefix);
  return { start, end: Buffer.concat([start, AFTER_ALL]) };
}

export function encodeRecordKey(log: string, sequence: number): Buffer {
  const name = encodeParts([log]);
  const key = Buffer.alloc(name.byteLength + SEQUENCE_BYTES);
  key.set(name);
  key.writeBigUInt64BE(BigInt(sequence), name.byteLength);
  return key;
}

export function sequenceOf(recordKey: Uint8Array): number {
  const view = new DataView(recordKey.buffer, recordKey.byteOffset, recordKey.byteLength);
  return Number(view.getBigUint64(recordKey.byteLength - SEQUENCE_BYTES));
}

/** The records of a log with a sequence from `first` through `last`. */
export function recordRange(log: string, first: number, last: number): KeyRange {
  return { start: encodeRecordKey(log, first), end: encodeRecordKey(log, last + 1) };
}

function encodeParts(parts: StoreKey): Buffer {
  let text = '';
  for (const part of parts) {
    assert(part.length > 0, 'no part of a key is empty');
    assert(!LONE_SURROGATE.test(part), 'a part of a key is well-formed Unicode');
    text += `${escapePart(part)}\u0000`;
  }
  const bytes = Buffer.from(text);
  assert(
    bytes.byteLength <= KEY_BYTES_MAX,
    `a key has at most ${KEY_BYTES_MAX} bytes, found ${bytes.byteLength}`,
  );
  return bytes;
}

function escapePart(part: string): string {
  return part.replaceAll('\u0001', '\u0001\u0002').replaceAll('\u0000', '\u0001\u0001');
}

/** Read from the left, two bytes that belong together are never taken for halves of others. */
function unescapePart(part: string): string {
  return part.replaceAll('\u0001\u0001', '\u0000').replaceAll('\u0001\u0002', '\u0001');
}

export function encodeTrim(throughSequence: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(throughSequence));
  return bytes;
}

export function decodeTrim(bytes: Uint8Array): number {
  return Number(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(0));
}
