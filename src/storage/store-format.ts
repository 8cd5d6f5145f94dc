// The format of a data directory: its version, the names in it, and the encoding of keys.
//
// An encoded key is a string with one byte per character. Encoded keys sort like the keys themselves: part by part,
// each by its UTF-8 bytes. Each part ends with 0x00; a 0x00 or 0x01 inside a part is escaped with two bytes.

import { assert, SagittaError } from '../common/errors.js';
import type { StoreKey } from './store.js';

/** The folder of the blobs inside a data directory. */
export const BLOB_FOLDER = 'segments';

export const STORE_FORMAT_VERSION = 1;

export function unsupportedFormat(directory: string, found: number): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    `The data directory ${directory} has format version ${found}; this version of Sagitta reads ${STORE_FORMAT_VERSION}. Start the version that wrote it, or use another directory.`,
  );
}

const KEY_BYTES_MAX = 2_000;
const LONE_SURROGATE = /\p{Surrogate}/u;
/** A byte that never occurs in UTF-8: a prefix followed by it sorts after every key with that prefix. */
const AFTER_ALL = '\u00ff';

/** From `start` (inclusive) to `end` (exclusive). */
export interface KeyRange {
  readonly start: string;
  readonly end: string;
}

export function encodeKey(key: StoreKey): string {
  assert(key.length > 0, 'a key has at least one part');
  return encodeParts(key);
}

export function decodeKey(key: string): string[] {
  const parts = Buffer.from(key, 'latin1').toString('utf8').split('\u0000');
  return parts.slice(0, -1).map(unescapePart);
}

/** Describes a key in a message. */
export function nameOfKey(key: string): string {
  return `the value ${JSON.stringify(decodeKey(key).join('/'))}`;
}

/** The range of all keys that start with these parts; without parts, of all keys. */
export function rangeUnder(prefix: StoreKey): KeyRange {
  const start = encodeParts(prefix);
  return { start, end: `${start}${AFTER_ALL}` };
}

export const ALL_KEYS: KeyRange = rangeUnder([]);

function encodeParts(parts: StoreKey): string {
  let text = '';
  for (const part of parts) {
    requireName(part, 'a part of a key');
    text += `${escapePart(part)}\u0000`;
  }
  const key = Buffer.from(text).toString('latin1');
  assert(
    key.length <= KEY_BYTES_MAX,
    `a key has at most ${KEY_BYTES_MAX} bytes, found ${key.length}`,
  );
  return key;
}

/** Throws unless the name is well-formed Unicode and not empty. */
export function requireName(name: string, what: string): void {
  assert(name.length > 0, `${what} is not empty`);
  assert(!LONE_SURROGATE.test(name), `${what} is well-formed Unicode`);
}

function escapePart(part: string): string {
  return part.replaceAll('\u0001', '\u0001\u0002').replaceAll('\u0000', '\u0001\u0001');
}

/** Unambiguous, because an escape always begins with 0x01 and both of its bytes are consumed. */
function unescapePart(part: string): string {
  return part.replaceAll('\u0001\u0001', '\u0000').replaceAll('\u0001\u0002', '\u0001');
}
