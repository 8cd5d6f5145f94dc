// The values at metadata paths as they were sent, for what parsing would change: numbers beyond float64,
// and the spelling of arrays and objects.

import type { Utf8Column } from '../../common/types.js';
import { readMembers } from '../../formats/json/json-scanner.js';
import { decodeUtf8 } from '../../segment/shared-arrays.js';

/**
 * Calls `visit` for the paths of a row in the order of `flattenMetadata`: of several visits of a path the
 * last one counts.
 */
export function visitTexts(
  json: Utf8Column,
  row: number,
  visit: (path: string, text: string) => void,
): void {
  visitMembers(decodeUtf8(json.bytes, json.offsets[row]!, json.offsets[row + 1]!), visit, '');
}

function visitMembers(
  object: string,
  visit: (path: string, text: string) => void,
  prefix: string,
): void {
  // Of equal names the last one counts, as for JSON.parse.
  const members = new Map(readMembers(object).map(({ name, text }) => [name, text]));
  const names = [...members.keys()];
  if (names.some((name) => name.includes('.'))) names.sort((a, b) => a.length - b.length);
  for (const name of names) {
    const text = members.get(name)!;
    const path = prefix + name;
    if (text.startsWith('{')) visitMembers(text, visit, `${path}.`);
    visit(path, text);
  }
}
