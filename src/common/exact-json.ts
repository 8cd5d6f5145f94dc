// JSON with exact integers. Numbers are read as the nearest float64, except int64 and uint64 integers that float64
// cannot represent: these become bigints. Each number thus has one form: equal numbers are equal by `===`, and `<`
// compares numbers and bigints by value. Decimals and longer integers are rounded.

import { isJsonObject } from './metadata-path.js';
import type { Json, JsonNumber } from './types.js';

const INTEGER_MIN = -(2n ** 63n);
const INTEGER_MAX = 2n ** 64n - 1n;

/**
 * Matches any text with an int64 or uint64 integer that float64 cannot represent, the smallest of which is
 * 9007199254740993. Digits of decimals do not match.
 */
const LONG_INTEGER = /(?:^|[^\d.])\d{16,20}(?![\d.eE])/;

/** Matches strings, and long integers with the character before them, in valid JSON. */
const STRINGS_AND_LONG_INTEGERS =
  /"[^"\\]*(?:\\.[^"\\]*)*"|(?:^|[[:,\s])-?\d{16,20}(?=[\s,\]}]|$)/g;

/**
 * Marks the digits of an integer inside a string; nobody else can know it. Browsers offer `randomUUID` only on pages
 * over TLS.
 */
const MARK = `integer ${crypto.getRandomValues(new Uint32Array(4)).join('-')} `;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, 'g');

/** Selects the numbers that are read exactly. */
export interface ExactMembers {
  /** Numbers inside members with these names are exact. */
  readonly within: ReadonlySet<string>;
  /**
   * Numbers inside objects with these names are not exact, whatever the names of their members, which clients choose.
   */
  readonly except: ReadonlySet<string>;
}

/**
 * Accepts the same text and throws the same errors as JSON.parse, and RangeError for excessive nesting. By default, all
 * numbers are exact.
 */
export function parseExactJson(text: string, members: ExactMembers | null = null): Json {
  const value = JSON.parse(text) as Json;
  // Digits inside strings also match, which only costs a second reading.
  if (!LONG_INTEGER.test(text)) return value;
  const marked = text.replace(STRINGS_AND_LONG_INTEGERS, (token) =>
    token.startsWith('"') ? token : token.replace(/-?\d+/, `"${MARK}$&"`),
  );
  return withIntegers(JSON.parse(marked) as Json, members ?? true);
}

/** Replaces marked strings by numbers, exact or not depending on the members that contain them. */
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

/** The JSON number for an integer. */
export function numberOf(integer: bigint): JsonNumber {
  const nearest = Number(integer);
  return isStoredInteger(integer) && BigInt(nearest) !== integer ? integer : nearest;
}

/** Whether the integer fits into int64 or uint64, which metadata holds exactly. */
export function isStoredInteger(integer: bigint): boolean {
  return integer >= INTEGER_MIN && integer <= INTEGER_MAX;
}

/** The greatest float64 below a finite number. */
export function nextBelow(number: number): number {
  if (number === 0) return -Number.MIN_VALUE;
  const bits = new BigInt64Array(Float64Array.of(number).buffer);
  bits[0]! += number > 0 ? -1n : 1n;
  return new Float64Array(bits.buffer)[0]!;
}

/** The greatest float64 that does not exceed the number. */
export function float64AtMost(value: JsonNumber): number {
  const nearest = Number(value);
  return nearest <= value ? nearest : nextBelow(nearest);
}

/**
 * Formats a number so that `parseExactJson` reads the same one. JSON.stringify writes the shortest digits that round to
 * the float64, which read as an exact integer may be another number.
 */
export function numberText(value: JsonNumber): string {
  return String(needsDigits(value) ? BigInt(value) : value);
}

function needsDigits(value: unknown): value is JsonNumber {
  if (typeof value === 'bigint') return true;
  // From 2^64 on, integers are never exact.
  return (
    typeof value === 'number' &&
    Math.abs(value) > Number.MAX_SAFE_INTEGER &&
    Math.abs(value) < 2 ** 64
  );
}

/** Like JSON.stringify, but `parseExactJson` reads the same numbers. Bigints are written as digits. */
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

/** Several times as fast; returns null for text that may contain long integers. */
function stringifyPlainJson(value: unknown): string | null {
  try {
    const text = JSON.stringify(value);
    return LONG_INTEGER.test(text) ? null : text;
  } catch {
    // The value contains a bigint or a cycle.
    return null;
  }
}
