// Removes the conditions on one path from a filter, for facets that show the values that the filter would hide.

import type { Json, JsonObject } from '../../common/types.js';

/**
 * The filter without the conditions on this path that all rows must satisfy; null if no condition remains, and the same
 * filter if it has no such condition. `$or` and `$not` are removed only if all of their conditions are on the path,
 * because a choice between values of the path is one condition on it.
 */
export function withoutPath(filter: JsonObject, path: string): JsonObject | null {
  const kept: [string, Json][] = [];
  let isChanged = false;
  for (const [name, value] of Object.entries(filter)) {
    if (name === path || (isBranch(name) && isOnPathOnly(value as Branch, path))) {
      isChanged = true;
      continue;
    }
    if (name !== '$and') {
      kept.push([name, value]);
      continue;
    }
    const parts = value as readonly JsonObject[];
    const rest = parts.map((part) => withoutPath(part, path));
    const remaining = rest.filter((part) => part !== null);
    if (remaining.length > 0) kept.push([name, remaining]);
    isChanged ||= rest.some((part, at) => part !== parts[at]);
  }
  if (!isChanged) return filter;
  // A path may be "__proto__", which an assignment would not add.
  return kept.length === 0 ? null : Object.fromEntries(kept);
}

type Branch = JsonObject | readonly JsonObject[];

const isBranch = (name: string) => name === '$and' || name === '$or' || name === '$not';

function isOnPathOnly(branch: Branch, path: string): boolean {
  const filters = Array.isArray(branch) ? branch : [branch];
  return filters.every((filter: JsonObject) => {
    const entries = Object.entries(filter);
    const isOnPath = ([name, value]: [string, Json]) =>
      name === path || (isBranch(name) && isOnPathOnly(value as Branch, path));
    // {} has no condition, and its negation excludes every row.
    return entries.length > 0 && entries.every(isOnPath);
  });
}
