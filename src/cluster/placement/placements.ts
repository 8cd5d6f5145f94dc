// Which nodes hold which collection: one record in the log of the catalogue for each collection with a replication
// factor, kept in memory, too. A collection without a record is on all nodes.

import type { Store, StoreKey, StoreOperation } from '../../storage/store.js';
import { decodeEntry, PLACEMENTS, putEntry } from '../logs/store-entries.js';

export interface Placement {
  /** The names of the nodes that hold the collection and answer requests about it. */
  readonly nodes: readonly string[];
  /** The number of nodes that should hold it; null for all. */
  readonly factor: number | null;
  /** The node that is loading the collection, and answers no requests about it yet; null for none. */
  readonly joining: string | null;
  /** The node that `joining` replaces, which answers requests until then; null for none. */
  readonly leaving: string | null;
  /** Tells the move from earlier ones to the same node; null without a move. */
  readonly moveId: string | null;
}

function keyOf(incarnation: string): StoreKey {
  return [...PLACEMENTS, incarnation];
}

export function placementOperation(incarnation: string, placement: Placement): StoreOperation {
  return putEntry(keyOf(incarnation), placement);
}

export function placementRemoval(incarnation: string): StoreOperation {
  return { kind: 'remove', key: keyOf(incarnation) };
}

/** A placement without a move. */
export function placedOn(nodes: readonly string[], factor: number | null): Placement {
  return { nodes: [...nodes].sort(), factor, joining: null, leaving: null, moveId: null };
}

/** The nodes that hold a collection or are loading it. */
export function assignedNodes({ nodes, joining }: Placement): readonly string[] {
  return joining === null ? nodes : [...nodes, joining];
}

export class Placements {
  readonly #byIncarnation = new Map<string, Placement>();

  constructor(store: Store) {
    for (const { key, value } of store.list(PLACEMENTS)) {
      this.#byIncarnation.set(key[1]!, decodeEntry(value));
    }
  }

  /** Null for a collection that is on all nodes. */
  of(incarnation: string): Placement | null {
    return this.#byIncarnation.get(incarnation) ?? null;
  }

  get entries(): Iterable<readonly [incarnation: string, placement: Placement]> {
    return this.#byIncarnation;
  }

  /** Whether a node holds a collection or should load it. */
  isAssigned(node: string, incarnation: string): boolean {
    const placement = this.of(incarnation);
    return placement === null || assignedNodes(placement).includes(node);
  }

  /** Whether a node holds a collection and answers requests about it. */
  holds(node: string, incarnation: string): boolean {
    return this.of(incarnation)?.nodes.includes(node) ?? true;
  }

  /** The number of collections that are being moved, and of those that too few of the serving nodes hold. */
  countsAmong(serving: readonly string[]): { readonly moving: number; readonly short: number } {
    let moving = 0;
    let short = 0;
    for (const { nodes, factor, joining } of this.#byIncarnation.values()) {
      if (joining !== null) moving++;
      const wanted = factor ?? serving.length;
      if (nodes.filter((node) => serving.includes(node)).length < wanted) short++;
    }
    return { moving, short };
  }

  /** Called with everything that is committed to the log of the catalogue. */
  apply(operations: readonly StoreOperation[]): void {
    for (const operation of operations) {
      if (operation.kind !== 'put' && operation.kind !== 'remove') continue;
      const [prefix, incarnation] = operation.key;
      if (prefix !== PLACEMENTS[0] || incarnation === undefined) continue;
      if (operation.kind === 'remove') this.#byIncarnation.delete(incarnation);
      else this.#byIncarnation.set(incarnation, decodeEntry(operation.value));
    }
  }
}
