// The nodes of collections as clients ask for them: of a new collection, with another replication factor, and of a move
// from one node to another. What happens by itself is planned in plan-moves.ts.

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

  /** The nodes that collections can be placed on: those that serve, and are not drained if there is another one. */
  get candidates(): readonly NodeChoice[] {
    const { members, isDrained } = this.#options;
    const { present, self } = members;
    const serving = present.filter(({ state }) => state === 'serving');
    const there = serving.length > 0 ? serving : [self];
    const lasting = there.filter(({ node }) => !isDrained(node));
    return lasting.length > 0 ? lasting : there;
  }

  /** What the catalogue commits for a new collection; nothing for one that is to be on all nodes. */
  ofNew(
    incarnation: string,
    { isCopied, replicationFactor }: NewLogOptions,
  ): readonly StoreOperation[] {
    if (replicationFactor === null) return [];
    const { members, placements } = this.#options;
    // It has what was copied.
    const held = isCopied ? [members.self] : [];
    const chosen = chooseNodes(this.candidates, replicationFactor - held.length, {
      incarnation,
      held,
      loadByNode: loadByNode(placements.entries, members.present),
    });
    const nodes = [...held, ...chosen].map(({ node }) => node);
    return [placementOperation(incarnation, placedOn(nodes, replicationFactor))];
  }

  /** What the catalogue commits for another number of nodes, null for all; nothing for a collection that stays on all. */
  withFactor(incarnation: string, factor: number | null): readonly StoreOperation[] {
    const placement = this.#options.placements.of(incarnation);
    if (placement === null && factor === null) return [];
    return [placementOperation(incarnation, { ...(placement ?? this.#everywhere), factor })];
  }

  /** The placement of a collection without a record, before it gets one. */
  get #everywhere(): Placement {
    const { present } = this.#options.members;
    return placedOn([...new Set(present.map(({ node }) => node))], null);
  }

  /** With the move of a collection from one node to another. Throws `node_not_found` and `invalid_request`. */
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
      return refuse('collection', 'All nodes hold the collection: it has no replication factor.');
    }
    const { nodes, joining } = placement;
    if (joining !== null) return refuse('collection', `It is being moved to ${joining} already.`);
    if (!nodes.includes(from)) {
      return refuse('from', `Expected a node that holds the collection: ${nodes.join(', ')}.`);
    }
    if (nodes.includes(to)) return refuse('to', `${to} holds the collection already.`);
    if (member?.state !== 'serving') {
      return refuse(
        'to',
        `Expected a node that serves; ${to} does not, as far as this node knows.`,
      );
    }
    if (isDrained(to)) {
      return refuse('to', `${to} is drained. sagitta cluster drain ${to} --undo ends that.`);
    }
    return { ...placement, joining: to, leaving: from, moveId: randomUUID() };
  }
}
