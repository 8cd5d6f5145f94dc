// Decides which node owns which log. Every node looks at all logs periodically: it takes over those whose owner is gone
// if it is next in line, and releases those for which another node is first in line. The order of the nodes differs from
// log to log, which spreads the logs evenly, also those of a node that is gone. A mistake about which nodes are present
// costs time only, since the logs decide who may write.

import { hash } from 'node:crypto';
import type { Logger } from '../../common/logger.js';
import type { Member, Members } from '../members/members.js';
import type { ReplicatedLog } from './replicated-log.js';

export interface ElectionTiming {
  /** How long a log must be without an owner before a node takes over, since a new node has not heard from all others. */
  readonly settleMs: number;
  readonly silentMsMax: number;
  /** How long a leaving node has to release its logs. */
  readonly leaveMs: number;
  /** How long a node must have served before the logs for which it is first in line are released to it. */
  readonly balanceMs: number;
}

/** The pause after a failed take-over. */
const RETRY_MS = 1_000;
/** The pause after a release that failed because writes never ended. Writes are not held up meanwhile. */
const RELEASE_RETRY_MS = 5_000;
/** How much longer an owner that cannot store anything has to release its logs itself. */
const UNABLE_MS = 1_000;
/** Logs that are taken over at the same time, or released by a node that should own none. */
const TAKEN_OVER_MAX = 8;
/** Processes in `Member.takeOverCounts`. */
const TAKEN_FROM_MAX = 16;

interface Election {
  /** The nodes that may own the log, in order. */
  candidates: readonly Member[];
  /** The states of the nodes from which the candidates were determined. */
  basis: string;
  /** Since when the log has had no owner, on `Members.listenedMs`; null while it has one. */
  ownerlessSinceMs: number | null;
  /** The same, also through attempts to take over that failed. */
  firstOwnerlessMs: number | null;
  /** The time of the next attempt to take over or release, on `performance.now`. */
  notBeforeMs: number;
  running: Promise<void> | null;
}

/** The process that owns a log and is present; null for none, and for one that is leaving. */
export function ownerOf(log: ReplicatedLog, members: Members): Member | null {
  const { self } = members;
  if (log.isWritable) return self;
  const member = members.find(log.owner);
  const isGone = member === undefined || member.state === 'leaving';
  return isGone || member.instance === self.instance ? null : member;
}

/** Whether another process owns a log and is present. */
export function isOwnedElsewhere(log: ReplicatedLog, members: Members): boolean {
  return !log.isWritable && ownerOf(log, members) !== null;
}

export interface ElectionsOptions {
  readonly members: Members;
  /** The log that nodes may own before they serve. */
  readonly catalogue: ReplicatedLog;
  readonly timing: ElectionTiming;
  /** The names of the nodes that follow a log; null if all do. */
  readonly holdersOf: (log: ReplicatedLog) => readonly string[] | null;
  /** Whether a node should own logs only if no other one can. */
  readonly isDrained: (node: string) => boolean;
  /** Takes over a log. Resolves with the process that owned it; empty for none. */
  readonly lead: (log: ReplicatedLog) => Promise<string>;
  /** Releases a log to other nodes, unless that is impossible at the moment. */
  readonly release: (log: ReplicatedLog) => Promise<void>;
  readonly logger: Logger;
}

export class Elections {
  readonly #options: ElectionsOptions;
  readonly #elections = new WeakMap<ReplicatedLog, Election>();
  /** Since when each process has served, on `Members.listenedMs`. */
  readonly #servingSinceMs = new Map<string, number>();
  #takeOverCount = 0;
  #releaseCount = 0;
  #running = new Set<Promise<void>>();

  constructor(options: ElectionsOptions) {
    this.#options = options;
  }

  /** Looks at all logs. Take-overs go on after it has returned. */
  run(logs: Iterable<ReplicatedLog>): void {
    const present = this.#options.members.present;
    this.#trackServing(present);
    const states = present
      .map((member) => `${member.instance} ${member.state} ${this.#isAvoided(member)}`)
      .join();
    for (const log of logs) {
      const election = this.#electionOf(log);
      const holders = this.#options.holdersOf(log);
      const basis = holders === null ? states : `${states} ${holders.join()}`;
      if (election.basis !== basis) {
        const followers = present.filter(({ node }) => holders?.includes(node) ?? true);
        election.candidates = this.#candidatesFor(log, followers);
        election.basis = basis;
      }
      if (election.running !== null) continue;
      const owner = ownerOf(log, this.#options.members);
      const isUnable = owner !== null && this.#isUnable(owner, election);
      if (owner !== null && !isUnable) {
        election.ownerlessSinceMs = null;
        election.firstOwnerlessMs = null;
        if (log.isWritable) this.#releaseToFirst(log, election, holders);
        continue;
      }
      const nowMs = this.#options.members.listenedMs;
      election.ownerlessSinceMs ??= nowMs;
      election.firstOwnerlessMs ??= nowMs;
      const rank = this.#rankOf(log, election);
      if (rank < 0 || this.#takeOverCount >= TAKEN_OVER_MAX) continue;
      const waitMs = this.#waitMs(log, rank) + (isUnable ? UNABLE_MS : 0);
      if (nowMs - election.ownerlessSinceMs < waitMs) continue;
      if (performance.now() < election.notBeforeMs) continue;
      this.#start(log, election);
    }
  }

  /** Resolves when no take-over or release is running, including those that begin meanwhile. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** How long a log has had no owner that is present, in milliseconds; 0 if it has one. */
  ownerlessMs(log: ReplicatedLog): number {
    const sinceMs = this.#elections.get(log)?.firstOwnerlessMs ?? null;
    return sinceMs === null ? 0 : this.#options.members.listenedMs - sinceMs;
  }

  /** Takes over a log now, even from another owner. Rejects when that fails. */
  async takeOver(log: ReplicatedLog): Promise<void> {
    const { members, lead } = this.#options;
    const owner = await lead(log);
    if (owner === '' || owner === members.self.instance) return;
    const { [owner]: count = 0, ...others } = members.self.takeOverCounts;
    const kept = Object.entries(others).slice(-(TAKEN_FROM_MAX - 1));
    members.change({ takeOverCounts: { ...Object.fromEntries(kept), [owner]: count + 1 } });
  }

  /** Whether an owner announces that it cannot store anything, which a disk that does not answer keeps it from releasing. */
  #isUnable(owner: Member, { candidates: [first] }: Election): boolean {
    const isOther = owner.instance !== this.#options.members.self.instance;
    return isOther && !owner.canStore && first !== undefined && !this.#isAvoided(first);
  }

  #electionOf(log: ReplicatedLog): Election {
    let election = this.#elections.get(log);
    if (election === undefined) {
      election = {
        candidates: [],
        basis: '',
        ownerlessSinceMs: null,
        firstOwnerlessMs: null,
        notBeforeMs: 0,
        running: null,
      };
      this.#elections.set(log, election);
    }
    return election;
  }

  #start(log: ReplicatedLog, election: Election): void {
    this.#takeOverCount++;
    election.running = this.#track(
      this.takeOver(log)
        .catch((err: unknown) => {
          election.notBeforeMs = performance.now() + RETRY_MS;
          this.#options.logger.info(
            { err, log: log.name },
            'this node could not take over a log; it will retry',
          );
        })
        .finally(() => {
          this.#takeOverCount--;
          election.running = null;
          election.ownerlessSinceMs = null;
        }),
    );
  }

  /** The place of this node among the candidates; negative if it is not one. */
  #rankOf(log: ReplicatedLog, { candidates }: Election): number {
    const { self } = this.#options.members;
    // After a failed commit, the others still take this node for the owner, so it must go on, if only to release the log.
    const isKnownOwner = log.owner === self.instance && self.state === 'serving' && self.canStore;
    if (isKnownOwner) return 0;
    return candidates.findIndex(({ instance }) => instance === self.instance);
  }

  /** Staggers the attempts of the nodes. */
  #waitMs(log: ReplicatedLog, rank: number): number {
    const { members, timing } = this.#options;
    const wasReleased = log.epoch > 0 && log.owner === '';
    const isBeingLeft = members.find(log.owner)?.state === 'leaving';
    const firstMs = isBeingLeft ? timing.leaveMs : timing.settleMs;
    return (wasReleased ? 0 : firstMs) + rank * timing.silentMsMax;
  }

  /** Until any node serves, joining ones may own the log of the catalogue, which one of them must write first. */
  #candidatesFor(log: ReplicatedLog, present: readonly Member[]): Member[] {
    const serving = present.filter(({ state }) => state === 'serving');
    const isFounding = serving.length === 0 && log === this.#options.catalogue;
    const able = isFounding ? present.filter(({ state }) => state === 'joining') : serving;
    const preferred = able.filter((member) => !this.#isAvoided(member));
    return (preferred.length > 0 ? preferred : able)
      .map((member) => ({ member, weight: hash('sha1', `${log.name} ${member.node}`) }))
      .sort((a, b) => (a.weight < b.weight ? -1 : 1))
      .map(({ member }) => member);
  }

  /** Whether a node should own logs only if no other one can. */
  #isAvoided({ node, canStore }: Member): boolean {
    return !canStore || this.#options.isDrained(node);
  }

  /** A released log has no owner for a moment, so one at a time is released, unless this node should own none. */
  #releaseToFirst(log: ReplicatedLog, election: Election, holders: readonly string[] | null): void {
    const { members, catalogue, logger } = this.#options;
    const first = election.candidates[0];
    if (first === undefined || first.instance === members.self.instance) return;
    const isNoHolder = holders !== null && !holders.includes(members.self.node);
    const isDraining = isNoHolder || this.#isAvoided(members.self);
    // If all nodes are avoided, the owners keep their logs.
    if (this.#isAvoided(first) && !isNoHolder) return;
    if (!isDraining && (log === catalogue || !this.#isSettled(first))) return;
    if (this.#releaseCount >= (isDraining ? TAKEN_OVER_MAX : 1)) return;
    if (performance.now() < election.notBeforeMs) return;
    logger.info({ log: log.name, node: first.node }, 'releasing a log to another node');
    this.#releaseCount++;
    election.running = this.#track(this.#release(log, election));
  }

  async #release(log: ReplicatedLog, election: Election): Promise<void> {
    const { release, logger } = this.#options;
    try {
      await release(log);
    } catch (err) {
      logger.info({ err, log: log.name }, 'a log could not be released; this will be retried');
    }
    // Other logs get their turn meanwhile.
    if (log.isWritable) election.notBeforeMs = performance.now() + RELEASE_RETRY_MS;
    this.#releaseCount--;
    election.running = null;
  }

  #isSettled({ instance }: Member): boolean {
    const { members, timing } = this.#options;
    const sinceMs = this.#servingSinceMs.get(instance) ?? members.listenedMs;
    return members.listenedMs - sinceMs >= timing.balanceMs;
  }

  #trackServing(present: readonly Member[]): void {
    const serving = new Set<string>();
    for (const { instance, state } of present) {
      if (state !== 'serving') continue;
      serving.add(instance);
      if (this.#servingSinceMs.has(instance)) continue;
      this.#servingSinceMs.set(instance, this.#options.members.listenedMs);
    }
    for (const instance of this.#servingSinceMs.keys()) {
      if (!serving.has(instance)) this.#servingSinceMs.delete(instance);
    }
  }

  #track(work: Promise<void>): Promise<void> {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
    return work;
  }
}
