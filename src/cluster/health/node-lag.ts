// How far this node is behind the owners of logs. Each owner announces the sum of the positions of its logs, and the node
// compares it with its own. It remembers the sums that it has not reached, with the time at which it received them.

import type { Member, Members } from '../members/members.js';
import { assignedNodes, type Placements } from '../placement/placements.js';

/** More are not needed, since the first one not reached decides. */
const AHEAD_MAX = 1_000;

export interface Lag {
  /** The time since the first announcement that is not reached here; 0 if all are. */
  readonly seconds: number;
  /** Messages of logs, including barriers. */
  readonly messages: number;
}

/** The lag behind one owner. */
export class OwnerLag {
  /** Announced sums that are not reached, oldest first. */
  #ahead: { readonly position: number; readonly atMs: number }[] = [];
  #newest = 0;

  /** `position`: the sum over the logs of the owner. It decreases when the owner releases a log. */
  observe(position: number, nowMs: number): void {
    this.#newest = position;
    this.#ahead = this.#ahead.filter((entry) => entry.position <= position);
    if (this.#ahead.length < AHEAD_MAX) this.#ahead.push({ position, atMs: nowMs });
  }

  /** `reached`: the same sum over the applied positions of this node. */
  read(reached: number, nowMs: number): Lag {
    this.#ahead = this.#ahead.filter(({ position }) => position > reached);
    const [first] = this.#ahead;
    return {
      seconds: first === undefined ? 0 : (nowMs - first.atMs) / 1_000,
      messages: Math.max(0, this.#newest - reached),
    };
  }
}

interface ObservedLog {
  readonly name: string;
  /** The process that owns it. */
  readonly owner: string;
  readonly position: number;
}

/** The lag behind all owners. */
export class NodeLag {
  readonly #node: string;
  readonly #placements: Placements;
  readonly #logs: { readonly all: readonly ObservedLog[] };
  /** The lags by the processes that own logs. */
  readonly #byOwner = new Map<string, OwnerLag>();

  constructor(options: {
    readonly node: string;
    readonly placements: Placements;
    /** The logs of this node. */
    readonly logs: { readonly all: readonly ObservedLog[] };
  }) {
    this.#node = options.node;
    this.#placements = options.placements;
    this.#logs = options.logs;
  }

  /** Called with each announcement of another node. */
  observe({ instance, position, positions }: Member): void {
    const lag = this.#byOwner.get(instance) ?? new OwnerLag();
    this.#byOwner.set(instance, lag);
    lag.observe(position + (positions[this.#node] ?? 0), performance.now());
  }

  /** The lag behind the owners that this node hears from. */
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

  /** The sum of this node's positions in the logs that a process owns. */
  #reached(instance: string): number {
    return this.#logs.all
      .filter(({ owner }) => owner === instance)
      .reduce((sum, { position }) => sum + position, 0);
  }

  /** The sums that the owner of logs announces: over those of all nodes, and for each node over its others. */
  ownedPositions(instance: string): Pick<Member, 'position' | 'positions'> {
    let sum = 0;
    const positions: Record<string, number> = {};
    for (const { name, owner, position } of this.#logs.all) {
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
