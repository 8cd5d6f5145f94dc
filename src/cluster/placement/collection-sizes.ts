// How many bytes collections have, as the nodes that hold them announce it. Announcements are sent several times a second,
// so that only the largest collections are named in them, and the others are added up.

import { nodesWanting, type Placement, type Placements } from './placements.js';

/** Of the collections with a replication factor that a node holds. */
export interface AnnouncedSizes {
  /** Bytes on disk of the largest ones, by incarnation. */
  readonly largest: Readonly<Record<string, number>>;
  readonly othersCount: number;
  readonly othersBytes: number;
}

/** Names and numbers of so many are about 2 KB. */
const NAMED_MAX = 32;
/**
 * What a collection counts for besides its bytes: its log, its checkpoints and its files. Nodes with small collections are
 * therefore compared by how many they hold.
 */
export const COLLECTION_BYTES = 64 * 2 ** 20;

export function announcedSizes(bytesByIncarnation: ReadonlyMap<string, number>): AnnouncedSizes {
  const sorted = [...bytesByIncarnation].sort(([, a], [, b]) => b - a);
  const others = sorted.slice(NAMED_MAX);
  return {
    largest: Object.fromEntries(sorted.slice(0, NAMED_MAX)),
    othersCount: others.length,
    othersBytes: others.reduce((sum, [, bytes]) => sum + bytes, 0),
  };
}

export const NO_SIZES = announcedSizes(new Map());

export function areSizes(value: unknown): value is AnnouncedSizes {
  const { largest, othersCount, othersBytes } = (value ?? {}) as Partial<
    Record<keyof AnnouncedSizes, unknown>
  >;
  return (
    typeof largest === 'object' &&
    largest !== null &&
    typeof othersCount === 'number' &&
    typeof othersBytes === 'number'
  );
}

interface Announcer {
  readonly node: string;
  readonly state: 'joining' | 'serving' | 'leaving';
  readonly sizes: AnnouncedSizes;
}

/** How much a collection counts on a node that holds it, by what those nodes announce that serve. */
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
      if (sizes !== undefined) bytes = Math.max(bytes, bytesIn(sizes, incarnation));
    }
    return COLLECTION_BYTES + bytes;
  };
}

/** As many as one of the others has on average where the collection is not named. */
function bytesIn({ largest, othersCount, othersBytes }: AnnouncedSizes, incarnation: string) {
  return largest[incarnation] ?? othersBytes / Math.max(1, othersCount);
}

/** How much each node holds, or is to hold, of collections with a replication factor; nodes without any are absent. */
export function loadByNode(
  entries: Placements['entries'],
  nodes: readonly Announcer[],
): ReadonlyMap<string, number> {
  const weigh = weighCollections(nodes);
  const loads = new Map<string, number>();
  for (const [incarnation, placement] of entries) {
    const weight = weigh(incarnation, placement);
    for (const node of nodesWanting(placement)) loads.set(node, (loads.get(node) ?? 0) + weight);
  }
  return loads;
}

export interface HeldSizesOptions {
  readonly node: string;
  readonly placements: Placements;
  /** Null until it is open. */
  readonly database: () => { readonly heldBytes: ReadonlyMap<string, number> } | null;
  /** How long what was measured is announced. */
  readonly everyMs: number;
}

/** What a node announces of itself. */
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
    this.#sizes = announcedSizes(new Map(held));
    return this.#sizes;
  }
}
