// The placements that clients request: of a new collection, with another replication factor, or moved from one node to
// another. The changes that a cluster makes by itself are planned in plan-moves.ts.

import { randomUUID } from 'node:crypto';
import { field, validationError } from '../../common/errors.js';
import type { NewLogOptions } from '../../storage/commit-log.js';
import type { StoreOperation } from '../../storage/store.js';
import type { Members } from '../members/members.js';
import { chooseNodes, type NodeChoice } from './choose-nodes.js';
import { loadByNode } from './collection-sizes.js';
import { type Placement, type Placements, placedOn, placementOperation } from './placements.js';

export interface PlacementRequestsOptions {
  readonly members: Members;
  readonly placements: Placements;
  readonly isDrained: (node: string) => boolean;
}

export class PlacementRequests {
  readonly #options: PlacementRequestsOptions;

  constructor(options: PlacementRequestsOptions) {
    this.#options = options;
  }

  /** The nodes on which collections can be placed: serving ones, and drained ones only if there are no others. */
  get candidates(): readonly NodeChoice[] {
    const { members, isDrained } = this.#options;
    const { present, self } = members;
    const serving = present.filter(({ state }) => state === 'serving');
    const able = serving.length > 0 ? serving : [self];
    const preferred = able.filter(({ node }) => !isDrained(node));
    return preferred.length > 0 ? preferred : able;
  }

  /** The operations of the catalogue for a new collection; none for one on all nodes. */
  ofNew(
    incarnation: string,
    { isCopied, replicationFactor }: NewLogOptions,
  ): readonly StoreOperation[] {
    if (replicationFactor === null) return [];
    const { members, placements } = this.#options;
    // This node has the copied rows.
    const held = isCopied ? [members.self] : [];
    const chosen = chooseNodes(this.candidates, replicationFactor - held.length, {
      incarnation,
      held,
      loadByNode: loadByNode(placements.entries, members.present),
    });
    const nodes = [...held, ...chosen].map(({ node }) => node);
    return [placementOperation(incarnation, placedOn(nodes, replicationFactor))];
  }

  /** The operations of the catalogue for another replication factor; null for all nodes. */
  withFactor(incarnation: string, factor: number | null): readonly StoreOperation[] {
    const placement = this.#options.placements.of(incarnation);
    if (placement === null && factor === null) return [];
    return [placementOperation(incarnation, { ...(placement ?? this.#everywhere), factor })];
  }

  /** The placement of a collection on all nodes, which has no record. */
  get #everywhere(): Placement {
    const { present } = this.#options.members;
    return placedOn([...new Set(present.map(({ node }) => node))], null);
  }

  /** The placement with a move from one node to another. Throws `invalid_request`. */
  moved(
    incarnation: string,
    { from, to }: { readonly from: string; readonly to: string },
  ): Placement {
    const { members, placements, isDrained } = this.#options;
    const placement = placements.of(incarnation);
    const member = members.present.find(({ node }) => node === to);
    const refuse = (name: string, detail: string): never => {
      throw validationError([{ location: field(name), code: 'invalid_request', detail }]);
    };
    if (placement === null) {
      return refuse(
        'collection',
        'Expected a collection with a replication factor; all nodes hold this one.',
      );
    }
    const { nodes, joining } = placement;
    if (joining !== null)
      return refuse(
        'collection',
        `Expected a collection that is not being moved; this one is being moved to ${joining}.`,
      );
    if (!nodes.includes(from)) {
      return refuse('from', `Expected a node that holds the collection: ${nodes.join(', ')}.`);
    }
    if (nodes.includes(to))
      return refuse('to', `Expected a node that does not hold the collection; ${to} does.`);
    if (member?.state !== 'serving') {
      return refuse(
        'to',
        `Expected a node that serves; ${to} does not, as far as this node knows.`,
      );
    }
    if (isDrained(to)) {
      return refuse(
        'to',
        `Expected a node that is not drained; ${to} is. End that with: sagitta cluster drain ${to} --undo.`,
      );
    }
    return { ...placement, joining: to, leaving: from, moveId: randomUUID() };
  }
}
