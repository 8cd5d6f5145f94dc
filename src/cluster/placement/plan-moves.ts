// What is to change about the nodes of collections: copies of nodes that are gone are replaced, drained nodes are emptied,
// collections get as many nodes as they are to have, and new nodes get some of what the others hold. A move has two
// records: the first one names a node that joins, the second one makes it a holder, in the place of another one. What the
// records say decides, so that whoever owns the catalogue next goes on.

import { chooseNodes, type NodeChoice } from './choose-nodes.js';
import { COLLECTION_BYTES } from './collection-sizes.js';
import { assignedNodes, type Placement, placedOn } from './placements.js';

/** A node that holds collections, or may. */
export interface PlannedNode extends NodeChoice {
  readonly isServing: boolean;
  readonly isDrained: boolean;
  /** It was not heard of for so long that it is not waited for any more. */
  readonly isGone: boolean;
  /** It has served for so long that it gets what others hold. */
  readonly isSettled: boolean;
  /** The moves for which it has brought a collection in. */
  readonly joined: readonly string[];
}

export interface PlanOptions {
  readonly movesMax: number;
  readonly newId: () => string;
  /** How much a collection counts on a node that holds it. */
  readonly weigh: (incarnation: string, placement: Placement) => number;
}

/**
 * The share of what a node holds that a move must improve the balance by: sizes change with every write and
 * compaction, and collections are not to be moved to and fro for that.
 */
const GAIN_SHARE_MIN = 0.05;
/** Less than one collection: nodes differ by at most one of the small ones in the end. */
const GAIN_MIN = COLLECTION_BYTES / 2;

type Entry = readonly [incarnation: string, placement: Placement];

/** Nodes that are not named have never been heard of, and count as there. */
const UNKNOWN = {
  zone: '',
  isServing: false,
  isDrained: false,
  isGone: false,
  isSettled: false,
  joined: [],
} as const;

/** The new placements by incarnation; null where a collection is on all nodes from now on. */
export function planMoves(
  entries: Iterable<Entry>,
  nodes: readonly PlannedNode[],
  options: PlanOptions,
): ReadonlyMap<string, Placement | null> {
  const plan = new Plan(nodes, options);
  const resting: Entry[] = [];
  for (const entry of entries) {
    plan.count(entry);
    if (entry[1].joining === null) resting.push(entry);
    else plan.goOn(entry);
  }
  for (const entry of resting) plan.correct(entry);
  if (plan.isResting) plan.balance(resting);
  return plan.changes;
}

class Plan {
  readonly changes = new Map<string, Placement | null>();
  readonly #nodes: readonly PlannedNode[];
  readonly #byName: ReadonlyMap<string, PlannedNode>;
  /** How much each collection counts. */
  readonly #weights = new Map<string, number>();
  /** How much each node holds, or is to hold. */
  readonly #loads = new Map<string, number>();
  readonly #options: PlanOptions;
  #moveCount = 0;

  constructor(nodes: readonly PlannedNode[], options: PlanOptions) {
    this.#options = options;
    this.#nodes = nodes;
    this.#byName = new Map(nodes.map((node) => [node.node, node]));
  }

  get isResting(): boolean {
    return this.#moveCount === 0 && this.changes.size === 0;
  }

  count([incarnation, placement]: Entry): void {
    const weight = this.#options.weigh(incarnation, placement);
    this.#weights.set(incarnation, weight);
    for (const node of assignedNodes(placement)) this.#add(node, weight);
  }

  /** A move that is under way. */
  goOn(entry: Entry): void {
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

  correct(entry: Entry): void {
    const [incarnation, placement] = entry;
    const corrected = this.#corrected(entry);
    if (corrected === placement) return;
    if (corrected !== null && corrected.joining !== null) {
      if (this.#moveCount >= this.#options.movesMax) return;
      this.#moveCount++;
      this.#add(corrected.joining, this.#weightOf(entry));
    }
    this.changes.set(incarnation, corrected);
  }

  #corrected(entry: Entry): Placement | null {
    const [, placement] = entry;
    const { nodes, factor } = placement;
    const isTooMany = factor !== null && nodes.length > factor;
    const replaced =
      nodes.find((node) => this.#find(node).isGone) ??
      nodes.find((node) => this.#find(node).isDrained);
    if (replaced !== undefined) {
      const without = isTooMany ? this.#without(entry, replaced) : placement;
      return without === placement ? this.#withMore(entry, replaced) : without;
    }
    if (isTooMany) return this.#without(entry, this.#mostDispensable(nodes));
    if (factor !== null && nodes.length >= factor) return placement;
    const isEverywhere =
      factor === null &&
      this.#nodes.every(({ node, isServing }) => !isServing || nodes.includes(node));
    return isEverywhere ? null : this.#withMore(entry, null);
  }

  /** One more node, which takes the place of another one if that is given. */
  #withMore([incarnation, placement]: Entry, leaving: string | null): Placement {
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

  /** One that other nodes can answer for. */
  #without(entry: Entry, node: string): Placement {
    const [, placement] = entry;
    const rest = placement.nodes.filter((other) => other !== node);
    if (!rest.some((other) => this.#find(other).isServing)) return placement;
    this.#add(node, -this.#weightOf(entry));
    return placedOn(rest, placement.factor);
  }

  /** The one whose zone has most of them, then the one that holds most. */
  #mostDispensable(nodes: readonly string[]): string {
    const zoneCount = (node: string) =>
      nodes.filter((other) => this.#find(other).zone === this.#find(node).zone).length;
    const ranked = [...nodes].sort(
      (a, b) => zoneCount(b) - zoneCount(a) || this.#loadOf(b) - this.#loadOf(a) || compare(a, b),
    );
    return ranked[0]!;
  }

  /** Moves one collection from a node that holds more than another one, which is to hold less than that afterwards. */
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

  /** Without what each collection counts for besides its bytes. */
  #bytesOn(node: string, entries: readonly Entry[]): number {
    const held = entries.filter(([, { nodes }]) => nodes.includes(node));
    return held.reduce((sum, entry) => sum + this.#weightOf(entry) - COLLECTION_BYTES, 0);
  }

  /** The one after whose move the two nodes differ least. */
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

  /** Not to fewer zones. */
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
