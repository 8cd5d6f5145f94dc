// JSON merge patch (RFC 7396) of a vector's metadata, applied to its text. Members that the patch does not name,
// and values that it sets, keep their spelling, so that no number loses a digit.

import { field, type SagittaError, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { Json } from '../../common/types.js';
import { type JsonMember, readMembers } from '../../formats/json/json-scanner.js';

/**
 * The patched object as JSON text; both texts must be valid JSON objects. Throws `invalid_metadata` if the result
 * exceeds a bound.
 */
export function applyMergePatch(metadata: string, patch: string, limits: Limits): string {
  const text = merge(metadata, patch);
  const byteLength = Buffer.byteLength(text);
  if (byteLength > limits.metadataBytesMax) {
    throw boundExceeded('bytes', limits.metadataBytesMax, byteLength);
  }
  const depth = depthOf(JSON.parse(text) as Json);
  if (depth > limits.metadataDepthMax)
    throw boundExceeded('levels', limits.metadataDepthMax, depth);
  return text;
}

/** Whether the patch would change the object. A different spelling of a value counts as a change. */
export function isChangedBy(metadata: string, patch: string): boolean {
  const changes = membersByName(patch);
  const members = membersByName(metadata);
  if (changes === null || members === null) return metadata !== patch;
  return [...changes.values()].some(({ name, text }) => {
    const old = members.get(name);
    if (text === 'null') return old !== undefined;
    return old === undefined || isChangedBy(old.text, text);
  });
}

function merge(target: string | undefined, patch: string): string {
  const changes = membersByName(patch);
  if (changes === null) return patch;
  const members = (target === undefined ? null : membersByName(target)) ?? new Map();
  for (const change of changes.values()) {
    if (change.text === 'null') {
      members.delete(change.name);
    } else {
      const old = members.get(change.name);
      const text = merge(old?.text, change.text);
      members.set(change.name, { ...change, nameText: old?.nameText ?? change.nameText, text });
    }
  }
  return `{${Array.from(members.values(), ({ nameText, text }) => `${nameText}:${text}`).join(',')}}`;
}

/** The members by name; the last of equal names wins, as in JSON.parse. Null for JSON that is not an object. */
function membersByName(text: string): Map<string, JsonMember> | null {
  if (!text.trimStart().startsWith('{')) return null;
  return new Map(readMembers(text).map((member) => [member.name, member]));
}

function depthOf(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0;
  let deepest = 0;
  for (const member of Object.values(value)) deepest = Math.max(deepest, depthOf(member));
  return deepest + 1;
}

function boundExceeded(unit: string, expected: number, actual: number): SagittaError {
  const detail = `The patched metadata has ${actual} ${unit}; the limit is ${expected}.`;
  return validationError([
    { location: field('metadata'), code: 'invalid_metadata', detail, expected, actual },
  ]);
}
