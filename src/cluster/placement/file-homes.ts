// Which nodes keep the whole of a segment file. The others that hold its collection keep only the blocks that every read
// needs, and get the rest from the shared files. All nodes choose the same ones, by the highest digests of their names and
// the file (rendezvous hashing), so that few files move when a node is added or removed.

import { hash } from 'node:crypto';
import type { Placements } from './placements.js';

export interface FileHomesOptions {
  readonly placements: Placements;
  /** The name of this node. */
  readonly node: string;
  /** How many nodes keep the whole of each file; null for all that hold the collection. */
  readonly copies: number | null;
}

export class FileHomes {
  readonly #options: FileHomesOptions;

  constructor(options: FileHomesOptions) {
    this.#options = options;
  }

  /** The nodes that keep the whole of a file; null for all that hold its collection. */
  of(incarnation: string, firstSequence: number): readonly string[] | null {
    const { placements, copies } = this.#options;
    // A collection without a placement is on all nodes, whichever these are.
    const nodes = placements.of(incarnation)?.nodes;
    if (copies === null || nodes === undefined || nodes.length <= copies) return null;
    const rankOf = (node: string) => hash('sha256', `${incarnation}/${firstSequence}/${node}`);
    const ranked = nodes.map((node) => ({ node, rank: rankOf(node) }));
    ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1));
    return ranked.slice(0, copies).map(({ node }) => node);
  }

  /** Whether this node keeps the whole of a file. */
  isHere(incarnation: string, firstSequence: number): boolean {
    return this.of(incarnation, firstSequence)?.includes(this.#options.node) ?? true;
  }
}
