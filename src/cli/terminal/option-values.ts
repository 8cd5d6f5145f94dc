// Parsers of option values that several commands share: numbers, lists of names, column ranges, JSON (inline, from a
// file or from stdin), durations and times.

import { readFileSync } from 'node:fs';
import { InvalidArgumentError, Option } from 'commander';
import { isJsonObject } from '../../common/metadata-path.js';
import type { JsonObject } from '../../common/types.js';
import { show } from '../../readers/read-error.js';
import { fileErrorText, usageError } from './failure.js';

/** `a, b` → `['a', 'b']`. */
export function splitNames(text: string): string[] {
  const names = text.split(',').map((name) => name.trim());
  return names.filter((name) => name !== '');
}

/** A parser for integers from `min` to `max`, which throws InvalidArgumentError. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected an integer from ${min} to ${max}.`);
  };
}

/** A parser for finite numbers, which throws CliError with the option's name. */
export function anyNumber(option: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isFinite(value)) return value;
    throw usageError(`${option}: expected a number, found "${text}"`);
  };
}

/** Largest range that is expanded: more columns than any vector has values. */
const COLUMNS_MAX = 1_000_000;

/** `x,y` → `['x', 'y']`, `d0..d2` → `['d0', 'd1', 'd2']`. Throws InvalidArgumentError. */
export function expandColumns(text: string): string[] {
  const names = splitNames(text).flatMap(expandRange);
  if (names.length > 0) return names;
  throw new InvalidArgumentError('Expected column names such as d0..d767 or x,y,z.');
}

function expandRange(text: string): string[] {
  const range = /^(.*?)(\d+)\.\.(.*?)(\d+)$/.exec(text);
  if (range === null) return [text];
  const [, prefix, first, lastPrefix, last] = range as unknown as string[];
  const from = Number(first);
  const to = Number(last);
  if ((lastPrefix !== '' && lastPrefix !== prefix) || to < from || to - from >= COLUMNS_MAX) {
    throw new InvalidArgumentError(`Expected a range such as d0..d767, found ${text}.`);
  }
  // Leading zeros in the first number set the width of all numbers: d000..d767.
  const width = first!.startsWith('0') ? first!.length : 0;
  return Array.from(
    { length: to - from + 1 },
    (_, at) => prefix! + String(from + at).padStart(width, '0'),
  );
}

/** A CSV delimiter; `\t` and `tab` stand for the tab character. */
export function parseDelimiter(text: string): string {
  if (text === '') throw new InvalidArgumentError('Expected a character.');
  return text === '\\t' || text === 'tab' ? '\t' : text;
}

/** The option `--decimal` for CSV files. */
export function decimalOption(): Option {
  const description = 'decimal point of CSV numbers; , for 0,5 (default: .)';
  return new Option('--decimal <character>', description).choices(['.', ',']);
}

/**
 * A JSON object given inline, as `@file` or on stdin (`-`); the server checks its members. `name` is the option's name,
 * for errors.
 */
export function readJsonObject<Value extends object = JsonObject>(
  name: string,
  option: string,
): Value {
  const value = parseJsonOption(name, readTextOption(name, option));
  if (isJsonObject(value)) return value as unknown as Value;
  throw usageError(`${name}: expected a JSON object; found ${show(value)}`);
}

/** The text of the option itself, of a file (`@file`) or of stdin (`-`). Throws CliError. */
export function readTextOption(name: string, option: string): string {
  const path = option === '-' ? 0 : option.startsWith('@') ? option.slice(1) : undefined;
  if (path === undefined) return option;
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw usageError(`${name}: ${fileErrorText(cause, String(path || 'stdin'))}`);
  }
}

/** Throws CliError with the option's name when the text is not JSON. */
export function parseJsonOption(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`${name}: expected JSON; ${(error as Error).message}`);
  }
}

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `30s`, `15m`, `12h` or `90d` in milliseconds. Throws CliError with the option's name. */
export function parseDuration(option: string, text: string): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count === undefined) {
    throw usageError(
      `${option}: expected a duration such as 30s, 15m, 12h or 90d, found "${text}"`,
    );
  }
  return Number(count) * UNIT_MS[unit!]!;
}

/** Parses a duration from `nowMs` on, or a time, into ISO 8601 in UTC. Throws CliError with the option's name. */
export function parseExpiry(option: string, text: string, nowMs: number): string {
  const ms = timeMs(option, text, (durationMs) => nowMs + durationMs);
  if (Number.isNaN(ms) || ms > Date.UTC(9999, 0)) {
    throw usageError(`${option}: expected a time before the year 9999, found "${text}"`);
  }
  return new Date(ms).toISOString();
}

/** Parses a duration before `nowMs`, or a time, into ISO 8601 in UTC. Throws CliError with the option's name. */
export function parsePast(option: string, text: string, nowMs: number): string {
  const ms = timeMs(option, text, (durationMs) => nowMs - durationMs);
  if (Number.isNaN(ms) || ms < 0) {
    throw usageError(`${option}: expected a time since 1970, found "${text}"`);
  }
  return new Date(ms).toISOString();
}

/** Milliseconds since 1970; NaN for a date that does not exist. */
function timeMs(option: string, text: string, fromNow: (durationMs: number) => number): number {
  if (/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text)) {
    return Date.parse(text);
  }
  if (/^\d+[smhd]$/.test(text)) return fromNow(parseDuration(option, text));
  throw usageError(
    `${option}: expected a duration such as 90d, or a time such as 2027-01-01 or 2027-01-01T12:00:00Z, found "${text}"`,
  );
}
