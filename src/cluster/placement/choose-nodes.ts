// Chooses the nodes for a collection: in as many zones as there are, then those that hold least. Where that decides
// nothing, a digest of the names does, another one for every collection.

import { hash } from 'node:crypto';

/** A node that may hold the collection. */
export interface NodeChoice {
  readonly node: string;
  /** Where it may fail together with others; empty where that is not configured. */
  readonly zone: string;
}

export interface ChoiceOptions {
  readonly incarnation: string;
  /** Nodes that hold the collection, whether or not more are chosen. */
  readonly held: readonly NodeChoice[];
  /** How much each node holds (`weighCollections`); absent for nothing. */
  readonly loadByNode: ReadonlyMap<string, number>;
}

/** At most `count` of the candidates, the best first. Those in `held` are not chosen again. */
export function chooseNodes(
  candidates: readonly NodeChoice[],
  count: number,
  { incarnation, held, loadByNode }: ChoiceOptions,
): NodeChoice[] {
  const inZone = new Map<string, number>();
  const note = ({ zone }: NodeChoice) => inZone.set(zone, (inZone.get(zone) ?? 0) + 1);
  for (const choice of held) note(choice);
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
    note(best.choice);
  }
  return chosen;
}
