// Divides the matches of a query with groups into these groups.

export type GroupValue = string | number | boolean;

export interface MatchGroup<Found> {
  readonly value: GroupValue;
  /** Best first. */
  readonly matches: readonly Found[];
}

/** The groups in the order of the reply; a group is not split between pages. */
export function groupsOf<Found extends { readonly group?: GroupValue }>(
  matches: readonly Found[],
): readonly MatchGroup<Found>[] {
  const groups: { value: GroupValue; matches: Found[] }[] = [];
  for (const match of matches) {
    const last = groups.at(-1);
    if (match.group === undefined) continue;
    if (last !== undefined && last.value === match.group) last.matches.push(match);
    else groups.push({ value: match.group, matches: [match] });
  }
  return groups;
}
