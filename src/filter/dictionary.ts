// Looks up the strings of a filter in the dictionary of a column, once per evaluation. The result is a table by
// dictionary code, so that rows are compared as integers. The functions work on UTF-8 bytes, which sort in the order
// of code points, and create no JavaScript strings.

import type { Utf8Column } from '../common/types.js';
import type { StringTest } from './string-tests.js';

/** Returns the code of the string, or -1. The entries must be distinct. */
export function findString({ offsets, bytes }: Utf8Column, count: number, string: Uint8Array) {
  const { length } = string;
  let start = offsets[0];
  for (let code = 0; code < count; code++) {
    const end = offsets[code + 1];
    // The length excludes most entries.
    if (end - start === length && equalsBytes(bytes, start, end, string)) return code;
    start = end;
  }
  return -1;
}

/** Returns for each dictionary code 1 + the index of the equal string, or 0. Entries may repeat, `strings` must not. */
export function findStrings(
  dictionary: Utf8Column,
  count: number,
  strings: readonly Uint8Array[],
): Int32Array {
  const found = new Int32Array(count);
  const { offsets, bytes } = dictionary;
  if (strings.length === 1) {
    for (let code = 0; code < count; code++) {
      found[code] = Number(equalsBytes(bytes, offsets[code], offsets[code + 1], strings[0]));
    }
  } else if (strings.length > 1) {
    const index = indexStrings(strings);
    for (let code = 0; code < count; code++) {
      found[code] = findIndexed(index, bytes, offsets[code], offsets[code + 1]);
    }
  }
  return found;
}

/** The answer, 0 or 1, for each result of a comparison with a bound. */
export interface Passing {
  readonly below: number;
  readonly equal: number;
  readonly above: number;
}

/** Returns for each dictionary code the answer for the comparison of the entry with `bound`. */
export function compareStrings(
  { offsets, bytes }: Utf8Column,
  count: number,
  bound: Uint8Array,
  passing: Passing,
): Int32Array {
  const found = new Int32Array(count);
  for (let code = 0; code < count; code++) {
    const order = compareBytes(bytes, offsets[code], offsets[code + 1], bound);
    found[code] = order < 0 ? passing.below : order > 0 ? passing.above : passing.equal;
  }
  return found;
}

/** Returns for each dictionary code whether the entry passes the test, 0 or 1. After a stop the result is incomplete. */
export function testStrings(
  { offsets, bytes }: Utf8Column,
  count: number,
  test: StringTest,
  isStopped: () => boolean,
): Int32Array {
  const found = new Int32Array(count);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let code = 0; code < count; code++) {
    if (code % STRINGS_PER_CHECK === 0 && isStopped()) break;
    found[code] = Number(test(buffer, offsets[code], offsets[code + 1]));
  }
  return found;
}

/** A pattern takes microseconds on a long string, so a stop takes effect within milliseconds. */
const STRINGS_PER_CHECK = 256;

/** Returns a negative number, 0 or a positive number if `bytes[start..end)` is below, equal to or above `other`. */
function compareBytes(bytes: Uint8Array, start: number, end: number, other: Uint8Array): number {
  const shared = Math.min(end - start, other.length);
  for (let i = 0; i < shared; i++) {
    const difference = bytes[start + i] - other[i];
    if (difference !== 0) return difference;
  }
  return end - start - other.length;
}

/** Compares from the end, because names and ids share a prefix more often than a suffix. */
function equalsBytes(bytes: Uint8Array, start: number, end: number, other: Uint8Array): boolean {
  if (end - start !== other.length) return false;
  let i = other.length - 1;
  while (i >= 0 && bytes[start + i] === other[i]) i--;
  return i < 0;
}

/** Strings by hash, with open addressing. */
interface StringIndex {
  readonly strings: readonly Uint8Array[];
  /** 1 + the index of a string, or 0. The length is a power of two, and at most half of the slots are in use. */
  readonly slots: Int32Array;
  /** 1 at each length in bytes that occurs. This excludes most entries of a dictionary. */
  readonly hasLength: Uint8Array;
}

function indexStrings(strings: readonly Uint8Array[]): StringIndex {
  const slotCount = 2 ** Math.ceil(Math.log2(2 * strings.length));
  const slots = new Int32Array(slotCount);
  const lengthMax = strings.reduce((max, { length }) => Math.max(max, length), 0);
  const hasLength = new Uint8Array(lengthMax + 1);
  strings.forEach((string, i) => {
    hasLength[string.length] = 1;
    let slot = hashBytes(string, 0, string.length) & (slotCount - 1);
    while (slots[slot] !== 0) slot = (slot + 1) & (slotCount - 1);
    slots[slot] = i + 1;
  });
  return { strings, slots, hasLength };
}

function findIndexed(
  { strings, slots, hasLength }: StringIndex,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  const length = end - start;
  if (length >= hasLength.length || hasLength[length] === 0) return 0;
  const mask = slots.length - 1;
  for (let slot = hashBytes(bytes, start, end) & mask; ; slot = (slot + 1) & mask) {
    const found = slots[slot];
    if (found === 0 || equalsBytes(bytes, start, end, strings[found - 1])) return found;
  }
}

/** FNV-1a of `bytes[start..end)`, with its high bits folded into the low bits, which select a slot. */
function hashBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  return hash ^ (hash >>> 15);
}
