// What metadata may be: a JSON object of bounded bytes and depth, without names that a filter would
// take for operators.

import type { Violation } from '../../common/errors.js';
import { describeKind } from './describe-kind.js';

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
      if (typeof element !== 'object' || element === null) continue;
      const violation = checkMembers(element, depth + 1, depthMax);
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
    if (typeof value !== 'object' || value === null) continue;
    const violation = checkMembers(value, depth + 1, depthMax);
    if (violation !== null) return violation;
  }
  return null;
}

const invalid = (detail: string): Violation => ({ code: 'invalid_metadata', detail });
