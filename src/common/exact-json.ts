// JSON with exact integers. A number is read as the nearest float64, except an integer of int64 or uint64
// that float64 does not have: that is a bigint. So each number has one form: equal ones are equal by `===`,
// and `<` compares numbers and bigints by value. Decimals and longer integers are rounded.

import type { Json, JsonNumber } from './types.js';

const INTEGER_MIN = -(2n ** 63n);
const INTEGER_MAX = 2n ** 64n - 1n;

/** The least positive integer that float64 does not have is 9007199254740993. */
const LONG_INTEGER = /\d{16}/;

/** Which numbers are exact. */
export interface ExactMembers {
  /** Those inside of members with these names. */
  readonly within: ReadonlySet<string>;
  /** In objects with these names no others: the names of their members are for clients to choose. */
  readonly except: ReadonlySet<string>;
}

/** Whether numbers are exact, are not, or are inside of members that are looked for. */
type Exactness = 'exact' | 'rounded' | 'by name';

/** Takes and throws what JSON.parse does; and RangeError for what nests too deeply. By default all numbers are exact. */
export function parseExactJson(text: string, members: ExactMembers | null = null): Json {
  const value = JSON.parse(text) as Json;
  // Digits in strings and in decimals cost a second reading, and change nothing.
  if (!LONG_INTEGER.test(text)) return value;
  return new ExactReader(text, members).readValue(members === null ? 'exact' : 'by name');
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

/** Reads JSON that is known to be valid. */
class ExactReader {
  readonly #text: string;
  readonly #members: ExactMembers | null;
  #at = 0;

  constructor(text: string, members: ExactMembers | null) {
    this.#text = text;
    this.#members = members;
  }

  readValue(exactness: Exactness): Json {
    const first = this.#skipSpace();
    if (first === '{') return this.#readObject(exactness);
    if (first === '[') return this.#readArray(exactness);
    if (first === '"') return this.#readString();
    const scalar = this.#take(/[^\s,\]}]+/y);
    const isLong = exactness === 'exact' && /^-?\d{16,20}$/.test(scalar);
    return isLong ? numberOf(BigInt(scalar)) : (JSON.parse(scalar) as Json);
  }

  #readObject(exactness: Exactness): Json {
    const object: Json = {};
    while (this.#next('}')) {
      const name = this.#readString();
      this.#skipSpace();
      this.#at++;
      const value = this.readValue(exactness === 'by name' ? this.#exactnessOf(name) : exactness);
      // As JSON.parse does it: a member like any other.
      if (name !== '__proto__') object[name] = value;
      else {
        Object.defineProperty(object, name, {
          value,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      }
    }
    return object;
  }

  #exactnessOf(name: string): Exactness {
    if (this.#members!.within.has(name)) return 'exact';
    const isExcepted = this.#members!.except.has(name) && this.#skipSpace() === '{';
    return isExcepted ? 'rounded' : 'by name';
  }

  #readArray(exactness: Exactness): Json[] {
    const array: Json[] = [];
    while (this.#next(']')) array.push(this.readValue(exactness));
    return array;
  }

  /** Goes over the opening bracket or a comma to a member or an element; over `end`, and false, after the last. */
  #next(end: string): boolean {
    const isLast = this.#skipSpace() === end;
    this.#at++;
    if (isLast) return false;
    if (this.#skipSpace() !== end) return true;
    this.#at++;
    return false;
  }

  #readString(): string {
    const text = this.#take(/"(?:[^"\\]|\\.)*"/y);
    return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
  }

  #skipSpace(): string {
    this.#take(/\s*/y);
    return this.#text[this.#at]!;
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text)!;
    this.#at += found.length;
    return found;
  }
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

/**
 * Stands before the digits of an integer in a string that nobody else can know. Browsers have `randomUUID` for
 * pages over TLS only.
 */
const MARK = `integer ${crypto.getRandomValues(new Uint32Array(4)).join('-')} `;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, 'g');

/** As JSON.stringify, but `parseExactJson` reads the same numbers. Bigints are written with their digits. */
export function stringifyExactJson(value: unknown, replacer?: (value: unknown) => unknown): string {
  if (replacer === undefined) {
    const text = stringifyPlainJson(value);
    if (text !== null) return text;
  }
  let hasMarks = false;
  const text = JSON.stringify(value, (_key, member: unknown) => {
    if (!needsDigits(member)) return replacer === undefined ? member : replacer(member);
    hasMarks = true;
    return `${MARK}${numberText(member)}`;
  });
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
