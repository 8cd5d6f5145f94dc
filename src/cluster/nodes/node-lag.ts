// How far a node is behind those that own logs. Each owner announces how far they are, and this node looks how far it has
// them itself; what it has not reached yet it remembers with the time at which it heard of it.

import type { Member, Members } from '../members/members.js';
import { assignedNodes, type Placements } from '../placement/placements.js';

/** Later ones are not needed: the first one not reached tells the time. */
const AHEAD_MAX = 1_000;

export interface Lag {
  /** Since the owner announced the first position that is not reached here; 0 when all are. */
  readonly seconds: number;
  /** Messages of logs, which include those that only mark a moment. */
  readonly messages: number;
}

/** Behind one owner. */
export class OwnerLag {
  /** Positions not reached so far, oldest first. */
  #ahead: { readonly position: number; readonly atMs: number }[] = [];
  #newest = 0;

  /** `position`: the sum of those of the logs that it owns. It decreases when it owns one less. */
  observe(position: number, nowMs: number): void {
    this.#newest = position;
    this.#ahead = this.#ahead.filter((entry) => entry.position <= position);
    if (this.#ahead.length < AHEAD_MAX) this.#ahead.push({ position, atMs: nowMs });
  }

  /** `reached`: of this node, like `position`. */
  read(reached: number, nowMs: number): Lag {
    this.#ahead = this.#ahead.filter(({ position }) => position > reached);
    const [first] = this.#ahead;
    return {
      seconds: first === undefined ? 0 : (nowMs - first.atMs) / 1_000,
      messages: Math.max(0, this.#newest - reached),
    };
  }
}

interface PlacedLog {
  readonly name: string;
  /** The process. */
  readonly owner: string;
  readonly position: number;
}

/** Behind all owners. */
export class NodeLag {
  readonly #node: string;
  readonly #placements: Placements;
  readonly #logs: () => readonly PlacedLog[];
  /** By the processes that own logs. */
  readonly #byOwner = new Map<string, OwnerLag>();

  constructor(options: {
    readonly node: string;
    readonly placements: Placements;
    /** Of this node. */
    readonly logs: () => readonly PlacedLog[];
  }) {
    this.#node = options.node;
    this.#placements = options.placements;
    this.#logs = options.logs;
  }

  /** Called with what another node announces. */
  observe({ instance, position, positions }: Member): void {
    const lag = this.#byOwner.get(instance) ?? new OwnerLag();
    this.#byOwner.set(instance, lag);
    lag.observe(position + (positions[this.#node] ?? 0), performance.now());
  }

  /** As far as this node hears of the owners. */
  read(members: Members): Lag {
    const nowMs = performance.now();
    let seconds = 0;
    let messages = 0;
    for (const [instance, lag] of this.#byOwner) {
      if (members.find(instance) === undefined) {
        this.#byOwner.delete(instance);
        continue;
      }
      const found = lag.read(this.#reached(instance), nowMs);
      seconds = Math.max(seconds, found.seconds);
      messages += found.messages;
    }
    return { seconds, messages };
  }

  /** Up to where this node has the logs that a process owns, all added up. */
  #reached(instance: string): number {
    return this.#logs()
      .filter(({ owner }) => owner === instance)
      .reduce((sum, { position }) => sum + position, 0);
  }

  /** Up to where a process of this node has the logs that it owns, for those who have them, too. */
  ownedPositions(instance: string): Pick<Member, 'position' | 'positions'> {
    let sum = 0;
    const positions: Record<string, number> = {};
    for (const { name, owner, position } of this.#logs()) {
      if (owner !== instance) continue;
      const placement = this.#placements.of(name);
      if (placement === null) sum += position;
      for (const node of placement === null ? [] : assignedNodes(placement)) {
        positions[node] = (positions[node] ?? 0) + position;
      }
    }
    return { position: sum, positions };
  }
}
