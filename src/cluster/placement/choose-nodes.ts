// Chooses the nodes for a collection: in as many zones as possible, then those with the lowest load. Ties are broken by a
// digest of the names of node and collection.

import { hash } from 'node:crypto';

/** A candidate for holding the collection. */
export interface NodeChoice {
  readonly node: string;
  /** Nodes of one zone may fail together; empty if not configured. */
  readonly zone: string;
}

export interface ChoiceOptions {
  readonly incarnation: string;
  /** Nodes that hold the collection in any case. */
  readonly held: readonly NodeChoice[];
  /** The load of each node (`loadByNode`); absent for none. */
  readonly loadByNode: ReadonlyMap<string, number>;
}

/** At most `count` of the candidates, best first, without those in `held`. */
export function chooseNodes(
  candidates: readonly NodeChoice[],
  count: number,
  { incarnation, held, loadByNode }: ChoiceOptions,
): NodeChoice[] {
  const inZone = new Map<string, number>();
  const addZone = ({ zone }: NodeChoice) => inZone.set(zone, (inZone.get(zone) ?? 0) + 1);
  for (const choice of held) addZone(choice);
  const taken = new Set(held.map(({ node }) => node));
  const chosen: NodeChoice[] = [];
  const rankOf = (choice: NodeChoice) => ({
    choice,
    zoneCount: inZone.get(choice.zone) ?? 0,
    load: loadByNode.get(choice.node) ?? 0,
    digest: hash('sha1', `${incarnation} ${choice.node}`),
  });
  while (chosen.length < count) {
    const [best] = candidates
      .filter(({ node }) => !taken.has(node))
      .map(rankOf)
      .sort(
        (a, b) => a.zoneCount - b.zoneCount || a.load - b.load || (a.digest < b.digest ? -1 : 1),
      );
    if (best === undefined) break;
    chosen.push(best.choice);
    taken.add(best.choice.node);
    addZone(best.choice);
  }
  return chosen;
}
