// The state of nodes for operators: what a node announces, how many collections it holds, and whether a drained node can
// be stopped.

import { toSeconds } from '../../common/problems.js';
import type { DrainState } from '../members/drained-nodes.js';
import { type Member, type Members, newMember } from '../members/members.js';
import type { NodeChoice } from '../placement/choose-nodes.js';
import type { Placements } from '../placement/placements.js';
import type { NodeLogs } from '../replication/node-logs.js';

export interface MemberStatus extends Omit<Member, 'state'> {
  /** `absent`: not heard from recently, although it did not leave. */
  readonly state: Member['state'] | 'absent';
  /** How long it has not been heard from, if it is absent; otherwise 0. */
  readonly silentSeconds: number;
  readonly drain: DrainState;
  /** The number of collections that it holds. */
  readonly heldCount: number;
}

export interface MemberStatesOptions {
  readonly members: Members;
  readonly logs: NodeLogs;
  readonly placements: Placements;
  /** The nodes on which collections can be placed. */
  readonly candidates: () => readonly NodeChoice[];
  readonly isDrained: (node: string) => boolean;
  /** All collections of the cluster. */
  readonly incarnations: () => readonly string[];
}

export class MemberStates {
  readonly #options: MemberStatesOptions;

  constructor(options: MemberStatesOptions) {
    this.#options = options;
  }

  /** The nodes that are present or absent, in the order of their names. */
  get all(): readonly MemberStatus[] {
    const { present, absent } = this.#options.members;
    const silent = absent.map(({ member, silentMs }): MemberStatus => {
      // Whatever it announced last, it carries out nothing now.
      const found = this.#stateOf({ ...member, epoch: 0, collectionCount: 0, problems: [] });
      return { ...found, state: 'absent', silentSeconds: toSeconds(silentMs) };
    });
    const all = [...present.map((member) => this.#stateOf(member)), ...silent];
    return all.sort((a, b) => (a.node < b.node ? -1 : 1));
  }

  /** Whether a node is present or drained. */
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
    const common = { ...member, heldCount, silentSeconds: 0 };
    if (!isDrained(member.node)) return { ...common, drain: 'none' };
    // The announcement may be older than what this node has read from the logs, and vice versa.
    const isNeeded =
      this.#hasMovable(member.node) ||
      member.epoch > 0 ||
      member.collectionCount > 0 ||
      logs.all.some(({ owner }) => owner === member.instance);
    return { ...common, drain: isNeeded ? 'draining' : 'drained' };
  }

  /** Whether a drained node holds collections that will move to other nodes. */
  #hasMovable(node: string): boolean {
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

/** A drained node that has not been heard from recently. */
function absentMember(node: string): Member {
  return newMember({ instance: '', version: '', zone: '', node, state: 'leaving' });
}
