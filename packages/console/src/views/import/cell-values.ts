// What the values of cells mean: numbers, vectors, JSON, and how they are shown.

import {
  isStoredInteger,
  numberOf as jsonNumberOf,
  stringifyExactJson,
} from '../../../../../src/common/exact-json.js';
import { splitNumbers } from '../../../../../src/common/number-list.js';
import type { JsonNumber } from '../../../../../src/common/types.js';

/** NaN for what is no number. */
export function numberOf(cell: unknown): number {
  if (typeof cell === 'string') return cell.trim() === '' ? Number.NaN : Number(cell);
  return typeof cell === 'number' || typeof cell === 'bigint' ? Number(cell) : Number.NaN;
}

/**
 * The vector in a cell: an array of numbers, or text such as `[0.1, 0.2]`, `0.1 0.2` and `0.1;0.2`, or
 * base64 of little-endian float32. Undefined for anything else.
 */
export function vectorOf(cell: unknown): ArrayLike<number> | undefined {
  if (typeof cell === 'string') return vectorOfText(cell);
  if (ArrayBuffer.isView(cell) && !(cell instanceof DataView)) {
    return cell instanceof BigInt64Array || cell instanceof BigUint64Array
      ? Array.from(cell, Number)
      : (cell as Float32Array);
  }
  if (!Array.isArray(cell) || cell.length === 0) return undefined;
  const isNumbers = cell.every((item) => typeof item === 'number' || typeof item === 'bigint');
  return isNumbers ? cell.map(Number) : undefined;
}

const NUMBERS = /^\s*[[({]?\s*[-+.\d][-+.\deE,;\s]*[\])}]?\s*$/;
const BASE64 = /^[A-Za-z0-9+/]{8,}={0,2}$/;

function vectorOfText(text: string): ArrayLike<number> | undefined {
  if (NUMBERS.test(text)) {
    const { texts, separators } = splitNumbers(text);
    // Several separators mean decimal commas, probably: no guess is better than a wrong one.
    return texts.length > 1 && separators.length === 1 ? texts.map(Number) : undefined;
  }
  if (!BASE64.test(text) || text.length % 4 !== 0) return undefined;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  if (bytes.length % 4 !== 0) return undefined;
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, at) => view.getFloat32(4 * at, true));
}

const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** A cell of CSV without quotes. What metadata has no number for stays text. */
export function scalarOf(text: string): unknown {
  if (text === '') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  if (!JSON_NUMBER.test(text)) return text;
  if (/^-?\d+$/.test(text)) return integerOf(BigInt(text));
  const number = Number(text);
  return Number.isFinite(number) ? number : text;
}

/** With all digits: as text where metadata has no such integer. */
function integerOf(value: bigint): JsonNumber | string {
  return isStoredInteger(value) ? jsonNumberOf(value) : value.toString();
}

/** What metadata can hold: integers of more than 64 bits become text, times ISO 8601, numbers like NaN null. */
export function jsonOf(value: unknown): unknown {
  if (typeof value === 'bigint') return integerOf(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date) return value.toISOString();
  if (ArrayBuffer.isView(value)) {
    return Array.from(value as unknown as Iterable<unknown>, jsonOf);
  }
  if (Array.isArray(value)) return value.map(jsonOf);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, jsonOf(item)]));
}

const DESCRIBED_MAX = 80;

/** A value as it is shown in errors and previews. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  const text = typeof value === 'string' ? `"${value}"` : stringifyExactJson(jsonOf(value));
  return text.length > DESCRIBED_MAX ? `${text.slice(0, DESCRIBED_MAX)}…` : text;
}
