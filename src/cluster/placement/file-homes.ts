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
    const { node, copies } = this.#options;
    const nodes = this.#candidatesOf(incarnation);
    if (nodes === null || !nodes.includes(node)) return randomUUID();
    const share = (copies ?? nodes.length) / nodes.length;
    if (this.#keepsMoreThanShare(incarnation, present, share)) return randomUUID();
    for (;;) {
      const key = randomUUID();
      if (this.#choose(nodes, incarnation, key).includes(node)) return key;
    }
  }

  /** Whether this node keeps more of the files than it would if each of the nodes kept the same number of bytes. */
  #keepsMoreThanShare(incarnation: string, present: readonly PresentFile[], share: number) {
    let totalBytes = 0;
    let ownBytes = 0;
    for (const { homeKey, dataBytes } of present) {
      totalBytes += dataBytes;
      if (this.isHere(incarnation, homeKey)) ownBytes += dataBytes;
    }
    return ownBytes > share * totalBytes;
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
