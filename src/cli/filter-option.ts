// Values of options that are JSON, given in the option or in a file, and numbers that need not be whole.

import { readFileSync } from 'node:fs';
import type { JsonObject } from '../common/types.js';
import { reasonOf, usageError } from './failure.js';

/** `name` is the option's, for errors. */
export function readFilter(name: string, option: string): JsonObject {
  const filter = parseJson(name, readText(name, option));
  if (typeof filter === 'object' && filter !== null && !Array.isArray(filter)) {
    return filter as JsonObject;
  }
  throw usageError(`${name}: expected a JSON object such as {"year": {"$gte": 2020}}`);
}

/** The option itself, `@file` or `-` for stdin. */
export function readText(name: string, option: string): string {
  const path = option === '-' ? 0 : option.startsWith('@') ? option.slice(1) : undefined;
  if (path === undefined) return option;
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw usageError(`${name}: ${reasonOf(cause, String(path || 'stdin'))}`);
  }
}

export function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`${name}: expected JSON: ${(error as Error).message}`);
  }
}

export function parseScore(text: string): number {
  const score = Number(text);
  if (text.trim() !== '' && Number.isFinite(score)) return score;
  throw usageError(`--score-threshold: expected a number, found "${text}"`);
}
