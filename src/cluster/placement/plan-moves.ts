// Plans changes to the nodes of collections: nodes that are gone are replaced, drained nodes are emptied, collections get
// as many nodes as their replication factor says, and new nodes get some of the collections of others. A move is two
// records: the first one names the joining node, the second one makes it a holder in place of another node. The plan
// depends on the records only, so the next node that leads goes on with it.

import { chooseNodes, type NodeChoice } from './choose-nodes.js';
import { COLLECTION_BYTES } from './collection-sizes.js';
import { assignedNodes, type Placement, placedOn } from './placements.js';

/** A node that holds collections or may hold them. */
export interface PlannedNode extends NodeChoice {
  readonly isServing: boolean;
  readonly isDrained: boolean;
  /** Whether it has been silent for so long that it is replaced. */
  readonly isGone: boolean;
  /** Whether it has served for long enough to get collections of others. */
  readonly isSettled: boolean;
  /** The moves to it whose collections it has loaded. */
  readonly joined: readonly string[];
}

export interface PlanOptions {
  readonly movesMax: number;
  readonly newId: () => string;
  /** The weight of a collection on a node that holds it. */
  readonly weigh: (incarnation: string, placement: Placement) => number;
}

/**
 * The share of a node's bytes by which a move must improve the balance. Sizes change with every write and compaction,
 * which must not move collections back and forth.
 */
const GAIN_SHARE_MIN = 0.05;
/** Less than a small collection, so that nodes finally differ by at most one of them. */
const GAIN_MIN = COLLECTION_BYTES / 2;

type Entry = readonly [incarnation: string, placement: Placement];

/** Nodes that have never been heard from do not count as gone. */
const UNKNOWN = {
  zone: '',
  isServing: false,
  isDrained: false,
  isGone: false,
  isSettled: false,
  joined: [],
} as const;

/** The new placements by incarnation; null for a collection that is on all nodes from now on. */
export function planMoves(
  entries: Iterable<Entry>,
  nodes: readonly PlannedNode[],
  options: PlanOptions,
): ReadonlyMap<string, Placement | null> {
  const plan = new Plan(nodes, options);
  const stable: Entry[] = [];
  for (const entry of entries) {
    plan.count(entry);
    if (entry[1].joining === null) stable.push(entry);
    else plan.advance(entry);
  }
  for (const entry of stable) plan.repair(entry);
  if (plan.isIdle) plan.balance(stable);
  return plan.changes;
}

class Plan {
  readonly changes = new Map<string, Placement | null>();
  readonly #nodes: readonly PlannedNode[];
  readonly #byName: ReadonlyMap<string, PlannedNode>;
  /** The weight of each collection. */
  readonly #weights = new Map<string, number>();
  /** The weight that each node holds or is loading. */
  readonly #loads = new Map<string, number>();
  readonly #options: PlanOptions;
  #moveCount = 0;

  constructor(nodes: readonly PlannedNode[], options: PlanOptions) {
    this.#options = options;
    this.#nodes = nodes;
    this.#byName = new Map(nodes.map((node) => [node.node, node]));
  }

  get isIdle(): boolean {
    return this.#moveCount === 0 && this.changes.size === 0;
  }

  count([incarnation, placement]: Entry): void {
    const weight = this.#options.weigh(incarnation, placement);
    this.#weights.set(incarnation, weight);
    for (const node of assignedNodes(placement)) this.#add(node, weight);
  }

  /** Completes, cancels or waits for a move. */
  advance(entry: Entry): void {
    const [incarnation, placement] = entry;
    const { nodes, factor, joining, leaving, moveId } = placement;
    const { joined, isGone, isDrained } = this.#find(joining!);
    if (joined.includes(moveId!)) {
      const others = nodes.filter((node) => node !== leaving);
      this.changes.set(incarnation, placedOn([...others, joining!], factor));
    } else if (isGone || isDrained) {
      this.changes.set(incarnation, placedOn(nodes, factor));
      this.#add(joining!, -this.#weightOf(entry));
    } else {
      this.#moveCount++;
    }
  }

  repair(entry: Entry): void {
    const [incarnation, placement] = entry;
    const repaired = this.#repaired(entry);
    if (repaired === placement) return;
    if (repaired !== null && repaired.joining !== null) {
      if (this.#moveCount >= this.#options.movesMax) return;
      this.#moveCount++;
      this.#add(repaired.joining, this.#weightOf(entry));
    }
    this.changes.set(incarnation, repaired);
  }

  #repaired(entry: Entry): Placement | null {
    const [, placement] = entry;
    const { nodes, factor } = placement;
    const hasTooMany = factor !== null && nodes.length > factor;
    const replaced =
      nodes.find((node) => this.#find(node).isGone) ??
      nodes.find((node) => this.#find(node).isDrained);
    if (replaced !== undefined) {
      const without = hasTooMany ? this.#withoutNode(entry, replaced) : placement;
      return without === placement ? this.#withNode(entry, replaced) : without;
    }
    if (hasTooMany) return this.#withoutNode(entry, this.#mostDispensable(nodes));
    if (factor !== null && nodes.length >= factor) return placement;
    const isEverywhere =
      factor === null &&
      this.#nodes.every(({ node, isServing }) => !isServing || nodes.includes(node));
    return isEverywhere ? null : this.#withNode(entry, null);
  }

  /** Adds a node, in place of `leaving` if that is given. */
  #withNode([incarnation, placement]: Entry, leaving: string | null): Placement {
    const { nodes } = placement;
    const candidates = this.#nodes.filter(
      ({ node, isServing, isDrained }) => isServing && !isDrained && !nodes.includes(node),
    );
    const held = nodes.filter((node) => node !== leaving).map((node) => this.#find(node));
    const options = { incarnation, held, loadByNode: this.#loads };
    const [chosen] = chooseNodes(candidates, 1, options);
    if (chosen === undefined) return placement;
    return { ...placement, joining: chosen.node, leaving, moveId: this.#options.newId() };
  }

  /** Removes a node, unless none of the others serves. */
  #withoutNode(entry: Entry, node: string): Placement {
    const [, placement] = entry;
    const rest = placement.nodes.filter((other) => other !== node);
    if (!rest.some((other) => this.#find(other).isServing)) return placement;
    this.#add(node, -this.#weightOf(entry));
    return placedOn(rest, placement.factor);
  }

  /** The node whose zone holds most copies, then the one with the highest load. */
  #mostDispensable(nodes: readonly string[]): string {
    const zoneCount = (node: string) =>
      nodes.filter((other) => this.#find(other).zone === this.#find(node).zone).length;
    const ranked = [...nodes].sort(
      (a, b) => zoneCount(b) - zoneCount(a) || this.#loadOf(b) - this.#loadOf(a) || compare(a, b),
    );
    return ranked[0]!;
  }

  /** Moves one collection from a node to one with a lower load, which must stay lower than that of the first was. */
  balance(entries: readonly Entry[]): void {
    const usable = this.#nodes
      .filter(({ isServing, isDrained, isSettled }) => isServing && !isDrained && isSettled)
      .map(({ node }) => node)
      .sort((a, b) => this.#loadOf(a) - this.#loadOf(b) || compare(a, b));
    for (const from of [...usable].reverse()) {
      const gainMin = Math.max(GAIN_MIN, GAIN_SHARE_MIN * this.#bytesOn(from, entries));
      for (const to of usable) {
        const difference = this.#loadOf(from) - this.#loadOf(to);
        if (difference < gainMin) break;
        const found = this.#bestToMove(entries, { from, to, weightMax: difference - gainMin });
        if (found === undefined) continue;
        const [incarnation, placement] = found;
        const moveId = this.#options.newId();
        this.changes.set(incarnation, { ...placement, joining: to, leaving: from, moveId });
        return;
      }
    }
  }

  /** The bytes of the collections on a node, without the constant part of their weights. */
  #bytesOn(node: string, entries: readonly Entry[]): number {
    const held = entries.filter(([, { nodes }]) => nodes.includes(node));
    return held.reduce((sum, entry) => sum + this.#weightOf(entry) - COLLECTION_BYTES, 0);
  }

  /** The collection whose move leaves the smallest difference between the two nodes. */
  #bestToMove(
    entries: readonly Entry[],
    { from, to, weightMax }: { readonly from: string; readonly to: string; weightMax: number },
  ): Entry | undefined {
    const difference = this.#loadOf(from) - this.#loadOf(to);
    let best: Entry | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const entry of entries) {
      const weight = this.#weightOf(entry);
      const left = Math.abs(difference - 2 * weight);
      if (weight > weightMax || left >= least || !this.#mayMove(entry[1], from, to)) continue;
      best = entry;
      least = left;
    }
    return best;
  }

  /** Whether the move is possible and does not reduce the number of zones. */
  #mayMove({ nodes }: Placement, from: string, to: string): boolean {
    if (!nodes.includes(from) || nodes.includes(to)) return false;
    const zonesOf = (names: readonly string[]) =>
      new Set(names.map((name) => this.#find(name).zone)).size;
    return zonesOf([...nodes.filter((node) => node !== from), to]) >= zonesOf(nodes);
  }

  #find(node: string): PlannedNode {
    return this.#byName.get(node) ?? { ...UNKNOWN, node };
  }

  #weightOf([incarnation]: Entry): number {
    return this.#weights.get(incarnation)!;
  }

  #loadOf(node: string): number {
    return this.#loads.get(node) ?? 0;
  }

  #add(node: string, weight: number): void {
    this.#loads.set(node, this.#loadOf(node) + weight);
  }
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
