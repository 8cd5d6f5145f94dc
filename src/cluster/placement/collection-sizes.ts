// How much collections and nodes weigh when collections are placed, from the sizes that nodes announce.

import {
  type AnnouncedSizes,
  bytesOf,
  NO_SIZES,
  summarizeSizes,
} from '../members/announced-sizes.js';
import type { Member } from '../members/members.js';
import { assignedNodes, type Placement, type Placements } from './placements.js';

/**
 * What a collection counts for besides its bytes: its log, its snapshots and its files. Nodes with small collections
 * are therefore compared by how many they hold.
 */
export const COLLECTION_BYTES = 64 * 2 ** 20;

type Announcer = Pick<Member, 'node' | 'state' | 'sizes'>;

/** The weight of a collection on a node that holds it, from what the serving nodes announce. */
export function weighCollections(
  nodes: readonly Announcer[],
): (incarnation: string, placement: Placement) => number {
  const byNode = new Map<string, AnnouncedSizes>();
  for (const { node, state, sizes } of nodes) {
    if (state === 'serving') byNode.set(node, sizes);
  }
  return (incarnation, placement) => {
    let bytes = 0;
    for (const node of placement.nodes) {
      const sizes = byNode.get(node);
      if (sizes !== undefined) bytes = Math.max(bytes, bytesOf(sizes, incarnation));
    }
    return COLLECTION_BYTES + bytes;
  };
}

/**
 * The weight that each node holds, or is to hold, of collections with a replication factor; nodes without any are
 * absent.
 */
export function loadByNode(
  entries: Placements['entries'],
  nodes: readonly Announcer[],
): ReadonlyMap<string, number> {
  const weigh = weighCollections(nodes);
  const loads = new Map<string, number>();
  for (const [incarnation, placement] of entries) {
    const weight = weigh(incarnation, placement);
    for (const node of assignedNodes(placement)) loads.set(node, (loads.get(node) ?? 0) + weight);
  }
  return loads;
}

export interface HeldSizesOptions {
  readonly node: string;
  readonly placements: Placements;
  /** Null until the database is open. */
  readonly database: () => { readonly heldBytes: ReadonlyMap<string, number> } | null;
  /** How long a measurement is announced before the next one. */
  readonly everyMs: number;
}

/** Measures the collections that this node holds, for its announcements. */
export class HeldSizes {
  readonly #options: HeldSizesOptions;
  #sizes = NO_SIZES;
  #nextMs = 0;

  constructor(options: HeldSizesOptions) {
    this.#options = options;
  }

  get announced(): AnnouncedSizes {
    const nowMs = performance.now();
    if (nowMs < this.#nextMs) return this.#sizes;
    const { node, placements, database, everyMs } = this.#options;
    this.#nextMs = nowMs + everyMs;
    const held = [...(database()?.heldBytes ?? [])].filter(([incarnation]) =>
      placements.of(incarnation)?.nodes.includes(node),
    );
    this.#sizes = summarizeSizes(new Map(held));
    return this.#sizes;
  }
}
