// Decides which member of a group of duplicates to keep: by a rule for all groups, or by the user's choice for one.

import { isJsonNumber } from '../../../../../src/common/exact-json.js';
import { resolvePath } from '../../../../../src/common/metadata-path.js';
import type { Json, JsonNumber, JsonObject } from '../../../../../src/common/types.js';
import type { SimilarGroup } from './similar-pairs.js';

export type KeepRule =
  | { readonly kind: 'first' }
  | { readonly kind: 'last' }
  | { readonly kind: 'greatest' | 'least'; readonly path: string };

/** Maps the id of a group's first member to the id of the member to keep, or to null to keep all. */
export type KeepChoices = ReadonlyMap<string, string | null>;

export type MetadataById = ReadonlyMap<string, JsonObject>;

/** The id of the member to keep; null to keep all. */
export function keptIn(
  { members }: SimilarGroup,
  rule: KeepRule,
  choices: KeepChoices,
  metadata: MetadataById,
): string | null {
  const choice = choices.get(members[0]!.id);
  // The chosen member may have left the group after a change of the threshold.
  if (choice === null || members.some(({ id }) => id === choice)) return choice!;
  if (rule.kind === 'first') return members[0]!.id;
  if (rule.kind === 'last') return members.at(-1)!.id;
  const sign = rule.kind === 'greatest' ? 1 : -1;
  let kept = members[0]!.id;
  let best = valueAt(metadata, kept, rule.path);
  for (const { id } of members) {
    const value = valueAt(metadata, id, rule.path);
    if (!isOrdered(value)) continue;
    if (isOrdered(best) && sign * compareValues(value, best) <= 0) continue;
    kept = id;
    best = value;
  }
  return kept;
}

/** The ids of all members except the kept ones, group by group. */
export function idsToDelete(
  groups: readonly SimilarGroup[],
  keptOf: (group: SimilarGroup) => string | null | undefined,
): string[] {
  return groups.flatMap((group) => {
    const kept = keptOf(group);
    // Delete nothing from a group until its kept member is known.
    if (kept === null || kept === undefined) return [];
    return group.members.filter(({ id }) => id !== kept).map(({ id }) => id);
  });
}

function valueAt(metadata: MetadataById, id: string, path: string): Json | undefined {
  const document = metadata.get(id);
  return document && resolvePath(document, path);
}

type OrderedValue = JsonNumber | string | boolean;

function isOrdered(value: Json | undefined): value is OrderedValue {
  return isJsonNumber(value) || typeof value === 'string' || typeof value === 'boolean';
}

/** Orders values of different types by the names of their types, so that every group has an order. */
function compareValues(a: OrderedValue, b: OrderedValue): number {
  const [left, right] = [typeOf(a), typeOf(b)];
  if (left !== right) return left < right ? -1 : 1;
  return a < b ? -1 : Number(a > b);
}

function typeOf(value: OrderedValue): string {
  return isJsonNumber(value) ? 'number' : typeof value;
}
