// Changes the nodes of collections: the node that leads periodically plans changes (plan-moves.ts) and commits them. Every
// node tracks when it has heard from the others, since it may lead next.

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
  /** The interval between two plans. */
  readonly planMs: number;
  /** How long a node must be silent before it is replaced. */
  readonly replaceMs: number;
  /** How long a node must have served before collections are moved to it for balance. */
  readonly balanceMs: number;
}

export interface RebalancerOptions {
  readonly placements: Placements;
  readonly members: Members;
  readonly timing: RebalancerTiming;
  readonly isDrained: (node: string) => boolean;
  readonly isLeader: () => boolean;
  /** The collections in the catalogue. */
  readonly incarnations: () => readonly string[];
  /** Commits to the log of the catalogue. */
  readonly commit: (operations: readonly StoreOperation[]) => Promise<void>;
  readonly logger: Logger;
}

/** Moves at the same time in the whole cluster. */
const MOVES_MAX = 4;

export class Rebalancer {
  readonly #options: RebalancerOptions;
  /** When a node was last heard from, on `Members.listenedMs`. */
  readonly #heardMs = new Map<string, number>();
  /** Since when a node has served, on `Members.listenedMs`. */
  readonly #servingSinceMs = new Map<string, number>();
  #nextMs = 0;
  #running: Promise<void> | null = null;

  constructor(options: RebalancerOptions) {
    this.#options = options;
  }

  /** Called periodically. */
  run(): void {
    if (performance.now() < this.#nextMs) return;
    this.#nextMs = performance.now() + this.#options.timing.planMs;
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

  /** Resolves when no change is being committed. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #pass(nodes: readonly PlannedNode[]): Promise<void> {
    const { placements, members, commit, logger } = this.#options;
    const weigh = weighCollections(members.present);
    const options = { movesMax: MOVES_MAX, newId: randomUUID, weigh };
    // Records of collections that were deleted meanwhile may remain.
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
    // Of two processes of a restarted node, the new one counts.
    const byState = [...members.present].sort((a, b) => rankOf(a) - rankOf(b));
    const present = new Map(byState.map((member) => [member.node, member]));
    for (const member of present.values()) this.#track(member, nowMs);
    for (const node of this.#servingSinceMs.keys()) {
      if (present.get(node)?.state !== 'serving') this.#servingSinceMs.delete(node);
    }
    const named = [...placements.entries].flatMap(([, placement]) => assignedNodes(placement));
    return [...new Set([...present.keys(), ...named])].sort().map((node): PlannedNode => {
      const member = present.get(node);
      const heardMs = this.#heardMs.get(node) ?? nowMs;
      this.#heardMs.set(node, heardMs);
      const sinceMs = this.#servingSinceMs.get(node) ?? nowMs;
      return {
        node,
        zone: member?.zone ?? '',
        isServing: member?.state === 'serving',
        isDrained: isDrained(node),
        isGone: !isPresent(member) && nowMs - heardMs >= timing.replaceMs,
        isSettled: nowMs - sinceMs >= timing.balanceMs,
        joined: member?.joined ?? [],
      };
    });
  }

  #track({ node, state }: Member, nowMs: number): void {
    if (state !== 'leaving') this.#heardMs.set(node, nowMs);
    if (state === 'serving' && !this.#servingSinceMs.has(node)) {
      this.#servingSinceMs.set(node, nowMs);
    }
  }
}

function rankOf({ state }: Member): number {
  return ['leaving', 'joining', 'serving'].indexOf(state);
}

function isPresent(member: Member | undefined): boolean {
  return member !== undefined && member.state !== 'leaving';
}

function operationOf(incarnation: string, placement: Placement | null): StoreOperation {
  return placement === null
    ? placementRemoval(incarnation)
    : placementOperation(incarnation, placement);
}
