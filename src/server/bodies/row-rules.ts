// The rules for the parts of a row but its vectors, whatever format it came in: ids, metadata and times. Each check
// returns what is wrong without its place in the request, which the caller knows.

import { z } from 'zod';
import type { Violation } from '../../common/errors.js';
import { describeKind } from './value-kinds.js';

/** What is wrong with a text to embed, or null. */
export function checkText(
  text: unknown,
  { embedCharactersMax }: { readonly embedCharactersMax: number },
): Violation | null {
  if (typeof text !== 'string' || text === '') {
    const found = text === '' ? 'an empty string' : describeKind(text);
    const detail = `A text to embed is a string that is not empty; found ${found}.`;
    return { code: 'invalid_request', detail };
  }
  if (text.length <= embedCharactersMax) return null;
  return {
    code: 'limit_exceeded',
    detail: `A text to embed has at most ${embedCharactersMax} characters; found ${text.length}.`,
    expected: embedCharactersMax,
    actual: text.length,
  };
}

/** The length of the id in bytes, or what is wrong with it. */
export function measureId(id: unknown, bytesMax: number): number | Violation {
  if (typeof id !== 'string') {
    return { code: 'invalid_request', detail: `An id is a string; found ${describeKind(id)}.` };
  }
  let byteCount = 0;
  for (let i = 0; i < id.length; i++) {
    const unit = id.charCodeAt(i);
    if (unit < 0x80) {
      if (unit < 0x20 || unit === 0x7f) return controlCharacter(unit, i);
      byteCount += 1;
    } else if (unit < 0x800) {
      if (unit < 0xa0) return controlCharacter(unit, i);
      byteCount += 2;
    } else if (unit < 0xd800 || unit > 0xdfff) {
      byteCount += 3;
    } else {
      const next = id.charCodeAt(i + 1);
      if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) {
        return {
          code: 'invalid_request',
          detail: `An id is text that UTF-8 can hold; found half of a surrogate pair at character ${i}.`,
        };
      }
      byteCount += 4;
      i++;
    }
  }
  if (byteCount === 0) return { code: 'invalid_request', detail: 'An id is never empty.' };
  if (byteCount > bytesMax) {
    return {
      code: 'limit_exceeded',
      detail: `An id has at most ${bytesMax} bytes of UTF-8; found ${byteCount}.`,
      expected: bytesMax,
      actual: byteCount,
    };
  }
  return byteCount;
}

function controlCharacter(unit: number, index: number): Violation {
  const name = `U+${unit.toString(16).toUpperCase().padStart(4, '0')}`;
  return {
    code: 'invalid_request',
    detail: `An id has no control characters; found ${name} at character ${index}.`,
  };
}

const TIME = z.regexes.datetime({ offset: true });

/** Milliseconds since the Unix epoch, Infinity for null, or what is wrong with the time. */
export function readExpiry(time: unknown): number | Violation {
  if (time === null) return Number.POSITIVE_INFINITY;
  if (typeof time === 'string' && TIME.test(time)) return Date.parse(time);
  const found = typeof time === 'string' ? JSON.stringify(time.slice(0, 40)) : describeKind(time);
  return {
    code: 'invalid_request',
    detail: `An expiry is a time such as "2027-01-31T12:00:00Z" (RFC 3339), or null for never; found ${found}.`,
  };
}

export interface MetadataLimits {
  readonly metadataBytesMax: number;
  readonly metadataDepthMax: number;
}

/** @param byteCount of its text as sent. */
export function checkMetadata(
  value: unknown,
  byteCount: number,
  limits: MetadataLimits,
): Violation | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return invalid(`Metadata is an object; found ${describeKind(value)}.`);
  }
  const { metadataBytesMax, metadataDepthMax } = limits;
  if (byteCount > metadataBytesMax) {
    return {
      ...invalid(`Metadata has at most ${metadataBytesMax} bytes; found ${byteCount}.`),
      expected: metadataBytesMax,
      actual: byteCount,
    };
  }
  return checkMembers(value, 1, metadataDepthMax);
}

/** A name, a value or an element inside of level `depth`. */
function checkMember(value: unknown, depth: number, depthMax: number): Violation | null {
  if (typeof value === 'string') return value.isWellFormed() ? null : LONE_SURROGATE;
  if (typeof value !== 'object' || value === null) return null;
  return checkMembers(value, depth + 1, depthMax);
}

/** Columns and files have UTF-8, in which it would become another text. */
const LONE_SURROGATE = invalid(
  'Names and strings in metadata are text that UTF-8 can hold; found half of a surrogate pair, such as \\ud83d alone.',
);

/** The metadata itself is level 1, and arrays count as levels too. */
function checkMembers(container: object, depth: number, depthMax: number): Violation | null {
  if (depth > depthMax) {
    return {
      ...invalid(`Metadata nests at most ${depthMax} levels deep; found more.`),
      expected: depthMax,
      actual: depth,
    };
  }
  if (Array.isArray(container)) {
    for (const element of container) {
      const violation = checkMember(element, depth, depthMax);
      if (violation !== null) return violation;
    }
    return null;
  }
  for (const [name, value] of Object.entries(container)) {
    if (name.startsWith('$')) {
      return invalid(
        'A name in metadata begins with "$"; such names are reserved for operators of filters.',
      );
    }
    const violation = checkMember(name, depth, depthMax) ?? checkMember(value, depth, depthMax);
    if (violation !== null) return violation;
  }
  return null;
}

function invalid(detail: string): Violation {
  return { code: 'invalid_metadata', detail };
}
