// Parses and formats operands. Strings that would be parsed as another type are quoted.

import {
  isJsonNumber,
  parseExactJson,
  stringifyExactJson,
} from '../../../../../src/common/exact-json.js';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import type { Json, JsonNumber, JsonObject } from '../../../../../src/common/types.js';

type Scalar = string | JsonNumber | boolean;

/** Undefined for an empty text. With `hasOnlyStrings`, every text except `""` is taken as a string. */
export function parseScalar(text: string, hasOnlyStrings: boolean): Scalar | undefined {
  if (text === '') return undefined;
  if (text === '""') return '';
  if (hasOnlyStrings) return text;
  const value = parseJson(text);
  const isScalar = typeof value === 'string' || typeof value === 'boolean' || isJsonNumber(value);
  return isScalar ? value : text;
}

export function formatScalar(value: Json | undefined, hasOnlyStrings: boolean): string {
  if (value === undefined) return '';
  if (typeof value !== 'string') return stringifyExactJson(value);
  return parseScalar(value, hasOnlyStrings) === value ? value : stringifyExactJson(value);
}

/** A non-negative whole number, as `$size` requires. */
export function parseCount(text: string): number | undefined {
  return /^\d{1,15}$/.test(text.trim()) ? Number(text) : undefined;
}

const DATE = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/i;

/** An error message about a date; undefined if it is valid (RFC 3339) or empty. */
export function dateProblem(text: string): string | undefined {
  if (text === '' || (DATE.test(text) && !Number.isNaN(Date.parse(text.slice(0, 10))))) {
    return undefined;
  }
  return 'Expected a date or time such as 2026-01-31 or 2026-01-31T12:00:00Z.';
}

export type ParsedObject =
  | { readonly object: JsonObject; readonly problem?: never }
  | { readonly object?: never; readonly problem: string };

/** A JSON object, or an error message. */
export function parseObject(text: string): ParsedObject {
  let value: unknown;
  try {
    value = parseExactJson(text);
  } catch (error) {
    return { problem: `Expected JSON: ${(error as Error).message}` };
  }
  if (isJsonObject(value)) return { object: value };
  return { problem: `Expected a JSON object in braces, found ${describe(value)}.` };
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}

function parseJson(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}
