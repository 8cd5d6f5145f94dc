// The rules for ids, metadata, texts and times of rows in any format. Each check returns a violation without its
// location in the request, which the caller knows.

import { z } from 'zod';
import type { Violation } from '../../common/errors.js';
import { isJsonObject } from '../../common/metadata-path.js';
import { describeKind } from './value-kinds.js';

export function checkText(
  text: unknown,
  { embedCharactersMax }: { readonly embedCharactersMax: number },
): Violation | null {
  if (typeof text !== 'string' || text === '') {
    const found = text === '' ? 'an empty string' : describeKind(text);
    const detail = `A text to embed is a non-empty string; found ${found}.`;
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

/** Returns the length of the id in bytes, or a violation. */
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
          detail: `An id is valid Unicode text; found half of a surrogate pair at character ${i}.`,
        };
      }
      byteCount += 4;
      i++;
    }
  }
  if (byteCount === 0)
    return { code: 'invalid_request', detail: 'An id is a non-empty string; found an empty one.' };
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

/** Returns milliseconds since the Unix epoch, Infinity for null, or a violation. */
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

/** @param byteCount the length of the text in the request. */
export function checkMetadata(
  value: unknown,
  byteCount: number,
  limits: MetadataLimits,
): Violation | null {
  if (!isJsonObject(value)) {
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

/** Checks a name, a value or an element at level `depth`. */
function checkMember(value: unknown, depth: number, depthMax: number): Violation | null {
  if (typeof value === 'string') return value.isWellFormed() ? null : LONE_SURROGATE;
  if (typeof value !== 'object' || value === null) return null;
  return checkMembers(value, depth + 1, depthMax);
}

/** Encoding it as UTF-8, for columns and files, would change the text. */
const LONE_SURROGATE = invalid(
  'Names and strings in metadata are valid Unicode text; found half of a surrogate pair, such as \\ud83d alone.',
);

/** The metadata itself is level 1. Arrays count as levels. */
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
        'A name in metadata begins with "$"; such names are reserved for filter operators.',
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
