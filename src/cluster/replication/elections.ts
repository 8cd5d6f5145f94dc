// Which node carries out the writes of which log. Every node looks again and again at all logs: it takes over those
// whose owner is gone when it is the next in line, and releases those for which another node is. The order of the nodes
// is another one for every log, so that the logs are spread evenly, and those of a node that is gone, too. Whoever is
// wrong about who is there costs time only: the logs decide who may write.

import { hash } from 'node:crypto';
import type { Logger } from '../../common/logger.js';
import type { Member, Members } from '../members/members.js';
import type { ReplicatedLog } from './replicated-log.js';

export interface ElectionTiming {
  /** How long no node must own a log until one takes over: one that has just started has not heard of all others. */
  readonly settleMs: number;
  readonly silentMsMax: number;
  /** How long a node that leaves has to release its logs. */
  readonly leaveMs: number;
  /** How long a node must have served until the logs for which it is the first in line are released to it. */
  readonly balanceMs: number;
}

/** After an attempt to take over that failed. */
const RETRY_MS = 1_000;
/** After a release that failed, as writes were under way all the time: those that come meanwhile do not wait. */
const RELEASE_RETRY_MS = 5_000;
/** Logs that are taken over at the same time, and those that a node releases that is to own none. */
const TAKEN_OVER_MAX = 8;
/** Processes of which is remembered what was taken over from them. */
const TAKEN_FROM_MAX = 16;

interface Election {
  /** The nodes that may own the log, the first in line first. */
  candidates: readonly Member[];
  /** What the candidates were found among. */
  present: string;
  /** Since when no node owns the log, as far as this one knows, by `Members.listenedMs`; null while one does. */
  ownerlessSinceMs: number | null;
  /** Of another attempt to take over, or to release; by `performance.now`. */
  notBeforeMs: number;
  running: Promise<void> | null;
}

export interface ElectionsOptions {
  readonly members: Members;
  /** The log that nodes may own before they serve. */
  readonly catalogue: ReplicatedLog;
  readonly timing: ElectionTiming;
  /** The names of the nodes that have a log; null where all do. */
  readonly holdersOf: (log: ReplicatedLog) => readonly string[] | null;
  /** Whether a node, by its name, is to own logs only if no other one can. */
  readonly isDrained: (node: string) => boolean;
  /** Called for a log that this node is to take over. Resolves with the process that owned it; empty for none. */
  readonly lead: (log: ReplicatedLog) => Promise<string>;
  /** Called for a log that another node is to take over. It may find that it cannot be released now. */
  readonly release: (log: ReplicatedLog) => Promise<void>;
  readonly logger: Logger;
}

export class Elections {
  readonly #options: ElectionsOptions;
  readonly #elections = new WeakMap<ReplicatedLog, Election>();
  /** Since when a process serves, by `Members.listenedMs`. */
  readonly #servingSinceMs = new Map<string, number>();
  #takeOverCount = 0;
  #releaseCount = 0;
  #running = new Set<Promise<void>>();

  constructor(options: ElectionsOptions) {
    this.#options = options;
  }

  /** The process that owns the log and is there; null for none, and for one that leaves. */
  ownerOf(log: ReplicatedLog): Member | null {
    const { self } = this.#options.members;
    if (log.isWritable) return self;
    const member = this.#options.members.find(log.owner);
    const isGone = member === undefined || member.state === 'leaving';
    return isGone || member.instance === self.instance ? null : member;
  }

  /** Whether another process owns the log and is there. */
  isOwnedElsewhere(log: ReplicatedLog): boolean {
    return !log.isWritable && this.ownerOf(log) !== null;
  }

  /** Looks at all logs. Take-overs go on when it has returned. */
  run(logs: Iterable<ReplicatedLog>): void {
    const present = this.#options.members.present;
    this.#noteServing(present);
    const states = present
      .map((member) => `${member.instance} ${member.state} ${this.#isAvoided(member)}`)
      .join();
    for (const log of logs) {
      const election = this.#electionOf(log);
      const holders = this.#options.holdersOf(log);
      const among = holders === null ? states : `${states} ${holders.join()}`;
      if (election.present !== among) {
        const having = present.filter(({ node }) => holders?.includes(node) ?? true);
        election.candidates = this.#candidatesFor(log, having);
        election.present = among;
      }
      if (election.running !== null) continue;
      if (this.ownerOf(log) !== null) {
        election.ownerlessSinceMs = null;
        if (log.isWritable) this.#releaseToFirst(log, election, holders);
        continue;
      }
      const nowMs = this.#options.members.listenedMs;
      election.ownerlessSinceMs ??= nowMs;
      const rank = this.#rankOf(log, election);
      if (rank < 0 || this.#takeOverCount >= TAKEN_OVER_MAX) continue;
      if (nowMs - election.ownerlessSinceMs < this.#waitMs(log, rank)) continue;
      if (performance.now() < election.notBeforeMs) continue;
      this.#start(log, election);
    }
  }

  /** Resolves when no take-over and no release is under way. Those that begin meanwhile are waited for, too. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Takes over a log now, whoever owns it. Rejects when that fails. */
  async takeOver(log: ReplicatedLog): Promise<void> {
    const { members, lead } = this.#options;
    const owner = await lead(log);
    if (owner === '' || owner === members.self.instance) return;
    const { [owner]: count = 0, ...others } = members.self.takeOverCounts;
    const kept = Object.entries(others).slice(-(TAKEN_FROM_MAX - 1));
    members.change({ takeOverCounts: { ...Object.fromEntries(kept), [owner]: count + 1 } });
  }

  #electionOf(log: ReplicatedLog): Election {
    let election = this.#elections.get(log);
    if (election === undefined) {
      election = {
        candidates: [],
        present: '',
        ownerlessSinceMs: null,
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
          this.#options.logger.warn(
            { err, log: log.name },
            'this node could not take over; it tries again',
          );
        })
        .finally(() => {
          this.#takeOverCount--;
          election.running = null;
          election.ownerlessSinceMs = null;
        }),
    );
  }

  /** Negative where this node is not to take over. */
  #rankOf(log: ReplicatedLog, { candidates }: Election): number {
    const { self } = this.#options.members;
    // A commit failed, and the others take this node for the owner: also a drained one has to go on, to release it.
    const isTaken = log.owner === self.instance && self.state === 'serving' && self.canStore;
    if (isTaken) return 0;
    return candidates.findIndex(({ instance }) => instance === self.instance);
  }

  /** The nodes do not try all at once. */
  #waitMs(log: ReplicatedLog, rank: number): number {
    const { members, timing } = this.#options;
    const wasReleased = log.epoch > 0 && log.owner === '';
    const isBeingLeft = members.find(log.owner)?.state === 'leaving';
    const firstMs = isBeingLeft ? timing.leaveMs : timing.settleMs;
    return (wasReleased ? 0 : firstMs) + rank * timing.silentMsMax;
  }

  /** Until nodes serve, those that join may own the catalogue, which has to be founded. */
  #candidatesFor(log: ReplicatedLog, present: readonly Member[]): Member[] {
    const serving = present.filter(({ state }) => state === 'serving');
    const isFounding = serving.length === 0 && log === this.#options.catalogue;
    const there = isFounding ? present.filter(({ state }) => state === 'joining') : serving;
    const lasting = there.filter((member) => !this.#isAvoided(member));
    return (lasting.length > 0 ? lasting : there)
      .map((member) => ({ member, weight: hash('sha1', `${log.name} ${member.node}`) }))
      .sort((a, b) => (a.weight < b.weight ? -1 : 1))
      .map(({ member }) => member);
  }

  /** Whether it is to own logs only if no other node can. */
  #isAvoided({ node, canStore }: Member): boolean {
    return !canStore || this.#options.isDrained(node);
  }

  /** Each log is without an owner for a moment, so one at a time is released, unless this node is to own none. */
  #releaseToFirst(log: ReplicatedLog, election: Election, holders: readonly string[] | null): void {
    const { members, catalogue, logger } = this.#options;
    const first = election.candidates[0];
    if (first === undefined || first.instance === members.self.instance) return;
    const isNoHolder = holders !== null && !holders.includes(members.self.node);
    const isDraining = isNoHolder || this.#isAvoided(members.self);
    // Where all nodes are avoided, those that own logs go on.
    if (this.#isAvoided(first) && !isNoHolder) return;
    if (!isDraining && (log === catalogue || !this.#hasServedLong(first))) return;
    if (this.#releaseCount >= (isDraining ? TAKEN_OVER_MAX : 1)) return;
    if (performance.now() < election.notBeforeMs) return;
    logger.info({ log: log.name, node: first.node }, 'the log is to be released to another node');
    this.#releaseCount++;
    election.running = this.#track(this.#release(log, election));
  }

  async #release(log: ReplicatedLog, election: Election): Promise<void> {
    const { release, logger } = this.#options;
    try {
      await release(log);
    } catch (err) {
      logger.warn({ err, log: log.name }, 'a release failed');
    }
    // Others get their turn meanwhile, too.
    if (log.isWritable) election.notBeforeMs = performance.now() + RELEASE_RETRY_MS;
    this.#releaseCount--;
    election.running = null;
  }

  #hasServedLong({ instance }: Member): boolean {
    const { members, timing } = this.#options;
    const sinceMs = this.#servingSinceMs.get(instance) ?? members.listenedMs;
    return members.listenedMs - sinceMs >= timing.balanceMs;
  }

  #noteServing(present: readonly Member[]): void {
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
