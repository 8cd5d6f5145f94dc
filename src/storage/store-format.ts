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

/** For another version than that, or damage of its entry, the only one without a checksum. */
export function otherFormat(directory: string, found: string): SagittaError {
  if (/^[1-9]\d*$/.test(found)) {
    return new SagittaError(
      'configuration_invalid',
      `The data directory ${directory} has format version ${found}; this version of Sagitta reads ${FORMAT_VERSION}. Start the version that wrote it, or use another directory. If no other version was ever used, ${STORE_FILE} is damaged: restore a backup.`,
    );
  }
  return new SagittaError(
    'data_corrupt',
    `The file ${STORE_FILE} in ${directory} is damaged: its format version is ${JSON.stringify(found)}, expected ${FORMAT_VERSION}. Restore a backup.`,
  );
}

/**
 * `values` by key, `records` by log and sequence; `logs`: the last record of each log and how far it is trimmed;
 * `meta`: the format version, which is text, and the head. All entries but the version are sealed.
 */
export type TableName = 'meta' | 'values' | 'records' | 'logs';

/** Trimmed through this, a log is dropped as a whole: it is greater than every sequence. */
export const DROPPED = Number.MAX_SAFE_INTEGER;

/** lmdb allows 1 978 bytes with pages of 4 096; eight are reserved for a sequence or the end of a range. */
const KEY_BYTES_MAX = 1970;
export const SEQUENCE_BYTES = 8;
/** UTF-8 has no such byte: a prefix followed by it sorts after every key under the prefix. */
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
  assert(key.length > 0, 'a key has at least one part');
  return encodeParts(key);
}

export function decodeKey(bytes: Uint8Array): string[] {
  const parts = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    .toString('utf8')
    .split('\u0000');
  return parts.slice(0, -1).map(unescapePart);
}

/** The keys that start with these parts; without parts all keys. */
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

/** The records of a log with sequences from `first` through `last`. */
export function recordRange(log: string, first: number, last: number): KeyRange {
  return { start: encodeRecordKey(log, first), end: encodeRecordKey(log, last + 1) };
}

function encodeParts(parts: StoreKey): Buffer {
  let text = '';
  for (const part of parts) {
    assert(part.length > 0, 'parts of a key are not empty');
    assert(!LONE_SURROGATE.test(part), 'parts of a key are well-formed Unicode');
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

/** Unambiguous, because an escape always begins with 0x01 and both its bytes are consumed. */
function unescapePart(part: string): string {
  return part.replaceAll('\u0001\u0001', '\u0000').replaceAll('\u0001\u0002', '\u0001');
}

/** The log of a record's key: a name, a zero and eight bytes. Undefined for other keys. */
export function logOf(recordKey: Buffer): string | undefined {
  const end = recordKey.byteLength - SEQUENCE_BYTES;
  return end > 1 && recordKey[end - 1] === 0 ? decodeKey(recordKey.subarray(0, end))[0] : undefined;
}
