// JSON with exact integers. A number is read as the nearest float64, except an integer of int64 or uint64
// that float64 does not have: that is a bigint. So each number has one form: equal ones are equal by `===`,
// and `<` compares numbers and bigints by value. Decimals and longer integers are rounded.

import { isJsonObject } from './metadata-path.js';
import type { Json, JsonNumber } from './types.js';

const INTEGER_MIN = -(2n ** 63n);
const INTEGER_MAX = 2n ** 64n - 1n;

/**
 * Finds, among others, each integer of int64 or uint64 that float64 does not have, of which the least positive one
 * is 9007199254740993; digits of decimals it does not find.
 */
const LONG_INTEGER = /(?:^|[^\d.])\d{16,20}(?![\d.eE])/;

/** Strings, and long integers with what stands before them, in JSON that is known to be valid. */
const STRINGS_AND_LONG_INTEGERS =
  /"[^"\\]*(?:\\.[^"\\]*)*"|(?:^|[[:,\s])-?\d{16,20}(?=[\s,\]}]|$)/g;

/**
 * Stands before the digits of an integer in a string that nobody else can know. Browsers have `randomUUID` for
 * pages over TLS only.
 */
const MARK = `integer ${crypto.getRandomValues(new Uint32Array(4)).join('-')} `;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, 'g');

/** Which numbers are exact. */
export interface ExactMembers {
  /** Those inside of members with these names. */
  readonly within: ReadonlySet<string>;
  /** In objects with these names no others: the names of their members are for clients to choose. */
  readonly except: ReadonlySet<string>;
}

/** Takes and throws what JSON.parse does; and RangeError for what nests too deeply. By default all numbers are exact. */
export function parseExactJson(text: string, members: ExactMembers | null = null): Json {
  const value = JSON.parse(text) as Json;
  // Digits in strings cost a second reading, and change nothing.
  if (!LONG_INTEGER.test(text)) return value;
  const marked = text.replace(STRINGS_AND_LONG_INTEGERS, (token) =>
    token.startsWith('"') ? token : token.replace(/-?\d+/, `"${MARK}$&"`),
  );
  return withIntegers(JSON.parse(marked) as Json, members ?? true);
}

/** The value with numbers in place of marked strings: exact ones or not, or by the members that they are in. */
function withIntegers(value: Json, isExact: ExactMembers | boolean): Json {
  if (typeof value === 'string') {
    if (!value.startsWith(MARK)) return value;
    const digits = value.slice(MARK.length);
    return isExact === true ? numberOf(BigInt(digits)) : Number(digits);
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = withIntegers(value[i]!, isExact);
    return value;
  }
  for (const [name, member] of Object.entries(value)) {
    value[name] = withIntegers(member, isExactIn(name, member, isExact));
  }
  return value;
}

function isExactIn(name: string, member: Json, isExact: ExactMembers | boolean) {
  if (typeof isExact === 'boolean') return isExact;
  if (isExact.within.has(name)) return true;
  return isExact.except.has(name) && isJsonObject(member) ? false : isExact;
}

export function isJsonNumber(value: unknown): value is JsonNumber {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** The number that JSON has for an integer. */
export function numberOf(integer: bigint): JsonNumber {
  const nearest = Number(integer);
  return isStoredInteger(integer) && BigInt(nearest) !== integer ? integer : nearest;
}

/** Whether the integer is one of int64 or uint64, which metadata holds exactly. */
export function isStoredInteger(integer: bigint): boolean {
  return integer >= INTEGER_MIN && integer <= INTEGER_MAX;
}

/** The greatest float64 below a finite one. */
export function nextBelow(number: number): number {
  if (number === 0) return -Number.MIN_VALUE;
  const bits = new BigInt64Array(Float64Array.of(number).buffer);
  bits[0]! += number > 0 ? -1n : 1n;
  return new Float64Array(bits.buffer)[0]!;
}

/** The greatest float64 that is at most the number. */
export function float64AtMost(value: JsonNumber): number {
  const nearest = Number(value);
  return nearest <= value ? nearest : nextBelow(nearest);
}

/**
 * A number as JSON that `parseExactJson` reads as the same one. JSON.stringify writes the shortest digits
 * that are nearest to a float64, which as an integer are another number.
 */
export function numberText(value: JsonNumber): string {
  return String(needsDigits(value) ? BigInt(value) : value);
}

function needsDigits(value: unknown): value is JsonNumber {
  if (typeof value === 'bigint') return true;
  // From 2^64 on no integer is exact.
  return (
    typeof value === 'number' &&
    Math.abs(value) > Number.MAX_SAFE_INTEGER &&
    Math.abs(value) < 2 ** 64
  );
}

/** As JSON.stringify, but `parseExactJson` reads the same numbers. Bigints are written with their digits. */
export function stringifyExactJson(
  value: unknown,
  replacer?: (value: unknown) => unknown,
  indentCount = 0,
): string {
  if (replacer === undefined && indentCount === 0) {
    const text = stringifyPlainJson(value);
    if (text !== null) return text;
  }
  let hasMarks = false;
  const text = JSON.stringify(
    value,
    (_key, member: unknown) => {
      if (!needsDigits(member)) return replacer === undefined ? member : replacer(member);
      hasMarks = true;
      return `${MARK}${numberText(member)}`;
    },
    indentCount,
  );
  return hasMarks ? text.replace(MARKED, '$1') : text;
}

/** Several times as fast; null for text that may have long integers. */
function stringifyPlainJson(value: unknown): string | null {
  try {
    const text = JSON.stringify(value);
    return LONG_INTEGER.test(text) ? null : text;
  } catch {
    // What has a bigint, or contains itself.
    return null;
  }
}
