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

/** The homes of the files of a collection, as long as the same nodes hold it. */
interface Chosen {
  readonly nodes: readonly string[];
  readonly byFirstId: Map<string, readonly string[]>;
}

export class FileHomes {
  readonly #options: FileHomesOptions;
  /** By incarnation. A search asks for each of thousands of files. */
  readonly #chosen = new Map<string, Chosen>();

  constructor(options: FileHomesOptions) {
    this.#options = options;
  }

  /** The nodes that keep the whole of a file; null for all that hold its collection. */
  of(incarnation: string, firstId: string): readonly string[] | null {
    const { placements, copies } = this.#options;
    // A collection without a placement is on all nodes, whichever these are.
    const nodes = placements.of(incarnation)?.nodes;
    if (copies === null || nodes === undefined || nodes.length <= copies) {
      this.#chosen.delete(incarnation);
      return null;
    }
    let chosen = this.#chosen.get(incarnation);
    if (chosen?.nodes !== nodes) {
      chosen = { nodes, byFirstId: new Map() };
      this.#chosen.set(incarnation, chosen);
    }
    let homes = chosen.byFirstId.get(firstId);
    if (homes === undefined) {
      homes = choose(nodes, copies, `${incarnation}/${firstId}`);
      chosen.byFirstId.set(firstId, homes);
    }
    return homes;
  }

  /** Whether this node keeps the whole of a file. */
  isHere(incarnation: string, firstId: string): boolean {
    return this.of(incarnation, firstId)?.includes(this.#options.node) ?? true;
  }
}

function choose(nodes: readonly string[], count: number, file: string): readonly string[] {
  const ranked = nodes.map((node) => ({ node, rank: hash('sha256', `${file}/${node}`) }));
  ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1));
  return ranked.slice(0, count).map(({ node }) => node);
}
