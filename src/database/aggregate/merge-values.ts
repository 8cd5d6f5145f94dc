// Adds up the counts of values of many segments and selects the most frequent values. Strings are compared as
// bytes, so that only the selected values become JavaScript strings.

import { randomBytes } from 'node:crypto';
import { decodeUtf8 } from '../../common/bytes.js';
import { isJsonNumber } from '../../common/exact-json.js';
import type { JsonNumber } from '../../common/types.js';
import { type HashKey, hashBytes } from '../../segment/id-hash.js';
import type { Facet, FacetValue } from '../api/aggregate-api.js';
import { NumberCounts } from './number-counts.js';
import type { StringCounts, ValueCounts } from './value-counts.js';

export type MergedValues = Pick<Facet, 'values' | 'distinctCount'>;

/** Unknown to clients, so that they cannot choose strings that share a slot. */
const HASH_KEY: HashKey = [randomBytes(4).readUInt32LE(), randomBytes(4).readUInt32LE()];

/** The most frequent values, at most `limit`; equal counts in the order of their values. */
export function mergeValues(parts: readonly ValueCounts[], limit: number): MergedValues {
  const top = new TopValues(limit);
  const stringCount = offerStrings(
    parts.flatMap(({ strings }) => strings),
    top,
  );
  const byNumber = new NumberCounts();
  for (const { numbers, numberCounts, integerCounts } of parts) {
    for (let i = 0; i < numbers.length; i++) byNumber.add(numbers[i]!, numberCounts[i]!);
    for (const [integer, count] of integerCounts) byNumber.add(integer, count);
  }
  const { numbers, numberCounts, integerCounts } = byNumber.entries();
  for (let i = 0; i < numbers.length; i++) top.offer(numbers[i]!, numberCounts[i]!);
  for (const [integer, count] of integerCounts) top.offer(integer, count);
  const numberCount = numbers.length + integerCounts.length;
  const falseCount = parts.reduce((sum, part) => sum + part.falseCount, 0);
  const trueCount = parts.reduce((sum, part) => sum + part.trueCount, 0);
  if (falseCount > 0) top.offer(false, falseCount);
  if (trueCount > 0) top.offer(true, trueCount);
  return {
    values: top.values(),
    distinctCount: stringCount + numberCount + (falseCount > 0 ? 1 : 0) + (trueCount > 0 ? 1 : 0),
  };
}

/**
 * A lower bound of the number of distinct values; strings of scalars and of array
 * elements may be equal or different.
 */
export function leastDistinctCount(counts: ValueCounts): number {
  const { strings, numbers, integerCounts, falseCount, trueCount } = counts;
  const stringCounts = strings.map(({ counts }) =>
    counts.reduce((used, count) => used + (count > 0 ? 1 : 0), 0),
  );
  const booleanCount = (falseCount > 0 ? 1 : 0) + (trueCount > 0 ? 1 : 0);
  const numberCount = numbers.length + integerCounts.length;
  return Math.max(0, ...stringCounts) + numberCount + booleanCount;
}

/** The work of `mergeValues`: the number of distinct values in all parts. */
export function countEntries(parts: readonly ValueCounts[]): number {
  return parts.reduce(
    (sum, { strings, numbers, integerCounts }) =>
      sum +
      numbers.length +
      integerCounts.length +
      strings.reduce((count, { counts }) => count + counts.length, 0),
    0,
  );
}

/** Offers each distinct string with its count over all dictionaries. Returns the number of strings. */
function offerStrings(parts: readonly StringCounts[], top: TopValues): number {
  const entriesMax = parts.reduce((sum, { counts }) => sum + counts.length, 0);
  if (entriesMax === 0) return 0;
  const mask = 2 ** Math.ceil(Math.log2(2 * entriesMax)) - 1;
  /** 1 + the index of a string, or 0. At most half of the slots are in use. */
  const slots = new Uint32Array(mask + 1);
  const strings: Uint8Array[] = [];
  const totals = new Float64Array(entriesMax);
  for (const { dictionary, counts } of parts) {
    const { offsets, bytes } = dictionary;
    for (let code = 0; code < counts.length; code++) {
      if (counts[code] === 0) continue;
      const string = bytes.subarray(offsets[code]!, offsets[code + 1]!);
      let slot = hashBytes(string, HASH_KEY) & mask;
      while (slots[slot] !== 0 && !isEqual(strings[slots[slot]! - 1]!, string)) {
        slot = (slot + 1) & mask;
      }
      if (slots[slot] === 0) slots[slot] = strings.push(string);
      totals[slots[slot]! - 1]! += counts[code]!;
    }
  }
  for (let i = 0; i < strings.length; i++) top.offer(strings[i]!, totals[i]!);
  return strings.length;
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let i = a.length - 1;
  while (i >= 0 && a[i] === b[i]) i--;
  return i < 0;
}

/** A string as its UTF-8 bytes. */
type RawValue = Uint8Array | JsonNumber | boolean;

interface Counted {
  readonly value: RawValue;
  readonly count: number;
}

/** The values with the highest counts, in order. */
class TopValues {
  readonly #limit: number;
  readonly #counted: Counted[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  offer(value: RawValue, count: number): void {
    if (this.#limit === 0) return;
    const isFull = this.#counted.length === this.#limit;
    // Most values are dropped here.
    if (isFull && count < this.#counted[this.#limit - 1]!.count) return;
    const offered = { value, count };
    let from = 0;
    let to = this.#counted.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (compareCounted(this.#counted[middle]!, offered) < 0) from = middle + 1;
      else to = middle;
    }
    if (from === this.#limit) return;
    this.#counted.splice(from, 0, offered);
    if (isFull) this.#counted.pop();
  }

  values(): { value: FacetValue; count: number }[] {
    return this.#counted.map(({ value, count }) => ({
      value: value instanceof Uint8Array ? decodeUtf8(value, 0, value.length) : value,
      count,
    }));
  }
}

function compareCounted(a: Counted, b: Counted): number {
  return b.count - a.count || compareRawValues(a.value, b.value);
}

/** Compares values in the order of `compareRawValues`. */
export function compareValues(a: FacetValue, b: FacetValue): number {
  return compareRawValues(rawOf(a), rawOf(b));
}

function rawOf(value: FacetValue): RawValue {
  return typeof value === 'string' ? Buffer.from(value) : value;
}

/** Numbers before strings before booleans, as in sorted queries; strings in the order of code points. */
function compareRawValues(a: RawValue, b: RawValue): number {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b);
  return rankOf(a) - rankOf(b) || (a < b ? -1 : Number(a > b));
}

function rankOf(value: RawValue): number {
  if (isJsonNumber(value)) return 0;
  return typeof value === 'boolean' ? 2 : 1;
}
