// Computes the JSON merge patch (RFC 7396) between two objects.

import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import type { JsonObject } from '../../../../../src/common/types.js';

export interface MergePatch {
  readonly patch: JsonObject;
  /** Paths that should become null, which a merge patch cannot express, because null removes a member. */
  readonly nullPaths: readonly string[];
}

export function mergePatchBetween(from: JsonObject, to: JsonObject): MergePatch {
  const nullPaths: string[] = [];
  return { patch: patchBetween(from, to, '', nullPaths), nullPaths };
}

function patchBetween(
  from: JsonObject,
  to: JsonObject,
  prefix: string,
  nullPaths: string[],
): JsonObject {
  const patch: JsonObject = {};
  for (const name of Object.keys(from)) if (!Object.hasOwn(to, name)) patch[name] = null;
  for (const [name, value] of Object.entries(to)) {
    const before = Object.hasOwn(from, name) ? from[name] : undefined;
    if (stringifyExactJson(before) === stringifyExactJson(value)) continue;
    const path = prefix + name;
    if (value === null) nullPaths.push(path);
    else if (isJsonObject(value)) {
      // A previous value that is not an object is treated like an empty object.
      const inner = isJsonObject(before) ? before : {};
      patch[name] = patchBetween(inner, value, `${path}.`, nullPaths);
    } else patch[name] = value;
  }
  return patch;
}
