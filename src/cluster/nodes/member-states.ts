// What operators are shown of a node: what it announces, how many collections it holds, and whether it can be stopped
// when it is drained.

import type { DrainState } from '../members/drained-nodes.js';
import { type Member, type Members, newMember } from '../members/members.js';
import type { NodeChoice } from '../placement/choose-nodes.js';
import type { Placements } from '../placement/placements.js';
import type { NodeLogs } from '../replication/node-logs.js';

export interface MemberStatus extends Member {
  readonly drain: DrainState;
  /** How many collections it holds. */
  readonly heldCount: number;
}

export interface MemberStatesOptions {
  readonly members: Members;
  readonly logs: NodeLogs;
  readonly placements: Placements;
  /** The nodes that collections can be placed on. */
  readonly candidates: () => readonly NodeChoice[];
  readonly isDrained: (node: string) => boolean;
  /** All collections. */
  readonly incarnations: () => readonly string[];
}

export class MemberStates {
  readonly #options: MemberStatesOptions;

  constructor(options: MemberStatesOptions) {
    this.#options = options;
  }

  get present(): readonly MemberStatus[] {
    return this.#options.members.present.map((member) => this.#stateOf(member));
  }

  /** Whether a node is there, or is drained. */
  isKnown(node: string): boolean {
    return this.#find(node) !== undefined || this.#options.isDrained(node);
  }

  of(node: string): MemberStatus {
    return this.#stateOf(this.#find(node) ?? absentMember(node));
  }

  #find(node: string): Member | undefined {
    return this.#options.members.present.find((member) => member.node === node);
  }

  #stateOf(member: Member): MemberStatus {
    const { logs, isDrained } = this.#options;
    const heldCount = this.#heldCountOf(member.node);
    if (!isDrained(member.node)) return { ...member, heldCount, drain: 'none' };
    // What it announces may be older than what the logs say, and the other way round.
    const isOwner =
      this.#isEmptied(member.node) ||
      member.epoch > 0 ||
      member.collectionCount > 0 ||
      logs.all.some(({ owner }) => owner === member.instance);
    return { ...member, heldCount, drain: isOwner ? 'draining' : 'drained' };
  }

  /** Whether other nodes are to get collections that a drained node has. */
  #isEmptied(node: string): boolean {
    const { incarnations, placements } = this.#options;
    const candidates = this.#options.candidates().map((candidate) => candidate.node);
    return incarnations().some((incarnation) => {
      const placement = placements.of(incarnation);
      if (placement === null || !placement.nodes.includes(node)) return false;
      const { nodes, leaving, joining } = placement;
      return (
        leaving === node || candidates.some((other) => other !== joining && !nodes.includes(other))
      );
    });
  }

  #heldCountOf(node: string): number {
    const { incarnations, placements } = this.#options;
    return incarnations().filter((incarnation) => placements.holds(node, incarnation)).length;
  }
}

/** A node that is or was drained and was not heard of lately. */
function absentMember(node: string): Member {
  return newMember({ instance: '', version: '', zone: '', node, state: 'leaving' });
}
