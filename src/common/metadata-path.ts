// The meaning of metadata paths. Segments use it to flatten documents into columns and filters to look
// up values, so that both agree.
//
// A path matches a chain of keys that, joined with '.', give the path. If several chains do
// ({"a": {"b": 1}, "a.b": 2}), the one with the longest first key wins, level by level: a literal key
// takes precedence over nested keys.

import type { Json, JsonObject } from './types.js';

/**
 * Longer paths get no column. Nested members repeat the names of their parents, so 40 KB of metadata could otherwise
 * yield megabytes of paths to hash.
 */
export const METADATA_PATH_CHARACTERS_MAX = 256;

/**
 * The value at `path`, or undefined if no chain of keys matches.
 *
 * @param keys receives the keys that lead to the value, outermost first.
 */
export function resolvePath(document: JsonObject, path: string, keys?: string[]): Json | undefined {
  if (Object.hasOwn(document, path)) {
    keys?.push(path);
    return document[path];
  }
  for (let end = path.lastIndexOf('.'); end >= 0; end = path.lastIndexOf('.', end - 1)) {
    const key = path.slice(0, end);
    const value = Object.hasOwn(document, key) ? document[key] : undefined;
    const found = isJsonObject(value) ? resolvePath(value, path.slice(end + 1), keys) : undefined;
    if (found !== undefined) {
      keys?.unshift(key);
      return found;
    }
    if (end === 0) break;
  }
  return undefined;
}

/**
 * Calls `visit` for every path of the document, objects included. A path may be visited more than
 * once; the last visit is the one that `resolvePath` returns.
 */
export function flattenMetadata(
  document: JsonObject,
  visit: (path: string, value: Json) => void,
  prefix = '',
): void {
  const keys = Object.keys(document);
  // Longer keys come later and so win. The order matters only if a key contains a dot.
  if (keys.some((key) => key.includes('.'))) keys.sort((a, b) => a.length - b.length);
  for (const key of keys) {
    const value = document[key]!;
    const path = prefix + key;
    if (isJsonObject(value)) flattenMetadata(value, visit, `${path}.`);
    visit(path, value);
  }
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
