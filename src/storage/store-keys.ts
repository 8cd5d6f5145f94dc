// Keys as bytes whose order is the order of the keys: part by part, each by its UTF-8 bytes. A part
// may hold any characters: it ends with 0x00, and a 0x00 or 0x01 inside it is written as two bytes.
// A record of a log lies under the log's name and its sequence, eight bytes, high byte first.

import { assert } from '../common/errors.js';
import type { StoreKey } from './store.js';

/** lmdb takes 1 978 bytes with pages of 4 096; eight are left for a sequence or the end of a range. */
const KEY_BYTES_MAX = 1970;
const SEQUENCE_BYTES = 8;
/** UTF-8 has no such byte: with it behind a prefix, every key under the prefix comes before. */
const AFTER_ALL = Buffer.of(0xff);
const LONE_SURROGATE = /\p{Surrogate}/u;

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
