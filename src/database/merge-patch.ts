// JSON merge patch (RFC 7396) of a vector's metadata. Members that the patch does not name keep
// their values; the result is written as JSON.stringify writes it.

import { SagittaError } from '../errors.js';
import type { Limits } from '../limits.js';
import { isJsonObject } from '../metadata-path.js';
import type { Json, JsonObject } from '../types.js';

/** The patched object as JSON text. Throws `invalid_metadata` when it exceeds a bound. */
export function applyMergePatch(metadata: string, patch: JsonObject, limits: Limits): string {
  const merged = merge(JSON.parse(metadata) as JsonObject, patch);
  const text = JSON.stringify(merged);
  const byteLength = Buffer.byteLength(text);
  if (byteLength > limits.metadataBytesMax) {
    throw tooMuch('bytes', limits.metadataBytesMax, byteLength);
  }
  const depth = depthOf(merged);
  if (depth > limits.metadataDepthMax) throw tooMuch('levels', limits.metadataDepthMax, depth);
  return text;
}

function merge(target: JsonObject, patch: JsonObject): JsonObject {
  // No prototype: a member named __proto__ is a member like any other.
  const merged: JsonObject = Object.assign(Object.create(null), target);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else if (isJsonObject(value)) {
      const old = merged[key];
      merged[key] = merge(isJsonObject(old) ? old : {}, value);
    } else merged[key] = value;
  }
  return merged;
}

function depthOf(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0;
  let deepest = 0;
  for (const member of Object.values(value)) deepest = Math.max(deepest, depthOf(member));
  return deepest + 1;
}

function tooMuch(unit: string, expected: number, actual: number): SagittaError {
  const detail = `The patched metadata has ${actual} ${unit}; at most ${expected} are kept.`;
  return new SagittaError('invalid_metadata', detail, {
    items: [{ pointer: '/metadata', code: 'invalid_metadata', detail, expected, actual }],
  });
}
