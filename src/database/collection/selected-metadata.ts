// Selects paths of metadata: keeps only the members that lead to them, in their order and with their spelling.

import { resolvePath } from '../../common/metadata-path.js';
import type { JsonObject } from '../../common/types.js';
import { readMembers } from '../../formats/json/json-scanner.js';

/** The members of an object to keep: whole, or only some members of a nested object. */
interface Kept extends Map<string, Kept | 'whole'> {}

/** The JSON text of the object with only these paths. */
export function selectMetadata(text: string, paths: readonly string[]): string {
  const document = JSON.parse(text) as JsonObject;
  const kept: Kept = new Map();
  for (const path of paths) {
    const keys: string[] = [];
    if (resolvePath(document, path, keys) !== undefined) keep(kept, keys);
  }
  return write(text, kept);
}

function keep(kept: Kept, keys: readonly string[]): void {
  let at = kept;
  for (const [depth, key] of keys.entries()) {
    const known = at.get(key);
    if (known === 'whole') return;
    if (depth === keys.length - 1) {
      at.set(key, 'whole');
      return;
    }
    const next: Kept = known ?? new Map();
    at.set(key, next);
    at = next;
  }
}

function write(text: string, kept: Kept): string {
  const members = kept.size === 0 ? [] : readMembers(text);
  // The last of equal names wins, as in JSON.parse.
  const last = new Map(members.map((member) => [member.name, member]));
  const texts = [...last.values()].flatMap(({ name, nameText, text: value }) => {
    const part = kept.get(name);
    if (part === undefined) return [];
    return [`${nameText}:${part === 'whole' ? value : write(value, part)}`];
  });
  return `{${texts.join(',')}}`;
}
