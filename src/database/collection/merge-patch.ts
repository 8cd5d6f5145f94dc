// JSON merge patch (RFC 7396) of a vector's metadata, on the text: members that the patch does not
// name, and values that it sets, keep their spelling, so that no number loses a digit on the way.

import { field, type SagittaError, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { Json } from '../../common/types.js';
import { type JsonMember, readMembers, writeMembers } from './json-members.js';

/**
 * The patched object as JSON text; both texts are valid JSON objects. Throws `invalid_metadata`
 * when the result exceeds a bound.
 */
export function applyMergePatch(metadata: string, patch: string, limits: Limits): string {
  const text = merge(metadata, patch);
  const byteLength = Buffer.byteLength(text);
  if (byteLength > limits.metadataBytesMax) {
    throw tooMuch('bytes', limits.metadataBytesMax, byteLength);
  }
  const depth = depthOf(JSON.parse(text) as Json);
  if (depth > limits.metadataDepthMax) throw tooMuch('levels', limits.metadataDepthMax, depth);
  return text;
}

function merge(target: string | undefined, patch: string): string {
  const changes = readMembers(patch);
  if (changes === null) return patch;
  const members: Map<string, JsonMember> =
    (target === undefined ? null : readMembers(target)) ?? new Map();
  for (const { key, keyText, valueText } of changes.values()) {
    if (valueText === 'null') {
      members.delete(key);
    } else {
      const old = members.get(key);
      const merged = merge(old?.valueText, valueText);
      members.set(key, { key, keyText: old?.keyText ?? keyText, valueText: merged });
    }
  }
  return writeMembers(members.values());
}

function depthOf(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0;
  let deepest = 0;
  for (const member of Object.values(value)) deepest = Math.max(deepest, depthOf(member));
  return deepest + 1;
}

function tooMuch(unit: string, expected: number, actual: number): SagittaError {
  const detail = `The patched metadata has ${actual} ${unit}; at most ${expected} are kept.`;
  return validationError([
    { location: field('metadata'), code: 'invalid_metadata', detail, expected, actual },
  ]);
}
