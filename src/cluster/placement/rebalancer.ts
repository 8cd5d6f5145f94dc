// Changes the nodes of collections: the owner of the catalogue looks again and again at what is to change
// (plan-moves.ts), and commits it. Every node remembers which others it has heard of, since it may own the catalogue next.

import { randomUUID } from 'node:crypto';
import type { Logger } from '../../common/logger.js';
import type { StoreOperation } from '../../storage/store.js';
import type { Member, Members } from '../members/members.js';
import { weighCollections } from './collection-sizes.js';
import {
  assignedNodes,
  type Placement,
  type Placements,
  placementOperation,
  placementRemoval,
} from './placements.js';
import { type PlannedNode, planMoves } from './plan-moves.js';

export interface RebalancerTiming {
  /** How often it is looked at. */
  readonly placeMs: number;
  /** After how long a node that was not heard of is replaced. */
  readonly replaceMs: number;
  /** How long a node must have served until collections are moved to it from others. */
  readonly balanceMs: number;
}

export interface RebalancerOptions {
  readonly placements: Placements;
  readonly members: Members;
  readonly timing: RebalancerTiming;
  readonly isDrained: (node: string) => boolean;
  readonly isLeader: () => boolean;
  /** Of the collections in the catalogue. */
  readonly incarnations: () => readonly string[];
  /** To the log of the catalogue. */
  readonly commit: (operations: readonly StoreOperation[]) => Promise<void>;
  readonly logger: Logger;
}

/** Collections that are brought in at the same time, in the whole cluster. */
const MOVES_MAX = 4;

export class Rebalancer {
  readonly #options: RebalancerOptions;
  /** When a node was heard of last, and since when it serves, by `Members.listenedMs`. */
  readonly #seenMs = new Map<string, number>();
  readonly #servingSinceMs = new Map<string, number>();
  #nextMs = 0;
  #running: Promise<void> | null = null;

  constructor(options: RebalancerOptions) {
    this.#options = options;
  }

  /** Called again and again. */
  run(): void {
    if (performance.now() < this.#nextMs) return;
    this.#nextMs = performance.now() + this.#options.timing.placeMs;
    const nodes = this.#nodes();
    if (!this.#options.isLeader() || this.#running !== null) return;
    this.#running = this.#pass(nodes)
      .catch((err: unknown) => {
        this.#options.logger.warn({ err }, 'the nodes of collections could not be changed');
      })
      .finally(() => {
        this.#running = null;
      });
  }

  /** Resolves when nothing is being changed. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #pass(nodes: readonly PlannedNode[]): Promise<void> {
    const { placements, members, commit, logger } = this.#options;
    const weigh = weighCollections(members.present);
    const options = { movesMax: MOVES_MAX, newId: randomUUID, weigh };
    // The record of a collection that was deleted meanwhile may be left.
    const named = new Set(this.#options.incarnations());
    const entries = [...placements.entries].filter(([incarnation]) => named.has(incarnation));
    const changes = planMoves(entries, nodes, options);
    if (changes.size === 0) return;
    await commit(
      [...changes].map(([incarnation, placement]) => operationOf(incarnation, placement)),
    );
    for (const [incarnation, placement] of changes) {
      logger.info({ log: incarnation, ...placement }, 'the nodes of a collection change');
    }
  }

  #nodes(): PlannedNode[] {
    const { members, placements, timing, isDrained } = this.#options;
    const nowMs = members.listenedMs;
    // The process of a node that was started again counts, and not the one before.
    const byState = [...members.present].sort((a, b) => rankOf(a) - rankOf(b));
    const present = new Map(byState.map((member) => [member.node, member]));
    for (const member of present.values()) this.#note(member, nowMs);
    for (const node of this.#servingSinceMs.keys()) {
      if (present.get(node)?.state !== 'serving') this.#servingSinceMs.delete(node);
    }
    const named = [...placements.entries].flatMap(([, placement]) => assignedNodes(placement));
    return [...new Set([...present.keys(), ...named])].sort().map((node): PlannedNode => {
      const member = present.get(node);
      const seenMs = this.#seenMs.get(node) ?? nowMs;
      this.#seenMs.set(node, seenMs);
      const sinceMs = this.#servingSinceMs.get(node) ?? nowMs;
      return {
        node,
        zone: member?.zone ?? '',
        isServing: member?.state === 'serving',
        isDrained: isDrained(node),
        isGone: !isThere(member) && nowMs - seenMs >= timing.replaceMs,
        isSettled: nowMs - sinceMs >= timing.balanceMs,
        joined: member?.joined ?? [],
      };
    });
  }

  #note({ node, state }: Member, nowMs: number): void {
    if (state !== 'leaving') this.#seenMs.set(node, nowMs);
    if (state === 'serving' && !this.#servingSinceMs.has(node)) {
      this.#servingSinceMs.set(node, nowMs);
    }
  }
}

function rankOf({ state }: Member): number {
  return ['leaving', 'joining', 'serving'].indexOf(state);
}

function isThere(member: Member | undefined): boolean {
  return member !== undefined && member.state !== 'leaving';
}

function operationOf(incarnation: string, placement: Placement | null): StoreOperation {
  return placement === null
    ? placementRemoval(incarnation)
    : placementOperation(incarnation, placement);
}
