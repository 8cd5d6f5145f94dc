// Which nodes keep the whole of a segment file. The others that hold its collection keep only the blocks that every read
// needs, and get the rest from the shared files. All nodes choose the same ones, by the highest digests of their names and
// the file (rendezvous hashing), so that few files move when a node is added or removed.

import { hash, randomUUID } from 'node:crypto';
import type { PresentFile } from '../../storage/commit-log.js';
import type { Placements } from './placements.js';

export interface FileHomesOptions {
  readonly placements: Placements;
  /** The name of this node. */
  readonly node: string;
  /** How many nodes keep the whole of each file; null for all that hold the collection. */
  readonly copies: number | null;
}

/** Enough that one of the keys is almost certain to choose this node among ten times as many nodes as copies. */
const KEYS_DRAWN = 32;

/** The homes of the files of a collection, as long as the same nodes hold it. */
interface Chosen {
  readonly nodes: readonly string[];
  readonly byKey: Map<string, readonly string[]>;
}

export class FileHomes {
  readonly #options: FileHomesOptions;
  /** By incarnation. A search asks for each of thousands of files. */
  readonly #chosen = new Map<string, Chosen>();

  constructor(options: FileHomesOptions) {
    this.#options = options;
  }

  /** The nodes that keep the whole of a file; null for all that hold its collection. */
  of(incarnation: string, homeKey: string): readonly string[] | null {
    const nodes = this.#candidatesOf(incarnation);
    if (nodes === null) {
      this.#chosen.delete(incarnation);
      return null;
    }
    let chosen = this.#chosen.get(incarnation);
    if (chosen?.nodes !== nodes) {
      chosen = { nodes, byKey: new Map() };
      this.#chosen.set(incarnation, chosen);
    }
    let homes = chosen.byKey.get(homeKey);
    if (homes === undefined) {
      homes = this.#choose(nodes, incarnation, homeKey);
      chosen.byKey.set(homeKey, homes);
    }
    return homes;
  }

  /** Whether this node keeps the whole of a file. */
  isHere(incarnation: string, homeKey: string): boolean {
    return this.of(incarnation, homeKey)?.includes(this.#options.node) ?? true;
  }

  /** See `FileSharing.homeKeyFor`. */
  keyFor(incarnation: string, present: readonly PresentFile[]): string {
    const nodes = this.#candidatesOf(incarnation);
    if (nodes === null) return randomUUID();
    const bytesBy = new Map(nodes.map((node) => [node, 0]));
    for (const { homeKey, dataBytes } of present) {
      for (const home of this.of(incarnation, homeKey) ?? []) {
        bytesBy.set(home, bytesBy.get(home)! + dataBytes);
      }
    }
    const total = [...bytesBy.values()].reduce((sum, byteCount) => sum + byteCount, 0);
    const { node } = this.#options;
    const isOwn = (bytesBy.get(node) ?? total) * nodes.length <= total;
    // Nodes choose at the same time, so each draws its own keys instead of always the emptiest nodes.
    const drawn = Array.from({ length: KEYS_DRAWN }, () => {
      const key = randomUUID();
      const homes = this.#choose(nodes, incarnation, key);
      const byteCount = homes.reduce((sum, home) => sum + bytesBy.get(home)!, 0);
      return { key, byteCount, isHere: isOwn && homes.includes(node) };
    });
    drawn.sort((a, b) => Number(b.isHere) - Number(a.isHere) || a.byteCount - b.byteCount);
    return drawn[0]!.key;
  }

  /** The nodes among which each file has its homes; null if all nodes that hold the collection keep all files. */
  #candidatesOf(incarnation: string): readonly string[] | null {
    const { placements, copies } = this.#options;
    // A collection without a placement is on all nodes, whichever these are.
    const nodes = placements.of(incarnation)?.nodes;
    return copies === null || nodes === undefined || nodes.length <= copies ? null : nodes;
  }

  #choose(nodes: readonly string[], incarnation: string, homeKey: string): readonly string[] {
    const file = `${incarnation}/${homeKey}`;
    const ranked = nodes.map((node) => ({ node, rank: hash('sha256', `${file}/${node}`) }));
    ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1));
    return ranked.slice(0, this.#options.copies ?? nodes.length).map(({ node }) => node);
  }
}
